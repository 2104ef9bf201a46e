//! Errors of the program.

use std::io;

use runtap_diag_server::{DefineError, StartError};
use runtap_events::SamplesError;

/// An error because of which the program did not run or could not be used as a target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An event could not be defined.
    #[error("{what} can't be defined")]
    Define {
        /// The kind of event.
        what: &'static str,
        /// The cause.
        #[source]
        error: DefineError,
    },
    /// The threads can't be sampled.
    #[error("can't sample the threads of the built-in program")]
    Samples(#[from] SamplesError),
    /// The diagnostics server can't be started.
    #[error("can't start the diagnostics server of the built-in program")]
    Server(#[source] StartError),
    /// The worker thread panicked.
    #[error("the worker thread of the built-in program failed")]
    Worker,
    /// The process could not be started.
    #[error("can't start the built-in program")]
    NotSpawned(#[source] io::Error),
    /// The process exited before tools could attach to it, usually because there is no writable temporary directory.
    #[error("the built-in program did not start")]
    NotStarted,
    /// The standard output of the process is not a pipe.
    #[error("the built-in program has no output")]
    NoOutput,
    /// The process exited without a report.
    #[error("the built-in program did not report what it did")]
    NoTruth,
    /// An I/O error: a thread or signal handler could not be created, or the output could not be written or read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    pub(crate) fn define(what: &'static str) -> impl FnOnce(DefineError) -> Self {
        move |error| Self::Define { what, error }
    }
}
