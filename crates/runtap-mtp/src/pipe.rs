//! A listening socket for one application: many connections, each served by a thread of its own, so that one that is silent or
//! slow holds up nobody. Knows no byte of the protocol.
//!
//! The socket is in a directory that only its owner can enter.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// More connections at a time are closed at once: an application has one for each of its processes.
const MOST: usize = 256;

/// Serves one connection until it is at its end.
type Serve = Arc<dyn Fn(u64, UnixStream) + Send + Sync>;

/// A socket that is listened on. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Pipe {
    path: PathBuf,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    closing: AtomicBool,
    open: Mutex<Vec<(u64, UnixStream)>>,
    changed: Condvar,
}

impl Pipe {
    /// Listens at once. `serve` is called with the number of a connection, from 0 on.
    pub(crate) fn listen(
        path: PathBuf,
        serve: impl Fn(u64, UnixStream) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = UnixListener::bind(&path)?;
        let shared = Arc::<Shared>::default();
        let (own, serve): (_, Serve) = (Arc::clone(&shared), Arc::new(serve));
        let accepting = thread::Builder::new().name("mtp-accept".into());
        let accepting = accepting.spawn(move || accept(&listener, &own, &serve))?;
        Ok(Self { path, shared, accepting: Some(accepting) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until no connection is open; those that are still open at `deadline` are closed.
    pub(crate) fn close(&mut self, deadline: Instant) {
        let mut open = self.shared.open();
        while !open.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            open = self.shared.changed.wait_timeout(open, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(open);
        self.shut();
    }

    fn shut(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.shared.closing.store(true, Ordering::SeqCst);
        // Who accepts is woken by a connection.
        drop(UnixStream::connect(&self.path));
        // Nothing to tell but that it has ended.
        let _ = accepting.join();
        for (_, stream) in self.shared.open().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Vec<(u64, UnixStream)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>, serve: &Serve) {
    for number in 0.. {
        let accepted = listener.accept();
        if shared.closing.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            // Without a thread, or beyond what is sensible, it is closed.
            Ok((stream, _)) => drop(start(stream, number, shared, serve)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Too many files: some will be closed.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn start(stream: UnixStream, number: u64, shared: &Arc<Shared>, serve: &Serve) -> io::Result<()> {
    let mut open = shared.open();
    if open.len() >= MOST {
        return Ok(());
    }
    open.push((number, stream.try_clone()?));
    drop(open);
    let leaving = Leaving { shared: Arc::clone(shared), number };
    let serve = Arc::clone(serve);
    thread::Builder::new().name("mtp-pipe".into()).spawn(move || {
        let _leaving = leaving;
        serve(number, stream);
    })?;
    Ok(())
}

/// Takes a connection off the list, whatever ends it.
struct Leaving {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.shared.open().retain(|(number, _)| *number != self.number);
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn connections_are_served_side_by_side_and_closed_in_the_end() {
        let scratch = Scratch::new().unwrap();
        let mut pipe = Pipe::listen(scratch.path().join("1"), |number, mut stream| {
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() {
                stream.write_all(&[byte[0] + u8::try_from(number).unwrap()]).unwrap();
            }
        })
        .unwrap();
        let mut silent = UnixStream::connect(pipe.path()).unwrap();
        let mut other = UnixStream::connect(pipe.path()).unwrap();
        let mut byte = [7];
        other.write_all(&byte).unwrap();
        other.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [8]);
        drop(other);
        pipe.close(Instant::now() + Duration::from_millis(20));
        assert_eq!(silent.read(&mut byte).unwrap(), 0, "it was closed");
        assert!(UnixStream::connect(pipe.path()).is_err());
    }

    #[test]
    fn closing_does_not_wait_when_all_have_gone() {
        let scratch = Scratch::new().unwrap();
        let mut pipe = Pipe::listen(scratch.path().join("1"), |_, mut stream| {
            let _ = stream.read(&mut [0]);
        })
        .unwrap();
        drop(UnixStream::connect(pipe.path()).unwrap());
        pipe.close(Instant::now() + Duration::from_mins(10));
    }
}
