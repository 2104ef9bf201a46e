//! A running session: its stream, drained by a separate thread, and its stop.

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use runtap_diag_proto::{Command, Downgrade, Request, SessionForm, SessionId};
use runtap_transport::{Endpoint, Stream};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};

#[cfg(unix)]
use crate::reading::Reading;
use crate::{Chunk, Client, Direct, Error, buffer::Buffer, drain::Drain, unpark::Unpark};

/// A session in a runtime that this client started.
///
/// A thread (a task on Windows) reads the stream into a buffer of 8 MiB ([`Backlog`](crate::Backlog)) from the start of
/// the session on. Take chunks until [`next_chunk`](Self::next_chunk) returns `None`, **also after
/// [`stop`](Self::stop)**: the runtime then writes method names, and does not answer before all of them were read.
///
/// Dropping a session closes its connection. The runtime notices at its next write and ends the session without
/// method names.
#[derive(Debug)]
pub struct Session {
    control: Control,
    chunks: Chunks,
}

impl Session {
    pub(crate) fn new(
        client: Client,
        id: SessionId,
        form: SessionForm,
        downgrades: Vec<Downgrade>,
        stream: Stream,
        head: &[u8],
    ) -> Self {
        let buffer = Buffer::starting_with(head, client.backlog());
        let drain = Drain::start(stream, &buffer);
        let chunks = Chunks {
            buffer: buffer.clone(),
            endpoint: client.endpoint().clone(),
            #[cfg(unix)]
            reading: drain.reading(),
        };
        let control = Control {
            client,
            id,
            form,
            downgrades,
            buffer,
            drain: Arc::new(drain),
            stop_requested: Arc::default(),
        };
        Self { control, chunks }
    }

    /// Splits the session into the part that controls it and the part that takes the stream, for use on different threads.
    pub fn split(self) -> (Control, Chunks) {
        (self.control, self.chunks)
    }

    /// Returns the id of the session in the runtime.
    pub fn id(&self) -> SessionId {
        self.control.id()
    }

    /// Returns the endpoint of the runtime.
    pub fn endpoint(&self) -> &Endpoint {
        self.control.endpoint()
    }

    /// Returns the form that the runtime accepted.
    pub fn form(&self) -> SessionForm {
        self.control.form()
    }

    /// Returns the command that the runtime accepted.
    pub fn command(&self) -> Command {
        self.control.command()
    }

    /// Returns the settings that were lost because the command is not the newest one.
    pub fn downgrades(&self) -> &[Downgrade] {
        self.control.downgrades()
    }

    /// Returns the number of bytes of the stream that were received, taken or not.
    pub fn received(&self) -> u64 {
        self.control.received()
    }

    /// Returns the next bytes of the stream; see [`Chunks::next`].
    pub async fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        self.chunks.next().await
    }

    /// Stops the session; see [`Control::stop`].
    pub fn stop(&self) -> Stopping {
        self.control.stop()
    }
}

/// The half of a [`Session`] that takes the stream. Can be moved to any thread.
pub struct Chunks {
    pub(crate) buffer: Buffer,
    endpoint: Endpoint,
    /// For [`Direct`]. `None` if a task drains the stream.
    #[cfg(unix)]
    pub(crate) reading: Option<Reading>,
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Chunks {
    /// Returns the next bytes of the stream: all available bytes, at most a chunk (1 MiB); `None` at its end. Only the stream
    /// itself tells whether it is complete.
    ///
    /// Cancel safe: dropping this future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        let outcome = poll_fn(|cx| self.buffer.poll_take(cx)).await;
        outcome.map_err(|source| self.broken(source))
    }

