//! Reads the socket of a stream, at a pace that lets the socket fill and keeps no writer waiting.
//!
//! A runtime sends a block of 100 KiB in some twenty small writes, and a socket holds two blocks. To be woken for each
//! write costs several times as much as to read it. So whoever reads rests in between: the longer, the less was there
//! afterwards; the shorter, the nearer the socket came to being full. An executor's timers are too coarse for that, and
//! its poller is woken by each write whoever waits.

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

/// A socket is as good as full when that much was in it. Linux lets a writer put some 200 KiB into one.
const FULL: usize = 128 * 1024;
/// The rest that a stream begins with.
const REST: Duration = Duration::from_micros(300);
/// A shorter one is not worth a timer.
const SHORTEST: Duration = Duration::from_micros(75);
/// A writer that was silent and begins to write as fast as it can is held up by one of these, once.
const LONGEST: Duration = Duration::from_millis(1);

/// Reads a socket into a buffer.
#[derive(Debug)]
pub(crate) struct Reading {
    socket: Socket,
    pace: Pace,
}

/// What came of one try to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is to be tried again.
    Again,
    /// Nothing is there: [`Reading::wait`] before it is tried again.
    Nothing,
    /// There is no room, until something is taken.
    NoRoom,
    /// Nothing more will come.
    Over,
}

impl Reading {
    pub(crate) fn new(socket: Arc<UnixStream>) -> Self {
        Self { socket: Socket { inner: socket, is_empty: false, is_cut: false }, pace: Pace::default() }
    }

    /// Rests if it is time to, and reads once.
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

    /// Waits until something is there.
    pub(crate) fn wait(&mut self) {
        self.socket.wait();
    }
}

/// How long to rest between two reads.
#[derive(Debug)]
struct Pace {
    rest: Duration,
    is_due: bool,
    /// Bytes that were read since the last rest.
    gathered: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rest: REST, is_due: false, gathered: 0 }
    }
}

impl Pace {
    /// The rest that is due, once.
    fn rest(&mut self) -> Option<Duration> {
        std::mem::take(&mut self.is_due).then_some(self.rest).filter(|rest| !rest.is_zero())
    }

    /// So much was read; `more` is there.
    fn read(&mut self, n: usize, more: bool) {
        self.gathered += n;
        if more {
            return;
        }
        match std::mem::take(&mut self.gathered) {
            FULL.. => {
                self.rest = self.rest * 2 / 3;
                if self.rest < SHORTEST {
                    self.rest = Duration::ZERO;
                }
            }
            n if n < FULL / 2 => self.lengthen(),
            _ => {}
        }
        self.is_due = true;
    }

    /// There was nothing. When something comes, more will follow.
    fn found_nothing(&mut self) {
        self.gathered = 0;
        self.lengthen();
        self.is_due = true;
    }

    fn lengthen(&mut self) {
        self.rest = (self.rest * 3 / 2).clamp(SHORTEST, LONGEST);
    }
}

/// A socket that is read without waiting.
#[derive(Debug)]
struct Socket {
    inner: Arc<UnixStream>,
    /// By the last read.
    is_empty: bool,
    /// The last read had no room for more.
    is_cut: bool,
}

impl Socket {
    /// Waits until there is something to read, or an error to learn of.
    fn wait(&mut self) {
        self.is_empty = false;
        // Whatever it says, the next read says it better.
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

    /// The rest after so many reads of so many bytes each.
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
    fn it_rests_by_what_it_finds() {
        assert_eq!(rest_after(&[100_000; 9]), REST, "a block is neither much nor little");
        assert_eq!(rest_after(&[10; 9]), LONGEST);
        assert_eq!(rest_after(&[200_000; 9]), Duration::ZERO);
        // Whoever wrote as fast as that gets rests again when it is over.
        assert_eq!(rest_after(&[200_000, 200_000, 200_000, 200_000, 10]), SHORTEST);
    }

    #[test]
    fn it_does_not_rest_while_there_is_more() {
        let mut pace = Pace::default();
        for _ in 0..3 {
            pace.read(32 << 10, true);
            assert_eq!(pace.rest(), None);
        }
        // All of it was in the socket at once.
        pace.read(32 << 10, false);
        assert_eq!(pace.rest(), Some(REST * 2 / 3));
        pace.found_nothing();
        assert_eq!(pace.rest(), Some(REST));
    }
}
