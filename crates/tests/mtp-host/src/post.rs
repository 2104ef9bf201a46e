//! The thread that owns the connection: it sends what is in the queue, one request at a time, and learns that the server is
//! gone. Tests do not wait for replies; only who ends a session does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runtap_mtp_proto::EncodeError;
use runtap_mtp_proto::host::{Connection, RequestError};

use crate::diagnostic::Log;
use crate::link::Link;
use crate::queue::{Due, Entry, Queue, Request};
use crate::{Cancel, CancelReason, HostError};

/// So often an idle connection is looked at.
const IDLE: Duration = Duration::from_millis(250);

/// Results wait for room beyond this many bytes: a server may be slow. It is not made faster by more.
const ROOM: usize = 1 << 20;
/// They wait until there is room for many: to be woken for each message takes longer than to make its results.
const ENOUGH_ROOM: usize = ROOM / 2;

/// What the thread needs to know.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) link: Link,
    pub(crate) connection: Connection,
    /// When the run has taken too long.
    pub(crate) deadline: Option<Instant>,
    pub(crate) log: Log,
}

#[derive(Debug)]
struct State {
    queue: Queue,
    is_sending: bool,
    is_closing: bool,
    /// Results wait for room.
    is_full: bool,
    failure: Option<HostError>,
    /// How many requests there were.
    requests: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// There is something to do for the thread.
    work: Condvar,
    /// There is room for results, or nobody wants them any more.
    room: Condvar,
    /// Everything is sent, or nothing will be.
    sent: Condvar,
}

/// The queue, and the thread that empties it.
#[derive(Debug)]
pub(crate) struct Post {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Post {
    pub(crate) fn new(sender: Sender, queue: Queue, cancel: Cancel) -> Result<Self, HostError> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue,
                is_sending: false,
                is_closing: false,
                is_full: false,
                failure: None,
                requests: 0,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            sent: Condvar::new(),
        });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("mtp-host".into());
        let thread = thread.spawn(move || own.run(sender, &cancel));
        let thread = thread.map_err(|error| HostError::Thread(Arc::new(error)))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Hands something over. Waits only while there is too much already.
    pub(crate) fn push(&self, entry: Entry) -> Result<(), HostError> {
        let mut state = self.shared.state();
        state.is_full |= state.queue.bytes() > ROOM;
        while state.failure.is_none() && state.is_full {
            state = wait(&self.shared.room, state);
        }
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let was = state.queue.due();
        let pushed = state.queue.push(entry, Instant::now);
        if state.queue.due() != was {
            self.shared.work.notify_one();
        }
        pushed.map_err(RequestError::from).map_err(HostError::from)
    }

    /// Waits until everything is sent and answered.
    pub(crate) fn flush(&self) -> Result<(), HostError> {
        let mut state = self.shared.state();
        let flushed = state.queue.flush();
        self.shared.work.notify_one();
        while state.failure.is_none() && (state.is_sending || !state.queue.is_empty()) {
            state = wait(&self.shared.sent, state);
        }
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => flushed.map_err(RequestError::from).map_err(HostError::from),
        }
    }

    /// How many requests were sent.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.state().requests
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.shared.state().is_closing = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there was said already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut sender: Sender, cancel: &Cancel) {
        let mut looked = Instant::now();
        loop {
            let mut state = self.state();
            let now = Instant::now();
            if sender.deadline.is_some_and(|deadline| deadline <= now) {
                sender.deadline = None;
                drop(state);
                cancel.request(CancelReason::Timeout);
                continue;
            }
            // Who closes without a flush has given up on what is left.
            if state.is_closing {
                return;
            }
            let until = match state.queue.due() {
                Due::At(at) if at > now => at,
                Due::Never => now + IDLE,
                Due::Now | Due::At(_) => {
                    let request = state.queue.take();
                    state.is_sending = true;
                    if state.is_full && state.queue.bytes() <= ENOUGH_ROOM {
                        state.is_full = false;
                        self.room.notify_all();
                    }
                    drop(state);
                    let sent = sender.send(request);
                    looked = Instant::now();
                    let mut state = self.state();
                    state.is_sending = false;
                    state.requests += 1;
                    match sent {
                        Ok(frame) => state.queue.reuse(frame),
                        Err(error) => {
                            self.fail(state, error, cancel);
                            return;
                        }
                    }
                    if state.queue.is_empty() {
                        self.sent.notify_all();
                    }
                    continue;
                }
            };
            if looked + IDLE <= now {
                looked = now;
                if sender.link.is_gone() {
                    sender.log.problem(&HostError::Gone);
                    self.fail(state, HostError::Gone, cancel);
                    return;
                }
            }
            let until = sender.deadline.map_or(until, |deadline| until.min(deadline));
            let left = until.saturating_duration_since(now);
            drop(self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn fail(&self, mut state: MutexGuard<'_, State>, error: HostError, cancel: &Cancel) {
        state.failure = Some(error);
        state.queue.clear();
        drop(state);
        self.room.notify_all();
        self.sent.notify_all();
        cancel.request(CancelReason::ServerGone);
    }
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condition.wait(state).unwrap_or_else(PoisonError::into_inner)
}

impl Sender {
    /// Gives back the frame that was sent.
    fn send(&mut self, request: Result<Option<Request>, EncodeError>) -> Result<Vec<u8>, HostError> {
        let Some(Request { id, frame }) = request.map_err(RequestError::from)? else { return Ok(Vec::new()) };
        self.log.detail(format_args!("sends {id}, {} bytes", frame.len()));
        self.connection.begin_frame(&frame)?;
        let answered = self.link.exchange(&frame, &mut self.connection);
        answered.inspect_err(|error| self.log.problem(error))?;
        Ok(frame)
    }
}
