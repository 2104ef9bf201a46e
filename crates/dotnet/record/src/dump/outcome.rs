//! Results of dumps.

use std::path::PathBuf;
use std::time::Duration;

use runtap_diag::core_file::{CoreFile, CoreFileError};

use crate::dump::Error;

/// The result of a dump.
#[derive(Debug)]
pub enum DumpOutcome {
    /// The dump was written.
    Written(Box<Dump>),
    /// The operation was interrupted.
    Interrupted {
        /// The process id of the target.
        pid: u32,
        /// Where the target continues to write, as it sees the path, if the request had been sent. The target is stopped until the
        /// dump is complete.
        still_writing_to: Option<PathBuf>,
    },
}

/// A dump that the target reported as written, and what was found in the file.
#[derive(Debug)]
pub struct Dump {
    /// The process id of the target.
    pub pid: u32,
    /// The path of the dump.
    pub path: PathBuf,
    /// The path at which the target wrote it or sees it now.
    pub target_path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
    /// The time until the target answered.
    pub duration: Duration,
    /// The contents of the core file, or why it is invalid.
    pub core: Result<CoreFile, CoreFileError>,
    /// The path of the crash report, if there is one.
    pub crash_report: Result<Option<PathBuf>, Error>,
    /// The process id in the target's own PID namespace, if known.
    pub(crate) own_pid: Option<u32>,
}

/// Why a dump is not usable.
#[derive(Debug, thiserror::Error)]
pub enum Flaw<'a> {
    /// The file is truncated or can't be read.
    #[error(transparent)]
    File(&'a CoreFileError),
    /// The dump is that of another process.
    #[error("it is a dump of process {found}, not of process {wanted}")]
    Other {
        /// The process id in the dump.
        found: u32,
        /// The process id of the target.
        wanted: u32,
    },
    /// The process of the dump is unknown.
    #[error("it has no process id")]
    Nobodys,
    /// The dump has no threads.
    #[error("it has no threads")]
    NoThreads,
}

impl Dump {
    /// Returns why the file is not usable. `None` if it is.
    pub fn flaw(&self) -> Option<Flaw<'_>> {
        let process = match &self.core {
            Ok(core) => &core.process,
            Err(error) => return Some(Flaw::File(error)),
        };
        match (process.pid, self.own_pid) {
            (Some(found), Some(wanted)) if found != wanted => Some(Flaw::Other { found, wanted }),
            (None, _) => Some(Flaw::Nobodys),
            _ if process.threads.is_empty() => Some(Flaw::NoThreads),
            _ => None,
        }
    }
}
