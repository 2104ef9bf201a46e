//! Lets a runtime go on over each port that it waits for, also where the tool is gone that was to do it: then somebody has to
//! listen in its place, and so lets all go on who wait there.
//!
//! Refuses to take a port from a tool that still listens, and to make a socket where the user of the process could make none.

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

/// Processes of one user that are told of: anybody may dial in, as often as he likes.
const TOLD: usize = 1000;

/// What happens while runtimes are let go on.
#[derive(Debug)]
pub enum Resumption<'a> {
    /// We listen on the port of a tool that is gone, for a process of our own user.
    TakenOver(&'a Port),
    /// A process goes on.
    GoesOn(u64),
    /// A process has dialled in, and does not go on.
    Failed(u64, &'a runtap_diag::Error),
    /// So many processes of this user were reported that no further one is.
    Muted(u32),
    /// Who else waits at the ports is not known: to look at all processes took longer than this.
    OthersUnknown(Duration),
    /// What those who went on start waits at this port again, and nobody is going to listen there.
    WaitsAgain(&'a Path),
    /// Who stays behind at a port of ours: [`Event::GuardLeft`] or [`Event::NoGuard`].
    Guard(Event),
}

/// Why a process does not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It refused, or was not reached.
    #[error(transparent)]
    Runtime(#[from] runtap_diag::Error),
    /// What is looked at belongs to others, who decide how long that takes.
    #[error("it takes too long to look at process {pid}")]
    TooSlow {
        /// The process.
        pid: u32,
    },
    /// It was resumed over all that could be found.
    #[error("process {pid} still waits at its start")]
    StillWaits {
        /// The process.
        pid: u32,
    },
    /// A tool listens on the port: it is that one's to resume the process.
    #[error("process {pid} waits for {}, which listens on {}", holder.map_or_else(|| "a tool".to_owned(), |pid| format!("process {pid}")), port.display())]
    Held {
        /// The process.
        pid: u32,
        /// The port.
        port: PathBuf,
        /// The tool, where it can be seen.
        holder: Option<u32>,
    },
    /// The process names a port in a folder, or with a socket, that is not its user's.
    #[error("process {pid} waits for the port {}, where its user could make none: whoever started it so has to resume it", port.display())]
    NoRight {
        /// The process.
        pid: u32,
        /// The port.
        port: PathBuf,
    },
    /// Another user has a hand in what the port is.
    #[error("process {pid} waits for the port {}, and a link on the way there belongs to another user, who can lay it elsewhere", port.display())]
    Astray {
        /// The process.
        pid: u32,
        /// The port.
        port: PathBuf,
    },
    /// The port can't be listened on.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The process can't be looked at.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Lets a process go on: over its own port, and over all others that it waits for. Where the tool is gone that made one of
/// these, listens in its place for at most this time. `guard`: as in [`Specification`](crate::Specification::guard).
///
/// # Errors
/// It does not go on.
pub async fn resume(
    subject: &ResolvedTarget,
    limit: Duration,
    guard: Option<&[OsString]>,
    tell: &(impl Fn(Resumption<'_>) + Clone + Send + Sync + 'static),
) -> Result<(), ResumeError> {
    match subject.client.resume().await {
        // .NET Core 3 can't be suspended, and does not know the command.
        Err(error) if !error.is_unknown_command() => return Err(error.into()),
        _ => {}
    }
    match &subject.process {
        Some(process) => free(process, limit, guard, tell).await,
        None => Ok(()),
    }
}

/// Lets everybody go on who dials in at a port, for this time; whether there was anybody.
pub async fn resume_at(port: &mut Port, limit: Duration, tell: &impl Fn(Resumption<'_>)) -> bool {
    let (mut freed, mut told) = (false, Told::default());
    port.resume_all(sleep(limit), |runtime, outcome| freed |= told.tell(runtime, &outcome, tell)).await;
    freed
}

/// Who was told of: each process once, and of one user only so many.
#[derive(Debug, Default)]
struct Told(BTreeMap<u32, BTreeSet<u64>>);

impl Told {
    /// Says what became of a runtime; whether it goes on.
    fn tell(
        &mut self,
        runtime: &Runtime,
        outcome: &Result<(), runtap_diag::Error>,
        tell: &impl Fn(Resumption<'_>),
    ) -> bool {
        let peer = runtime.peer();
        let pid = peer.pid.map_or_else(|| runtime.process_id(), u64::from);
        let told = self.0.entry(peer.uid).or_default();
        if told.len() < TOLD && told.insert(pid) {
            tell(match outcome {
                Ok(()) => Resumption::GoesOn(pid),
                Err(error) => Resumption::Failed(pid, error),
            });
            if told.len() == TOLD {
                tell(Resumption::Muted(peer.uid));
            }
        }
        outcome.is_ok()
    }
}
