//! The bounded buffer between the thread that drains a session and the taker of its stream.
//!
//! One side reads a socket directly into chunks of memory, the other takes filled chunks and returns them by
//! dropping them: no byte is copied in between, and no memory is allocated once the stream flows. When the buffer
//! is full, nothing is read, so that the runtime's own buffer fills up and the runtime eventually drops events, which it
//! reports in the stream.

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

/// The size of a session's buffer, and whether a thread or a task fills it. When the buffer is full, nothing is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// The size of a chunk in bytes: the most bytes to read or take at once.
    pub(crate) chunk: usize,
    /// The most chunks that wait to be taken.
    pub(crate) chunks: usize,
    /// The number of empty chunks that are kept for the next reads.
    pub(crate) kept: usize,
    /// Whether a separate thread reads the stream (if the system's sockets allow it) instead of a task.
    pub(crate) on_a_thread: bool,
}

impl Default for Backlog {
    /// 8 MiB in chunks of 1 MiB: the blocks of a stream are a tenth of a chunk, so that few of them span two. All chunks
    /// that a burst needed are kept for the next burst: memory that is returned to the system would have to be cleared again.
    fn default() -> Self {
        Self { chunk: 1 << 20, chunks: 8, kept: 8, on_a_thread: true }
    }
}

impl Backlog {
    /// Returns a backlog of 160 KiB in chunks of 32 KiB, for hundreds of concurrent sessions.
    pub fn small() -> Self {
        Self { chunk: 32 << 10, chunks: 4, kept: 1, on_a_thread: true }
    }

    /// Makes a task of the executor drain each session: no threads, but somewhat more processor time per byte
    /// (because each small write of a runtime wakes the task), all of it on the executor's threads.
    #[must_use]
    pub fn by_a_task(self) -> Self {
        Self { on_a_thread: false, ..self }
    }
}

/// A piece of a session's stream. Returns its memory to the buffer when it is dropped.
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

/// The buffer, shared by both ends.
#[derive(Clone, Default)]
pub(crate) struct Buffer {
    state: Arc<Mutex<BufferState>>,
}

#[derive(Default)]
struct BufferState {
    limits: Backlog,
    /// The full chunks, in order.
    full: VecDeque<Box<[u8]>>,
    /// The chunk that is being filled; it follows the full ones.
    current: Box<[u8]>,
    /// The number of bytes in the current chunk.
    filled: usize,
    free: Vec<Box<[u8]>>,
    /// The end of the stream, with the reason.
    end: Option<Result<(), io::Error>>,
    /// Whether reading was given up before the end.
    closed: bool,
    received: u64,
    /// The most bytes that the stream may have in total. `None` if unlimited.
    most: Option<u64>,
    last_read: Option<Instant>,
    /// Whether nothing is read because the buffer is full.
    stalled: bool,
    reader: Option<Waker>,
    taker: Option<Waker>,
    /// Whether the taker knows of the available bytes and lets more accumulate.
    patient: bool,
    /// Whether the taker reads the stream itself.
    handover: Handover,
}

/// The transfer of a stream from the draining thread to the taker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "only on Unix can a taker read the socket"))]
enum Handover {
    #[default]
    Not,
    Wanted,
    Done,
}

#[cfg_attr(not(unix), allow(dead_code, reason = "only on Unix can a taker read the socket"))]
impl Buffer {
    /// Creates a buffer that starts with these bytes.
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

    fn lock(&self) -> MutexGuard<'_, BufferState> {
        // No code under the lock can panic in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limits(&self) -> Backlog {
        self.lock().limits
    }

    /// Reads once from `stream` and returns the number of bytes. `None` at its end, which the taker sees, too, and after
    /// this buffer was closed.
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
        // The lock is not held while the kernel copies, so that the taker on another thread does not wait.
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
                    let said = "the runtime has confirmed the end of the session but continues to send";
                    state.end.get_or_insert_with(|| Err(io::Error::new(ErrorKind::InvalidData, said)));
                }
                Poll::Ready((!is_too_much).then_some(n))
            }
            Poll::Ready(end) => {
                // After this side has closed the connection, an error says nothing about the peer.
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

    /// Stops reading. The contents of the buffer can still be taken.
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

    /// Returns the oldest bytes when some are available; `None` at the end of the stream.
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
            // A taker that reads the stream itself must not be woken while it processes a chunk.
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

    /// Completes when the contents should be taken soon, because the buffer is half full or the stream has ended.
    pub(crate) fn poll_pressed(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.is_pressed() {
            return Poll::Ready(());
        }
        state.taker = Some(cx.waker().clone());
        state.patient = true;
        Poll::Pending
    }

    /// Returns whether a full chunk or at least `bytes` bytes are available, or the stream has ended.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        let state = self.lock();
        !state.full.is_empty() || state.filled >= bytes || state.end.is_some() || state.closed
    }

    /// Requests that the taker reads the stream itself. The taker must wait for [`Self::is_handed_over`], which becomes true
    /// with the next bytes.
    pub(crate) fn want(&self) {
        let mut state = self.lock();
        state.handover = Handover::Wanted;
        state.wake_reader();
    }

    /// Hands the stream over to the taker if it has requested that, between two reads. Returns whether it was handed over.
    pub(crate) fn hand_over(&self) -> bool {
        let mut state = self.lock();
        let is_wanted = state.handover == Handover::Wanted;
        if is_wanted {
            state.handover = Handover::Done;
            state.wake_taker();
        }
        is_wanted
    }

    /// Returns whether the draining thread has stopped reading.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.lock().handover == Handover::Done
    }

    /// Returns whether the peer has ended the stream.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Returns whether the stream has ended or was closed.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.end.is_some() || state.closed
    }

    /// Limits the rest of the stream: after `bytes` more bytes it ends with an error.
    pub(crate) fn allow(&self, bytes: u64) {
        let mut state = self.lock();
        state.most = Some(state.received.saturating_add(bytes));
    }

    /// Returns the number of bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        self.lock().received
    }

    /// Returns whether nothing is read because the buffer is full, or because the taker, which reads the stream itself, is busy.
    pub(crate) fn is_stalled(&self) -> bool {
        self.lock().stalled
    }

    /// Returns the time of the last received bytes, or now if the full buffer prevents reading.
    pub(crate) fn last_progress(&self) -> Option<Instant> {
        let state = self.lock();
        if state.stalled { Some(Instant::now()) } else { state.last_read }
    }
}

impl BufferState {
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

    /// Ensures that there is a chunk with free space. `false` if the buffer is full.
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
