//! The bounded buffer between the thread that drains a session and whoever writes its stream away.
//!
//! One side reads a socket straight into chunks of memory, the other takes filled chunks and gives them back by
//! dropping them: no byte is copied in between, and no memory is allocated once the stream flows. When the buffer
//! is full nothing is read, so that the runtime's own buffer fills up and, in the end, the runtime drops events and
//! says so in the stream.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, ErrorKind},
    ops::Deref,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    time::Instant,
};

/// How much of a session's stream may wait to be taken, and who reads it. Beyond that nothing is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes of a chunk: what is read and taken at once, at most.
    pub(crate) chunk: usize,
    /// Chunks that wait, at most.
    pub(crate) chunks: usize,
    /// Empty chunks kept for the next reads.
    pub(crate) kept: usize,
    /// Whether a thread of its own reads the stream (where the system's sockets allow that), else a task.
    pub(crate) on_a_thread: bool,
}

impl Default for Backlog {
    /// 8 MiB in chunks of 1 MiB: the blocks of a stream are a tenth of a chunk, so that few of them lie in two. All that
    /// a burst needed is kept, because the next one comes soon: what is given back to the system has each of its pages
    /// cleared when it is needed again.
    fn default() -> Self {
        Self { chunk: 1 << 20, chunks: 8, kept: 8, on_a_thread: true }
    }
}

impl Backlog {
    /// 160 KiB in chunks of 32 KiB, for hundreds of sessions at the same time.
    pub fn small() -> Self {
        Self { chunk: 32 << 10, chunks: 4, kept: 1, on_a_thread: true }
    }

    /// The same, but each session is drained by a task of the executor: no threads, for some more processor time a byte
    /// (being woken for every small write of a runtime), and all of it by the executor's clock.
    #[must_use]
    pub fn by_a_task(self) -> Self {
        Self { on_a_thread: false, ..self }
    }
}

