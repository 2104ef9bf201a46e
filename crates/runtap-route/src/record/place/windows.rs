//! Where tools find the recorder: a pipe of its own, or one that somebody has named. No tool finds it by the id of the
//! process that it stands for: that process has the pipe of this name.

use std::io;
use std::path::{Path, PathBuf};

use runtap_transport::naming::SocketName;
use runtap_transport::{BindError, BindOptions, Listener, random_u64};
use thiserror::Error;

/// A place that could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// No directory of our own: elsewhere there is one.
    #[error("no directory can be made in {}: {source}", path.display())]
    Directory {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The pipe.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// A pipe for others.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
}

impl Place {
    /// Listens where somebody has said, or on a pipe with a name that nobody else has.
    ///
    /// # Errors
    /// The pipe can't be made.
    pub fn listen(at: Option<&Path>, _name: Option<SocketName>) -> Result<(Self, Listener), PlaceError> {
        let own = || PathBuf::from(format!("runtap-{:016x}", random_u64()));
        let listener = Listener::bind(at.map_or_else(own, Path::to_owned), BindOptions::default())?;
        Ok((Self { path: listener.path().to_owned() }, listener))
    }

    /// The pipe.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory in which tools find it by a process id: there are none of pipes.
    pub fn directory(&self) -> Option<&Path> {
        None
    }
}
