//! A recording from its beginning to its end: what ends it, the command that is started with it, and its exit code.

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
use runtap_transcript::{Journal, Totals};

/// A command that is started when the socket is there.
#[derive(Debug, Clone)]
pub struct Command {
    /// Program and arguments. Not empty.
    pub words: Vec<OsString>,
    /// Variables that it is given besides ours.
    pub environment: Vec<(OsString, OsString)>,
    /// Stdout carries a result of ours: what the command writes there goes to stderr.
    pub stdout_on_stderr: bool,
}

/// What has been asked for: how often the end, and by which signal last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stop {
    /// Once: finish. Twice: break off.
    pub times: u32,
    /// The signal.
    pub signal: Option<i32>,
}

/// What a recording is made of, and what ends it besides a signal.
#[derive(Debug)]
pub struct Recording {
    /// Where the others dial.
    pub listener: Listener,
    /// Where we dial.
    pub way: Way,
    /// Where the streams of sessions are written.
    pub streams: Streams,
    /// A command; its end is that of the recording.
    pub command: Option<Command>,
    /// A process whose end is that of the recording.
    pub target: Option<u32>,
    /// How long it takes.
    pub duration: Option<Duration>,
}

/// What has become of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// What was written.
    pub totals: Totals,
    /// How the command has ended, if there was one.
    pub status: Option<ExitStatus>,
}

/// What keeps a recording from beginning.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The command can't be started.
    #[error("can't start {program}: {source}")]
    Command {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// No command where one was to be.
    #[error("the command is empty")]
    NoCommand,
    /// The command can't be waited for.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Recording {
    /// Passes on and writes down to the end. Whoever holds the other side of `stops` can ask for that.
    ///
    /// # Errors
    /// The command can't be started; nothing was passed on then.
    pub async fn run(
        self,
        journal: &Arc<Journal>,
        stops: watch::Receiver<Stop>,
        reporter: Reporter,
    ) -> Result<Outcome, Error> {
        let Self { listener, way, streams, command, target, duration } = self;
        let enough = async {
            tokio::select! {
                () = ended(target) => {}
                () = tokio::time::sleep(duration.unwrap_or_default()), if duration.is_some() => {}
            }
        };
        let passing = |phases| record(listener, way, streams, Arc::clone(journal), phases, reporter);
        let status = conduct(passing, command.as_ref(), enough, stops).await?;
        journal.end(status.map(number));
        Ok(Outcome { totals: journal.totals(), status })
    }
}

/// Starts a command, if there is one, and does some work until it is over and the command has ended. The work is told to come
/// to its end when the command has ended, when there is `enough`, and when that is asked for.
///
/// # Errors
/// The command can't be started; nothing was done then.
pub(crate) async fn conduct<T, W: Future<Output = T>>(
    work: impl FnOnce(watch::Receiver<Phase>) -> W,
    command: Option<&Command>,
    enough: impl Future<Output = ()>,
    mut stops: watch::Receiver<Stop>,
) -> Result<Option<ExitStatus>, Error> {
    let mut child = command.map(start).transpose()?;
    let (phase, phases) = watch::channel(Phase::Open);
    let go_to = |next: Phase| {
        phase.send_if_modified(|phase| {
            let goes = next > *phase;
            *phase = next.max(*phase);
            goes
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
                go_to(Phase::Closing);
            }
            () = &mut enough, if waits => {
                waits = false;
                go_to(Phase::Closing);
            }
            Ok(()) = stops.changed() => {
                let stop = *stops.borrow_and_update();
                match &child {
                    Some(child) => pass_on(child, stop),
                    None => go_to(Phase::Closing),
                }
                if stop.times > 1 {
                    go_to(Phase::Broken);
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