    /// Like [`next`](Self::next), but blocks the thread.
    pub fn blocking_next(&mut self) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(outcome) = self.blocking_next_within(Duration::MAX) {
                return outcome;
            }
        }
    }

    /// Like [`blocking_next`](Self::blocking_next), but returns `None` if nothing arrived within `patience`.
    pub fn blocking_next_within(&mut self, patience: Duration) -> Option<Result<Option<Chunk>, Error>> {
        let waker = Waker::from(Unpark::this_thread());
        let cx = Context::from_waker(&waker);
        let since = std::time::Instant::now();
        loop {
            if let Poll::Ready(outcome) = self.buffer.poll_take(&cx) {
                return Some(outcome.map_err(|source| self.broken(source)));
            }
            let left = patience.checked_sub(since.elapsed())?;
            thread::park_timeout(left);
            if self.buffer.poll_pressed(&cx).is_pending() {
                thread::park_timeout(LINGER);
            }
        }
    }

    /// Returns a reader for a thread that processes each chunk at once: the thread reads the socket itself.
    pub fn direct(self) -> Direct {
        Direct::new(self)
    }

    pub(crate) fn broken(&self, source: io::Error) -> Error {
        Error::Io { endpoint: self.endpoint.clone(), source }
    }
}

/// How long a thread that was woken by the first bytes of a burst waits for the rest, unless the buffer fills up.
/// A runtime writes its buffered events ten times a second, in pieces; waking up for each piece costs more than
/// processing it.
const LINGER: Duration = Duration::from_millis(10);

/// The most bytes that may arrive after a runtime has confirmed that it has written everything: what sockets and proxies
/// can hold.
const MAX_AFTER_STOP: u64 = 64 << 20;
/// The bytes per second that extend the time for the rest of the stream: a slow connection may hold as much as a fast one.
const MIN_RATE: u64 = 256 << 10;
/// The interval of checks while a stream is ending.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The half of a [`Session`] that describes and stops it. Dropping it closes the connection: bytes received by then
/// can still be taken, followed by the end.
pub struct Control {
    client: Client,
    id: SessionId,
    form: SessionForm,
    downgrades: Vec<Downgrade>,
    buffer: Buffer,
    drain: Arc<Drain>,
    stop_requested: Arc<AtomicBool>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("id", &self.id).field("form", &self.form).finish_non_exhaustive()
    }
}

impl Control {
    /// Returns the id of the session in the runtime.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the endpoint of the runtime.
    pub fn endpoint(&self) -> &Endpoint {
        self.client.endpoint()
    }

    /// Returns the form that the runtime accepted.
    pub fn form(&self) -> SessionForm {
        self.form
    }

    /// Returns the command that the runtime accepted.
    pub fn command(&self) -> Command {
        self.form.command()
    }

    /// Returns the settings that were lost because the command is not the newest one.
    pub fn downgrades(&self) -> &[Downgrade] {
        &self.downgrades
    }

    /// Returns the number of bytes of the stream that were received, taken or not.
    pub fn received(&self) -> u64 {
        self.buffer.received()
    }

    /// Requests the end of the stream over another connection, at once and only once.
    ///
    /// The returned future need not be awaited: it completes when the runtime has written everything, or when nothing was
    /// received for [`Timeouts::stop`](crate::Timeouts::stop). Dropping it cancels nothing. If the stream has already ended,
    /// nothing is sent.
    ///
    /// # Errors
    /// [`Error::StopRequested`] from the second call on: the id may belong to another session by now. If connecting to the
    /// runtime failed, nothing was sent and the call can be repeated.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn stop(&self) -> Stopping {
        let (tell, outcome) = oneshot::channel();
        if self.stop_requested.swap(true, Ordering::AcqRel) {
            // The receiver still exists.
            let _ = tell.send(Err(Error::StopRequested { id: self.id }));
        } else {
            let stop = Stop {
                client: self.client.clone(),
                id: self.id,
                buffer: self.buffer.clone(),
                requested: Arc::clone(&self.stop_requested),
            };
            let drain = Arc::clone(&self.drain);
            tokio::spawn(async move {
                let outcome = stop.run().await;
                let is_confirmed = outcome.is_ok();
                // The receiver may have been dropped.
                let _ = tell.send(outcome);
                if is_confirmed {
                    stop.watch_end(&drain).await;
                }
            });
        }
        Stopping { outcome, id: self.id }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // First, so that the drain knows that this side closed the connection.
        self.buffer.close();
        self.drain.stop();
    }
}

/// The pending outcome of [`Control::stop`].
#[derive(Debug)]
#[must_use = "the stop continues without it, but a failure is not reported"]
pub struct Stopping {
    outcome: oneshot::Receiver<Result<(), Error>>,
    id: SessionId,
}

