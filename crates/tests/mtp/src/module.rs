//! Test modules: the programs that are run.

use std::fmt;
use std::path::{Path, PathBuf};

/// How a module is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// A `.dll`, by the `dotnet` host.
    Managed,
    /// Anything else, directly: an application host, a native program, a script.
    Executable,
}

/// A test module: one program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    path: PathBuf,
    kind: ModuleKind,
}

impl Module {
    /// The module at an absolute path. Its kind is told by the extension, as `dotnet test --test-modules` does.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let managed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dll"));
        let kind = if managed { ModuleKind::Managed } else { ModuleKind::Executable };
        Self { path, kind }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is started.
    pub fn kind(&self) -> ModuleKind {
        self.kind
    }

    /// The file name without `.dll` and `.exe`: what people call it.
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
    fn kinds_and_names() {
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
