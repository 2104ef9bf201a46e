//! Where tools find the recorder. How they do is the system's (`unix`, `windows`).

use std::io;
use std::path::{Path, PathBuf};

use runtap_transport::naming::SocketName;
use runtap_transport::{BindError, Listener};
use thiserror::Error;

#[cfg_attr(unix, path = "place/unix.rs")]
#[cfg_attr(windows, path = "place/windows.rs")]
mod native;

/// A place that could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// No directory of our own. Pipes have none.
    #[error("no directory can be made in {}: {source}", path.display())]
    Directory {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The socket or pipe.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// A socket or pipe for others, and the directory that was made for it.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Removed with all that is in it: nobody but us can enter.
    own: Option<PathBuf>,
}

impl Place {
    /// Listens where somebody has said: at this path, or, if that is a directory, in it under the name that tools look
    /// for. Without a path, in a directory of our own; on Windows, on a pipe with a name that nobody else has.
    ///
    /// # Errors
    /// The socket or pipe can't be made there.
    pub fn listen(at: Option<&Path>, name: Option<SocketName>) -> Result<(Self, Listener), PlaceError> {
        native::listen(at, name)
    }

    /// The socket or pipe.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory in which tools find it by a process id, if it has the name that they look for. There is none of pipes:
    /// the process that it stands for has the pipe of this name.
    pub fn directory(&self) -> Option<&Path> {
        native::directory(&self.path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            // What is left there is in nobody's way.
            let _ = std::fs::remove_dir_all(own);
        }
    }
}
