//! A session that runs: its stream, drained by a thread of its own, and its stop.

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

/// A session of ours in a runtime.
///
/// A thread (a task on Windows) reads the stream into a buffer of 8 MiB ([`Backlog`](crate::Backlog)) from the moment the session exists. Take the chunks until
/// [`next_chunk`](Self::next_chunk) gives `None`, **also after [`stop`](Self::stop)**: the runtime writes method
/// names then, and does not answer before all of them were read.
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

    /// Its two halves: one that can live on a thread which does nothing but take the stream, and the rest.
    pub fn split(self) -> (Control, Chunks) {
        (self.control, self.chunks)
    }

    /// Its number in the runtime.
    pub fn id(&self) -> SessionId {
        self.control.id()
    }

    /// Whom it records.
    pub fn endpoint(&self) -> &Endpoint {
        self.control.endpoint()
    }

    /// The form that the runtime accepted.
    pub fn form(&self) -> SessionForm {
        self.control.form()
    }

    /// The command that the runtime accepted.
    pub fn command(&self) -> Command {
        self.control.command()
    }

    /// What the session does not do because that command is not the newest one.
    pub fn downgrades(&self) -> &[Downgrade] {
        self.control.downgrades()
    }

    /// Bytes of the stream that came so far, taken or not.
    pub fn received(&self) -> u64 {
        self.control.received()
    }

    /// See [`Chunks::next`].
    pub async fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        self.chunks.next().await
    }

    /// See [`Control::stop`].
    pub fn stop(&self) -> Stopping {
        self.control.stop()
    }
}

/// The half of a [`Session`] that takes the stream. It may live on any thread.
pub struct Chunks {
    pub(crate) buffer: Buffer,
    endpoint: Endpoint,
    /// For [`Direct`]; `None` where a task drains the stream.
    #[cfg(unix)]
    pub(crate) reading: Option<Reading>,
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Chunks {
    /// The next bytes of the stream: whatever is there, at most a chunk (1 MiB); `None` at its end. Whether the stream is
    /// complete, only the stream itself says.
    ///
    /// Dropping this future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        let outcome = poll_fn(|cx| self.buffer.poll_take(cx)).await;
        outcome.map_err(|source| self.broken(source))
    }

    /// The same for a thread that has nothing else to do: waits for it.
    pub fn blocking_next(&mut self) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(outcome) = self.blocking_next_within(Duration::MAX) {
                return outcome;
            }
        }
    }

    /// The same for one that does not wait for ever: `None` if nothing came for that long.
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

    /// For a thread that writes each chunk away at once: it reads the socket itself.
    pub fn direct(self) -> Direct {
        Direct::new(self)
    }

    pub(crate) fn broken(&self, source: io::Error) -> Error {
        Error::Io { endpoint: self.endpoint.clone(), source }
    }
}

/// How long a thread that was woken by the first bytes of a burst lets the rest of it arrive, unless the buffer fills up.
/// A runtime writes what it has gathered ten times a second, in pieces; being woken for each of them costs more than
/// writing it away.
const LINGER: Duration = Duration::from_millis(10);

/// What may come after a runtime has confirmed that it has written everything: what sockets, and whoever passes the stream
/// on, can hold.
const MOST_AFTER_STOP: u64 = 64 << 20;
/// How often a stream that is to end is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The half of a [`Session`] that knows it and ends it. Dropping it closes the connection: what was received by then
/// can still be taken, and is followed by the end.
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
    /// Its number in the runtime.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Whom it records.
    pub fn endpoint(&self) -> &Endpoint {
        self.client.endpoint()
    }

    /// The form that the runtime accepted.
    pub fn form(&self) -> SessionForm {
        self.form
    }

    /// The command that the runtime accepted.
    pub fn command(&self) -> Command {
        self.form.command()
    }

    /// What the session does not do because that command is not the newest one.
    pub fn downgrades(&self) -> &[Downgrade] {
        &self.downgrades
    }

    /// Bytes of the stream that came so far, taken or not.
    pub fn received(&self) -> u64 {
        self.buffer.received()
    }

    /// Asks the runtime to finish the stream, on another connection, at once and once.
    ///
    /// What comes back is the outcome, which need not be waited for: it is there when the runtime has written
    /// everything, or when nothing has moved for [`Timeouts::stop`](crate::Timeouts::stop). Dropping it cancels
    /// nothing. If the stream has ended already, nothing is sent.
    ///
    /// # Errors
    /// [`Error::StopRequested`] from the second call on: the id may belong to another session by now. Only if the
    /// runtime could not even be connected to, nothing was sent and it can be tried again.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn stop(&self) -> Stopping {
        let (tell, outcome) = oneshot::channel();
        if self.stop_requested.swap(true, Ordering::AcqRel) {
            // The receiver is right here.
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
                // Nobody listens any more: that is allowed.
                let _ = tell.send(outcome);
                if is_confirmed {
                    stop.see_the_end(&drain).await;
                }
            });
        }
        Stopping { outcome, id: self.id }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // First: what the drain sees then is our doing.
        self.buffer.close();
        self.drain.stop();
    }
}

/// The outcome of [`Control::stop`], when it is there.
#[derive(Debug)]
#[must_use = "the stop goes on without it, but then nobody learns whether it failed"]
pub struct Stopping {
    outcome: oneshot::Receiver<Result<(), Error>>,
    id: SessionId,
}

impl Future for Stopping {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let id = self.id;
        // A sender that is gone means that the runtime under us was shut down.
        Pin::new(&mut self.outcome)
            .poll(cx)
            .map(|outcome| outcome.unwrap_or(Err(Error::StopRequested { id })))
    }
}

/// One stop of one session.
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
            // It ended while we dialled; its id may be somebody else's now. (Nothing closes the last gap, between
            // here and the moment at which the runtime reads the request.)
            return Ok(());
        }
        let limit = self.client.timeouts().stop;
        tokio::select! {
            outcome = exchange.converse() => return outcome.map(drop),
            () = silence(&self.buffer, limit) => {}
        }
        Err(exchange.timed_out(limit))
    }

    /// A runtime confirms when it has written everything. A stream that goes on for much longer, or that neither goes on nor
    /// ends, is ended with an error.
    async fn see_the_end(&self, drain: &Drain) {
        self.buffer.allow(MOST_AFTER_STOP);
        let limit = self.client.timeouts().stop;
        tokio::select! {
            () = self.end(LOOK.min(limit)) => return,
            () = silence(&self.buffer, limit) => {}
        }
        let said = format!(
            "the runtime has confirmed the end of the session, and for {} s neither sent more nor closed the connection",
            limit.as_secs()
        );
        self.buffer.fail(io::Error::new(io::ErrorKind::TimedOut, said));
        drain.stop();
    }

    /// Over when the stream is, which is looked at so often. Not waited for with the silence alone, for its whole limit: what
    /// was received takes memory until then.
    async fn end(&self, look: Duration) {
        while !self.buffer.is_over() {
            sleep(look).await;
        }
    }
}

/// Over when no byte of the stream has come for `limit`. A buffer that nobody empties does not count as silence.
async fn silence(buffer: &Buffer, limit: Duration) {
    let mut progress = Instant::now();
    while Instant::now() < progress + limit {
        sleep_until(progress + limit).await;
        progress = buffer.last_progress().map_or(progress, |last| last.max(progress));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backlog;

    #[test]
    fn a_thread_waits_no_longer_than_it_wants() {
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
