//! The time between the start of a session and its last byte: draining, and every way to end.

use std::future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use runtap_diag::preflight::Objection;
use runtap_diag::{Control, Error, Session, Stopping};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::job::Job;
use super::recorder::{Counting, Progress, Recorded, Recorder, Sink};
use super::signals::{Ear, Wish};
use super::threads::ThreadNames;
use crate::cmd::advice;
use crate::cmd::neighbours::Neighbours;

/// How often a stop is tried again while the runtime can't be connected to.
const STOP_AGAIN: Duration = Duration::from_secs(1);
const STOP_TRIES: u32 = 10;
/// How long the stream may go on after the runtime refused the stop.
const GRACE: Duration = Duration::from_secs(2);
/// How long an output that hangs is waited for once the user has given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// A session that is over.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) recorded: Recorded,
    /// From the start to the stop, without the names that come after it.
    pub(super) duration: Duration,
    pub(super) command: String,
    pub(super) downgrades: Vec<String>,
    pub(super) thread_names: Vec<(u64, String)>,
    /// In words, when something is missing.
    pub(super) why_partial: Option<String>,
    /// What else is worth a word.
    pub(super) notes: Vec<String>,
}

/// Drains a session that runs since `started`, to its end.
pub(super) async fn run(
    session: Session,
    job: &Job,
    started: Instant,
    mut neighbours: Neighbours,
    sink: Sink,
    counting: Counting,
    progress: Arc<Progress>,
) -> anyhow::Result<Ended> {
    let output = job.output;
    let command = session.command();
    let command = command.name().map_or_else(|| command.to_string(), str::to_owned);
    let downgrades: Vec<String> = session.downgrades().iter().map(ToString::to_string).collect();
    output.detail(format_args!("session {} by {command}", session.id()));
    let (session, chunks) = session.split();
    let mut recorder = Recorder::start(chunks, sink, Arc::clone(&progress), counting)?;
    let mut ear = job.stops.ear();
    let mut names = ThreadNames::default();
    // The stream as it is has no place for names.
    let pid = neighbours.pid().filter(|_| job.formats.iter().any(|format| format.sink().is_some()));
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut state = State::new(started, job.options.resume_runtime);
    // Held until the stream has ended.
    let mut turn = None;
    let mut wanted = job.stops.is_stopping();
    let ended = loop {
        tokio::select! {
            recorded = recorder.ended() => break Some(recorded),
            permit = job.stop_turns.acquire(), if wanted && turn.is_none() => {
                turn = permit.ok();
                neighbours.look();
                state.request_stop(&session);
            }
            wish = ear.next() => match wish {
                Wish::GiveUp => {
                    state.given_up = true;
                    state.why_partial = Some("it was interrupted before the runtime had told its last names".to_owned());
                    break None;
                }
                Wish::Stop => wanted = true,
            },
            answer = state.stop.outcome() => if !state.stop_answered(answer, &session) { break None },
            _ = tick.tick() => {
                if let Some(pid) = pid {
                    names.refresh(pid);
                }
                if state.stopped.is_none() {
                    neighbours.look();
                }
            }
        }
    };
    let duration = state.stopped.unwrap_or_else(Instant::now) - state.started;
    let patience = state.given_up.then_some(PATIENCE);
    drop(session);
    let recorded = match ended {
        Some(recorded) => recorded,
        None => write_rest(recorder, &progress, &mut ear, patience).await,
    };
    drop(turn);
    let why_partial = state.why_partial.or_else(|| missing(&recorded));
    let mut notes = recorded.heard.notes(&job.asked, duration, neighbours.has_one_ended());
    if recorded.heard.is_nameless() && job.expects_names {
        notes.push(format!("no names of methods came: {}", advice::NAMES));
    }
    Ok(Ended { recorded, duration, command, downgrades, thread_names: names.into_list(), why_partial, notes })
}

/// Where a recording stands.
struct State {
    started: Instant,
    /// When the stop was asked for first.
    stopped: Option<Instant>,
    stop: Stop,
    given_up: bool,
    /// A runtime that waits at its start was told to go on.
    will_go_on: bool,
    why_partial: Option<String>,
}

