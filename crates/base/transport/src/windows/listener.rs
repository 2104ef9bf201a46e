//! A listening pipe that only its owner (and the system and its administrators) can open, and nobody over the network.
//!
//! The first instance of a name fails where the name is somebody's already, and while one instance is there nobody else
//! can make another: their rights say so. So one is kept waiting all the time.

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
    /// The instance that the next client gets; `None` if there could be none made.
    waiting: Mutex<Option<NamedPipeServer>>,
    /// Held by every client's stream, and let go before its instance is closed.
    ours: Arc<()>,
}

impl Listener {
    /// Makes a pipe of this name, with or without `\\.\pipe\`, and listens on it. Needs a tokio runtime with I/O. There is
    /// nothing to be replaced here, and nobody else is let in: a pipe goes with its process.
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

    /// What other users can do to its name: nothing as long as it is there.
    pub fn exposure(&self) -> Exposure {
        Exposure::Private
    }

    /// Whether it is for every user: none is.
    pub fn lets_everybody_in(&self) -> bool {
        false
    }

    /// Lets go of the name: that goes with the listener.
    pub fn remove_file(&self) {}

    /// As [`accept`](Self::accept): nobody else can open it.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub async fn accept_from_anybody(&self) -> io::Result<(Stream, Peer)> {
        self.accept().await
    }

    /// What the pipe is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An instance where none waits. With a client of ours still there, the name is ours; without, it may be somebody
    /// else's by now, and it is asked for as at the beginning.
    fn again(&self) -> io::Result<NamedPipeServer> {
        let path = self.path.as_os_str();
        let is_ours = || Arc::strong_count(&self.ours) > 1;
        if is_ours() {
            let made = pipe::listen(path, false)?;
            // One that is there now was there all the time.
            if is_ours() {
                return Ok(made);
            }
        }
        pipe::listen(path, true)
    }

    /// Where clients find it.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::pipe(&self.name)
    }

    /// The next client. Cancel safe.
    ///
    /// # Errors
    /// The system has no further instance of the pipe; the next call tries it again.
    pub async fn accept(&self) -> io::Result<(Stream, Peer)> {
        let mut waiting = self.waiting.lock().await;
        loop {
            let server = match waiting.as_mut() {
                Some(server) => server,
                None => waiting.insert(self.again()?),
            };
            let connected = server.connect().await;
            // The next one waits before this one is served: a client finds the name at any time.
            let next = pipe::listen(self.path.as_os_str(), false).ok();
            let Some(server) = std::mem::replace(&mut *waiting, next) else { continue };
            let stream = Stream::of_listener(server, Arc::clone(&self.ours));
            // Who has gone already is nobody's loss.
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
        // Wine 8 knows no first instance.
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
    async fn a_name_that_was_let_go_may_be_somebody_elses() {
        let listener = Listener::bind(name("again"), BindOptions::default()).unwrap();
        let ((stream, _), client) = connected(&listener).await;
        // As if the system had given no further instance.
        *listener.waiting.lock().await = None;
        // A client's instance keeps the name.
        drop(listener.again().unwrap());
        drop((stream, client));
        let other = pipe::listen(listener.path().as_os_str(), true).unwrap();
        if !is_wine() {
            assert_eq!(listener.again().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        drop(other);
        listener.again().unwrap();
    }

    /// A client, and the listener's end.
    async fn connected(listener: &Listener) -> ((Stream, Peer), Stream) {
        let endpoint = listener.endpoint();
        let (accepted, client) = tokio::join!(listener.accept(), endpoint.connect(Duration::from_secs(10)));
        (accepted.unwrap(), client.unwrap())
    }
}
