//! Identifies the runtime of a process by its mapped files, its executable and the names of its threads. Pure.
//!
//! `CoreCLR` is a library with a known name. A single-file program contains it, and `NativeAOT` is compiled into the program; both
//! export a symbol for debuggers. If access is denied, only the names of threads are left, which all users may read. Measured on
//! .NET 8, 9 and 10.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use runtap_transport::linux::path_of;

use crate::Startup;

/// The runtime of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Runtime {
    /// No runtime was found, and everything was readable.
    #[default]
    None,
    /// .NET, or .NET Core.
    CoreClr {
        /// The path of `libcoreclr.so`, as seen by the process.
        library: PathBuf,
    },
    /// .NET inside the program's executable.
    SingleFile,
    /// Compiled ahead of time. Has a diagnostics server only if it was built with one.
    NativeAot,
    /// Mono as used without .NET Core; it has no diagnostics server.
    Mono,
    /// A Java virtual machine and no .NET runtime.
    Jvm,
    /// Access was denied.
    Hidden {
        /// Whether threads have names that only a .NET runtime assigns.
        likely: bool,
    },
    /// No runtime was found, but not everything was read because it was too long or a budget was used up.
    Unread {
        /// Whether threads have names that only a .NET runtime assigns.
        likely: bool,
    },
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no .NET runtime"),
            Self::CoreClr { library } => library.display().fmt(f),
            Self::SingleFile => f.write_str(".NET inside the program's own file"),
            Self::NativeAot => f.write_str(".NET compiled ahead of time"),
            Self::Mono => f.write_str("Mono"),
            Self::Jvm => f.write_str("a Java virtual machine, no .NET runtime"),
            Self::Hidden { likely: true } => f.write_str("not readable; its threads have .NET names"),
            Self::Hidden { likely: false } => f.write_str("not readable"),
            Self::Unread { likely: true } => {
                f.write_str("too long to read completely; its threads have .NET names")
            }
            Self::Unread { likely: false } => f.write_str("too long to read completely"),
        }
    }
}

impl Runtime {
    /// Whether this is, or may be, a runtime of .NET Core 3.0 or later.
    pub fn is_dotnet(&self) -> bool {
        !matches!(
            self,
            Self::None
                | Self::Mono
                | Self::Jvm
                | Self::Hidden { likely: false }
                | Self::Unread { likely: false }
        )
    }

    /// Returns the version in the library's path: `…/Microsoft.NETCore.App/8.0.33/libcoreclr.so`.
    pub fn version(&self) -> Option<&str> {
        let Self::CoreClr { library } = self else { return None };
        let folder = library.parent()?.file_name()?.to_str()?;
        major_minor(folder).map(|_| folder)
    }

    /// Whether it is older than .NET Core 3.0, the first version with a diagnostics server.
    pub fn is_too_old(&self) -> bool {
        *self == Self::Mono || self.version().and_then(major_minor).is_some_and(|version| version < (3, 0))
    }
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The name of the thread that shows that a runtime has started its program.
pub(super) const FINALIZER: &str = ".NET Finalizer";

/// Returns the progress of the startup according to the names of threads: the finalizer thread is created when the runtime is ready
/// to run code, the server's before. .NET Core 3 does not name its threads.
pub(super) fn startup(runtime: &Runtime, threads: &[impl AsRef<str>]) -> Startup {
    let has = |name: &str| threads.iter().any(|thread| thread.as_ref() == name);
    match runtime {
        _ if has(FINALIZER) => Startup::Done,
        Runtime::CoreClr { .. } | Runtime::SingleFile if names_none(threads) => Startup::Unknown,
        Runtime::CoreClr { .. } | Runtime::SingleFile => Startup::Waiting,
        Runtime::Hidden { .. } | Runtime::Unread { .. }
            if has(".NET EventPipe") || has(".NET SynchManag") =>
        {
            Startup::Waiting
        }
        _ => Startup::Unknown,
    }
}

/// Whether the thread of the diagnostics server exists. `None` for `NativeAOT` and others, which do not name their threads.
pub(super) fn serves(runtime: &Runtime, threads: &[impl AsRef<str>]) -> Option<bool> {
    match runtime {
        Runtime::CoreClr { .. } | Runtime::SingleFile if names_none(threads) => None,
        Runtime::CoreClr { .. }
        | Runtime::SingleFile
        | Runtime::Hidden { likely: true }
        | Runtime::Unread { likely: true } => {
            Some(threads.iter().any(|name| name.as_ref() == ".NET EventPipe"))
        }
        _ => None,
    }
}

/// Whether there are several threads, but none has the name that later runtimes assign.
fn names_none(threads: &[impl AsRef<str>]) -> bool {
    threads.len() > 1 && !named_like_dotnet(threads)
}

/// Whether threads have names that only a .NET runtime assigns. Another program may imitate them, but not by accident.
pub(super) fn named_like_dotnet(threads: &[impl AsRef<str>]) -> bool {
    threads.iter().any(|name| name.as_ref().starts_with(".NET "))
}

/// The signs of a runtime among the mapped files. Built up line by line, because a process may have any number of mappings.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    /// The path of `libcoreclr.so`, which outweighs everything else.
    pub library: Option<PathBuf>,
    mono: bool,
    /// Double-mapped memory for compiled code shows that there is a runtime.
    doubled: bool,
    /// `libjvm.so` of `HotSpot`, or its replacement in `OpenJ9`.
    jvm: bool,
}

