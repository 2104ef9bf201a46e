//! Exit codes: documented in docs/exit-codes.md, stable.

use std::error::Error;
use std::fmt;
use std::io;

use crate::cmd::convert;

/// Done.
pub(crate) const OK: u8 = 0;
/// Failed: I/O, protocol error, internal.
pub(crate) const FAILED: u8 = 1;
/// Wrong usage or unreadable input file.
pub(crate) const USAGE: u8 = 2;
/// `test`: wrong usage, as Microsoft.Testing.Platform has it.
pub(crate) const TEST_USAGE: u8 = 5;
/// No such target, or it can't be reached.
pub(crate) const NO_TARGET: u8 = 3;
/// The target refused: error reply.
pub(crate) const REFUSED: u8 = 4;
/// What was received is saved and readable, the rest is missing.
pub(crate) const PARTIAL: u8 = 5;
/// The target's runtime does not know this command.
pub(crate) const UNKNOWN_COMMAND: u8 = 6;
/// With `-- COMMAND`: we failed; any other code is the command's.
pub(crate) const OURS: u8 = 125;
/// Ended by Ctrl-C before there was a result.
pub(crate) const INTERRUPTED: u8 = 130;

/// A failure with an exit code of its own and, where there is one, the next step for the user.
#[derive(Debug)]
pub(crate) struct ExpectedError {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// What the message speaks of, a line each.
    pub(crate) list: Vec<String>,
    pub(crate) hint: Option<String>,
}

impl fmt::Display for ExpectedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ExpectedError {}

/// An error with a code, and a hint.
pub(crate) fn expected(
    code: u8,
    message: impl Into<String>,
    hint: impl Into<Option<String>>,
) -> anyhow::Error {
    with_list(code, message, Vec::new(), hint)
}

/// The same with a list between message and hint.
pub(crate) fn with_list(
    code: u8,
    message: impl Into<String>,
    list: Vec<String>,
    hint: impl Into<Option<String>>,
) -> anyhow::Error {
    ExpectedError { code, message: message.into(), list, hint: hint.into() }.into()
}

/// Wrong usage.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    expected(USAGE, message, None)
}

/// The exit code that an error carries.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    if let Some(expected) = error.downcast_ref::<ExpectedError>() {
        return expected.code;
    }
    let refused = error.chain().filter_map(Known::of).any(|known| match known {
        Known::Recording(error) => !matches!(error, runtap_convert::source::Error::Read { .. }),
        Known::Output(error) => error.cause.is_rejection(),
        Known::Sink(_) => false,
        Known::Files(error) => error.is_rejection(),
    });
    if refused { USAGE } else { FAILED }
}

/// The next step that an error carries.
pub(crate) fn hint_of(error: &anyhow::Error) -> Option<String> {
    if let Some(expected) = error.downcast_ref::<ExpectedError>() {
        return expected.hint.clone();
    }
    let hint = error.chain().filter_map(Known::of).find_map(|known| match known {
        Known::Recording(error) => of_recording(error),
        Known::Output(error) => error.cause.advice(),
        Known::Sink(error) => convert::hint(error),
        Known::Files(runtap_convert::Error::SeveralToStdout) => Some("choose one --to, or a file with -o"),
        Known::Files(runtap_convert::Error::Overwrites { .. }) => Some("give another -o"),
        Known::Files(_) => None,
    });
    hint.map(str::to_owned)
}

/// An error of our libraries, as itself where another one shows it as its own.
enum Known<'a> {
    Recording(&'a runtap_convert::source::Error),
    Output(&'a runtap_os::output::Error),
    Sink(&'a runtap_sinks::Error),
    Files(&'a runtap_convert::Error),
}

impl<'a> Known<'a> {
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

fn of_recording(error: &runtap_convert::source::Error) -> Option<&'static str> {
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

/// Whether the reader of our output went away: not a failure of ours.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut io_errors = error.chain().filter_map(|cause| match Known::of(cause) {
        Some(Known::Output(error)) => match &error.cause {
            runtap_os::output::Cause::Io(error) => Some(error),
            _ => None,
        },
        Some(Known::Sink(runtap_sinks::Error::Io(error))) => Some(error),
        Some(_) => None,
        None => cause.downcast_ref::<io::Error>(),
    });
    io_errors.any(|error| error.kind() == io::ErrorKind::BrokenPipe || is_pipe_without_reader(error))
}

/// Whoever read a pipe of Windows has gone. The standard library has no kind for it.
fn is_pipe_without_reader(error: &io::Error) -> bool {
    const ERROR_PIPE_NOT_CONNECTED: i32 = 233;
    cfg!(windows) && error.raw_os_error() == Some(ERROR_PIPE_NOT_CONNECTED)
}
