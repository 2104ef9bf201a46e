//! Exit codes: documented in docs/exit-codes.md, stable.

use std::fmt;
use std::io;

/// Done.
pub(crate) const OK: u8 = 0;
/// Failed: I/O, protocol error, internal.
pub(crate) const FAILED: u8 = 1;
/// Wrong usage or unreadable input file.
pub(crate) const USAGE: u8 = 2;
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

impl std::error::Error for ExpectedError {}

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
    match error.downcast_ref() {
        Some(runtap_files::Error::Read { .. }) | None => FAILED,
        Some(_) => USAGE,
    }
}

/// The next step that an error carries.
pub(crate) fn hint_of(error: &anyhow::Error) -> Option<String> {
    if let Some(expected) = error.downcast_ref::<ExpectedError>() {
        return expected.hint.clone();
    }
    match error.downcast_ref()? {
        runtap_files::Error::NoRecording { error: runtap_nettrace::Error::Unsupported { .. }, .. } => {
            Some("NetPerf 1 to 3 and Nettrace 4 to 6 can be read".to_owned())
        }
        runtap_files::Error::OnceOnly { .. } => Some("save it to a file first".to_owned()),
        _ => None,
    }
}

/// Whether the reader of our output went away: not a failure of ours.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    io_errors(error).any(is_closed_pipe)
}

/// The same for one error.
pub(crate) fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Whether a disk is full: what was recorded so far is still there.
pub(crate) fn is_full_disk(error: &anyhow::Error) -> bool {
    io_errors(error).any(|error| error.kind() == io::ErrorKind::StorageFull)
}

/// Whether there was nothing in a recording that could be shown.
pub(crate) fn is_nothing_to_show(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.any(|error| matches!(error, runtap_sinks::Error::NoSamples { .. }))
}

/// The I/O errors among an error's causes. The sinks' error shows its own as itself, not as a cause.
fn io_errors(error: &anyhow::Error) -> impl Iterator<Item = &io::Error> {
    error.chain().filter_map(|cause| match cause.downcast_ref::<runtap_sinks::Error>() {
        Some(runtap_sinks::Error::Io(error)) => Some(error),
        _ => cause.downcast_ref(),
    })
}