impl Future for Stopping {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let id = self.id;
        // A dropped sender means that the tokio runtime was shut down.
        Pin::new(&mut self.outcome)
            .poll(cx)
            .map(|outcome| outcome.unwrap_or(Err(Error::StopRequested { id })))
    }
}

/// A stop of a session.
struct Stop {
    client: Client,
    id: SessionId,
    buffer: Buffer,
    requested: Arc<AtomicBool>,
}

impl Stop {
    async fn run(&self) -> Result<(), Error> {
        if self.buffer.has_ended() {
            return Ok(());
        }
        let mut exchange = match self.client.connect(Request::StopTracing(self.id)).await {
            Ok(exchange) => exchange,
            Err(error) => {
                // Nothing was sent.
                self.requested.store(false, Ordering::Release);
                return Err(error);
            }
        };
        if self.buffer.has_ended() {
            // The session ended while connecting; its id may belong to another client now. (The last gap, until the runtime
            // reads the request, cannot be closed.)
            return Ok(());
        }
        let limit = self.client.timeouts().stop;
        tokio::select! {
            outcome = exchange.converse() => return outcome.map(drop),
            () = silence(&self.buffer, limit) => {}
        }
        Err(exchange.timed_out(limit))
    }

    /// Watches the stream after the runtime has confirmed that it has written everything. A stream that continues for much
    /// longer, whether fast or slowly, or that neither continues nor ends, is ended with an error.
    async fn watch_end(&self, drain: &Drain) {
        self.buffer.allow(MAX_AFTER_STOP);
        let limit = self.client.timeouts().stop;
        let said = tokio::select! {
            biased;
            () = self.end(CHECK_INTERVAL.min(limit)) => return,
            () = silence(&self.buffer, limit) => format!(
                "the runtime has confirmed the end of the session, and for {} s neither sent data nor closed the connection",
                limit.as_secs()
            ),
            (bytes, waited) = slowness(&self.buffer, limit) => format!(
                "the runtime has confirmed the end of the session but continues to send: {bytes} bytes in {} s",
                waited.as_secs()
            ),
        };
        self.buffer.fail(io::Error::new(io::ErrorKind::TimedOut, said));
        drain.stop();
    }

    /// Completes when the stream has ended, checking at intervals of `interval`. Does not only wait for the silence with its
    /// full limit: the received bytes use memory until then.
    async fn end(&self, interval: Duration) {
        while !self.buffer.is_over() {
            sleep(interval).await;
        }
    }
}

/// Completes when no byte of the stream was received for `limit`. A full buffer that is not emptied does not count as
/// silence.
async fn silence(buffer: &Buffer, limit: Duration) {
    let mut progress = Instant::now();
    while Instant::now() < progress + limit {
        sleep_until(progress + limit).await;
        progress = buffer.last_progress().map_or(progress, |last| last.max(progress));
    }
}

/// Completes when the rest of a stream has taken longer than `limit` and the time for its bytes at [`MIN_RATE`]. Returns the number
/// of bytes and the time. The time in which the buffer is full does not count.
async fn slowness(buffer: &Buffer, limit: Duration) -> (u64, Duration) {
    let (before, mut waited, mut last) = (buffer.received(), Duration::ZERO, Instant::now());
    loop {
        sleep(CHECK_INTERVAL.min(limit)).await;
        let now = Instant::now();
        if !buffer.is_stalled() {
            waited += now - last;
        }
        last = now;
        let bytes = buffer.received().saturating_sub(before);
        if waited > limit.saturating_add(Duration::from_secs(bytes / MIN_RATE)) {
            return (bytes, waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backlog;

    #[test]
    fn a_thread_waits_no_longer_than_its_limit() {
        let chunks = |head| {
            let buffer = Buffer::starting_with(head, Backlog::small());
            Chunks {
                buffer,
                endpoint: Endpoint::unix("/nowhere"),
                #[cfg(unix)]
                reading: None,
            }
        };
        assert!(chunks(b"").blocking_next_within(Duration::ZERO).is_none());
        let chunk = chunks(b"abc").blocking_next_within(Duration::ZERO).unwrap().unwrap().unwrap();
        assert_eq!(&chunk[..], b"abc");
    }
}
