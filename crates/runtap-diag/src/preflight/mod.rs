//! Looks at the target before something is asked of it that is well-formed and would harm it all the same.
//!
//! A startup hook that cannot be loaded ends .NET 9 and 10; a perf map ends .NET 8 and 9 while they wait at startup; a
//! dump without a working `createdump` costs the target its socket. No message can tell: it depends on what the
//! **target** finds, in its own mount namespace. [`Client`](crate::Client) asks here before it sends; `doctor` and the
//! like can ask the same.
//!
//! What could not be looked at is refused where the target would die of it, and let through where it would only refuse.

mod assembly;
mod objection;
mod tables;
mod target;

use std::io::Read;
use std::path::{Path, PathBuf};

use runtap_diag_proto::{CoreDump, DumpType, ProcessInfo, Request};

pub use assembly::HookAssembly;
pub use objection::Objection;
pub use target::Target;

/// The longest assembly that is read to see whether it is a startup hook.
const MAX_ASSEMBLY: u64 = 64 << 20;

/// Thread that every `CoreCLR` with a diagnostics server has from its first moment on.
const SERVER_THREAD: &str = ".NET EventPipe";

/// Thread that it has only once it runs. (.NET 8, 9 and 10 were looked at.)
const FINALIZER_THREAD: &str = ".NET Finalizer";

/// How far a runtime is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Startup {
    /// It waits to be resumed, or is about to start.
    Waiting,
    /// It runs.
    Running,
}

/// How far the runtime is. `None`: this is no `CoreCLR`, or one older than .NET 6, whose threads have no names.
///
/// # Errors
/// The process is gone.
pub fn startup(target: &Target) -> std::io::Result<Option<Startup>> {
    let names = target.thread_names()?;
    let has = |name: &str| names.iter().any(|other| other == name);
    Ok(match (has(FINALIZER_THREAD), has(SERVER_THREAD)) {
        (true, _) => Some(Startup::Running),
        (false, true) => Some(Startup::Waiting),
        (false, false) => None,
    })
}

/// The `createdump` that the runtime would start, by the path that the target uses. `None`: this is no `CoreCLR`, and
/// what it does for a dump is not known.
///
/// # Errors
/// The process is gone, or is not ours to look into.
pub fn createdump(target: &Target) -> std::io::Result<Option<PathBuf>> {
    let mapped = target.mapped_files()?;
    let library = mapped.iter().find(|file| file.file_name().is_some_and(|name| name == "libcoreclr.so"));
    // A single-file program has the runtime in its own executable; the runtime's memory for code gives it away.
    let single = || mapped.iter().any(|file| file.to_string_lossy().contains("memfd:doublemapper"));
    let beside = match library {
        Some(library) => Some(library.clone()),
        None if single() => Some(target.executable()?),
        None => None,
    };
    Ok(beside.map(|file| file.with_file_name("createdump")))
}

/// Looks whether the target can start `createdump`.
///
/// # Errors
/// [`Objection::Createdump`]. What can't be looked at is no reason.
pub fn check_createdump(target: &Target) -> Result<(), Objection> {
    let Ok(Some(path)) = createdump(target) else { return Ok(()) };
    match target.is_executable(&path) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Objection::Createdump { path, missing: false }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Objection::Createdump { path, missing: true })
        }
        Err(_unseen) => Ok(()),
    }
}

/// Whether [`check`] wants to know the runtime's version.
pub(crate) fn depends_on_version(request: &Request) -> bool {
    matches!(request, Request::EnablePerfMap(_) | Request::ApplyStartupHook { .. })
}

/// Whether [`check`] looks at anything.
pub(crate) fn concerns(request: &Request) -> bool {
    depends_on_version(request)
        || matches!(request, Request::GenerateCoreDump { .. } | Request::StartupProfiler(_))
}

