//! Errors of conversions.

use std::path::PathBuf;

/// An error that occurred while converting a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] crate::source::Error),
    /// A recording of another kind cannot be read.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
    /// Converting the data for a file failed.
    #[error("can't write {}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error.
        #[source]
        error: runtap_sinks::Error,
    },
    /// Converting the data for standard output failed.
    #[error(transparent)]
    Stdout(runtap_sinks::Error),
    /// A profile cannot be converted back to a stream.
    #[error("a profile cannot be written as nettrace")]
    NoSink,
    /// Standard output can only receive one file.
    #[error("only one format can be written to standard output")]
    SeveralToStdout,
    /// An output is the recording itself.
    #[error("{} is the recording{} itself", output.display(), if output == input { String::new() } else { format!(" {}", input.display()) })]
    Overwrites {
        /// Path of the output, as specified.
        output: PathBuf,
        /// Path of the recording, as specified.
        input: PathBuf,
    },
    /// Only recordings in the oldest format, `NetPerf`, can be upgraded.
    #[error("the recording is already in the nettrace format")]
    NotNetPerf,
    /// A recording must be read twice to be repaired.
    #[error("{} is not a regular file, but has to be read twice", .0.display())]
    ReadTwice(PathBuf),
    /// The recording has no header, so it cannot be repaired.
    #[error("{} can't be repaired: {}", path.display(), reason.as_ref().map_or_else(|| "it has no header".to_owned(), ToString::to_string))]
    Unrepairable {
        /// Path of the recording, as specified.
        path: PathBuf,
        /// What is wrong, and at which offset.
        reason: Option<runtap_nettrace::Partial>,
    },
    /// The new format cannot represent an item of the recording.
    #[error("{what} can't be copied: {error}")]
    Copy {
        /// The kind of item: "a definition" or "an event".
        what: &'static str,
        /// The error.
        error: runtap_nettrace::WriteError,
    },
}

impl Error {
    /// Returns a function that converts a sink's error for a file, or for standard output if `path` is `None`.
    pub(crate) fn of_sink(path: Option<&std::path::Path>) -> impl Fn(runtap_sinks::Error) -> Self {
        move |error| match path {
            Some(path) => Self::File { path: path.to_owned(), error },
            None => Self::Stdout(error),
        }
    }

    /// Returns whether the request was rejected, so that trying again fails too.
    pub fn is_rejection(&self) -> bool {
        matches!(
            self,
            Self::SeveralToStdout
                | Self::Overwrites { .. }
                | Self::NotNetPerf
                | Self::NoSink
                | Self::ReadTwice(_)
                | Self::Unrepairable { .. }
        )
    }

    /// Returns the underlying I/O error. `None` for errors without one.
    pub fn io(&self) -> Option<&std::io::Error> {
        match self {
            Self::Output(error) => match &error.cause {
                runtap_os::output::Cause::Io(error) => Some(error),
                _ => None,
            },
            error => match error.sink()? {
                runtap_sinks::Error::Io(error) => Some(error),
                _ => None,
            },
        }
    }

    /// Returns whether the recording contained no samples for the output.
    pub fn is_nothing_to_show(&self) -> bool {
        matches!(self.sink(), Some(runtap_sinks::Error::NoSamples { .. }))
    }

    /// Returns the error of the sink. `None` for other errors.
    pub fn sink(&self) -> Option<&runtap_sinks::Error> {
        match self {
            Self::File { error, .. } | Self::Stdout(error) => Some(error),
            _ => None,
        }
    }
}
