//! Checks of the target before well-formed requests that could harm it.
//!
//! A startup hook that cannot be loaded crashes .NET 9 and 10; a perf map crashes .NET 8 and 9 while they are suspended
//! at startup; a dump without a working `createdump` costs the target its socket. Whether a request is harmful depends on
//! the files that the **target** finds in its own mount namespace. [`Client`](crate::Client) performs these checks before
//! it sends; diagnostics can use them, too.
//!
//! If a check is impossible, the request is rejected if it could crash the target, and allowed if it could only fail.

mod hook;
mod objection;
mod profiler;
mod target;

use std::io::Read;
use std::path::Path;

use runtap_diag_proto::{AttachProfiler, CoreDump, DumpType, ProcessInfo, Request, StartupProfiler};

pub use objection::Objection;
pub use target::Target;
pub(crate) use target::is_waiting;

/// The longest assembly that is read to check whether it is a startup hook, in bytes.
const MAX_ASSEMBLY: u64 = 64 << 20;

/// Returns whether [`check`] needs the runtime's version.
pub(crate) fn depends_on_version(request: &Request) -> bool {
    matches!(request, Request::EnablePerfMap(_) | Request::ApplyStartupHook { .. })
}

/// Returns whether [`check`] checks anything for this request.
pub(crate) fn concerns(request: &Request) -> bool {
    depends_on_version(request)
        || matches!(
            request,
            Request::GenerateCoreDump { .. } | Request::AttachProfiler(_) | Request::StartupProfiler(_)
        )
}

/// Checks whether the request would harm the target, or would report success without effect. Reads files, so do not call
/// it on an event loop.
///
/// `target` is the process behind the connection, or the reason why it cannot be inspected; `info` is its description.
///
/// # Errors
/// The reason to not send the request.
pub fn check(
    target: std::io::Result<&Target>,
    request: &Request,
    info: Option<&ProcessInfo>,
) -> Result<(), Objection> {
    match request {
        Request::GenerateCoreDump { dump, .. } => check_dump(target.ok(), dump),
        Request::AttachProfiler(AttachProfiler { path, .. }) => {
            // The system's linker searches its own directories for a bare name.
            let Ok(path) = absolute(path) else { return Ok(()) };
            target.map_or(Ok(()), |target| profiler::check(target, path))
        }
        Request::StartupProfiler(StartupProfiler { path, .. }) => {
            let path = absolute(path)?;
            let Ok(target) = target else { return Ok(()) };
            profiler::check(target, path)?;
            if target.is_running() { Err(Objection::RunsAlready) } else { Ok(()) }
        }
        Request::EnablePerfMap(_) => check_perf_map(target, info),
        Request::ApplyStartupHook { path } => {
            let target = target.map_err(|source| Objection::Unseen { source })?;
            check_hook(target, path, info)
        }
        _ => Ok(()),
    }
}

fn check_dump(target: Option<&Target>, dump: &CoreDump) -> Result<(), Objection> {
    let path = absolute(&dump.path)?;
    let Some(target) = target else { return Ok(()) };
    if dump.kind != DumpType::FULL && target.is_starting() {
        return Err(Objection::DumpAtStartup { kind: dump.kind });
    }
    if let Some(folder) = path.parent()
        // The runtime replaces these by the pid and the name.
        && !folder.to_string_lossy().contains('%')
    {
        match target.metadata(folder) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_file) => return Err(Objection::NotAFolder { path: folder.to_owned() }),
            Err(source) => {
                return Err(Objection::Missing { what: "directory", path: folder.to_owned(), source });
            }
        }
    }
    target.check_createdump()
}

fn check_perf_map(target: std::io::Result<&Target>, info: Option<&ProcessInfo>) -> Result<(), Objection> {
    let Some(version @ (8 | 9)) = info.and_then(major) else { return Ok(()) };
    let target = target.map_err(|source| Objection::Unseen { source })?;
    if target.is_starting() { Err(Objection::PerfMapAtStartup { version }) } else { Ok(()) }
}

/// Checks whether the target, described by `info`, can use `path` as a startup hook.
///
/// # Errors
/// The reason why it cannot.
pub fn check_hook(target: &Target, path: &str, info: Option<&ProcessInfo>) -> Result<(), Objection> {
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
    hook::check(path, &bytes, info)
}

/// Rejects relative paths: only the target knows its working directory.
fn absolute(path: &str) -> Result<&Path, Objection> {
    let given = Path::new(path);
    if given.has_root() { Ok(given) } else { Err(Objection::Relative { path: path.to_owned() }) }
}

/// Returns the major version of .NET: 8 for `8.0.33`.
fn major(info: &ProcessInfo) -> Option<u16> {
    info.runtime_version.as_deref()?.split('.').next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
