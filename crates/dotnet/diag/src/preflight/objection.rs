//! The reasons to not send a request, with advice.

use std::io;
use std::path::PathBuf;

use runtap_diag_proto::DumpType;
use runtap_os::objfile::pe::PeError;
use thiserror::Error;

/// A reason why the target would be harmed by a request, or could not carry it out. Paths refer to the target's file
/// system.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Objection {
    /// `createdump` cannot be started: the target would lose its socket and become unreachable.
    #[error("the target cannot start {}: it is {}", path.display(), if *missing { "missing" } else { "not executable" })]
    Createdump {
        /// The path of `createdump`.
        path: PathBuf,
        /// Whether the file is missing, as opposed to not executable.
        missing: bool,
    },
    /// The runtime would report that it has written the dump, but would not write it.
    #[error("the runtime is suspended at startup and can write full dumps only, not type {kind:?}")]
    DumpAtStartup {
        /// The requested type.
        kind: DumpType,
    },
    /// The class of the hook has type parameters, which the runtime does not supply. Crashes .NET 9 and 10.
    #[error("the class StartupHook of {} has type parameters", path.display())]
    GenericHookClass {
        /// The path of the assembly.
        path: PathBuf,
    },
    /// A file or directory in the request does not exist or is not readable.
    #[error("{what} {} {}", path.display(), not_usable(source))]
    Missing {
        /// The kind of file.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// An assembly with native code, which only the .NET Framework and Windows can load. Crashes .NET 9 and 10.
    #[error("{} contains native code", path.display())]
    NativeCode {
        /// The path of the assembly.
        path: PathBuf,
    },
    /// The assembly has no hook. Crashes .NET 9 and 10.
    #[error("{} has no class StartupHook outside of namespaces", path.display())]
    NoHookClass {
        /// The path of the assembly.
        path: PathBuf,
    },
    /// The assembly's hook cannot be called. Crashes .NET 9 and 10.
    #[error("the class StartupHook of {} has no static void Initialize() without parameters", path.display())]
    NoHookMethod {
        /// The path of the assembly.
        path: PathBuf,
    },
    /// The file is a module of an assembly. Crashes .NET 9 and 10.
    #[error("{} has no manifest: it is a part of an assembly", path.display())]
    NoManifest {
        /// The path of the file.
        path: PathBuf,
    },
    /// The path is not a regular file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The path is not a directory.
    #[error("{} is not a directory", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// The profiler is not a shared library.
    #[error("{} is not a shared library: {why}", path.display())]
    NotALibrary {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file is not a .NET assembly. Crashes .NET 9 and 10.
    #[error("{} is not a .NET assembly: {source}", path.display())]
    NotAnAssembly {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        source: PeError,
    },
    /// A perf map crashes this runtime while it is suspended.
    #[error("the runtime is suspended at startup, where a perf map crashes .NET {version}")]
    PerfMapAtStartup {
        /// The major version: 8 or 9.
        version: u16,
    },
    /// A profiler or hook for another processor, or precompiled for another system. A hook crashes .NET 9 and 10.
    #[error("{} is built for {library}, but the target runs on {target}", path.display())]
    OtherProcessor {
        /// The path of the library.
        path: PathBuf,
        /// The platform of the library.
        library: String,
        /// The platform of the target.
        target: String,
    },
    /// The runtime loads such a profiler only at startup: it would answer OK and do nothing.
    #[error("the program is already running")]
    RunsAlready,
    /// A relative path, which the target would resolve in its own working directory.
    #[error("the path must be absolute: {path:?}")]
    Relative {
        /// The path.
        path: String,
    },
    /// The hook has two matching methods, and the runtime calls neither. Crashes .NET 9 and 10.
    #[error("the class StartupHook of {} has several static methods Initialize without parameters", path.display())]
    SeveralHookMethods {
        /// The path of the assembly.
        path: PathBuf,
    },
    /// The path contains a colon, which separates startup hooks.
    #[error("{path:?} contains a colon, which separates startup hooks")]
    SeveralPaths {
        /// The path.
        path: String,
    },
    /// The assembly was built for a newer .NET than the target runs. Crashes .NET 9 and 10.
    #[error("{} was built for .NET {built_for}, but the target runs .NET {version}", path.display())]
    TooNew {
        /// The path of the assembly.
        path: PathBuf,
        /// The .NET version that it was built for.
        built_for: u16,
        /// The .NET version of the target.
        version: u16,
    },
    /// Stopping a session while the runtime is suspended later crashes .NET 8, 9 and 10.
    #[error("the runtime is suspended at startup, where a session cannot be stopped, only disconnected")]
    StopAtStartup,
    /// The file is too large to be checked.
    #[error("{} is too large for a startup hook ({bytes} bytes)", path.display())]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The size in bytes.
        bytes: u64,
    },
    /// The process behind the connection cannot be inspected, and the request could crash it.
    #[error("the target cannot be inspected: {source}")]
    Unseen {
        /// The error.
        source: io::Error,
    },
}

fn not_usable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist in the target's file system".to_owned(),
        _ => format!("can't be accessed in the target's file system: {error}"),
    }
}

impl Objection {
    /// Returns advice for the user in one sentence. `None` for objections without advice.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Createdump { missing: true, .. } => {
                "createdump must be next to libcoreclr.so: install the complete runtime in the target"
            }
            Self::Createdump { missing: false, .. } => "make it executable for the target's user",
            Self::DumpAtStartup { .. } => "request a full dump, or resume the target first",
            Self::Missing { .. } | Self::NotAFile { .. } | Self::NotAFolder { .. } => {
                "the target opens the path itself: in its own mount namespace, as its own user"
            }
            Self::GenericHookClass { .. }
            | Self::NativeCode { .. }
            | Self::NoHookClass { .. }
            | Self::NoHookMethod { .. }
            | Self::NoManifest { .. }
            | Self::NotAnAssembly { .. }
            | Self::SeveralHookMethods { .. } => "a startup hook that cannot be loaded crashes the target",
            Self::PerfMapAtStartup { .. } => {
                "resume the target first, or start it with DOTNET_PerfMapEnabled=1"
            }
            Self::NotALibrary { .. } => "a profiler is a native library, built for the target's system",
            Self::OtherProcessor { .. } => {
                "use the file that was built for the target's processor and system"
            }
            Self::StopAtStartup => "resume the target first",
            Self::RunsAlready => "attach the profiler, or start the program suspended",
            Self::TooNew { .. } => "build the hook for the oldest .NET that you use it with",
            Self::Unseen { .. } => "run this as root, or as the user who runs the target",
            Self::Relative { .. } | Self::SeveralPaths { .. } | Self::TooLarge { .. } => return None,
        })
    }
}
