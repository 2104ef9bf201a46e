//! Who drains a session's stream, and at what pace.
//!
//! A runtime sends a block of 100 KiB in some twenty small writes. To be woken for each of them costs several times as
//! much as to read them, and a socket holds two blocks. So a thread of its own reads the socket, and rests whenever it
//! did not find it full: long enough for it to fill, too short for a writer to be held up by it. An executor's timers
//! are too coarse for that, and its poller is woken by each write whoever waits.

use std::future::poll_fn;

use runtap_transport::Stream;
use tokio::task::AbortHandle;

use crate::buffer::Buffer;

/// Reads a stream into a buffer, to its end.
#[derive(Debug)]
pub(crate) enum Drain {
    #[cfg(unix)]
    Thread(thread::Thread),
    Task(AbortHandle),
}

impl Drain {
    /// Begins with it, on a thread of its own if the buffer's limits say so.
    pub(crate) fn start(stream: Stream, buffer: &Buffer) -> Self {
        #[cfg(unix)]
        if buffer.limits().on_a_thread {
            return Self::Thread(thread::Thread::start(stream, buffer));
        }
        Self::Task(tokio::spawn(on_a_task(stream, buffer.clone())).abort_handle())
    }

    /// Closes the connection. What was read by then stays in the buffer.
    pub(crate) fn stop(&self) {
        match self {
            #[cfg(unix)]
            Self::Thread(thread) => thread.stop(),
            Self::Task(task) => task.abort(),
        }
    }
}

async fn on_a_task(mut stream: Stream, buffer: Buffer) {
    while poll_fn(|cx| buffer.poll_fill(&mut stream, cx)).await.is_some() {}
}

#[cfg(unix)]
mod thread {
    use std::io::{self, ErrorKind, Read};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};
    use std::thread;
    use std::time::Duration;

    use runtap_transport::Stream;
    use rustix::event::{PollFd, PollFlags, poll};
    use tokio::io::{AsyncRead, ReadBuf};

    use crate::buffer::Buffer;
    use crate::unpark::Unpark;

    /// A socket is as good as full when that much was in it. Linux lets a writer put some 200 KiB into one.
    const FULL: usize = 128 * 1024;
    /// A runtime needs about that long to fill a socket: nobody is asked to write more than 600 MB/s.
    const REST: Duration = Duration::from_micros(300);

    /// A thread that drains a stream.
    #[derive(Debug)]
    pub(crate) struct Thread {
        /// `None` when there is no such thread.
        socket: Option<Arc<UnixStream>>,
    }

    impl Thread {
        pub(super) fn start(stream: Stream, buffer: &Buffer) -> Self {
            let begin = || {
                let socket = Arc::new(stream.into_std()?);
                let (from, to) = (Socket { inner: Arc::clone(&socket), is_empty: false }, buffer.clone());
                thread::Builder::new().name("drain".into()).spawn(move || drain(from, &to))?;
                Ok(socket)
            };
            let socket = begin().map_err(|error| buffer.fail(error)).ok();
            Self { socket }
        }

        pub(super) fn stop(&self) {
            if let Some(socket) = &self.socket {
                // It may be closed already.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }

    fn drain(mut socket: Socket, buffer: &Buffer) {
        let waker = Waker::from(Unpark::this_thread());
        let mut cx = Context::from_waker(&waker);
        let mut rested = false;
        loop {
            match buffer.poll_fill(&mut socket, &mut cx) {
                Poll::Ready(Some(n)) => rested = n < FULL,
                Poll::Ready(None) => return,
                Poll::Pending if socket.is_empty => {
                    // After a rest nothing is on its way.
                    if rested {
                        socket.wait();
                    }
                    rested = true;
                }
                // There is no room, until something is taken.
                Poll::Pending => {
                    thread::park();
                    continue;
                }
            }
            if rested {
                thread::sleep(REST);
            }
        }
    }

    /// A socket that is read without waiting: what the buffer holds can be taken while this waits for more.
    struct Socket {
        inner: Arc<UnixStream>,
        /// By the last read.
        is_empty: bool,
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
                    outcome => return Poll::Ready(outcome.map(|n| buf.advance(n))),
                }
            }
        }
    }
}
