//! A listening socket for one application. Each connection is served by its own thread, so that silent or slow
//! connections do not delay others. The module is independent of the protocol.
//!
//! The socket has mode 0600, and should be in a directory that only its owner can enter ([`Scratch`](crate::Scratch)).
//! A Windows pipe is accessible to its owner only.

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

/// The maximum number of open connections. Further connections are closed immediately: an application has one
/// connection for each of its processes.
pub(crate) const MAX_CONNECTIONS: usize = 256;

/// The number of pending connections that are accepted after closing has started. Larger than the backlog of any
/// system; limits clients that connect in a loop.
const MAX_PENDING: usize = 4096;

/// The time to wait for the threads of closed connections.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves one connection until its end.
type Serve = Arc<dyn Fn(u64, LocalStream) + Send + Sync>;

/// A listening socket. Dropping it closes all connections.
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
    rejected: AtomicU64,
    open: Mutex<Vec<(u64, LocalStream)>>,
    changed: Condvar,
}

impl Pipe {
    /// Starts listening. `serve` is called with the number of a connection, starting at 0.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be created, or no thread can be started.
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

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts pending connections, and no others.
    pub(crate) fn stop_accepting(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.shared.closing.store(true, Ordering::SeqCst);
        if !wake(&self.listener) {
            drop(LocalStream::connect(&self.path));
        }
        // The thread returns nothing.
        let _ = accepting.join();
        close_name(&self.path);
    }

    /// Returns whether all accepted connections were served to their end.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.open().is_empty()
    }

    /// Returns the number of rejected connections.
    pub(crate) fn rejected(&self) -> u64 {
        self.shared.rejected.load(Ordering::Relaxed)
    }

    /// Waits until no connection is open, and closes the remaining connections at `deadline`. All clients that
    /// connected before are served: the data they sent so far is read.
    pub fn close(&mut self, deadline: Instant) {
        self.wait(deadline);
        self.stop_accepting();
        self.wait(deadline);
        self.close_now(Instant::now() + CLOSE_TIMEOUT);
    }

    /// Closes all connections, and waits until `deadline` for their threads.
    pub(crate) fn close_now(&mut self, deadline: Instant) {
        self.shut();
        self.wait(deadline);
    }

    /// Waits until no connection is open, or until `deadline`.
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
    let mut left = MAX_PENDING;
    for number in 0.. {
        let accepted = listener.accept();
        let closing = shared.closing.load(Ordering::SeqCst);
        match accepted {
            // The connection is closed if there is no thread, or the limit is exceeded.
            Ok((stream, _)) => drop(start(stream, number, shared, serve)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // No further connection is pending.
            Err(_) if closing => return,
            // Probably too many open files; some will be closed.
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
    if open.len() >= MAX_CONNECTIONS {
        // While closing, this process connects to wake the thread.
        let counts = !shared.closing.load(Ordering::SeqCst);
        shared.rejected.fetch_add(counts.into(), Ordering::Relaxed);
        return Ok(());
    }
    // On some systems, the stream inherits the non-blocking mode of the listener.
    stream.set_nonblocking(false)?;
    open.push((number, stream.try_clone()?));
    drop(open);
    let guard = OpenGuard { shared: Arc::clone(shared), number };
    let serve = Arc::clone(serve);
    thread::Builder::new().name("mtp-pipe".into()).spawn(move || {
        let _guard = guard;
        serve(number, stream);
    })?;
    Ok(())
}

/// Removes a connection from the list when its thread ends, even after a panic.
struct OpenGuard {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for OpenGuard {
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
    fn connections_are_served_in_parallel_and_closed_at_the_end() {
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
        pipe.close_now(Instant::now() + Duration::from_mins(1));
        assert!(pipe.is_idle());
        assert_eq!(silent.read(&mut byte).unwrap(), 0, "the connection is closed");
        assert!(LocalStream::connect(pipe.path()).is_err());
    }

    #[test]
    fn clients_that_have_disconnected_are_still_served() {
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
    fn excess_connections_are_counted() {
        let scratch = Scratch::new().unwrap();
        let mut pipe = Pipe::listen(scratch.path().join("1"), |_, mut stream| {
            let _ = stream.read(&mut [0]);
        })
        .unwrap();
        let all: Vec<_> =
            (0..MAX_CONNECTIONS + 3).map(|_| LocalStream::connect(pipe.path()).unwrap()).collect();
        while pipe.rejected() < 3 {
            thread::yield_now();
        }
        pipe.stop_accepting();
        assert_eq!(pipe.rejected(), 3);
        drop(all);
        pipe.close_now(Instant::now() + Duration::from_mins(1));
    }
}
