//! The process behind a connection, looked at from outside. Linux only; elsewhere nothing can be seen.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
use runtap_discover::{Createdump, Facts, FileView, ProcessState, Startup};

use super::Objection;

/// Whether a runtime waits to be resumed, or is just starting. `false` where that can't be told.
pub(crate) fn is_waiting(pid: u32) -> bool {
    #[cfg(target_os = "linux")]
    return runtap_discover::startup(pid) == Startup::Waiting;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        false
    }
}

/// A process that something is going to be asked of. Paths are its own.
#[derive(Debug)]
pub struct Target {
    #[cfg(target_os = "linux")]
    facts: Box<Facts>,
    #[cfg(target_os = "linux")]
    files: FileView,
}

#[cfg(target_os = "linux")]
impl Target {
    /// The process with this id in our pid namespace.
    ///
    /// # Errors
    /// It is gone, or is not ours to look into.
    pub fn of(pid: u32) -> io::Result<Self> {
        let facts = Box::new(runtap_discover::facts(pid));
        match facts.state {
            ProcessState::Gone | ProcessState::Hidden | ProcessState::Thread { .. } | ProcessState::Ended => {
                Err(io::ErrorKind::NotFound.into())
            }
            _ => Ok(Self { facts, files: runtap_discover::file_view(pid)? }),
        }
    }

    /// Whether its runtime waits to be resumed, or is just starting. `false` where that can't be told.
    pub fn is_starting(&self) -> bool {
        self.facts.startup == Startup::Waiting
    }

    /// Whether its runtime runs its program. `false` where that can't be told.
    pub fn is_running(&self) -> bool {
        self.facts.startup == Startup::Done
    }

    /// Its executable.
    pub(super) fn executable(&self) -> Option<&Path> {
        self.facts.exe.as_deref()
    }

    /// Whether it could start `createdump`; also if that can't be told.
    ///
    /// # Errors
    /// [`Objection::Createdump`].
    pub fn check_createdump(&self) -> Result<(), Objection> {
        match &self.facts.createdump {
            Createdump::Missing(path) => Err(Objection::Createdump { path: path.clone(), missing: true }),
            Createdump::NotExecutable(path) => {
                Err(Objection::Createdump { path: path.clone(), missing: false })
            }
            _ => Ok(()),
        }
    }

    /// Whether it has ended since.
    pub(crate) fn is_gone(&self) -> bool {
        runtap_discover::threads(self.facts.pid).is_err()
    }

    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        self.files.open(path)
    }

    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.files.metadata(path)
    }
}

#[cfg(not(target_os = "linux"))]
#[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same questions as on Linux")]
impl Target {
    /// Fails: nothing can be seen here.
    ///
    /// # Errors
    /// Always.
    pub fn of(_pid: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Can't be told here.
    pub fn is_running(&self) -> bool {
        false
    }

    pub(super) fn executable(&self) -> Option<&Path> {
        None
    }

    /// Can't be told here.
    pub fn is_starting(&self) -> bool {
        false
    }

    /// Can't be told here.
    ///
    /// # Errors
    /// None.
    pub fn check_createdump(&self) -> Result<(), Objection> {
        Ok(())
    }

    pub(crate) fn is_gone(&self) -> bool {
        false
    }

    pub(super) fn open(&self, _path: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn metadata(&self, _path: &Path) -> io::Result<Metadata> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
