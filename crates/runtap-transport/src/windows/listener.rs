//! A listening pipe that only its owner (and the system and its administrators) can open, and nobody over the network.
//!
//! The first instance of a name fails where the name is somebody's already, and while one instance is there nobody else
//! can make another: their rights say so. So one is kept waiting all the time.

use std::io;
use std::path::{Path, PathBuf};

use runtap_windows::pipe;
use tokio::net::windows::named_pipe::NamedPipeServer;
use tokio::sync::Mutex;

use super::PIPES;
use crate::bind::{BindError, BindOptions};
use crate::{Endpoint, Peer, Stream};

/// A listening named pipe.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    name: String,
    /// The instance that the next client gets; `None` if there could be none made.
    waiting: Mutex<Option<NamedPipeServer>>,
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
            Ok(first) => Ok(Self { path, name, waiting: Mutex::new(Some(first)) }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(BindError::InUse { path }),
            Err(source) => Err(BindError::Io { path, source }),
        }
    }

    /// What the pipe is called.
    pub fn path(&self) -> &Path {
        &self.path
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
                // Another instance of the name may be a client's still.
                None => waiting.insert(pipe::listen(self.path.as_os_str(), false)?),
            };
            let connected = server.connect().await;
            // The next one waits before this one is served: a client finds the name at any time.
            let next = pipe::listen(self.path.as_os_str(), false).ok();
            let Some(server) = std::mem::replace(&mut *waiting, next) else { continue };
            let stream = Stream::from(server);
            // Who has gone already is nobody's loss.
            if let (Ok(()), Ok(peer)) = (connected, stream.peer()) {
                return Ok((stream, peer));
            }
        }
    }
}
