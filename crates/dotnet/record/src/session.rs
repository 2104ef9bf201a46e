//! Runs a session from its start to its last byte, with all ways to stop it.

use std::future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use runtap_diag::preflight::Objection;
use runtap_diag::{Control, Downgrade, Error, Session, Stopping};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::event::Event;
use crate::job::Job;
use crate::missing::{Missing, missing};
use crate::other_sessions::OtherSessions;
use crate::recorder::{Counting, Progress, Recorded, Recorder, Sink};
use crate::silence::Silence;
use crate::stops::{StopListener, StopRequest};
use crate::threads::ThreadNames;

/// The interval and number of retries of a stop request if the runtime can't be connected to.
const STOP_AGAIN: Duration = Duration::from_secs(1);
const STOP_TRIES: u32 = 10;
/// The time for which the stream may continue after the runtime rejected the stop.
const GRACE: Duration = Duration::from_secs(2);
/// The time for which a blocked output is awaited after the user has abandoned the recording.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// A session that has ended.
#[derive(Debug)]
pub(crate) struct EndedSession {
    pub(crate) recorded: Recorded,
    /// The duration from start to stop, excluding the names sent after it.
    pub(crate) duration: Duration,
    pub(crate) command: String,
    pub(crate) downgrades: Vec<Downgrade>,
    pub(crate) thread_names: Vec<(u64, String)>,
    /// What is missing, if anything.
    pub(crate) missing: Option<Missing>,
    /// Remarks about the received events.
    pub(crate) notes: Vec<Silence>,
    /// Whether the target's buffer may have been full.
    pub(crate) may_have_filled: bool,
}

/// A session that has started.
#[derive(Debug)]
pub(crate) struct RunningSession {
    pub(crate) session: Session,
    pub(crate) since: Instant,
    /// The other sessions of the process.
    pub(crate) other_sessions: OtherSessions,
}

/// Runs a session to its end.
pub(crate) async fn run(
    job: &Job,
    running: RunningSession,
    sink: Sink,
    counting: Counting,
    progress: Arc<Progress>,
) -> Result<EndedSession, crate::Error> {
    let RunningSession { session, since, mut other_sessions } = running;
    let command = session.command();
    let command = command.name().map_or_else(|| command.to_string(), str::to_owned);
    let downgrades = session.downgrades().to_vec();
    job.report(Event::Session { id: session.id(), command: command.clone() });
    let (session, chunks) = session.split();
    let mut recorder = Recorder::start(chunks, sink, Arc::clone(&progress), counting)?;
    let mut requests = job.stops.listener();
    let mut names = ThreadNames::default();
    // The raw stream has no place for thread names.
    let pid = other_sessions.pid().filter(|_| job.spec.formats.iter().any(|format| format.sink().is_some()));
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut state = SessionState::new(since, job.spec.resume);
    // Held until the stream has ended.
    let mut turn = None;
    let mut wanted = job.stops.is_stopping();
    let ended = loop {
        tokio::select! {
            recorded = recorder.ended() => break Some(recorded),
            permit = job.stop_turns.acquire(), if wanted && turn.is_none() => {
                turn = permit.ok();
                other_sessions.look();
                state.request_stop(&session);
            }
            request = requests.next() => match request {
                StopRequest::Abandon => {
                    state.given_up = true;
                    state.missing = Some(Missing::Abandoned { sends_names: job.spec.session.rundown_keyword != 0 });
                    break None;
                }
                StopRequest::Stop => wanted = true,
            },
            answer = state.stop.outcome() => if !state.stop_answered(answer, &session) { break None },
            _ = tick.tick() => {
                if let Some(pid) = pid {
                    names.refresh(pid);
                }
                if state.stopped.is_none() {
                    other_sessions.look();
                }
            }
        }
    };
    let duration = state.stopped.unwrap_or_else(Instant::now) - state.started;
    let patience = state.given_up.then_some(OUTPUT_TIMEOUT);
    drop(session);
    let mut recorded = match ended {
        Some(recorded) => recorded,
        None => write_rest(recorder, &progress, &mut requests, patience).await,
    };
    drop(turn);
    let is_closed = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
    recorded.is_unread = recorded.write_error.as_ref().is_some_and(is_closed);
    let missing = state.missing.or_else(|| missing(&mut recorded));
    let mut notes: Vec<Silence> = recorded
        .received
        .silence(&job.spec.asked, duration, other_sessions.has_one_ended())
        .into_iter()
        .chain(recorded.received.errors().iter().cloned())
        .collect();
    let were_to_come_at_end = job.spec.session.rundown_keyword != 0 && !job.spec.method_names;
    if recorded.received.is_nameless() && were_to_come_at_end {
        notes.push(Silence::NoNames);
    }
    let buffer_mb = job.spec.session.buffer_mb;
    let may_have_filled =
        recorded.received.may_have_filled(buffer_mb, recorded.events + recorded.lost, recorded.bytes);
    let thread_names = names.into_list();
    Ok(EndedSession {
        recorded,
        duration,
        command,
        downgrades,
        thread_names,
        missing,
        notes,
        may_have_filled,
    })
}

