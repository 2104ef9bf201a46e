//! Where tools find the recorder: a directory of its own with a socket that is called as the runtime's own, so that a tool
//! with this directory as its `TMPDIR` takes it for the runtime's; or a path that somebody has chosen.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use runtap_transport::naming::SocketName;
use runtap_transport::{BindError, BindOptions, Listener, random_u64};
use thiserror::Error;

/// Names that are tried for a directory of our own.
const MAX_NAMES: u32 = 16;

/// A place that could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// No directory of our own.
    #[error("no directory can be made in {}: {source}", path.display())]
    Directory {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The socket.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// A socket for others, and the directory that was made for it.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Removed with all that is in it: nobody but us can enter.
    own: Option<PathBuf>,
}

impl Place {
    /// Listens where somebody has said: at this path, or, if that is a directory, in it under the name that tools look
    /// for. Without a path, in a directory of our own.
    ///
    /// # Errors
    /// The socket can't be made there.
    pub fn listen(at: Option<&Path>, name: Option<SocketName>) -> Result<(Self, Listener), PlaceError> {
        let file = name.map_or_else(|| "port".to_owned(), |name| name.to_string());
        let (path, own) = match at {
            Some(at) if at.is_dir() => (at.join(file), None),
            Some(at) => (at.to_owned(), None),
            None => {
                let own = Self::make()?;
                (own.join(file), Some(own))
            }
        };
        let place = Self { path, own };
        let options = BindOptions::default().replace_stale(true);
        let listener = Listener::bind(&place.path, options)?;
        Ok((place, listener))
    }

    fn make() -> Result<PathBuf, PlaceError> {
        let parent = std::env::temp_dir();
        let mut tries = 0;
        loop {
            let path = parent.join(format!("runtap-{:016x}", random_u64()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MAX_NAMES => tries += 1,
                Err(source) => return Err(PlaceError::Directory { path: parent, source }),
            }
        }
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory in which tools find it by a process id, if it has the name that they look for.
    pub fn directory(&self) -> Option<&Path> {
        let name = self.path.file_name().and_then(OsStr::to_str).and_then(SocketName::parse);
        self.path.parent().filter(|directory| name.is_some() && !directory.as_os_str().is_empty())
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
