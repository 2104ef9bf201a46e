//! A listening socket for one application: many connections, each served by a thread of its own, so that one that is silent or
//! slow holds up nobody. Knows no byte of the protocol.
//!
//! The socket has mode 0600, and is to be in a directory that only its owner can enter ([`Scratch`](crate::Scratch)); a
//! pipe of Windows is for its owner alone.

#[cfg_attr(unix, path = "pipe/unix.rs")]
#[cfg_attr(windows, path = "pipe/windows.rs")]
mod system;

use std::io;
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runtap_transport::{LocalListener, LocalStream};

use self::system::{close_name, restrict, wake};

/// More connections at a time are closed at once: an application has one for each of its processes.
pub(crate) const MOST: usize = 256;

/// So many may have dialled before we stop accepting: more than any system lets wait. Somebody may dial without end.
const MOST_WAITING: usize = 4096;

/// How long the last words of connections that were closed are waited for.
const LAST: Duration = Duration::from_secs(1);

/// Serves one connection until it is at its end.
type Serve = Arc<dyn Fn(u64, LocalStream) + Send + Sync>;

/// A socket that is listened on. Dropping it closes all connections.
#[derive(Debug)]
pub struct Pipe {
    path: PathBuf,
    listener: LocalListener,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    closing: AtomicBool,
    refused: AtomicU64,
    open: Mutex<Vec<(u64, LocalStream)>>,
    changed: Condvar,
}

impl Pipe {
    /// Listens at once. `serve` is called with the number of a connection, from 0 on.
    ///
    /// # Errors
    /// The socket can't be made there, or there is no thread.
    pub fn listen(
        path: PathBuf,
        serve: impl Fn(u64, LocalStream) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = LocalListener::bind(&path)?;
        restrict(&path)?;
        let shared = Arc::<Shared>::default();
        let (own, serve): (_, Serve) = (Arc::clone(&shared), Arc::new(serve));
        let accepting = thread::Builder::new().name("mtp-accept".into());
        let accepted = listener.try_clone()?;
        let accepting = accepting.spawn(move || accept(&accepted, &own, &serve))?;
        Ok(Self { path, listener, shared, accepting: Some(accepting) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts those that have dialled already, and nobody after them.
    pub(crate) fn stop_accepting(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.shared.closing.store(true, Ordering::SeqCst);
        if !wake(&self.listener) {
            drop(LocalStream::connect(&self.path));
        }
        // Nothing to tell but that it has ended.
        let _ = accepting.join();
        close_name(&self.path);
    }

    /// Whether all that was accepted was served to its end.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.open().is_empty()
    }

    /// How many connections there were too many.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Waits until no connection is open; those that are still open at `deadline` are closed. Everybody who has connected
    /// before is served: what was sent by then is read.
    pub fn close(&mut self, deadline: Instant) {
        self.wait(deadline);
        self.stop_accepting();
        self.wait(deadline);
        self.cut(Instant::now() + LAST);
    }

    /// Closes all connections, and waits until `deadline` for those who serve them.
    pub(crate) fn cut(&mut self, deadline: Instant) {
        self.shut();
        self.wait(deadline);
    }

    /// Until no connection is open, but not beyond `deadline`.
    fn wait(&self, deadline: Instant) {
        let mut open = self.shared.open();
        while !open.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            open = self.shared.changed.wait_timeout(open, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn shut(&mut self) {
        self.stop_accepting();
        for (_, stream) in self.shared.open().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Vec<(u64, LocalStream)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &LocalListener, shared: &Arc<Shared>, serve: &Serve) {
    let mut left = MOST_WAITING;
    for number in 0.. {
        let accepted = listener.accept();
        let closing = shared.closing.load(Ordering::SeqCst);
        match accepted {
            // Without a thread, or beyond what is sensible, it is closed.
            Ok((stream, _)) => drop(start(stream, number, shared, serve)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Nobody else has dialled.
            Err(_) if closing => return,
            // Too many files: some will be closed.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
        if closing {
            left -= 1;
            if left == 0 || listener.set_nonblocking(true).is_err() {
                return;
            }
        }
    }
}

fn start(stream: LocalStream, number: u64, shared: &Arc<Shared>, serve: &Serve) -> io::Result<()> {
    let mut open = shared.open();
    if open.len() >= MOST {
        // In the end, we dial ourselves.
        let counts = !shared.closing.load(Ordering::SeqCst);
        shared.refused.fetch_add(counts.into(), Ordering::Relaxed);
        return Ok(());
    }
    // What is accepted without blocking does not block itself, on some systems.
    stream.set_nonblocking(false)?;
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
        let mut silent = LocalStream::connect(pipe.path()).unwrap();
        let mut other = LocalStream::connect(pipe.path()).unwrap();
        let mut byte = [7];
        other.write_all(&byte).unwrap();
        other.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [8]);
        drop(other);
        pipe.stop_accepting();
        assert!(!pipe.is_idle());
        pipe.cut(Instant::now() + Duration::from_mins(1));
        assert!(pipe.is_idle());
        assert_eq!(silent.read(&mut byte).unwrap(), 0, "it was closed");
        assert!(LocalStream::connect(pipe.path()).is_err());
    }

    #[test]
    fn who_has_dialled_and_gone_is_served_all_the_same() {
        let scratch = Scratch::new().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let send = Mutex::new(send);
        let mut pipe = Pipe::listen(scratch.path().join("1"), move |_, mut stream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            send.lock().unwrap().send(text).unwrap();
        })
        .unwrap();
        for number in 0..50 {
            LocalStream::connect(pipe.path()).unwrap().write_all(number.to_string().as_bytes()).unwrap();
        }
        pipe.stop_accepting();
        while !pipe.is_idle() {
            thread::yield_now();
        }
        drop(pipe);
        let mut heard: Vec<u32> = receive.try_iter().filter_map(|text: String| text.parse().ok()).collect();
        heard.sort_unstable();
        assert_eq!(heard, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn too_many_at_a_time_are_counted() {
        let scratch = Scratch::new().unwrap();
        let mut pipe = Pipe::listen(scratch.path().join("1"), |_, mut stream| {
            let _ = stream.read(&mut [0]);
        })
        .unwrap();
        let all: Vec<_> = (0..MOST + 3).map(|_| LocalStream::connect(pipe.path()).unwrap()).collect();
        while pipe.refused() < 3 {
            thread::yield_now();
        }
        pipe.stop_accepting();
        assert_eq!(pipe.refused(), 3);
        drop(all);
        pipe.cut(Instant::now() + Duration::from_mins(1));
    }
}
