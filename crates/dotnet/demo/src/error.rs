//! Why the program did not run.

use std::io;

use runtap_diag_server::{DefineError, StartError};
use runtap_events::SamplesError;

/// Why the program did not run, or could not be used as a target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An event of it could not be defined.
    #[error("{what} can't be defined")]
    Define {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        error: DefineError,
    },
    /// Its threads can't be sampled.
    #[error("can't be sampled")]
    Samples(#[from] SamplesError),
    /// There is no diagnostics server.
    #[error("can't be made diagnosable")]
    Server(#[source] StartError),
    /// The thread that does the work has panicked.
    #[error("the worker failed")]
    Worker,
    /// There is no process.
    #[error("can't start the built-in program")]
    NotSpawned(#[source] io::Error),
    /// It ended before it could be tapped: as a rule there is no temporary directory that it can write to.
    #[error("the built-in program did not start")]
    NotStarted,
    /// Its stdout was not piped.
    #[error("the built-in program has no output")]
    NoOutput,
    /// It ended without its own account.
    #[error("the built-in program did not say what it did")]
    NoTruth,
    /// There is no thread or no signal to be had, or the output can't be written or read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    pub(crate) fn define(what: &'static str) -> impl FnOnce(DefineError) -> Self {
        move |error| Self::Define { what, error }
    }
}