impl Mapped {
    /// Adds a line of `maps`.
    pub(super) fn add(&mut self, line: &[u8]) {
        let Some(path) = mapped_file(line) else { return };
        match path.file_name().map(OsStr::as_bytes) {
            Some(b"libcoreclr.so") => {
                self.library.get_or_insert(path);
            }
            Some(b"libmonosgen-2.0.so.1" | b"libmonosgen-2.0.so") => self.mono = true,
            Some(b"libjvm.so") => self.jvm = true,
            _ => self.doubled |= path.as_os_str().as_bytes().starts_with(b"/memfd:doublemapper"),
        }
    }

    /// Returns the runtime according to the mapped files and the executable.
    pub(super) fn runtime(self, exe: Option<&Path>) -> Runtime {
        let host = exe.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
        match self {
            Self { library: Some(library), .. } => Runtime::CoreClr { library },
            Self { mono: true, .. } => Runtime::Mono,
            _ if matches!(host, "mono" | "mono-sgen" | "mono-boehm") => Runtime::Mono,
            // The runtime is not in a library.
            Self { doubled: true, .. } => Runtime::SingleFile,
            Self { jvm: true, .. } => Runtime::Jvm,
            _ => Runtime::None,
        }
    }
}

/// Returns the path at the end of a line of `maps`. It may contain spaces.
fn mapped_file(line: &[u8]) -> Option<PathBuf> {
    let slash = line.iter().position(|b| *b == b'/')?;
    let path = line.get(slash..)?;
    Some(path_of(path.strip_suffix(b" (deleted)").unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(files: &[&str]) -> Vec<u8> {
        let line = |file: &&str| format!("7f00-7f01 r-xp 00000000 08:01 42                {file}\n");
        files.iter().map(line).collect::<String>().into_bytes()
    }

    fn coreclr(library: &str) -> Runtime {
        Runtime::CoreClr { library: library.into() }
    }

    #[test]
    fn runtimes_by_what_is_mapped() {
        let app = Some(Path::new("/app/x"));
        for (files, exe, expected) in [
            (&["/lib/libc.so.6", "[heap]"][..], app, Runtime::None),
            (&["/opt/my net/libcoreclr.so (deleted)"], app, coreclr("/opt/my net/libcoreclr.so")),
            (&["/app/libcoreclr.so.bak", "/app/notlibcoreclr.so"], app, Runtime::None),
            (&["/memfd:doublemapper (deleted)", "/app/x"], app, Runtime::SingleFile),
            (&["/memfd:doublemapper (deleted)", "/n/libcoreclr.so"], app, coreclr("/n/libcoreclr.so")),
            (&["/usr/lib/libc.so.6"], Some(Path::new("/usr/bin/mono-sgen")), Runtime::Mono),
            (&["/usr/lib/libmonosgen-2.0.so.1"], app, Runtime::Mono),
            (&["/jdk/lib/server/libjvm.so", "/lib/libc.so.6"], app, Runtime::Jvm),
            (&["/jdk/lib/server/libjvm.so (deleted)"], app, Runtime::Jvm),
            (&["/jdk/lib/server/libjvm.so", "/n/libcoreclr.so"], app, coreclr("/n/libcoreclr.so")),
            (&[], None, Runtime::None),
        ] {
            let mut mapped = Mapped::default();
            maps(files).split(|b| *b == b'\n').for_each(|line| mapped.add(line));
            assert_eq!(mapped.runtime(exe), expected, "{files:?}");
        }
    }

    #[test]
    fn versions_by_the_folder() {
        let shared =
            |version: &str| coreclr(&format!("/usr/share/Microsoft.NETCore.App/{version}/libcoreclr.so"));
        for (version, old) in [("2.1.30", true), ("3.0.0", false), ("3.1.23", false), ("10.0.0-rc.1", false)]
        {
            let runtime = shared(version);
            assert_eq!((runtime.version(), runtime.is_too_old()), (Some(version), old));
        }
        assert_eq!(coreclr("/app/libcoreclr.so").version(), None);
        assert!(!coreclr("/app/libcoreclr.so").is_too_old());
        assert!(Runtime::Mono.is_too_old() && !Runtime::Mono.is_dotnet());
        assert!(!Runtime::Jvm.is_too_old() && !Runtime::Jvm.is_dotnet());
        assert!(
            Runtime::Hidden { likely: true }.is_dotnet() && !Runtime::Hidden { likely: false }.is_dotnet()
        );
    }

    #[test]
    fn threads_show_the_progress_of_the_startup() {
        let waiting = ["dotnet", ".NET SynchManag", ".NET EventPipe"];
        let done = ["dotnet", ".NET SynchManag", ".NET EventPipe", ".NET Finalizer"];
        let off = ["dotnet", ".NET SynchManag", ".NET Finalizer"];
        let runtime = coreclr("/n/libcoreclr.so");
        assert_eq!(startup(&runtime, &waiting), Startup::Waiting);
        assert_eq!(startup(&runtime, &["dotnet"]), Startup::Waiting);
        // .NET Core 3.1 at run time.
        assert_eq!(startup(&runtime, &["dotnet", "dotnet"]), Startup::Unknown);
        assert_eq!(serves(&runtime, &["dotnet", "dotnet"]), None);
        assert_eq!(startup(&runtime, &done), Startup::Done);
        assert_eq!(startup(&Runtime::Hidden { likely: true }, &waiting), Startup::Waiting);
        assert_eq!(startup(&Runtime::Hidden { likely: false }, &["x"]), Startup::Unknown);
        assert_eq!(startup(&Runtime::NativeAot, &["app"]), Startup::Unknown);
        assert_eq!((serves(&runtime, &done), serves(&runtime, &off)), (Some(true), Some(false)));
        assert_eq!(serves(&Runtime::NativeAot, &["app"]), None);
        assert!(named_like_dotnet(&waiting) && !named_like_dotnet(&["NET x", "dotnet"]));
    }
}
