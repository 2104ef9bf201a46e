//! The reasons not to send a request, and what can be done about each.

use std::io;
use std::path::PathBuf;

use runtap_diag_proto::DumpType;
use runtap_objfile::pe::PeError;
use thiserror::Error;

/// What the target would be harmed by, or could not do. Paths are those of the target's file system.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Objection {
    /// `createdump` can't be started: the target would lose its socket, and nobody could reach it any more.
    #[error("the target cannot start {}: it is {}", path.display(), if *missing { "missing" } else { "not executable" })]
    Createdump {
        /// Where it should be.
        path: PathBuf,
        /// It is not there at all.
        missing: bool,
    },
    /// The runtime would say that it has written the dump, and would not.
    #[error("the runtime waits at its start, where it can write full dumps only, not type {kind:?}")]
    DumpAtStartup {
        /// What was asked for.
        kind: DumpType,
    },
    /// The class of the hook has type parameters, which nobody names. Ends .NET 9 and 10.
    #[error("the class StartupHook of {} has type parameters", path.display())]
    GenericHookClass {
        /// The assembly.
        path: PathBuf,
    },
    /// A file or folder that the request names is not there, or not readable.
    #[error("{what} {} in the target's file system: {source}", path.display())]
    Missing {
        /// What it is.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An assembly with native code beside the managed: only the .NET Framework and Windows load it. Ends .NET 9 and 10.
    #[error("{} has native code in it", path.display())]
    NativeCode {
        /// The assembly.
        path: PathBuf,
    },
    /// The assembly has no hook. Ends .NET 9 and 10.
    #[error("{} has no class StartupHook outside of namespaces", path.display())]
    NoHookClass {
        /// The assembly.
        path: PathBuf,
    },
    /// The assembly's hook can't be called. Ends .NET 9 and 10.
    #[error("the class StartupHook of {} has no static void Initialize() without parameters", path.display())]
    NoHookMethod {
        /// The assembly.
        path: PathBuf,
    },
    /// Part of an assembly. Ends .NET 9 and 10.
    #[error("{} has no manifest: it is a part of an assembly", path.display())]
    NoManifest {
        /// The file.
        path: PathBuf,
    },
    /// Not a regular file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// What it is.
        path: PathBuf,
    },
    /// Not a folder.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// What it is.
        path: PathBuf,
    },
    /// A profiler that is no shared library.
    #[error("{} is not a shared library: {why}", path.display())]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// What it is, or where that shows.
        why: String,
    },
    /// No .NET assembly. Ends .NET 9 and 10.
    #[error("{} is not a .NET assembly: {source}", path.display())]
    NotAnAssembly {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: PeError,
    },
    /// A perf map ends this runtime while it waits.
    #[error("the runtime waits at its start, where a perf map ends .NET {version}")]
    PerfMapAtStartup {
        /// 8 or 9.
        version: u16,
    },
    /// A profiler or hook for another processor, or precompiled for another system. A hook ends .NET 9 and 10.
    #[error("{} is made for {library}, and the target runs on {target}", path.display())]
    OtherProcessor {
        /// The library.
        path: PathBuf,
        /// What it is made for.
        library: String,
        /// What the target is made for.
        target: String,
    },
    /// The runtime takes a profiler for its start, and would say OK and do nothing.
    #[error("the program runs already")]
    RunsAlready,
    /// A path that the target would take from a folder that only it knows.
    #[error("{path:?} is not an absolute path")]
    Relative {
        /// The path.
        path: String,
    },
    /// The hook can be called in two ways, and the runtime takes neither. Ends .NET 9 and 10.
    #[error("the class StartupHook of {} has several static methods Initialize without parameters", path.display())]
    SeveralHookMethods {
        /// The assembly.
        path: PathBuf,
    },
    /// A colon: the runtime takes it for the end of a first path.
    #[error("{path:?} has a colon in it, which separates startup hooks")]
    SeveralPaths {
        /// The path.
        path: String,
    },
    /// The assembly was built for a newer .NET than the target runs. Ends .NET 9 and 10.
    #[error("{} was built for .NET {built_for}, and the target runs .NET {version}", path.display())]
    TooNew {
        /// The assembly.
        path: PathBuf,
        /// What it was built for.
        built_for: u16,
        /// What the target runs.
        version: u16,
    },
    /// A session that is stopped while the runtime waits ends .NET 8, 9 and 10 later.
    #[error("the runtime waits at its start, where a session can't be stopped, only hung up on")]
    StopAtStartup,
    /// Too large to be looked at.
    #[error("{} is too large for a startup hook ({bytes} bytes)", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The process behind the connection can't be looked at, and the request could end it.
    #[error("the target cannot be looked at: {source}")]
    Unseen {
        /// Why.
        source: io::Error,
    },
}

impl Objection {
    /// What one can do about it, one sentence for people; `None` if there is nothing useful to say.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Createdump { missing: true, .. } => {
                "createdump belongs beside libcoreclr.so: install the complete runtime in the target"
            }
            Self::Createdump { missing: false, .. } => "make it executable for the target's user",
            Self::DumpAtStartup { .. } => "ask for a full dump, or resume the target first",
            Self::Missing { .. } | Self::NotAFile { .. } | Self::NotAFolder { .. } => {
                "the target opens the path itself: in its own mount namespace, as its own user"
            }
            Self::GenericHookClass { .. }
            | Self::NativeCode { .. }
            | Self::NoHookClass { .. }
            | Self::NoHookMethod { .. }
            | Self::NoManifest { .. }
            | Self::NotAnAssembly { .. }
            | Self::SeveralHookMethods { .. } => "a startup hook that cannot be loaded ends the target",
            Self::PerfMapAtStartup { .. } => {
                "resume the target first, or start it with DOTNET_PerfMapEnabled=1"
            }
            Self::NotALibrary { .. } => "a profiler is a native library, built for the target's system",
            Self::OtherProcessor { .. } => {
                "take the file that was built for the target's processor and system"
            }
            Self::StopAtStartup => "resume the target first",
            Self::RunsAlready => "attach the profiler, or start the program suspended",
            Self::TooNew { .. } => "build the hook for the oldest .NET that it is used with",
            Self::Unseen { .. } => "run this as root, or as the user who runs the target",
            Self::Relative { .. } | Self::SeveralPaths { .. } | Self::TooLarge { .. } => return None,
        })
    }
}
