//! The directory of a run: private, with a short name, gone at the end.

#[cfg_attr(unix, path = "scratch/unix.rs")]
#[cfg_attr(windows, path = "scratch/windows.rs")]
mod system;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runtap_os::random_u64;

/// A directory of mode 0700 that is removed with all that is in it when it is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it in the directory for temporary files, or in `/tmp` if that has a name too long for sockets.
    ///
    /// # Errors
    /// Neither can be written to.
    pub fn new() -> io::Result<Self> {
        let path = system::make(&format!("runtap-{:016x}", random_u64()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Where a socket of this name is listened on for a run with this directory: in there, or on Windows a pipe with a name that
/// nobody can foresee.
pub fn socket_in(directory: &Path, name: &str) -> PathBuf {
    system::socket(directory, name)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind there is nobody's.
        let _ = fs::remove_dir_all(&self.0);
    }
}
