//! A command that is started to be recorded, where that can't be done yet: its runtime would have to dial in on a port of
//! ours.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use crate::Error;

/// What the command's input and output are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// Nobody sees what it writes.
    Hidden,
    /// They are ours.
    Shown,
    /// Stdout carries a result of ours: what the command writes there goes to stderr.
    ShownOnStderr,
}

/// A command to start.
#[derive(Debug, Clone)]
pub struct Command {
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// Where its output goes.
    pub io: Io,
    /// End it when the recording is over.
    pub kill: bool,
}

/// The value that a variable had, or that there was none.
#[derive(Debug, Clone)]
pub(crate) struct Restore {
    pub(crate) value: Option<String>,
}

/// A command that runs: there is none.
#[derive(Debug)]
pub struct Launched(Infallible);

impl Launched {
    /// Fails: it can't be done here.
    pub(crate) fn start(_command: &Command, _port: &Path) -> Result<Self, Error> {
        Err(Error::Io(io::ErrorKind::Unsupported.into()))
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        match self.0 {}
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// None.
    #[allow(clippy::unused_async, clippy::needless_pass_by_ref_mut, reason = "the same as elsewhere")]
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        match self.0 {}
    }
}

/// What has to be put back: nothing was changed.
pub(crate) fn restore() -> Option<Restore> {
    None
}
