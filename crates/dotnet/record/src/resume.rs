//! Resumes a runtime over each port that it waits for. If the tool on that port is gone, this process listens in its place, which
//! also resumes other runtimes that wait there.
//!
//! A port is never taken from a tool that still listens, and no socket is created where the user of the process could not create
//! one.

#[cfg_attr(target_os = "linux", path = "resume/free.rs")]
#[cfg_attr(not(target_os = "linux"), path = "resume/not_freed.rs")]
mod free;
#[cfg(target_os = "linux")]
mod stand_in;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_diag::ports::{Port, Runtime};
use runtap_target::ResolvedTarget;
use runtap_transport::BindError;
use tokio::time::sleep;

use self::free::free;
use crate::event::Event;

/// The number of processes that are reported per user. Any process may connect any number of times.
const MAX_REPORTED: usize = 1000;

/// An event that occurs while runtimes are resumed.
#[derive(Debug)]
pub enum Resumption<'a> {
    /// Listening on the port of a tool that is gone, for a process of the current user.
    TakenOver(&'a Port),
    /// A process was resumed.
    Resumed(u64),
    /// A process connected but was not resumed.
    Failed(u64, &'a runtap_diag::Error),
    /// The limit of reported processes of this user was reached.
    Muted(u32),
    /// Other processes that wait at the ports are unknown: the search took longer than this.
    OthersUnknown(Duration),
    /// Children of the resumed processes will wait at this port again, and nothing will be listening there.
    WaitsAgain(&'a Path),
    /// The guard process of a port: [`Event::GuardLeft`] or [`Event::NoGuard`].
    Guard(Event),
}

/// Why a process was not resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The runtime returned an error or could not be reached.
    #[error(transparent)]
    Runtime(#[from] runtap_diag::Error),
    /// The processes to be examined control how long that takes, and it took too long.
    #[error("examining process {pid} took too long")]
    TooSlow {
        /// The process id.
        pid: u32,
    },
    /// The process was resumed over all ports that could be found, but is still suspended.
    #[error("process {pid} is still suspended at startup")]
    StillWaits {
        /// The process id.
        pid: u32,
    },
    /// A tool listens on the port, which has to resume the process.
    #[error("process {pid} is waiting for {}, which is listening on {}", holder.map_or_else(|| "a tool".to_owned(), |pid| format!("process {pid}")), port.display())]
    Held {
        /// The process id.
        pid: u32,
        /// The path of the port.
        port: PathBuf,
        /// The process id of the tool, if known.
        holder: Option<u32>,
    },
    /// The path of the port is in a directory, or is a socket, that does not belong to the user of the process.
    #[error("process {pid} is waiting for a tool on port {}, where its user can't create a socket; the user who started the process must resume it", port.display())]
    NoRight {
        /// The process id.
        pid: u32,
        /// The path of the port.
        port: PathBuf,
    },
    /// Another user can change where the path of the port leads.
    #[error("process {pid} is waiting for a tool on port {}, but a symbolic link in that path belongs to another user, who can change it", port.display())]
    Astray {
        /// The process id.
        pid: u32,
        /// The path of the port.
        port: PathBuf,
    },
    /// The port can't be listened on.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The process can't be examined.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Resumes a process over its own port and all others that it waits for. If the tool on such a port is gone, listens in its place
/// for at most `limit`. `guard` is as in [`Specification`](crate::Specification::guard).
///
/// # Errors
/// Returns an error if the process was not resumed.
pub async fn resume(
    subject: &ResolvedTarget,
    limit: Duration,
    guard: Option<&[OsString]>,
    tell: &(impl Fn(Resumption<'_>) + Clone + Send + Sync + 'static),
) -> Result<(), ResumeError> {
    match subject.client.resume().await {
        // .NET Core 3 can't be suspended and does not support the command.
        Err(error) if !error.is_unknown_command() => return Err(error.into()),
        _ => {}
    }
    match &subject.process {
        Some(process) => free(process, limit, guard, tell).await,
        None => Ok(()),
    }
}

/// Resumes every runtime that connects to a port within `limit`. Returns whether there was any.
pub async fn resume_at(port: &mut Port, limit: Duration, tell: &impl Fn(Resumption<'_>)) -> bool {
    let (mut freed, mut reported) = (false, ReportedProcesses::default());
    port.resume_all(sleep(limit), |runtime, outcome| freed |= reported.add(runtime, &outcome, tell)).await;
    freed
}

/// The processes that were reported: each once, and a limited number per user.
#[derive(Debug, Default)]
struct ReportedProcesses(BTreeMap<u32, BTreeSet<u64>>);

impl ReportedProcesses {
    /// Reports the result for a runtime. Returns whether it was resumed.
    fn add(
        &mut self,
        runtime: &Runtime,
        outcome: &Result<(), runtap_diag::Error>,
        tell: &impl Fn(Resumption<'_>),
    ) -> bool {
        let peer = runtime.peer();
        let pid = peer.pid.map_or_else(|| runtime.process_id(), u64::from);
        let reported = self.0.entry(peer.uid).or_default();
        if reported.len() < MAX_REPORTED && reported.insert(pid) {
            tell(match outcome {
                Ok(()) => Resumption::Resumed(pid),
                Err(error) => Resumption::Failed(pid, error),
            });
            if reported.len() == MAX_REPORTED {
                tell(Resumption::Muted(peer.uid));
            }
        }
        outcome.is_ok()
    }
}
