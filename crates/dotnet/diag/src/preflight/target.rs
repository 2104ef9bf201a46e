//! Inspects the process behind a connection from outside. Linux only; on other systems nothing is known.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
use runtap_discover::{Createdump, Facts, FileView, ProcessState, Startup};

use super::Objection;

/// Returns whether a runtime waits to be resumed, or is still starting. `false` if unknown.
pub(crate) fn is_waiting(pid: u32) -> bool {
    #[cfg(target_os = "linux")]
    return runtap_discover::startup(pid) == Startup::Waiting;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        false
    }
}

/// A process that will receive a request. Paths refer to its own mount namespace.
#[derive(Debug)]
pub struct Target {
    #[cfg(target_os = "linux")]
    facts: Box<Facts>,
    #[cfg(target_os = "linux")]
    files: FileView,
}

#[cfg(target_os = "linux")]
impl Target {
    /// Inspects the process with this id in the caller's pid namespace.
    ///
    /// # Errors
    /// If the process has exited, or may not be inspected.
    pub fn of(pid: u32) -> io::Result<Self> {
        let facts = Box::new(runtap_discover::facts(pid));
        match facts.state {
            ProcessState::Gone | ProcessState::Hidden | ProcessState::Thread { .. } | ProcessState::Ended => {
                Err(io::ErrorKind::NotFound.into())
            }
            _ => Ok(Self { facts, files: runtap_discover::file_view(pid)? }),
        }
    }

    /// Returns whether its runtime waits to be resumed, or is still starting. `false` if unknown.
    pub fn is_starting(&self) -> bool {
        self.facts.startup == Startup::Waiting
    }

    /// Returns whether its runtime runs its program. `false` if unknown.
    pub fn is_running(&self) -> bool {
        self.facts.startup == Startup::Done
    }

    /// Returns the path of its executable.
    pub(super) fn executable(&self) -> Option<&Path> {
        self.facts.exe.as_deref()
    }

    /// Checks whether the process can start `createdump`. Succeeds if unknown.
    ///
    /// # Errors
    /// [`Objection::Createdump`] if it cannot.
    pub fn check_createdump(&self) -> Result<(), Objection> {
        match &self.facts.createdump {
            Createdump::Missing(path) => Err(Objection::Createdump { path: path.clone(), missing: true }),
            Createdump::NotExecutable(path) => {
                Err(Objection::Createdump { path: path.clone(), missing: false })
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the process has exited.
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
#[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "the interface is that of Linux")]
impl Target {
    /// Fails: processes cannot be inspected on this system.
    ///
    /// # Errors
    /// Always.
    pub fn of(_pid: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns `false`: unknown on this system.
    pub fn is_running(&self) -> bool {
        false
    }

    pub(super) fn executable(&self) -> Option<&Path> {
        None
    }

    /// Returns `false`: unknown on this system.
    pub fn is_starting(&self) -> bool {
        false
    }

    /// Succeeds: unknown on this system.
    ///
    /// # Errors
    /// Never.
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
