//! The thread that owns the connection: it sends queued messages, one request at a time, and detects a lost server.
//! Tests do not wait for replies; only the end of a session does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runtap_mtp_proto::EncodeError;
use runtap_mtp_proto::host::{Connection, RequestError};

use crate::diagnostic::Log;
use crate::link::Link;
use crate::queue::{Due, Entry, Queue, Request};
use crate::{Cancel, CancelReason, HostError};

/// Poll interval of an idle connection.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The queue size in bytes above which producers block. A larger queue does not make a slow server faster.
const MAX_QUEUE_BYTES: usize = 1 << 20;
/// Wait deadline half the queue is free: waking the producer for every message costs more than producing it.
const RESUME_QUEUE_BYTES: usize = MAX_QUEUE_BYTES / 2;

/// The state of the sending thread.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) link: Link,
    pub(crate) connection: Connection,
    /// When the run times out.
    pub(crate) deadline: Option<Instant>,
    pub(crate) log: Log,
}

#[derive(Debug)]
struct OutboxState {
    queue: Queue,
    is_sending: bool,
    is_closing: bool,
    /// Whether producers are blocked.
    is_full: bool,
    failure: Option<HostError>,
    /// The number of sent requests.
    requests: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<OutboxState>,
    /// Signals work for the thread.
    work: Condvar,
    /// Signals space in the queue, or a failure.
    room: Condvar,
    /// Signals an empty queue, or a failure.
    sent: Condvar,
}

/// The queue of outgoing messages, and the thread that sends them.
#[derive(Debug)]
pub(crate) struct Outbox {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Outbox {
    pub(crate) fn new(sender: Sender, queue: Queue, cancel: Cancel) -> Result<Self, HostError> {
        let shared = Arc::new(Shared {
            state: Mutex::new(OutboxState {
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

    /// Queues an entry. Blocks only while the queue is full.
    pub(crate) fn push(&self, entry: Entry) -> Result<(), HostError> {
        let mut state = self.shared.state();
        state.is_full |= state.queue.bytes() > MAX_QUEUE_BYTES;
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

    /// Waits deadline everything has been sent and acknowledged.
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

    /// Returns the number of sent requests.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.state().requests
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.shared.state().is_closing = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut sender: Sender, cancel: &Cancel) {
        let mut polled = Instant::now();
        loop {
            let mut state = self.state();
            let now = Instant::now();
            if sender.deadline.is_some_and(|deadline| deadline <= now) {
                sender.deadline = None;
                drop(state);
                cancel.request(CancelReason::Timeout);
                continue;
            }
            // Closing without a flush discards the queue.
            if state.is_closing {
                return;
            }
            let deadline = match state.queue.due() {
                Due::At(at) if at > now => at,
                Due::Never => now + IDLE_POLL_INTERVAL,
                Due::Now | Due::At(_) => {
                    let request = state.queue.take();
                    state.is_sending = true;
                    if state.is_full && state.queue.bytes() <= RESUME_QUEUE_BYTES {
                        state.is_full = false;
                        self.room.notify_all();
                    }
                    drop(state);
                    let sent = sender.send(request);
                    polled = Instant::now();
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
            if polled + IDLE_POLL_INTERVAL <= now {
                polled = now;
                if sender.link.is_gone() {
                    sender.log.problem(&HostError::Gone);
                    self.fail(state, HostError::Gone, cancel);
                    return;
                }
            }
            let deadline = sender.deadline.map_or(deadline, |deadline| deadline.min(deadline));
            let left = deadline.saturating_duration_since(now);
            drop(self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn fail(&self, mut state: MutexGuard<'_, OutboxState>, error: HostError, cancel: &Cancel) {
        state.failure = Some(error);
        state.queue.clear();
        drop(state);
        self.room.notify_all();
        self.sent.notify_all();
        cancel.request(CancelReason::ServerGone);
    }
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, OutboxState>) -> MutexGuard<'a, OutboxState> {
    condition.wait(state).unwrap_or_else(PoisonError::into_inner)
}

impl Sender {
    /// Sends a request and returns its frame for reuse.
    fn send(&mut self, request: Result<Option<Request>, EncodeError>) -> Result<Vec<u8>, HostError> {
        let Some(Request { id, frame }) = request.map_err(RequestError::from)? else { return Ok(Vec::new()) };
        self.log.detail(format_args!("sending {id}, {} bytes", frame.len()));
        self.connection.begin_frame(&frame)?;
        let answered = self.link.exchange(&frame, &mut self.connection);
        answered.inspect_err(|error| self.log.problem(error))?;
        Ok(frame)
    }
}
