//! The temporary directory of a run: private, with a short name, removed at the end.

#[cfg_attr(unix, path = "scratch/unix.rs")]
#[cfg_attr(windows, path = "scratch/windows.rs")]
mod system;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runtap_os::random_u64;

/// A directory of mode 0700. Dropping the value removes the directory and its content.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the directory in the directory for temporary files, or in `/tmp` if the former has a name too long for
    /// sockets.
    ///
    /// # Errors
    /// Returns an error if neither directory is writable.
    pub fn new() -> io::Result<Self> {
        let path = system::make(&format!("runtap-{:016x}", random_u64()))?;
        Ok(Self(path))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Returns the path of a socket with this name for a run with this directory: a path in the directory, or on Windows
/// the name of a pipe that cannot be predicted.
pub fn socket_in(directory: &Path, name: &str) -> PathBuf {
    system::socket(directory, name)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftover files are harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}
