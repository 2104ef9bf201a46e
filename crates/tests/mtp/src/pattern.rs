//! File patterns: `*`, `?`, `[…]`, and `**` for any number of directories.
//!
//! A [`FilePattern`] is matched component by component, tracking all positions in the pattern that a path may have
//! reached. Each directory is read once and each name is compared once with each component. Backtracking would need
//! exponential time in the number of `**`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

use runtap_model::order;

use glob::{MatchOptions, Pattern, PatternError};

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// A component of a pattern.
#[derive(Debug)]
enum Part {
    /// A literal name.
    Name(OsString),
    /// A pattern for a name.
    Pattern(Pattern),
    /// `**`.
    AnyDirectories,
}

/// A pattern of absolute paths.
#[derive(Debug)]
pub(crate) struct FilePattern(Vec<Part>);

/// The indexes of the parts that the next component may match.
type Positions = BTreeSet<usize>;

impl FilePattern {
    /// Parses a pattern, relative to `root` unless it is absolute.
    pub(crate) fn new(root: &Path, pattern: &str) -> Result<Self, PatternError> {
        // Check the whole pattern first, for errors across components.
        Pattern::new(pattern)?;
        let root = if Path::new(pattern).is_absolute() { Path::new("") } else { root };
        let mut parts: Vec<Part> = names(root).map(|name| Part::Name(name.to_owned())).collect();
        for name in names(Path::new(pattern)) {
            parts.push(match name.to_str() {
                Some("**") => Part::AnyDirectories,
                Some(name) if name.contains(['*', '?', '[']) => Part::Pattern(Pattern::new(name)?),
                _ => Part::Name(name.to_owned()),
            });
        }
        Ok(Self(parts))
    }

    /// Returns whether a path matches.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let mut positions = self.with_empty(Positions::from([0]));
        for name in names(path) {
            positions = self.after(&positions, name);
        }
        positions.contains(&self.0.len())
    }

    /// Returns the matching files. A pattern that ends with `**` matches only directories, so it has none. Unreadable
    /// directories are treated as empty.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        if matches!(self.0.last(), Some(Part::AnyDirectories)) {
            return Vec::new();
        }
        let is_name = |part: &Part| matches!(part, Part::Name(_));
        let given = self.0.iter().take_while(|part| is_name(part)).count();
        let base: PathBuf = self.0.iter().take(given).filter_map(Part::name).collect();
        let mut files = Vec::new();
        if given == self.0.len() {
            files.extend(base.is_file().then_some(base));
            return files;
        }
        let mut ahead = vec![(base, self.with_empty(Positions::from([given])))];
        while let Some((folder, positions)) = ahead.pop() {
            for name in self.candidates(&folder, &positions) {
                let after = self.after(&positions, &name);
                if after.is_empty() {
                    continue;
                }
                let path = folder.join(&name);
                if path.is_dir() {
                    ahead.push((path, after));
                } else if after.contains(&self.0.len()) && path.is_file() {
                    files.push(path);
                }
            }
        }
        files
    }

    /// Returns the names in a directory that may match. Literal names do not need permission to read the directory.
    fn candidates(&self, folder: &Path, positions: &Positions) -> BTreeSet<OsString> {
        let parts = positions.iter().filter_map(|position| self.0.get(*position));
        let mut candidates = order::to_set(parts.clone().filter_map(Part::name).map(OsStr::to_owned));
        if parts.clone().any(|part| part.name().is_none())
            && let Ok(entries) = fs::read_dir(folder)
        {
            candidates.extend(entries.filter_map(Result::ok).map(|entry| entry.file_name()));
        }
        candidates
    }

    /// Returns the positions after a name.
    fn after(&self, positions: &Positions, name: &OsStr) -> Positions {
        let mut after = Positions::new();
        for position in positions {
            match self.0.get(*position) {
                Some(Part::Name(wanted)) if wanted == name => after.insert(position + 1),
                Some(Part::Pattern(pattern))
                    if name.to_str().is_some_and(|name| pattern.matches_with(name, OPTIONS)) =>
                {
                    after.insert(position + 1)
                }
                // At the end, `**` matches everything below.
                Some(Part::AnyDirectories) if position + 1 == self.0.len() => {
                    after.insert(position + 1);
                    after.insert(*position)
                }
                Some(Part::AnyDirectories) => after.insert(*position),
                _ => continue,
            };
        }
        self.with_empty(after)
    }

    /// Adds the positions after each `**`, which may match no directory.
    fn with_empty(&self, mut positions: Positions) -> Positions {
        let mut next = positions.first().copied();
        while let Some(position) = next {
            if matches!(self.0.get(position), Some(Part::AnyDirectories)) && position + 1 < self.0.len() {
                positions.insert(position + 1);
            }
            next = positions.range(position + 1..).next().copied();
        }
        positions
    }
}

impl Part {
    fn name(&self) -> Option<&OsStr> {
        match self {
            Self::Name(name) => Some(name),
            Self::Pattern(_) | Self::AnyDirectories => None,
        }
    }
}

/// Returns the components of a path without `.`.
fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter(|component| *component != Component::CurDir).map(Component::as_os_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, path: &str) -> bool {
        FilePattern::new(Path::new("/r[1]"), pattern).unwrap().matches(Path::new(path))
    }

    #[test]
    fn components_match_names() {
        for (pattern, path, expected) in [
            ("a/*.dll", "/r[1]/a/X.dll", true),
            ("a/*.dll", "/r[1]/a/b/X.dll", false),
            ("./a/?.dll", "/r[1]/a/X.dll", true),
            ("a/[XY].dll", "/r[1]/a/Y.dll", true),
            ("**/X", "/r[1]/X", true),
            ("**/X", "/r[1]/a/b/X", true),
            ("a/**/X", "/r[1]/b/X", false),
            ("a/**", "/r[1]/a/b/X", true),
            ("a/**", "/r[1]/a", false),
            ("**/ref/**", "/r[1]/a/ref/b/X", true),
            ("**/ref/**", "/r[1]/a/reference/X", false),
            ("/other/*", "/other/X", true),
            ("*", "/other/X", false),
        ] {
            assert_eq!(is_match(pattern, path), expected, "{pattern} {path}");
        }
        assert!(FilePattern::new(Path::new("/r"), "a/b**").is_err());
        assert!(FilePattern::new(Path::new("/r"), "a/[").is_err());
    }

    /// Backtracking over ten wildcards and sixty directories would never finish.
    #[test]
    fn many_wildcards_read_each_directory_once() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d/".repeat(60));
        fs::create_dir_all(&deep).unwrap();
        let pattern = format!("{}x", "**/d/".repeat(10));
        let pattern = FilePattern::new(folder.path(), &pattern).unwrap();
        assert!(pattern.files().is_empty() && !pattern.matches(&deep.join("y")));
        fs::write(deep.join("x"), "").unwrap();
        assert_eq!(pattern.files(), [deep.join("x")]);
        assert!(pattern.matches(&deep.join("x")));
    }
}
