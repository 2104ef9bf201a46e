//! Draining a session's stream: by a thread ([`reading`](crate::reading) paces it), until a taker reads the socket itself
//! ([`direct`](crate::direct)), or by a task.

use std::future::poll_fn;

use runtap_transport::Stream;
use tokio::task::AbortHandle;

use crate::buffer::Buffer;
#[cfg(unix)]
use crate::reading::Reading;

/// Reads a stream into a buffer until its end.
#[derive(Debug)]
pub(crate) enum Drain {
    #[cfg(unix)]
    Thread(thread::Thread),
    Task(AbortHandle),
}

impl Drain {
    /// Starts reading, on a separate thread if the buffer's limits request one.
    pub(crate) fn start(stream: Stream, buffer: &Buffer) -> Self {
        #[cfg(unix)]
        if buffer.limits().on_a_thread {
            return Self::Thread(thread::Thread::start(stream, buffer));
        }
        Self::Task(tokio::spawn(on_a_task(stream, buffer.clone())).abort_handle())
    }

    /// Returns a reader for another thread that will read the socket after this drain has handed it over.
    #[cfg(unix)]
    pub(crate) fn reading(&self) -> Option<Reading> {
        match self {
            Self::Thread(thread) => thread.reading(),
            Self::Task(_) => None,
        }
    }

    /// Closes the connection. The bytes that were read stay in the buffer.
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
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::task::{Context, Waker};
    use std::thread;

    use runtap_transport::Stream;

    use crate::buffer::Buffer;
    use crate::reading::{Reading, Step};
    use crate::unpark::Unpark;

    /// A thread that drains a stream.
    #[derive(Debug)]
    pub(crate) struct Thread {
        /// The socket. `None` if there is no thread.
        socket: Option<Arc<UnixStream>>,
    }

    impl Thread {
        pub(super) fn start(stream: Stream, buffer: &Buffer) -> Self {
            let begin = || {
                let socket = Arc::new(stream.into_std()?);
                let (from, to) = (Reading::new(Arc::clone(&socket)), buffer.clone());
                thread::Builder::new().name("drain".into()).spawn(move || drain(from, &to))?;
                Ok(socket)
            };
            let socket = begin().map_err(|error| buffer.fail(error)).ok();
            Self { socket }
        }

        pub(super) fn reading(&self) -> Option<Reading> {
            self.socket.clone().map(Reading::new)
        }

        pub(super) fn stop(&self) {
            if let Some(socket) = &self.socket {
                // The socket may already be closed.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }

    fn drain(mut reading: Reading, buffer: &Buffer) {
        let waker = Waker::from(Unpark::this_thread());
        let mut cx = Context::from_waker(&waker);
        while !buffer.hand_over() {
            match reading.once(buffer, &mut cx) {
                Step::Again => {}
                Step::Nothing => reading.wait(),
                Step::NoRoom => thread::park(),
                Step::Over => return,
            }
        }
    }
}
