//! Test modules: the programs that a run starts.

use std::fmt;
use std::path::{Path, PathBuf};

/// The way in which a module is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// A `.dll`, started by the `dotnet` host.
    Managed,
    /// Any other file, started directly: an application host, a native program, a script.
    Executable,
}

/// A test module: a program with tests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    path: PathBuf,
    kind: ModuleKind,
}

impl Module {
    /// Creates a module for an absolute path. The kind is derived from the extension, as in `dotnet test
    /// --test-modules`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let managed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dll"));
        let kind = if managed { ModuleKind::Managed } else { ModuleKind::Executable };
        Self { path, kind }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the way in which the module is started.
    pub fn kind(&self) -> ModuleKind {
        self.kind
    }

    /// Returns the display name: the file name without `.dll` and `.exe`.
    pub fn name(&self) -> String {
        let strip = self.path.extension().is_some_and(|extension| {
            ["dll", "exe"].iter().any(|known| extension.eq_ignore_ascii_case(known))
        });
        let name = if strip { self.path.file_stem() } else { self.path.file_name() };
        name.unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_and_name_are_derived_from_the_path() {
        for (path, kind, name) in [
            ("/a/Unit.Tests.dll", ModuleKind::Managed, "Unit.Tests"),
            ("/a/Unit.DLL", ModuleKind::Managed, "Unit"),
            ("/a/unit.exe", ModuleKind::Executable, "unit"),
            ("/a/Unit.Tests", ModuleKind::Executable, "Unit.Tests"),
        ] {
            let module = Module::new(path);
            assert_eq!((module.kind(), module.name().as_str()), (kind, name));
        }
    }
}
