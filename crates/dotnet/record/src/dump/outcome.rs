//! What there is in the end.

use std::path::PathBuf;
use std::time::Duration;

use runtap_diag::core_file::{CoreFile, CoreFileError};

use crate::dump::Error;

/// What became of a dump.
#[derive(Debug)]
pub enum Outcome {
    /// It is there.
    Written(Box<Dump>),
    /// The end was asked for before.
    Interrupted {
        /// The target.
        pid: u32,
        /// Where the target goes on writing, as it sees that, if it had been asked by then: it stands still until it has
        /// written the whole.
        goes_on: Option<PathBuf>,
    },
}

/// A dump that the target says it has written, and what we found.
#[derive(Debug)]
pub struct Dump {
    /// The target.
    pub pid: u32,
    /// Where it is.
    pub path: PathBuf,
    /// Where the target wrote it, or sees it now.
    pub target_path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Until the target had answered.
    pub duration: Duration,
    /// Whose memory it holds, or what is wrong with the file.
    pub core: Result<CoreFile, CoreFileError>,
    /// The path of the crash report, if there is one.
    pub crash_report: Result<Option<PathBuf>, Error>,
    /// In the target's own pid namespace, where that is known.
    pub(crate) own_pid: Option<u32>,
}

/// Why a dump can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Flaw<'a> {
    /// It is cut, or can't be looked into.
    #[error(transparent)]
    File(&'a CoreFileError),
    /// It is somebody else's.
    #[error("it is of process {found}, not of process {wanted}")]
    Other {
        /// Whose it is.
        found: u32,
        /// Whose it should be.
        wanted: u32,
    },
    /// It may be anybody's.
    #[error("it does not say of which process it is")]
    Nobodys,
    /// There is no thread in it.
    #[error("it has no threads")]
    NoThreads,
}

impl Dump {
    /// What is wrong with the file; `None` if nothing is.
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
