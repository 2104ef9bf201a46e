//! From the paths and patterns that people type to the test applications they mean.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use glob::PatternError;
use thiserror::Error;

use crate::dotnet::is_program;
use crate::event::ModuleId;
use crate::module::{Module, ModuleKind};
use crate::order::of_directories;
use crate::pattern::FilePattern;

/// A path or a pattern that leads to no test application.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FindError {
    /// Nothing was given to run.
    #[error("no test application was given")]
    Nothing,
    /// There is no such file.
    #[error("{}: no such file", .0.display())]
    Missing(PathBuf),
    /// A directory: which of its files are test applications is for the user to say.
    #[error("{}: a directory; give a file or a pattern, such as '{}/**/*Tests.dll'", .0.display(), .0.display())]
    Directory(PathBuf),
    /// A file that can be neither run by `dotnet` nor executed.
    #[error("{}: neither a .dll nor a program that may be executed", .0.display())]
    NoProgram(PathBuf),
    /// A managed library.
    #[error("{}: a library, not an application: {} is missing beside it", path.display(), missing.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// What an application has beside it.
        missing: PathBuf,
    },
    /// A pattern that matches no test application.
    #[error("{pattern:?} matches no test application{}", skipped(*.others))]
    NoMatch {
        /// As it was given.
        pattern: String,
        /// Files that it matches, but which are no test applications.
        others: usize,
    },
    /// Something that is no pattern.
    #[error("{pattern:?}: {source}")]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong with it.
        source: PatternError,
    },
}

fn skipped(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => " (1 other file)".to_owned(),
        others => format!(" ({others} other files)"),
    }
}

/// Whether a file that a pattern matches is to be run.
fn is_test_module(path: &Path) -> bool {
    let module = Module::new(path);
    match module.kind() {
        ModuleKind::Managed => runtime_configuration(path).is_file() && uses_the_platform(path),
        // An application host is left to the .dll beside it.
        ModuleKind::Executable => {
            is_program(path) && !path.with_file_name(format!("{}.dll", module.name())).is_file()
        }
    }
}

fn runtime_configuration(path: &Path) -> PathBuf {
    path.with_extension("runtimeconfig.json")
}

/// An application without a list of what it depends on may use it.
fn uses_the_platform(path: &Path) -> bool {
    match fs::read(path.with_extension("deps.json")) {
        Ok(list) => list.windows(PLATFORM.len()).any(|window| window == PLATFORM),
        Err(_) => true,
    }
}

const PLATFORM: &[u8] = b"Microsoft.Testing.Platform";

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Test applications, in order of their paths, each once.
    pub modules: Vec<Module>,
    /// The order in which they start where nothing is known of them: those that were named as they were named, then those
    /// that a pattern matches, in the order of their directories.
    pub order: Vec<ModuleId>,
    /// Libraries that were named beside an application, as a shell does that has replaced `*.dll` by what it matches.
    pub left_out: Vec<PathBuf>,
}

impl Found {
    /// The same in the order in which `dotnet test` starts what `--test-modules` names, pattern or not.
    #[must_use]
    pub fn in_order_of_directories(mut self) -> Self {
        let paths: Vec<_> = self.modules.iter().map(Module::path).collect();
        self.order = of_directories(&paths).into_iter().map(ModuleId).collect();
        self
    }
}

