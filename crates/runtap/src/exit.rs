//! Exit codes. They are stable and documented in docs/exit-codes.md.

use std::error::Error;
use std::fmt;

use runtap_convert::failure::Failure;
use runtap_target::messages::ErrorMessage;
use runtap_text::{Output, advice, with_causes};

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
pub(crate) const RUNTAP_FAILED: u8 = 125;
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
    let is_rejection = error.chain().filter_map(Failure::of).any(|failure| failure.is_rejection());
    if is_rejection { USAGE } else { FAILED }
}

/// Returns the next step for the user, or `None` if the error has none.
pub(crate) fn hint_of(error: &anyhow::Error) -> Option<String> {
    if let Some(expected) = error.downcast_ref::<ExpectedError>() {
        return expected.hint.clone();
    }
    advice::next_step(error.as_ref()).map(str::to_owned)
}

/// Returns the texts of an error and of its causes, each text once.
pub(crate) fn full_text(error: &anyhow::Error) -> String {
    with_causes(error.to_string(), error.source())
}

/// Prints an error with its causes and the next step.
pub(crate) fn print_error(error: &anyhow::Error, output: Output) {
    let list = error.downcast_ref::<ExpectedError>().map_or(&[][..], |expected| &expected.list);
    output.error(full_text(error), list, hint_of(error).as_deref());
}

/// Whether the reader of stdout closed its end, which is not a failure of runtap.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    runtap_convert::failure::is_closed_pipe(error.chain())
}
