//! The control pipe: every process of an application waits there for a word of ours, and one word is known: cancel.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::frames::Frames;
use super::speak::{cancel_session, is_wait_for_control};
use crate::pipe::Pipe;

/// The control pipe of one application.
#[derive(Debug)]
pub(crate) struct Control {
    pipe: Pipe,
    shared: Arc<Mutex<Waiting>>,
}

/// The processes that wait.
#[derive(Debug, Default)]
struct Waiting {
    streams: Vec<(u64, UnixStream)>,
    /// Those that come now are told at once.
    cancelled: bool,
}

impl Control {
    pub(crate) fn listen(path: PathBuf) -> io::Result<Self> {
        let shared = Arc::<Mutex<Waiting>>::default();
        let own = Arc::clone(&shared);
        let pipe = Pipe::listen(path, move |number, stream| serve(number, &stream, &own))?;
        Ok(Self { pipe, shared })
    }

    pub(crate) fn path(&self) -> &Path {
        self.pipe.path()
    }

    /// Tells all to cancel their sessions. Returns whether anybody listens.
    pub(crate) fn cancel(&self) -> bool {
        let mut waiting = lock(&self.shared);
        waiting.cancelled = true;
        waiting.streams.drain(..).filter(|(_, stream)| tell(stream).is_ok()).count() > 0
    }

    /// Nobody is told anything any more.
    pub(crate) fn close(&mut self) {
        self.pipe.close(Instant::now());
    }
}

fn lock(shared: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(mut stream: &UnixStream) -> io::Result<()> {
    stream.write_all(&cancel_session())
}

/// A process asks, and waits for the answer. Closing its end is its way to leave.
fn serve(number: u64, stream: &UnixStream, shared: &Mutex<Waiting>) {
    let mut frames = Frames::new(stream);
    // Anything else is answered by nothing: there is nothing else to be asked here.
    while let Ok(Some(true)) = frames.next(is_wait_for_control) {
        let mut waiting = lock(shared);
        if waiting.cancelled {
            if tell(stream).is_err() {
                break;
            }
        } else if let Ok(stream) = stream.try_clone() {
            waiting.streams.push((number, stream));
        }
    }
    lock(shared).streams.retain(|(other, _)| *other != number);
}
