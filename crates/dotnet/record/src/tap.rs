//! Sessions whose events somebody consumes while they come, of several processes at the same time. Nothing is written, and no names
//! of methods are asked for: the end is at once.

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

/// How long the runtime may take to end a session that nobody reads any more.
const GOODBYE: Duration = Duration::from_secs(2);
/// Between two looks at the sessions of others.
const LOOK: Duration = Duration::from_secs(1);

/// A session that has begun.
#[derive(Debug)]
pub struct Tap {
    /// Until the end: what has dialled in needs its port.
    subject: ResolvedTarget,
    session: Session,
    since: Instant,
    /// The sessions of others beside it.
    other_sessions: OtherSessions,
}

/// What came of a session.
#[derive(Debug)]
pub struct Drained<T> {
    /// What was made of the stream.
    pub made: T,
    /// From its start to its end or its stop.
    pub after: Duration,
    /// A session of others has ended meanwhile.
    pub overtaken: bool,
}

/// Starts a session in each, all at the same time, and lets those go on that wait at their start. Without a session, and without
/// an error, where the end was asked for before; those that are stopped come first.
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
            // How long it takes to look at it is for the process to choose.
            Err(error) => Err(in_a_thread(move || Error::of_runtime(error)).await.unwrap_or_else(Into::into)),
        }
    }

    /// Has `make` consume the stream, on a thread of its own, so that one that hangs keeps no signal from being handled. Ends with
    /// the program, with `make`, after `duration` or when the end is asked for; `None` if it is asked for twice.
    ///
    /// # Errors
    /// There is no thread.
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
            // Nobody listens any more when a consumer that is stuck was given up.
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

/// Lets the runtime go on, if it is suspended at its start.
async fn let_go(client: Client) {
    // Whoever is not suspended says so, and .NET Core 3 can't be.
    let _ = client.resume().await;
}

/// Waits for the end: of the program, of the time, of the user's patience. `None` for the last. Else what was made, and when
/// that end was.
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
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            done = &mut made => {
                let end = Instant::now();
                // Nobody wants more of it, or the program has ended. In the first case the session is of no use to anyone.
                let _ = timeout(GOODBYE, control.stop()).await;
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
            // The connection is closed with it, and so the stream ends.
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
