//! What is missing from a recording, as verbs tell it.

use runtap_files::{Reason, Recording};
use serde::Serialize;

use crate::exit;
use crate::output::Output;
use crate::units::Bytes;

/// What is missing from a recording, as JSON has it.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub(crate) struct Partial {
    /// Where the readable part ends, in bytes from the start.
    pub(crate) offset: u64,
    pub(crate) reason: String,
}

impl From<runtap_files::Partial> for Partial {
    fn from(partial: runtap_files::Partial) -> Self {
        let reason = match partial.reason {
            Reason::Memory { most } => {
                format!("what it holds takes more than {} of memory, so the rest is left out", Bytes(most))
            }
            reason => reason.to_string(),
        };
        Self { offset: partial.offset, reason }
    }
}

impl From<&runtap_nettrace::Partial> for Partial {
    fn from(partial: &runtap_nettrace::Partial) -> Self {
        runtap_files::Partial::from(partial.clone()).into()
    }
}

/// What is missing from a recording that was read.
pub(crate) fn partial_of(recording: &Recording) -> Option<Partial> {
    recording.partial().map(Into::into)
}

/// Says what is missing; the exit code for it.
pub(crate) fn warn_if_partial(recording: &Recording, output: Output) -> u8 {
    let Some(Partial { offset, reason }) = partial_of(recording) else { return exit::OK };
    output.warning(format_args!("{} is partial: {reason} at offset {offset}", recording.path().display()));
    exit::PARTIAL
}