/// Looks whether the target would be harmed by the request, or would say that it has done what it can't do. Reads
/// files: not for an event loop.
///
/// `target` is the process behind the connection, or why it can't be looked at; `info` what it says about itself.
///
/// # Errors
/// The reason not to send the request.
pub fn check(
    target: std::io::Result<&Target>,
    request: &Request,
    info: Option<&ProcessInfo>,
) -> Result<(), Objection> {
    match request {
        Request::GenerateCoreDump { dump, .. } => check_dump(target.ok(), dump),
        Request::StartupProfiler(profiler) => {
            let path = absolute(&profiler.path)?;
            target.map_or(Ok(()), |target| existing_file(target, "profiler", path))
        }
        Request::EnablePerfMap(_) => check_perf_map(target, info),
        Request::ApplyStartupHook { path } => {
            let target = target.map_err(|source| Objection::Unseen { source })?;
            check_hook(target, path, info.and_then(major))
        }
        _ => Ok(()),
    }
}

fn check_dump(target: Option<&Target>, dump: &CoreDump) -> Result<(), Objection> {
    let path = absolute(&dump.path)?;
    let Some(target) = target else { return Ok(()) };
    if dump.kind != DumpType::FULL && matches!(startup(target), Ok(Some(Startup::Waiting))) {
        return Err(Objection::DumpAtStartup { kind: dump.kind });
    }
    if let Some(folder) = path.parent()
        // The runtime puts pid and name for these.
        && !folder.to_string_lossy().contains('%')
    {
        match target.metadata(folder) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_file) => return Err(Objection::NotAFolder { path: folder.to_owned() }),
            Err(source) => {
                return Err(Objection::Missing { what: "folder", path: folder.to_owned(), source });
            }
        }
    }
    check_createdump(target)
}

fn check_perf_map(target: std::io::Result<&Target>, info: Option<&ProcessInfo>) -> Result<(), Objection> {
    let Some(version @ (8 | 9)) = info.and_then(major) else { return Ok(()) };
    let target = target.map_err(|source| Objection::Unseen { source })?;
    match startup(target).map_err(|source| Objection::Unseen { source })? {
        Some(Startup::Waiting) => Err(Objection::PerfMapAtStartup { version }),
        Some(Startup::Running) | None => Ok(()),
    }
}

/// Looks whether the target can use `path` as a startup hook; `version` is the .NET that it runs, if known.
///
/// # Errors
/// Why it can't.
pub fn check_hook(target: &Target, path: &str, version: Option<u16>) -> Result<(), Objection> {
    if path.contains(':') {
        return Err(Objection::SeveralPaths { path: path.to_owned() });
    }
    let path = absolute(path)?;
    let missing = |source| Objection::Missing { what: "startup hook", path: path.to_owned(), source };
    let file = target.open(path).map_err(missing)?;
    let metadata = file.metadata().map_err(missing)?;
    if !metadata.is_file() {
        return Err(Objection::NotAFile { path: path.to_owned() });
    }
    if metadata.len() > MAX_ASSEMBLY {
        return Err(Objection::TooLarge { path: path.to_owned(), bytes: metadata.len() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_ASSEMBLY).read_to_end(&mut bytes).map_err(missing)?;
    let hook = HookAssembly::read(&bytes)
        .map_err(|source| Objection::NotAnAssembly { path: path.to_owned(), source })?;
    if !hook.has_class {
        return Err(Objection::NoHookClass { path: path.to_owned() });
    }
    if !hook.has_method {
        return Err(Objection::NoHookMethod { path: path.to_owned() });
    }
    match (hook.built_for, version) {
        (Some(built_for), Some(version)) if built_for > version => {
            Err(Objection::TooNew { path: path.to_owned(), built_for, version })
        }
        _ => Ok(()),
    }
}

fn existing_file(target: &Target, what: &'static str, path: &Path) -> Result<(), Objection> {
    match target.metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_other) => Err(Objection::NotAFile { path: path.to_owned() }),
        Err(source) => Err(Objection::Missing { what, path: path.to_owned(), source }),
    }
}

/// What the target takes from its working directory, nobody else knows.
fn absolute(path: &str) -> Result<&Path, Objection> {
    let given = Path::new(path);
    if given.has_root() { Ok(given) } else { Err(Objection::Relative { path: path.to_owned() }) }
}

/// The .NET that a process runs: 8 of `8.0.33`.
fn major(info: &ProcessInfo) -> Option<u16> {
    info.runtime_version.as_deref()?.split('.').next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
