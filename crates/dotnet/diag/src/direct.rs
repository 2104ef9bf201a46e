//! A stream that is read by the thread which takes it.
//!
//! Two threads that pass chunks on wake each other, and each chunk crosses from one processor's cache to the other's. One
//! thread that reads, writes and counts what it has just read does without both. What it costs: nothing is read while a
//! chunk is being written away, so that whatever takes long has to be buffered by the runtime.

use crate::{Chunk, Chunks, Error};

/// The stream of a [`Session`](crate::Session), read when its next chunk is asked for. Made by [`Chunks::direct`].
///
/// What the session's own thread has read by then comes first. Where a task drains the stream
/// ([`Backlog::by_a_task`](crate::Backlog::by_a_task)) it goes on with that.
#[derive(Debug)]
pub struct Direct {
    chunks: Chunks,
    /// Nobody else reads any more.
    #[cfg(unix)]
    is_ours: bool,
}

impl Direct {
    #[cfg(not(unix))]
    pub(crate) fn new(chunks: Chunks) -> Self {
        Self { chunks }
    }

    /// Waits for the next bytes of the stream: whatever is there, at most a chunk; `None` at its end. Whether the stream
    /// is complete, only the stream itself says.
    ///
    /// # Errors
    /// The connection broke.
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

    /// As long as more comes after a short rest, so much is gathered: a file system takes it for a quarter less processor
    /// time than what a socket holds at once.
    const ENOUGH: usize = 512 << 10;

    impl Direct {
        pub(crate) fn new(chunks: Chunks) -> Self {
            if chunks.reading.is_some() {
                chunks.buffer.want();
            }
            Self { chunks, is_ours: false }
        }

        /// Waits for the next bytes of the stream: whatever is there, at most a chunk; `None` at its end. Whether the
        /// stream is complete, only the stream itself says.
        ///
        /// # Errors
        /// The connection broke.
        pub fn blocking_next(&mut self) -> Result<Option<Chunk>, Error> {
            let waker = Waker::from(Unpark::this_thread());
            let mut cx = Context::from_waker(&waker);
            loop {
                if let Some(reading) = self.chunks.reading.as_mut().filter(|_| self.is_ours) {
                    while !self.chunks.buffer.has(ENOUGH)
                        && reading.once(&self.chunks.buffer, &mut cx) == Step::Again
                    {}
                }
                if let Poll::Ready(outcome) = self.chunks.buffer.poll_take(&cx) {
                    return outcome.map_err(|source| self.chunks.broken(source));
                }
                match &mut self.chunks.reading {
                    Some(reading) if self.is_ours => reading.wait(),
                    // Looked at after the buffer knows who waits: a hand-over from here on wakes us.
                    _ if self.chunks.buffer.is_handed_over() => self.is_ours = true,
                    _ => thread::park(),
                }
            }
        }
    }
}
