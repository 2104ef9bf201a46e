//! A complete recording: its stop conditions, the command that is started with it, and the exit code.

#[cfg_attr(unix, path = "run/unix.rs")]
#[cfg_attr(windows, path = "run/windows.rs")]
mod system;

use std::ffi::OsString;
use std::future;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use runtap_transport::Listener;
use thiserror::Error;
use tokio::process::{self, Child};
use tokio::sync::watch;

pub use self::system::is_in_foreground;
use self::system::{number, pass_on};
use super::ended::ended;
use super::{Phase, Reporter, Streams, Way, record};
use runtap_transcript::{Journal, JournalTotals};

/// A command that is started once the socket exists.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments. Must not be empty.
    pub words: Vec<OsString>,
    /// Additional environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the command's standard output goes to standard error, because standard output carries runtap's result.
    pub stdout_on_stderr: bool,
}

/// The requests to stop so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stop {
    /// The number of requests: the first finishes the recording, the second aborts it.
    pub times: u32,
    /// The last signal.
    pub signal: Option<i32>,
}

/// The parameters of a recording.
#[derive(Debug)]
pub struct Recording {
    /// The listener for clients.
    pub listener: Listener,
    /// The target of the connections.
    pub way: Way,
    /// The destination of session streams.
    pub streams: Streams,
    /// A command; the recording ends when it exits.
    pub command: Option<Command>,
    /// A process; the recording ends when it exits.
    pub target: Option<u32>,
    /// The maximum duration.
    pub duration: Option<Duration>,
}

/// The result of a recording.
#[derive(Debug)]
pub struct RecordOutcome {
    /// The amount of data recorded.
    pub totals: JournalTotals,
    /// The exit status of the command, if there was one.
    pub status: Option<ExitStatus>,
}

/// An error that prevents a recording.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The command can't be started.
    #[error("can't start {program}: {source}")]
    Command {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The command is empty.
    #[error("the command is empty")]
    NoCommand,
    /// The command can't be waited for.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Recording {
    /// Forwards and records until the end, which `stops` can request.
    ///
    /// # Errors
    /// Fails if the command can't be started. Nothing was forwarded then.
    pub async fn run(
        self,
        journal: &Arc<Journal>,
        stops: watch::Receiver<Stop>,
        reporter: Reporter,
    ) -> Result<RecordOutcome, Error> {
        let Self { listener, way, streams, command, target, duration } = self;
        let enough = async {
            tokio::select! {
                () = ended(target) => {}
                () = tokio::time::sleep(duration.unwrap_or_default()), if duration.is_some() => {}
            }
        };
        let recording = |phases| record(listener, way, streams, Arc::clone(journal), phases, reporter);
        let status = conduct(recording, command.as_ref(), enough, stops).await?;
        journal.end(status.map(number));
        Ok(RecordOutcome { totals: journal.totals(), status })
    }
}

/// Starts the command, if any, and runs `work` until both have ended. `work` is asked to finish when the command has exited,
/// when `enough` completes, or on request.
///
/// # Errors
/// Fails if the command can't be started. No work was done then.
pub(crate) async fn conduct<T, W: Future<Output = T>>(
    work: impl FnOnce(watch::Receiver<Phase>) -> W,
    command: Option<&Command>,
    enough: impl Future<Output = ()>,
    mut stops: watch::Receiver<Stop>,
) -> Result<Option<ExitStatus>, Error> {
    let mut child = command.map(start).transpose()?;
    let (phase, phases) = watch::channel(Phase::Open);
    let advance = |next: Phase| {
        phase.send_if_modified(|phase| {
            let is_later = next > *phase;
            *phase = next.max(*phase);
            is_later
        });
    };
    let work = work(phases);
    tokio::pin!(work, enough);
    let (mut is_done, mut status, mut waits) = (false, None, true);
    while !is_done || child.is_some() && status.is_none() {
        tokio::select! {
            _ = &mut work, if !is_done => is_done = true,
            ended = wait(child.as_mut()), if status.is_none() => {
                status = Some(ended?);
                advance(Phase::Closing);
            }
            () = &mut enough, if waits => {
                waits = false;
                advance(Phase::Closing);
            }
            Ok(()) = stops.changed() => {
                let stop = *stops.borrow_and_update();
                match &child {
                    Some(child) => pass_on(child, stop),
                    None => advance(Phase::Closing),
                }
                if stop.times > 1 {
                    advance(Phase::Broken);
                }
            }
        }
    }
    Ok(status)
}

fn start(command: &Command) -> Result<Child, Error> {
    let [program, arguments @ ..] = &command.words[..] else { return Err(Error::NoCommand) };
    let stdout = if command.stdout_on_stderr { io::stderr().into() } else { Stdio::inherit() };
    let mut started = process::Command::new(program);
    started.args(arguments).envs(command.environment.iter().map(|(name, value)| (name, value)));
    let spawned = started.stdout(stdout).spawn();
    spawned.map_err(|source| Error::Command { program: program.to_string_lossy().into_owned(), source })
}

async fn wait(child: Option<&mut Child>) -> io::Result<ExitStatus> {
    match child {
        Some(child) => child.wait().await,
        None => future::pending().await,
    }
}