/// The state of a recording.
struct SessionState {
    started: Instant,
    /// When the stop was first requested.
    stopped: Option<Instant>,
    stop: StopState,
    given_up: bool,
    /// Whether a suspended runtime has been requested to resume.
    will_go_on: bool,
    missing: Option<Missing>,
}

/// The state of the stop request.
enum StopState {
    Not,
    /// Sent for the n-th time.
    Asked(Stopping, u32),
    /// Could not be sent; will be retried.
    Later(std::pin::Pin<Box<tokio::time::Sleep>>, u32),
    /// Rejected by the runtime; the stream may still end within a moment.
    Refused(std::pin::Pin<Box<tokio::time::Sleep>>, Error),
    Confirmed,
}

impl StopState {
    /// Returns the outcome of the stop request. Pending forever before it was sent and after it was confirmed.
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

impl SessionState {
    fn new(started: Instant, will_go_on: bool) -> Self {
        Self { started, stopped: None, stop: StopState::Not, given_up: false, will_go_on, missing: None }
    }

    fn request_stop(&mut self, session: &Control) {
        self.stopped = Some(Instant::now());
        self.stop = StopState::Asked(session.stop(), 1);
    }

    /// Processes the outcome of [`StopState::outcome`]. Returns `false` if there is nothing more to wait for.
    fn stop_answered(&mut self, answer: Option<Result<(), Error>>, session: &Control) -> bool {
        self.stop = match (std::mem::replace(&mut self.stop, StopState::Confirmed), answer) {
            (StopState::Asked(..), Some(Ok(()))) => StopState::Confirmed,
            (StopState::Asked(_, tries), Some(Err(error)))
                if error.is_unreachable() && tries < STOP_TRIES =>
            {
                StopState::Later(Box::pin(sleep(STOP_AGAIN)), tries)
            }
            // The runtime was requested to resume, which may take a while; or it is to stay suspended.
            (StopState::Asked(_, tries), Some(Err(error))) if waits(&error) => {
                if self.will_go_on && tries < STOP_TRIES {
                    StopState::Later(Box::pin(sleep(STOP_AGAIN)), tries)
                } else {
                    self.missing = Some(Missing::NotBegun);
                    return false;
                }
            }
            (StopState::Asked(..), Some(Err(error))) => StopState::Refused(Box::pin(sleep(GRACE)), error),
            (StopState::Later(_, tries), _) => StopState::Asked(session.stop(), tries + 1),
            (StopState::Refused(_, error), _) => {
                self.missing = Some(Missing::Unfinished(error));
                return false;
            }
            (other, _) => other,
        };
        true
    }
}

/// Whether the runtime is still starting, when a session can't be stopped.
fn waits(error: &Error) -> bool {
    matches!(error, Error::Objection { objection: Objection::StopAtStartup, .. })
}

async fn wait(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => future::pending().await,
    }
}

/// Waits until received data has been written. Gives up a blocked output after `patience`, or at the next signal.
async fn write_rest(
    mut recorder: Recorder,
    progress: &Progress,
    requests: &mut StopListener,
    patience: Option<Duration>,
) -> Recorded {
    tokio::select! {
        recorded = recorder.ended() => return recorded,
        _ = requests.next() => {}
        () = wait(patience) => {}
    }
    Recorded {
        bytes: progress.bytes.load(Ordering::Relaxed),
        events: progress.events.load(Ordering::Relaxed),
        lost: progress.lost.load(Ordering::Relaxed),
        readable: true,
        write_error: Some(std::io::Error::new(ErrorKind::TimedOut, "the output is blocked")),
        ..Recorded::default()
    }
}
