//! The address at which tools find the recorder, which depends on the system (`unix`, `windows`).

use std::io;
use std::path::{Path, PathBuf};

use runtap_transport::naming::SocketName;
use runtap_transport::{BindError, Listener};
use thiserror::Error;

#[cfg_attr(unix, path = "socket/unix.rs")]
#[cfg_attr(windows, path = "socket/windows.rs")]
mod native;

/// An error that prevents listening.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The private directory can't be created. Pipes have no directory.
    #[error("can't create a directory in {}: {source}", path.display())]
    Directory {
        /// The parent directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The socket or pipe can't be created.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// The socket or pipe of the recorder, and the directory that was created for it.
#[derive(Debug)]
pub struct RecorderSocket {
    path: PathBuf,
    /// The private directory, which is removed when dropped.
    private_directory: Option<PathBuf>,
}

impl RecorderSocket {
    /// Listens at this path, or, if the path is a directory, under the name in it that tools look for. Without a path, uses a
    /// private directory; on Windows, a pipe with a unique name.
    ///
    /// # Errors
    /// Fails if the socket or pipe can't be created.
    pub fn listen(at: Option<&Path>, name: Option<SocketName>) -> Result<(Self, Listener), SocketError> {
        native::listen(at, name)
    }

    /// Returns the path of the socket or the name of the pipe.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory in which tools find the socket by a process id; `None` if the socket has another name. Pipes have
    /// no directory: the pipe name belongs to the actual process.
    pub fn directory(&self) -> Option<&Path> {
        native::directory(&self.path)
    }
}

impl Drop for RecorderSocket {
    fn drop(&mut self) {
        if let Some(private_directory) = &self.private_directory {
            // A remaining directory is harmless.
            let _ = std::fs::remove_dir_all(private_directory);
        }
    }
}
