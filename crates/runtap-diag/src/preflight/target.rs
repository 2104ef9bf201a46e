//! The process behind a connection, looked at from outside: its files, its threads, what it has mapped. Linux only;
//! elsewhere nothing can be seen.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A process that something is going to be asked of. Paths are its own.
#[derive(Debug)]
pub struct Target {
    pid: u32,
    #[cfg(target_os = "linux")]
    files: runtap_transport::discover::FileView,
}

impl Target {
    /// The process's id in our pid namespace.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

#[cfg(target_os = "linux")]
impl Target {
    /// The process with this id in our pid namespace.
    ///
    /// # Errors
    /// It is gone, or is not ours to look into.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, files: runtap_transport::discover::file_view(pid)? })
    }

    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        self.files.open(path)
    }

    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.files.metadata(path)
    }

    pub(super) fn is_executable(&self, path: &Path) -> io::Result<bool> {
        self.files.is_executable(path)
    }

    pub(super) fn mapped_files(&self) -> io::Result<Vec<PathBuf>> {
        self.files.mapped_files()
    }

    pub(super) fn executable(&self) -> io::Result<PathBuf> {
        self.files.executable()
    }

    pub(crate) fn thread_names(&self) -> io::Result<Vec<String>> {
        let threads = runtap_transport::discover::threads(self.pid)?;
        Ok(threads.into_iter().map(|thread| thread.name).collect())
    }
}

#[cfg(not(target_os = "linux"))]
#[allow(clippy::unused_self, reason = "the same questions as on Linux")]
impl Target {
    /// Fails: nothing can be seen here.
    ///
    /// # Errors
    /// Always.
    pub fn of(_pid: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn open(&self, _path: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn metadata(&self, _path: &Path) -> io::Result<Metadata> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_executable(&self, _path: &Path) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn mapped_files(&self) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn executable(&self) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn thread_names(&self) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
