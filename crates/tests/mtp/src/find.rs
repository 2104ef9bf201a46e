//! Search for test applications by paths and patterns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use glob::PatternError;
use runtap_model::order;
use thiserror::Error;

use crate::dotnet::is_program;
use crate::event::ModuleId;
use crate::module::{Module, ModuleKind};
use crate::order::of_directories;
use crate::pattern::FilePattern;

/// An error that occurs when a path or a pattern selects no test application.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FindError {
    /// No path or pattern was specified.
    #[error("no test application specified")]
    Nothing,
    /// The file does not exist.
    #[error("{}: no such file", .0.display())]
    Missing(PathBuf),
    /// The path is a directory; the user must specify its test applications.
    #[error("{}: a directory; specify a file or a pattern, such as '{}/**/*Tests.dll'", .0.display(), .0.display())]
    Directory(PathBuf),
    /// The file can be neither run by `dotnet` nor executed.
    #[error("{}: neither a .dll nor a program that may be executed", .0.display())]
    NoProgram(PathBuf),
    /// The file is a managed library.
    #[error("{}: a library, not an application: {} is missing beside it", path.display(), missing.display())]
    Library {
        /// The library.
        path: PathBuf,
        /// The file that an application would have beside it.
        missing: PathBuf,
    },
    /// The pattern matches no test application.
    #[error("{pattern:?} matches no test application{}", skipped(*.others))]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// The number of matched files that are not test applications.
        others: usize,
    },
    /// The pattern is invalid.
    #[error("{pattern:?}: {source}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The cause.
        source: PatternError,
    },
}

impl FindError {
    /// Returns what can be specified instead. `None` if the error says it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Nothing => Some(
                "Use runtap test PATH…, where PATH is a .dll, a program, or a pattern such as 'bin/**/*.Tests.dll'.",
            ),
            Self::NoMatch { .. } => Some(
                "Test applications are managed applications that use Microsoft.Testing.Platform, and executable files.",
            ),
            _ => None,
        }
    }
}

fn skipped(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => " (1 other file)".to_owned(),
        others => format!(" ({others} other files)"),
    }
}

/// Returns whether a file that a pattern matches is a test application.
fn is_test_module(path: &Path) -> bool {
    let module = Module::new(path);
    match module.kind() {
        ModuleKind::Managed => runtime_configuration(path).is_file() && uses_the_platform(path),
        // An application host is skipped in favor of the .dll beside it.
        ModuleKind::Executable => {
            is_program(path) && !path.with_file_name(format!("{}.dll", module.name())).is_file()
        }
    }
}

fn runtime_configuration(path: &Path) -> PathBuf {
    path.with_extension("runtimeconfig.json")
}

/// Returns whether the application depends on the platform. Assumes so if its dependencies are unknown.
fn uses_the_platform(path: &Path) -> bool {
    match fs::read(path.with_extension("deps.json")) {
        Ok(list) => list.windows(PLATFORM.len()).any(|window| window == PLATFORM),
        Err(_) => true,
    }
}

const PLATFORM: &[u8] = b"Microsoft.Testing.Platform";

/// The result of a search for test applications.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundModules {
    /// The test applications, sorted by path, without duplicates.
    pub modules: Vec<Module>,
    /// The order in which applications start if nothing is known about them: explicitly named applications in the given
    /// order, then applications matched by patterns, in directory order.
    pub order: Vec<ModuleId>,
    /// Libraries that were specified together with an application in the same folder, for example because a shell
    /// expanded `*.dll`.
    pub left_out: Vec<PathBuf>,
}

impl FoundModules {
    /// Returns the result with the start order that `dotnet test --test-modules` uses.
    #[must_use]
    pub fn in_order_of_directories(mut self) -> Self {
        let paths: Vec<_> = self.modules.iter().map(Module::path).collect();
        self.order = of_directories(&paths).into_iter().map(ModuleId).collect();
        self
    }
}

/// Finds the applications that `wanted` specifies. Each entry is a file, a pattern (`*`, `?`, `[…]`, `**`), or
/// `!PATTERN` to exclude files. Patterns are relative to `root`. A named file is always accepted. Files matched by a
/// pattern are accepted only if they are test applications: managed applications that depend on the platform, and
/// executable files. A library in the folder of a specified application is skipped; otherwise it is an error.
///
/// # Errors
/// Returns an error if an entry selects no test application; see [`FindError`].
pub fn find_modules(root: &Path, wanted: &[String]) -> Result<FoundModules, FindError> {
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
    let folders = order::to_set(found.iter().filter_map(|path: &PathBuf| path.parent()));
    let alone = |path: &Path| path.parent().is_none_or(|folder| !folders.contains(folder));
    if let Some((path, missing)) = libraries.iter().find(|(path, _)| alone(path)) {
        return Err(FindError::Library { path: path.clone(), missing: missing.clone() });
    }
    if found.is_empty() {
        return Err(FindError::Nothing);
    }
    let modules = found.into_iter().map(Module::new).collect();
    let found = FoundModules { modules, order: Vec::new(), left_out: libraries.into_keys().collect() };
    let mut found = found.in_order_of_directories();
    let places = order::to_map(named.iter().rev().zip((0..named.len()).rev()));
    let place =
        |module: &ModuleId| found.modules.get(module.0).and_then(|it| places.get(&it.path().to_owned()));
    let mut order = found.order.clone();
    // Stable: the other modules keep their order, after the named ones.
    order::sort_by_key(&mut order, |module| place(module).copied().unwrap_or(usize::MAX));
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
    fn named_applications_start_in_the_given_order() {
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
    fn named_files_are_accepted_or_rejected_with_a_reason() {
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
        // As a shell expands *.dll.
        let all = ["b/Library.dll", "b/Tool.dll", "b/Two.Tests.dll"];
        assert_eq!(names(root, &all).unwrap(), ["b/Tool.dll", "b/Two.Tests.dll"]);
        let found = find_modules(root, &all.map(str::to_owned)).unwrap();
        assert_eq!(found.left_out, [root.join("b/Library.dll")]);
        let error = names(root, &["b/Library.dll", "a/One.Tests.dll"]).unwrap_err();
        assert!(error.contains("a library"), "no application is in its directory: {error}");
        assert_eq!(names(root, &["b/Library.dll", "a/One.Tests", "!b/**"]).unwrap(), ["a/One.Tests"]);
        assert!(names(root, &["!a"]).is_err());
        assert!(names(root, &["[a"]).unwrap_err().contains("[a"));
    }
}
