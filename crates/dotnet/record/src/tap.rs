//! Live sessions of several processes whose events are consumed as they are received. Nothing is written, and no method names are
//! requested, so a session ends immediately.

use std::future;
use std::io;
use std::pin::pin;
use std::thread;
use std::time::Duration;

use runtap_diag::{Chunks, Client, Control, Session, SessionConfig};
use runtap_os::in_a_thread;
use runtap_target::ResolvedTarget;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::error::Error;
use crate::other_sessions::OtherSessions;
use crate::stops::{StopRequest, Stops};

/// The time within which the runtime must end a session whose stream is no longer read.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Poll interval of other sessions.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A session that has started.
#[derive(Debug)]
pub struct Tap {
    /// Kept until the end, because it may own the port.
    subject: ResolvedTarget,
    session: Session,
    since: Instant,
    /// The other sessions of the process.
    other_sessions: OtherSessions,
}

/// The result of a session.
#[derive(Debug)]
pub struct Drained<T> {
    /// The value created from the stream.
    pub made: T,
    /// The duration of the session.
    pub after: Duration,
    /// Whether another session of the process ended meanwhile.
    pub overtaken: bool,
}

/// Starts a session in each process in parallel, and resumes those that are suspended at startup. The session is `None` if a stop
/// was requested before. Results of stopped processes come first.
pub async fn tap_all(
    subjects: Vec<ResolvedTarget>,
    config: &SessionConfig,
    stops: &Stops,
) -> Vec<(Option<u32>, Result<Option<Tap>, Error>)> {
    let (mut taps, mut starting) = (Vec::with_capacity(subjects.len()), Vec::new());
    for subject in subjects {
        if let Some((pid, finding)) = subject.stopped() {
            taps.push((Some(pid), Err(Error::NotReached { pid, finding })));
            continue;
        }
        let (config, stops) = (config.clone(), stops.clone());
        let pid = subject.process.as_ref().map(|process| process.pid);
        starting.push((pid, tokio::spawn(Tap::begin(subject, pid, config, stops))));
    }
    for (pid, task) in starting {
        taps.push((pid, task.await.unwrap_or_else(|panic| Err(io::Error::other(panic).into()))));
    }
    taps
}

impl Tap {
    async fn begin(
        subject: ResolvedTarget,
        pid: Option<u32>,
        config: SessionConfig,
        stops: Stops,
    ) -> Result<Option<Self>, Error> {
        let other_sessions = OtherSessions::before(pid);
        let session = tokio::select! {
            biased;
            () = stops.stopping() => return Ok(None),
            session = subject.client.start_session(&config) => session,
        };
        let since = Instant::now();
        match session {
            Ok(session) => {
                tokio::spawn(let_go(subject.client.clone()));
                Ok(Some(Self { subject, session, since, other_sessions }))
            }
            // The process controls how long an examination takes.
            Err(error) => Err(in_a_thread(move || Error::of_runtime(error)).await.unwrap_or_else(Into::into)),
        }
    }

    /// Consumes the stream with `make` on its own thread, so that signals are handled even if it blocks. Ends with the program, with
    /// `make`, after `duration`, or when a stop is requested. Returns `None` if the session is abandoned.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub async fn drain<T: Send + 'static>(
        self,
        duration: Option<Duration>,
        stops: &Stops,
        make: impl FnOnce(Chunks) -> T + Send + 'static,
    ) -> io::Result<Option<Drained<T>>> {
        let Self { subject, session, since, mut other_sessions } = self;
        let (control, chunks) = session.split();
        let (tell, made) = oneshot::channel();
        thread::Builder::new().name("tail".into()).spawn(move || {
            // The receiver is gone if a stuck consumer was abandoned.
            let _ = tell.send(make(chunks));
        })?;
        let made = wait(made, control, stops, duration, &mut other_sessions).await;
        drop(subject);
        Ok(made.map(|(made, end)| Drained {
            made,
            after: end.saturating_duration_since(since),
            overtaken: other_sessions.has_one_ended(),
        }))
    }
}

/// Resumes the runtime if it is suspended at startup.
async fn let_go(client: Client) {
    // A runtime that is not suspended returns an error, and .NET Core 3 does not support the command.
    let _ = client.resume().await;
}

/// Waits for the end of the program, of the duration, or a stop request. Returns the result and the time of the end, or `None` if
/// the session was abandoned.
async fn wait<T>(
    mut made: oneshot::Receiver<T>,
    control: Control,
    stops: &Stops,
    duration: Option<Duration>,
    other_sessions: &mut OtherSessions,
) -> Option<(T, Instant)> {
    let mut requests = stops.listener();
    let is_over = async {
        tokio::select! {
            () = stops.stopping() => {}
            () = after(duration) => {}
        }
    };
    let mut is_over = pin!(is_over);
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            done = &mut made => {
                let end = Instant::now();
                // The consumer needs no more data, or the program has exited. In the first case, the session is no longer useful.
                let _ = timeout(STOP_TIMEOUT, control.stop()).await;
                return Some((done.ok()?, end));
            }
            () = &mut is_over => break,
            _ = tick.tick() => other_sessions.look(),
        }
    }
    other_sessions.look();
    let end = Instant::now();
    let stop = control.stop();
    let rest = async {
        if stop.await.is_err() {
            // Closing the connection ends the stream.
            drop(control);
        }
        Some((made.await.ok()?, end))
    };
    let given_up = async { while requests.next().await != StopRequest::Abandon {} };
    tokio::select! {
        done = rest => done,
        () = given_up => None,
    }
}

async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => future::pending().await,
    }
}
