//! Exit codes. They are stable and documented in docs/exit-codes.md.

use std::error::Error;
use std::fmt;
use std::io;

use runtap_target::messages::ErrorMessage;

use crate::cmd::convert;

/// Success.
pub(crate) const OK: u8 = 0;
/// Failure: an I/O, protocol or internal error.
pub(crate) const FAILED: u8 = 1;
/// Invalid usage, or an input file that cannot be read.
pub(crate) const USAGE: u8 = 2;
/// Invalid usage of `test`: the code of Microsoft.Testing.Platform.
pub(crate) const TEST_USAGE: u8 = 5;
/// The target does not exist or is unreachable.
pub(crate) const NO_TARGET: u8 = 3;
/// The target rejected the command with an error reply.
pub(crate) const REFUSED: u8 = 4;
/// The result is incomplete; the received part is saved and readable.
pub(crate) const PARTIAL: u8 = 5;
/// The target's runtime does not support the command.
pub(crate) const UNKNOWN_COMMAND: u8 = 6;
/// With `-- COMMAND`: runtap itself failed. Any other code is the command's.
pub(crate) const OURS: u8 = 125;
/// Interrupted by Ctrl-C before there was a result.
pub(crate) const INTERRUPTED: u8 = 130;

/// A failure with a specific exit code and, if known, the next step for the user.
#[derive(Debug)]
pub(crate) struct ExpectedError {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// The items that the message refers to, printed one per line.
    pub(crate) list: Vec<String>,
    pub(crate) hint: Option<String>,
}

impl fmt::Display for ExpectedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ExpectedError {}

/// Creates an error with an exit code and an optional hint.
pub(crate) fn expected(
    code: u8,
    message: impl Into<String>,
    hint: impl Into<Option<String>>,
) -> anyhow::Error {
    with_list(code, message, Vec::new(), hint)
}

/// Creates an error with a list between its message and its hint.
pub(crate) fn with_list(
    code: u8,
    message: impl Into<String>,
    list: Vec<String>,
    hint: impl Into<Option<String>>,
) -> anyhow::Error {
    ExpectedError { code, message: message.into(), list, hint: hint.into() }.into()
}

/// Creates an error with the message of a library.
pub(crate) fn with_message(code: u8, ErrorMessage { text, list, hint }: ErrorMessage) -> anyhow::Error {
    with_list(code, text, list, hint)
}

/// Creates an error for invalid usage.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    expected(USAGE, message, None)
}

/// Returns the exit code of an error.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    if let Some(expected) = error.downcast_ref::<ExpectedError>() {
        return expected.code;
    }
    let refused = error.chain().filter_map(LibraryError::of).any(|known| match known {
        LibraryError::Recording(error) => !matches!(error, runtap_convert::source::Error::Read { .. }),
        LibraryError::Output(error) => error.cause.is_rejection(),
        LibraryError::Sink(_) => false,
        LibraryError::Files(error) => error.is_rejection(),
    });
    if refused { USAGE } else { FAILED }
}

/// Returns the next step for the user, or `None` if the error has none.
pub(crate) fn hint_of(error: &anyhow::Error) -> Option<String> {
    if let Some(expected) = error.downcast_ref::<ExpectedError>() {
        return expected.hint.clone();
    }
    let hint = error.chain().filter_map(LibraryError::of).find_map(|known| match known {
        LibraryError::Recording(error) => recording_hint(error),
        LibraryError::Output(error) => error.cause.advice(),
        LibraryError::Sink(error) => convert::hint(error),
        LibraryError::Files(runtap_convert::Error::SeveralToStdout) => {
            Some("choose one --to, or a file with -o")
        }
        LibraryError::Files(runtap_convert::Error::Overwrites { .. }) => Some("give another -o"),
        LibraryError::Files(_) => None,
    });
    hint.map(str::to_owned)
}

/// An error of one of runtap's libraries, unwrapped if another library's error contains it.
enum LibraryError<'a> {
    Recording(&'a runtap_convert::source::Error),
    Output(&'a runtap_os::output::Error),
    Sink(&'a runtap_sinks::Error),
    Files(&'a runtap_convert::Error),
}

impl<'a> LibraryError<'a> {
    fn of(cause: &'a (dyn Error + 'static)) -> Option<Self> {
        let recording = cause.downcast_ref().map(Self::Recording);
        let output = || cause.downcast_ref().map(Self::Output);
        let sink = || cause.downcast_ref().map(Self::Sink);
        recording.or_else(output).or_else(sink).or_else(|| {
            Some(match cause.downcast_ref()? {
                runtap_convert::Error::Recording(error) => Self::Recording(error),
                runtap_convert::Error::Output(error) => Self::Output(error),
                runtap_convert::Error::Stdout(error) => Self::Sink(error),
                error => Self::Files(error),
            })
        })
    }
}

fn recording_hint(error: &runtap_convert::source::Error) -> Option<&'static str> {
    match error {
        runtap_convert::source::Error::NoRecording {
            error: runtap_nettrace::Error::Unsupported { .. },
            ..
        } => Some("NetPerf 1 to 3 and Nettrace 4 to 6 can be read"),
        runtap_convert::source::Error::Foreign { kind, .. } => Some(kind.advice()),
        runtap_convert::source::Error::OnceOnly { .. } => Some("save it to a file first"),
        _ => None,
    }
}

/// Whether the reader of stdout closed its end, which is not a failure of runtap.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut io_errors = error.chain().filter_map(|cause| match LibraryError::of(cause) {
        Some(LibraryError::Output(error)) => match &error.cause {
            runtap_os::output::Cause::Io(error) => Some(error),
            _ => None,
        },
        Some(LibraryError::Sink(runtap_sinks::Error::Io(error))) => Some(error),
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