/// Finds what `wanted` names, each a file, a pattern (`*`, `?`, `[…]`, `**`) or `!PATTERN` to leave out; patterns are
/// relative to `root`. A file that is named is taken as it is; of those that a pattern matches, only test applications:
/// managed ones that depend on the platform, and executable files. A library in the folder of an application that is named
/// too is left out; named alone, it is an error.
///
/// # Errors
/// See [`FindError`].
pub fn find_modules(root: &Path, wanted: &[String]) -> Result<Found, FindError> {
    let (left_out, wanted): (Vec<_>, Vec<_>) = wanted.iter().partition(|pattern| pattern.starts_with('!'));
    if wanted.is_empty() {
        return Err(FindError::Nothing);
    }
    let left_out = left_out.into_iter().map(|pattern| compile(root, pattern.trim_start_matches('!')));
    let left_out = left_out.collect::<Result<Vec<_>, _>>()?;
    let keep = |path: &Path| !left_out.iter().any(|pattern| pattern.matches(path));
    let (mut found, mut named, mut libraries) = (BTreeSet::new(), Vec::new(), BTreeMap::new());
    for pattern in wanted {
        let path = root.join(pattern);
        if !path.exists() && pattern.contains(['*', '?', '[']) {
            let mut paths = compile(root, pattern)?.files();
            paths.retain(|path| keep(path));
            let modules: Vec<_> = paths.iter().filter(|path| is_test_module(path)).cloned().collect();
            if modules.is_empty() {
                return Err(FindError::NoMatch { pattern: pattern.clone(), others: paths.len() });
            }
            found.extend(modules);
        } else {
            match explicit(path) {
                Ok(path) if keep(&path) => {
                    named.push(path.clone());
                    found.insert(path);
                }
                Ok(_) => {}
                Err(FindError::Library { path, missing }) if keep(&path) => {
                    libraries.insert(path, missing);
                }
                Err(FindError::Library { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let folders: BTreeSet<_> = found.iter().filter_map(|path: &PathBuf| path.parent()).collect();
    let alone = |path: &Path| path.parent().is_none_or(|folder| !folders.contains(folder));
    if let Some((path, missing)) = libraries.iter().find(|(path, _)| alone(path)) {
        return Err(FindError::Library { path: path.clone(), missing: missing.clone() });
    }
    if found.is_empty() {
        return Err(FindError::Nothing);
    }
    let modules = found.into_iter().map(Module::new).collect();
    let found = Found { modules, order: Vec::new(), left_out: libraries.into_keys().collect() };
    let mut found = found.in_order_of_directories();
    let places: BTreeMap<_, _> = named.iter().rev().zip((0..named.len()).rev()).collect();
    let place =
        |module: &ModuleId| found.modules.get(module.0).and_then(|it| places.get(&it.path().to_owned()));
    let mut order = found.order.clone();
    // Stable: the others stay as they are, behind them.
    order.sort_by_key(|module| place(module).copied().unwrap_or(usize::MAX));
    found.order = order;
    Ok(found)
}

fn compile(root: &Path, pattern: &str) -> Result<FilePattern, FindError> {
    let failed = |source| FindError::Pattern { pattern: pattern.to_owned(), source };
    FilePattern::new(root, pattern).map_err(failed)
}

fn explicit(path: PathBuf) -> Result<PathBuf, FindError> {
    let Ok(metadata) = fs::metadata(&path) else { return Err(FindError::Missing(path)) };
    if metadata.is_dir() {
        return Err(FindError::Directory(path));
    }
    let path = std::path::absolute(&path).unwrap_or(path);
    match Module::new(&path).kind() {
        ModuleKind::Managed => {
            let missing = runtime_configuration(&path);
            if missing.is_file() { Ok(path) } else { Err(FindError::Library { path, missing }) }
        }
        ModuleKind::Executable if is_program(&path) => Ok(path),
        ModuleKind::Executable => Err(FindError::NoProgram(path)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn files() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str, mode| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in ["a/One.Tests", "b/Two.Tests", "b/Tool"] {
            write(&format!("{name}.dll"), "", 0o644);
            write(&format!("{name}.runtimeconfig.json"), "{}", 0o644);
        }
        write("a/One.Tests.deps.json", r#"{"Microsoft.Testing.Platform/2.5.2":{}}"#, 0o644);
        write("a/One.Tests", "", 0o755);
        write("b/Two.Tests.deps.json", r#"{"Microsoft.Testing.Platform/1.8.4":{}}"#, 0o644);
        write("b/Tool.deps.json", "{}", 0o644);
        write("b/Library.dll", "", 0o644);
        write("c/native", "", 0o755);
        write("c/native.d", "", 0o644);
        root
    }

    fn names(root: &Path, wanted: &[&str]) -> Result<Vec<String>, String> {
        let wanted: Vec<_> = wanted.iter().map(|&pattern| pattern.to_owned()).collect();
        let found = find_modules(root, &wanted).map_err(|error| error.to_string())?;
        Ok(found
            .modules
            .iter()
            .map(|module| module.path().strip_prefix(root).unwrap().display().to_string())
            .collect())
    }

    #[test]
    fn what_is_named_starts_as_it_is_named() {
        let root = files();
        let wanted = ["c/native", "a/One.Tests.dll", "b/*.dll", "c/native"].map(str::to_owned);
        let found = find_modules(root.path(), &wanted).unwrap();
        let name = |id: &ModuleId| found.modules[id.0].name();
        assert_eq!(found.order.iter().map(name).collect::<Vec<_>>(), ["native", "One.Tests", "Two.Tests"]);
    }

    #[test]
    fn patterns_match_test_modules_only() {
        let root = files();
        let root = root.path();
        let all = ["a/One.Tests.dll", "b/Two.Tests.dll", "c/native"].map(str::to_owned).to_vec();
        assert_eq!(names(root, &["**/*"]), Ok(all.clone()));
        assert_eq!(names(root, &["**/*", "b/Two.Tests.dll"]), Ok(all));
        assert_eq!(names(root, &["**/*", "!b/**", "!**/native"]), Ok(vec!["a/One.Tests.dll".to_owned()]));
        assert_eq!(names(root, &["b/T*.dll"]), Ok(vec!["b/Two.Tests.dll".to_owned()]));
        assert_eq!(
            names(root, &["b/L*.dll"]),
            Err(r#""b/L*.dll" matches no test application (1 other file)"#.to_owned())
        );
    }

    #[test]
    fn files_are_taken_as_they_are_named_or_refused_with_a_reason() {
        let root = files();
        let root = root.path();
        assert_eq!(names(root, &["b/Tool.dll", "a/One.Tests"]).unwrap(), ["a/One.Tests", "b/Tool.dll"]);
        for (path, reason) in [
            ("x.dll", "no such file"),
            ("a", "a directory"),
            ("b/Library.dll", "a library"),
            ("c/native.d", "neither a .dll nor"),
        ] {
            let error = names(root, &[path]).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        // As a shell does with *.dll.
        let all = ["b/Library.dll", "b/Tool.dll", "b/Two.Tests.dll"];
        assert_eq!(names(root, &all).unwrap(), ["b/Tool.dll", "b/Two.Tests.dll"]);
        let found = find_modules(root, &all.map(str::to_owned)).unwrap();
        assert_eq!(found.left_out, [root.join("b/Library.dll")]);
        let error = names(root, &["b/Library.dll", "a/One.Tests.dll"]).unwrap_err();
        assert!(error.contains("a library"), "in the folder of none: {error}");
        assert_eq!(names(root, &["b/Library.dll", "a/One.Tests", "!b/**"]).unwrap(), ["a/One.Tests"]);
        assert!(names(root, &["!a"]).is_err());
        assert!(names(root, &["[a"]).unwrap_err().contains("[a"));
    }
}
