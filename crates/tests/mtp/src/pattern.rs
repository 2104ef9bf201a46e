//! Patterns of files: `*`, `?`, `[…]`, and `**` for any number of directories.
//!
//! Owns: [`FilePattern`], which is matched component by component, with all places of the pattern at once that a path may
//! have reached. So each directory is read once and each name is compared once with each component, however many `**` there
//! are; to try one way after the other would take 60 directories to the power of the number of `**`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// A component of a pattern.
#[derive(Debug)]
enum Part {
    /// This name.
    Name(OsString),
    /// A name that matches.
    Pattern(Pattern),
    /// `**`.
    AnyDirectories,
}

/// A pattern of absolute paths.
#[derive(Debug)]
pub(crate) struct FilePattern(Vec<Part>);

/// The parts that the next component may match.
type Places = BTreeSet<usize>;

impl FilePattern {
    /// A pattern that is relative to `root`, unless it is absolute.
    pub(crate) fn new(root: &Path, pattern: &str) -> Result<Self, PatternError> {
        // As a whole first: for what is wrong between components.
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

    /// Whether a path matches.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let mut places = self.with_empty(Places::from([0]));
        for name in names(path) {
            places = self.after(&places, name);
        }
        places.contains(&self.0.len())
    }

    /// The files that match; none for a pattern that ends in `**`, which names directories. A directory that can't be read has
    /// none.
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
        let mut ahead = vec![(base, self.with_empty(Places::from([given])))];
        while let Some((folder, places)) = ahead.pop() {
            for name in self.candidates(&folder, &places) {
                let after = self.after(&places, &name);
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

    /// The names in a directory that may match. Those that a pattern gives literally need no right to read the directory.
    fn candidates(&self, folder: &Path, places: &Places) -> BTreeSet<OsString> {
        let parts = places.iter().filter_map(|place| self.0.get(*place));
        let mut candidates: BTreeSet<OsString> =
            parts.clone().filter_map(Part::name).map(OsStr::to_owned).collect();
        if parts.clone().any(|part| part.name().is_none())
            && let Ok(entries) = fs::read_dir(folder)
        {
            candidates.extend(entries.filter_map(Result::ok).map(|entry| entry.file_name()));
        }
        candidates
    }

    /// The places behind a name.
    fn after(&self, places: &Places, name: &OsStr) -> Places {
        let mut after = Places::new();
        for place in places {
            match self.0.get(*place) {
                Some(Part::Name(wanted)) if wanted == name => after.insert(place + 1),
                Some(Part::Pattern(pattern))
                    if name.to_str().is_some_and(|name| pattern.matches_with(name, OPTIONS)) =>
                {
                    after.insert(place + 1)
                }
                // At the end it stands for all that is below.
                Some(Part::AnyDirectories) if place + 1 == self.0.len() => {
                    after.insert(place + 1);
                    after.insert(*place)
                }
                Some(Part::AnyDirectories) => after.insert(*place),
                _ => continue,
            };
        }
        self.with_empty(after)
    }

    /// These places, and those behind each `**`, which may stand for no directory.
    fn with_empty(&self, mut places: Places) -> Places {
        let mut next = places.first().copied();
        while let Some(place) = next {
            if matches!(self.0.get(place), Some(Part::AnyDirectories)) && place + 1 < self.0.len() {
                places.insert(place + 1);
            }
            next = places.range(place + 1..).next().copied();
        }
        places
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

/// The components of a path but `.`, which names nothing.
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

    /// Ten of them among sixty directories are more ways than can ever be tried.
    #[test]
    fn many_wildcards_look_at_each_directory_once() {
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
