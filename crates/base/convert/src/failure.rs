//! Classifies the errors of this crate and of the crates that read and write files, wherever they are in a chain of errors.

use std::error::Error as StdError;
use std::io;

pub use runtap_sinks::Error as SinkError;

use crate::{Error, source};

/// An error in a chain, unwrapped if an error of this crate contains it.
#[derive(Debug)]
pub enum Failure<'a> {
    /// A recording cannot be read.
    Recording(&'a source::Error),
    /// An output cannot be written.
    Output(&'a runtap_os::output::Error),
    /// A format cannot be written.
    Sink(&'a SinkError),
    /// A conversion failed for another reason.
    Files(&'a Error),
}

impl<'a> Failure<'a> {
    /// Classifies a cause. Returns `None` for errors of other crates.
    pub fn of(cause: &'a (dyn StdError + 'static)) -> Option<Self> {
        let recording = cause.downcast_ref().map(Self::Recording);
        let output = || cause.downcast_ref().map(Self::Output);
        let sink = || cause.downcast_ref().map(Self::Sink);
        recording.or_else(output).or_else(sink).or_else(|| {
            Some(match cause.downcast_ref()? {
                Error::Recording(error) => Self::Recording(error),
                Error::Output(error) => Self::Output(error),
                Error::Stdout(error) => Self::Sink(error),
                error => Self::Files(error),
            })
        })
    }

    /// Whether the request was invalid, as opposed to a failure of the system.
    pub fn is_rejection(&self) -> bool {
        match self {
            Self::Recording(error) => !matches!(error, source::Error::Read { .. }),
            Self::Output(error) => error.cause.is_rejection(),
            Self::Sink(_) => false,
            Self::Files(error) => error.is_rejection(),
        }
    }

    /// Returns the next step. `None` if unknown, and for [`Failure::Sink`].
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Recording(error) => recording_hint(error),
            Self::Output(error) => error.cause.advice(),
            Self::Files(Error::SeveralToStdout) => Some("Choose one --to, or a file with -o."),
            Self::Files(Error::Overwrites { .. }) => Some("Choose another file with -o."),
            Self::Files(_) | Self::Sink(_) => None,
        }
    }
}

fn recording_hint(error: &source::Error) -> Option<&'static str> {
    match error {
        source::Error::NoRecording { error: runtap_nettrace::Error::Unsupported { .. }, .. } => {
            Some("NetPerf 1 to 3 and Nettrace 4 to 6 can be read.")
        }
        source::Error::Foreign { kind, .. } => Some(kind.advice()),
        source::Error::OnceOnly { .. } => Some("Save it to a file first."),
        _ => None,
    }
}

/// Whether the reader of a pipe closed its end, which is not a failure of the writer.
pub fn is_closed_pipe<'a>(chain: impl IntoIterator<Item = &'a (dyn StdError + 'static)>) -> bool {
    let mut io_errors = chain.into_iter().filter_map(|cause| match Failure::of(cause) {
        Some(Failure::Output(error)) => match &error.cause {
            runtap_os::output::Cause::Io(error) => Some(error),
            _ => None,
        },
        Some(Failure::Sink(SinkError::Io(error))) => Some(error),
        Some(_) => None,
        None => cause.downcast_ref::<io::Error>(),
    });
    io_errors.any(|error| error.kind() == io::ErrorKind::BrokenPipe || is_pipe_without_reader(error))
}

/// Whether the reader of a Windows pipe closed its end. [`io::ErrorKind`] has no variant for this code.
fn is_pipe_without_reader(error: &io::Error) -> bool {
    const ERROR_PIPE_NOT_CONNECTED: i32 = 233;
    cfg!(windows) && error.raw_os_error() == Some(ERROR_PIPE_NOT_CONNECTED)
}