/// A piece of a session's stream. Gives its memory back when it is dropped.
pub struct Chunk {
    bytes: Box<[u8]>,
    len: usize,
    buffer: Buffer,
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes)", self.len)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut state = self.buffer.lock();
        if state.free.len() < state.limits.kept {
            state.free.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// Both ends of the buffer.
#[derive(Clone, Default)]
pub(crate) struct Buffer {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    limits: Backlog,
    /// Full chunks, in order.
    full: VecDeque<Box<[u8]>>,
    /// The chunk that is being filled; it comes after those.
    current: Box<[u8]>,
    /// Bytes in it.
    filled: usize,
    free: Vec<Box<[u8]>>,
    /// No more bytes will come, and why.
    end: Option<Result<(), io::Error>>,
    /// We gave up reading before that.
    closed: bool,
    received: u64,
    /// The most bytes that the stream may have in all; `None` if it may have any number.
    most: Option<u64>,
    last_read: Option<Instant>,
    /// Nothing is read because nothing is taken.
    stalled: bool,
    reader: Option<Waker>,
    taker: Option<Waker>,
    /// The taker knows of what is there, and lets more gather.
    patient: bool,
    /// Whether the taker reads the stream itself.
    handover: Handover,
}

/// The way of a stream from the thread that drains it to the taker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "a thread that reads the socket itself is Unix's"))]
enum Handover {
    #[default]
    Not,
    Wanted,
    Done,
}

#[cfg_attr(not(unix), allow(dead_code, reason = "a thread that reads the socket itself is Unix's"))]
impl Buffer {
    /// A buffer that begins with these bytes.
    pub(crate) fn starting_with(head: &[u8], limits: Backlog) -> Self {
        let buffer = Self::default();
        let mut state = buffer.lock();
        state.limits = limits;
        for part in head.chunks(limits.chunk) {
            // Only the last part can be shorter than a chunk.
            state.make_room();
            let filled = state.filled;
            if let Some(place) = state.current.get_mut(filled..filled + part.len()) {
                place.copy_from_slice(part);
                state.filled += part.len();
            }
        }
        state.received = head.len() as u64;
        drop(state);
        buffer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limits(&self) -> Backlog {
        self.lock().limits
    }

    /// Reads once from `stream`: how many bytes; `None` at its end, of which the taker learns too, and once this is
    /// closed.
    pub(crate) fn poll_fill<S: AsyncRead + Unpin>(
        &self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Option<usize>> {
        let mut state = self.lock();
        if state.closed || state.end.is_some() {
            return Poll::Ready(None);
        }
        state.stalled = !state.make_room();
        if state.stalled {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        // The taker, which may be another thread, does not wait while the kernel copies.
        let (mut chunk, filled) = (std::mem::take(&mut state.current), std::mem::take(&mut state.filled));
        drop(state);
        let mut space = ReadBuf::new(chunk.get_mut(filled..).unwrap_or_default());
        let outcome = Pin::new(stream).poll_read(cx, &mut space);
        let n = space.filled().len();
        let mut state = self.lock();
        state.current = chunk;
        state.filled = filled + n;
        let read = match outcome {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) if n > 0 => {
                state.received += n as u64;
                state.last_read = Some(Instant::now());
                let is_too_much = state.most.is_some_and(|most| state.received > most);
                if is_too_much {
                    let said = "the runtime has confirmed the end of the session and goes on sending";
                    state.end.get_or_insert_with(|| Err(io::Error::new(ErrorKind::InvalidData, said)));
                }
                Poll::Ready((!is_too_much).then_some(n))
            }
            Poll::Ready(end) => {
                // Once we have hung up ourselves, it says nothing of the peer.
                if !state.closed {
                    state.end.get_or_insert(end);
                }
                Poll::Ready(None)
            }
        };
        if state.is_pressed() || state.filled > 0 && !state.patient {
            state.wake_taker();
        }
        read
    }

    /// Nobody reads the stream any more. What is in the buffer can still be taken.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wake_taker();
        state.wake_reader();
    }

    /// Ends the stream with an error.
    pub(crate) fn fail(&self, error: io::Error) {
        let mut state = self.lock();
        state.end.get_or_insert(Err(error));
        state.wake_taker();
        state.wake_reader();
    }

    /// The oldest bytes, as soon as there are some; `None` at the end of the stream.
    pub(crate) fn poll_take(&self, cx: &Context<'_>) -> Poll<Result<Option<Chunk>, io::Error>> {
        let mut state = self.lock();
        let taken = match state.full.pop_front() {
            Some(bytes) => {
                let len = bytes.len();
                Some((bytes, len))
            }
            None if state.filled > 0 => {
                let len = std::mem::take(&mut state.filled);
                Some((std::mem::take(&mut state.current), len))
            }
            None => None,
        };
        if let Some((bytes, len)) = taken {
            // Who reads the stream itself reads nothing while it has something in its hands.
            state.stalled |= state.handover == Handover::Done;
            state.wake_reader();
            return Poll::Ready(Ok(Some(Chunk { bytes, len, buffer: self.clone() })));
        }
        if let Some(end) = &mut state.end {
            return Poll::Ready(std::mem::replace(end, Ok(())).map(|()| None));
        }
        if state.closed {
            return Poll::Ready(Ok(None));
        }
        state.taker = Some(cx.waker().clone());
        state.patient = false;
        Poll::Pending
    }

    /// Whether what is there should be taken soon, because the buffer is half full or nothing more will come.
    pub(crate) fn poll_pressed(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.is_pressed() {
            return Poll::Ready(());
        }
        state.taker = Some(cx.waker().clone());
        state.patient = true;
        Poll::Pending
    }

    /// Whether a full chunk is there, or so many bytes, or no more will come.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        let state = self.lock();
        !state.full.is_empty() || state.filled >= bytes || state.end.is_some() || state.closed
    }

    /// The taker wants to read the stream itself. It has to wait for [`Self::is_handed_over`], which comes with the next
    /// bytes.
    pub(crate) fn want(&self) {
        let mut state = self.lock();
        state.handover = Handover::Wanted;
        state.wake_reader();
    }

    /// Asked between two reads: whether the taker wants to read the stream itself, and from now on does.
    pub(crate) fn hand_over(&self) -> bool {
        let mut state = self.lock();
        let is_wanted = state.handover == Handover::Wanted;
        if is_wanted {
            state.handover = Handover::Done;
            state.wake_taker();
        }
        is_wanted
    }

    /// Whether nobody else reads the stream any more.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.lock().handover == Handover::Done
    }

    /// Whether the peer has ended the stream.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Whether the stream has ended or was closed.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.end.is_some() || state.closed
    }

    /// Limits the rest of the stream: after so many more bytes it ends with an error.
    pub(crate) fn allow(&self, bytes: u64) {
        let mut state = self.lock();
        state.most = Some(state.received.saturating_add(bytes));
    }

    /// Bytes that came so far.
    pub(crate) fn received(&self) -> u64 {
        self.lock().received
    }

    /// When bytes came last, or now if it is the taker's fault that none can come.
    pub(crate) fn last_progress(&self) -> Option<Instant> {
        let state = self.lock();
        if state.stalled { Some(Instant::now()) } else { state.last_read }
    }
}

impl State {
    /// See [`Buffer::poll_pressed`].
    fn is_pressed(&self) -> bool {
        self.full.len() * 2 >= self.limits.chunks || self.end.is_some() || self.closed
    }

    fn wake_taker(&mut self) {
        if let Some(taker) = self.taker.take() {
            taker.wake();
        }
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Provides for a chunk with room in it. `false` if the buffer is full.
    fn make_room(&mut self) -> bool {
        if self.filled < self.current.len() {
            return true;
        }
        if self.filled > 0 {
            if self.full.len() >= self.limits.chunks {
                return false;
            }
            self.full.push_back(std::mem::take(&mut self.current));
            self.filled = 0;
        }
        self.current = self.free.pop().unwrap_or_else(|| vec![0; self.limits.chunk].into_boxed_slice());
        true
    }
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