/// Where the stop of a session stands.
enum Stop {
    Not,
    /// Sent, the n-th time.
    Asked(Stopping, u32),
    /// Could not be sent; it will be tried again.
    Later(std::pin::Pin<Box<tokio::time::Sleep>>, u32),
    /// The runtime refused; the stream gets a moment to end all the same.
    Refused(std::pin::Pin<Box<tokio::time::Sleep>>, Error),
    Confirmed,
}

impl Stop {
    /// What became of the stop, when that is known; never, before it was asked for and after it was confirmed.
    async fn outcome(&mut self) -> Option<Result<(), Error>> {
        match self {
            Self::Not | Self::Confirmed => future::pending().await,
            Self::Asked(stopping, _) => Some(stopping.await),
            Self::Later(pause, _) | Self::Refused(pause, _) => {
                pause.await;
                None
            }
        }
    }
}

impl State {
    fn new(started: Instant, will_go_on: bool) -> Self {
        Self { started, stopped: None, stop: Stop::Not, given_up: false, will_go_on, why_partial: None }
    }

    fn request_stop(&mut self, session: &Control) {
        self.stopped = Some(Instant::now());
        self.stop = Stop::Asked(session.stop(), 1);
    }

    /// Takes the outcome of [`Stop::outcome`]; `false` when there is nothing more to wait for.
    fn stop_answered(&mut self, answer: Option<Result<(), Error>>, session: &Control) -> bool {
        self.stop = match (std::mem::replace(&mut self.stop, Stop::Confirmed), answer) {
            (Stop::Asked(..), Some(Ok(()))) => Stop::Confirmed,
            (Stop::Asked(_, tries), Some(Err(error))) if error.is_unreachable() && tries < STOP_TRIES => {
                Stop::Later(Box::pin(sleep(STOP_AGAIN)), tries)
            }
            // It was told to go on, which takes its time where many are; or it is to wait.
            (Stop::Asked(_, tries), Some(Err(error))) if waits(&error) => {
                if self.will_go_on && tries < STOP_TRIES {
                    Stop::Later(Box::pin(sleep(STOP_AGAIN)), tries)
                } else {
                    self.why_partial = Some("it was ended before the program had begun".to_owned());
                    return false;
                }
            }
            (Stop::Asked(..), Some(Err(error))) => Stop::Refused(Box::pin(sleep(GRACE)), error),
            (Stop::Later(_, tries), _) => Stop::Asked(session.stop(), tries + 1),
            (Stop::Refused(_, error), _) => {
                self.why_partial = Some(format!("the runtime did not finish it: {error}"));
                return false;
            }
            (other, _) => other,
        };
        true
    }
}

/// Whether the runtime is at its start, where a session can't be stopped.
fn waits(error: &Error) -> bool {
    matches!(error, Error::Objection { objection: Objection::StopAtStartup, .. })
}

async fn wait(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => future::pending().await,
    }
}

/// Waits for what was received and not written yet. A disk that hangs is left alone when patience is over, or at the
/// next signal.
async fn write_rest(
    mut recorder: Recorder,
    progress: &Progress,
    ear: &mut Ear,
    patience: Option<Duration>,
) -> Recorded {
    tokio::select! {
        recorded = recorder.ended() => return recorded,
        _ = ear.next() => {}
        () = wait(patience) => {}
    }
    Recorded {
        bytes: progress.bytes.load(Ordering::Relaxed),
        events: progress.events.load(Ordering::Relaxed),
        lost: progress.lost.load(Ordering::Relaxed),
        readable: true,
        write_error: Some(std::io::Error::new(ErrorKind::TimedOut, "the output does not take any more")),
        ..Recorded::default()
    }
}

/// What a recording lacks, when nothing else was noticed.
fn missing(recorded: &Recorded) -> Option<String> {
    if let Some(error) = &recorded.write_error {
        return Some(match error.kind() {
            ErrorKind::StorageFull => "the disk is full".to_owned(),
            _ => format!("it could not be written any further: {error}"),
        });
    }
    if let Some(error) = &recorded.read_error {
        return Some(format!("the connection broke: {error}"));
    }
    let partial = recorded.partial.as_ref()?;
    Some(if recorded.readable {
        format!("the target ended, or closed the connection, in mid-stream ({})", partial.reason)
    } else {
        format!("what came is no event stream ({})", partial.reason)
    })
}
