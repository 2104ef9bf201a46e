//! A listening named pipe that only its owner, the system and administrators can open, and only locally.
//!
//! Creating the first instance fails if the name is in use, and while an instance exists, its access rights keep other
//! users from creating further ones. So an unconnected instance is kept at all times.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtap_os::windows::pipe;
use tokio::net::windows::named_pipe::NamedPipeServer;
use tokio::sync::Mutex;

use super::PIPES;
use crate::bind::{BindError, BindOptions};
use crate::{Endpoint, Exposure, Peer, Stream};

/// A listening named pipe.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    name: String,
    /// The instance for the next client; `None` if it could not be created.
    waiting: Mutex<Option<NamedPipeServer>>,
    /// Cloned by the stream of each client, and dropped before its instance is closed.
    ours: Arc<()>,
}

impl Listener {
    /// Creates a pipe with this name, with or without `\\.\pipe\`, and listens. Must be called within a tokio runtime
    /// with I/O. There are no stale pipes to replace, and other users cannot be let in.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(path: impl Into<PathBuf>, options: BindOptions) -> Result<Self, BindError> {
        let given: PathBuf = path.into();
        let failed = |source| BindError::Io { path: given.clone(), source };
        if options.everybody {
            return Err(failed(io::ErrorKind::Unsupported.into()));
        }
        let name = given.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let name = name.strip_prefix(PIPES).unwrap_or(name).to_owned();
        let path = PathBuf::from(format!("{PIPES}{name}"));
        match pipe::listen(path.as_os_str(), true) {
            Ok(first) => Ok(Self { path, name, waiting: Mutex::new(Some(first)), ours: Arc::default() }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(BindError::InUse { path }),
            Err(source) => Err(BindError::Io { path, source }),
        }
    }

    /// Returns what other users can do to the name: nothing while the pipe exists.
    pub fn exposure(&self) -> Exposure {
        Exposure::Private
    }

    /// Returns false: only the current user may connect.
    pub fn accepts_all_users(&self) -> bool {
        false
    }

    /// Does nothing: the name is released when the listener is dropped.
    pub fn remove_file(&self) {}

    /// Like [`accept`](Self::accept), because other users cannot connect.
    ///
    /// # Errors
    /// See [`accept`](Self::accept).
    pub async fn accept_unverified(&self) -> io::Result<(Stream, Peer)> {
        self.accept().await
    }

    /// Returns the path of the pipe.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an instance if none is waiting. While a client is connected, the name belongs to this listener.
    /// Otherwise another process may have taken it, so a first instance is requested again.
    fn again(&self) -> io::Result<NamedPipeServer> {
        let path = self.path.as_os_str();
        let is_own = || Arc::strong_count(&self.ours) > 1;
        if is_own() {
            let made = pipe::listen(path, false)?;
            // A client that is connected now has been connected all the time.
            if is_own() {
                return Ok(made);
            }
        }
        pipe::listen(path, true)
    }

    /// Returns the address for clients.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::pipe(&self.name)
    }

    /// Accepts the next client. Cancel safe.
    ///
    /// # Errors
    /// If no further instance of the pipe can be created. The next call tries again.
    pub async fn accept(&self) -> io::Result<(Stream, Peer)> {
        let mut waiting = self.waiting.lock().await;
        loop {
            let server = match waiting.as_mut() {
                Some(server) => server,
                None => waiting.insert(self.again()?),
            };
            let connected = server.connect().await;
            // Created before the connection is returned, so that the pipe exists at all times.
            let next = pipe::listen(self.path.as_os_str(), false).ok();
            let Some(server) = std::mem::replace(&mut *waiting, next) else { continue };
            let stream = Stream::of_listener(server, Arc::clone(&self.ours));
            // Ignore clients that have disconnected already.
            if let (Ok(()), Ok(peer)) = (connected, stream.peer()) {
                return Ok((stream, peer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runtap_os::windows::pipe::is_wine;

    use super::*;

    fn name(what: &str) -> String {
        format!("runtap-transport-{}-{what}", std::process::id())
    }

    #[tokio::test]
    async fn a_name_is_taken_once() {
        let listener = Listener::bind(name("once"), BindOptions::default()).unwrap();
        let again = Listener::bind(listener.path(), BindOptions::default());
        // Wine 8 does not enforce the first instance.
        if !is_wine() {
            assert!(matches!(again, Err(BindError::InUse { .. })), "{again:?}");
        }
        drop(again);
        let ((first, first_peer), _client) = connected(&listener).await;
        assert_eq!(first_peer.pid, Some(std::process::id()));
        drop(first);
        let _second = connected(&listener).await;
    }

    #[tokio::test]
    async fn a_released_name_may_be_taken_by_another_process() {
        let listener = Listener::bind(name("again"), BindOptions::default()).unwrap();
        let ((stream, _), client) = connected(&listener).await;
        // Simulates that no further instance could be created.
        *listener.waiting.lock().await = None;
        // The client's instance keeps the name.
        drop(listener.again().unwrap());
        drop((stream, client));
        let other = pipe::listen(listener.path().as_os_str(), true).unwrap();
        if !is_wine() {
            assert_eq!(listener.again().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        drop(other);
        listener.again().unwrap();
    }

    /// Returns the listener's end and the client's end of a new connection.
    async fn connected(listener: &Listener) -> ((Stream, Peer), Stream) {
        let endpoint = listener.endpoint();
        let (accepted, client) = tokio::join!(listener.accept(), endpoint.connect(Duration::from_secs(10)));
        (accepted.unwrap(), client.unwrap())
    }
}
