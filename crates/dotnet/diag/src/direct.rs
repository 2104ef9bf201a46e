//! A stream that is read by the thread that takes it.
//!
//! Two threads that hand over chunks wake each other, and each chunk moves from one processor's cache to the other's. One
//! thread that reads, writes and counts avoids both. The cost: nothing is read while a chunk is being written, so that
//! the runtime must buffer its events during slow writes.

use crate::{Chunk, Chunks, Error};

/// The stream of a [`Session`](crate::Session), read on demand. Created by [`Chunks::direct`].
///
/// Bytes that the session's own thread has read by then come first. If a task drains the stream
/// ([`Backlog::by_a_task`](crate::Backlog::by_a_task)), it continues to do so.
#[derive(Debug)]
pub struct Direct {
    chunks: Chunks,
    /// Whether the session's own thread has stopped reading.
    #[cfg(unix)]
    is_own: bool,
}

impl Direct {
    #[cfg(not(unix))]
    pub(crate) fn new(chunks: Chunks) -> Self {
        Self { chunks }
    }

    /// Waits for the next bytes of the stream: all available bytes, at most a chunk; `None` at its end. Only the stream
    /// itself tells whether it is complete.
    ///
    /// # Errors
    /// If the connection broke.
    #[cfg(not(unix))]
    pub fn blocking_next(&mut self) -> Result<Option<Chunk>, Error> {
        self.chunks.blocking_next()
    }
}

#[cfg(unix)]
mod unix {
    use std::task::{Context, Poll, Waker};
    use std::thread;

    use super::{Chunk, Chunks, Direct, Error};
    use crate::reading::Step;
    use crate::unpark::Unpark;

    /// The number of bytes to gather while more data arrives after a short rest: a file system needs a quarter less
    /// processor time for writes of this size than for the contents of a socket buffer.
    const GATHER_BYTES: usize = 512 << 10;

    impl Direct {
        pub(crate) fn new(chunks: Chunks) -> Self {
            if chunks.reading.is_some() {
                chunks.buffer.want();
            }
            Self { chunks, is_own: false }
        }

        /// Waits for the next bytes of the stream: all available bytes, at most a chunk; `None` at its end. Only the stream
        /// itself tells whether it is complete.
        ///
        /// # Errors
        /// If the connection broke.
        pub fn blocking_next(&mut self) -> Result<Option<Chunk>, Error> {
            let waker = Waker::from(Unpark::this_thread());
            let mut cx = Context::from_waker(&waker);
            loop {
                if let Some(reading) = self.chunks.reading.as_mut().filter(|_| self.is_own) {
                    while !self.chunks.buffer.has(GATHER_BYTES)
                        && reading.once(&self.chunks.buffer, &mut cx) == Step::Again
                    {}
                }
                if let Poll::Ready(outcome) = self.chunks.buffer.poll_take(&cx) {
                    return outcome.map_err(|source| self.chunks.broken(source));
                }
                match &mut self.chunks.reading {
                    Some(reading) if self.is_own => reading.wait(),
                    // Checked after the buffer has the waker, so that a later hand-over wakes it.
                    _ if self.chunks.buffer.is_handed_over() => self.is_own = true,
                    _ => thread::park(),
                }
            }
        }
    }
}
