//! Reads the socket of a stream at a pace that lets the socket fill and blocks no writer.
//!
//! A runtime sends a block of 100 KiB in about twenty small writes, and a socket holds two blocks. Waking up for each
//! write costs several times as much as reading it, so the reader rests between reads: longer if little arrived, and
//! shorter if the socket was almost full. The timers of async executors are too coarse for such rests, and their pollers
//! are woken by each write.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncRead, ReadBuf};

use crate::buffer::Buffer;

/// A socket with this many bytes counts as almost full. On Linux a socket can hold about 200 KiB.
const NEARLY_FULL: usize = 128 * 1024;
/// The initial rest.
const INITIAL_REST: Duration = Duration::from_micros(300);
/// The shortest rest; a shorter one is not worth a timer.
const MIN_REST: Duration = Duration::from_micros(75);
/// The longest rest, which delays a writer that was silent and starts writing at full speed once.
const MAX_REST: Duration = Duration::from_millis(1);

/// Reads a socket into a buffer.
#[derive(Debug)]
pub(crate) struct Reading {
    socket: Socket,
    pace: Pace,
}

/// The result of an attempt to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Try again.
    Again,
    /// Nothing is available: call [`Reading::wait`] before trying again.
    Nothing,
    /// The buffer is full until a chunk is taken.
    NoRoom,
    /// The stream has ended.
    Over,
}

impl Reading {
    pub(crate) fn new(socket: Arc<UnixStream>) -> Self {
        Self { socket: Socket { inner: socket, is_empty: false, is_cut: false }, pace: Pace::default() }
    }

    /// Rests if a rest is due, and reads once.
    pub(crate) fn once(&mut self, buffer: &Buffer, cx: &mut Context<'_>) -> Step {
        if let Some(rest) = self.pace.rest() {
            thread::sleep(rest);
        }
        match buffer.poll_fill(&mut self.socket, cx) {
            Poll::Ready(Some(n)) => self.pace.read(n, self.socket.is_cut),
            Poll::Ready(None) => return Step::Over,
            Poll::Pending if self.socket.is_empty => {
                self.pace.found_nothing();
                return Step::Nothing;
            }
            Poll::Pending => return Step::NoRoom,
        }
        Step::Again
    }

    /// Waits until bytes are available.
    pub(crate) fn wait(&mut self) {
        self.socket.wait();
    }
}

/// The pace of reads: how long to rest between them.
#[derive(Debug)]
struct Pace {
    rest: Duration,
    is_due: bool,
    /// The number of bytes that were read since the last rest.
    gathered: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rest: INITIAL_REST, is_due: false, gathered: 0 }
    }
}

impl Pace {
    /// Returns the rest that is due, once.
    fn rest(&mut self) -> Option<Duration> {
        std::mem::take(&mut self.is_due).then_some(self.rest).filter(|rest| !rest.is_zero())
    }

    /// Records a read of `n` bytes; `more` bytes may be available.
    fn read(&mut self, n: usize, more: bool) {
        self.gathered += n;
        if more {
            return;
        }
        match std::mem::take(&mut self.gathered) {
            NEARLY_FULL.. => {
                self.rest = self.rest * 2 / 3;
                if self.rest < MIN_REST {
                    self.rest = Duration::ZERO;
                }
            }
            n if n < NEARLY_FULL / 2 => self.lengthen(),
            _ => {}
        }
        self.is_due = true;
    }

    /// Records that nothing was available. More data usually follows the next bytes.
    fn found_nothing(&mut self) {
        self.gathered = 0;
        self.lengthen();
        self.is_due = true;
    }

    fn lengthen(&mut self) {
        self.rest = (self.rest * 3 / 2).clamp(MIN_REST, MAX_REST);
    }
}

/// A socket in non-blocking mode.
#[derive(Debug)]
struct Socket {
    inner: Arc<UnixStream>,
    /// Whether the last read emptied the socket.
    is_empty: bool,
    /// Whether the last read filled its buffer, so that more bytes may be available.
    is_cut: bool,
}

impl Socket {
    /// Waits for bytes or an error.
    fn wait(&mut self) {
        self.is_empty = false;
        // The next read reports errors.
        let _ = poll(&mut [PollFd::new(&*self.inner, PollFlags::IN)], None);
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let outcome = (&*self.inner).read(buf.initialize_unfilled());
            match outcome {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_empty = true;
                    return Poll::Pending;
                }
                outcome => {
                    return Poll::Ready(outcome.map(|n| {
                        buf.advance(n);
                        self.is_cut = buf.remaining() == 0;
                    }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rest after reads of these sizes.
    fn rest_after(reads: &[usize]) -> Duration {
        let mut pace = Pace::default();
        for n in reads {
            pace.read(*n, false);
        }
        assert!(pace.rest().is_none_or(|rest| rest == pace.rest));
        assert_eq!(pace.rest(), None, "one rest is enough");
        pace.rest
    }

    #[test]
    fn the_rest_depends_on_the_bytes_found() {
        assert_eq!(rest_after(&[100_000; 9]), INITIAL_REST, "a block keeps the rest unchanged");
        assert_eq!(rest_after(&[10; 9]), MAX_REST);
        assert_eq!(rest_after(&[200_000; 9]), Duration::ZERO);
        // A fast writer is followed by rests again afterwards.
        assert_eq!(rest_after(&[200_000, 200_000, 200_000, 200_000, 10]), MIN_REST);
    }

    #[test]
    fn no_rest_while_more_bytes_are_available() {
        let mut pace = Pace::default();
        for _ in 0..3 {
            pace.read(32 << 10, true);
            assert_eq!(pace.rest(), None);
        }
        // All bytes were in the socket at once.
        pace.read(32 << 10, false);
        assert_eq!(pace.rest(), Some(INITIAL_REST * 2 / 3));
        pace.found_nothing();
        assert_eq!(pace.rest(), Some(INITIAL_REST));
    }
}
