//! What is missing from a recording, as verbs tell it.

use runtap_files::{Reason, Recording};
use runtap_model::{MAX_THREADS, Room, Trace};
use serde::Serialize;

use crate::exit;
use crate::output::Output;
use crate::units::{Bytes, Count, Things};

/// What is missing from a recording, as JSON has it.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub(crate) struct Partial {
    /// Where the readable part ends, in bytes from the start.
    pub(crate) offset: u64,
    pub(crate) reason: String,
}

impl From<runtap_files::Partial> for Partial {
    fn from(partial: runtap_files::Partial) -> Self {
        Self { offset: partial.offset, reason: text_of(&partial.reason) }
    }
}

impl From<&runtap_nettrace::Partial> for Partial {
    fn from(partial: &runtap_nettrace::Partial) -> Self {
        runtap_files::Partial::from(partial.clone()).into()
    }
}

fn text_of(reason: &Reason) -> String {
    match reason {
        Reason::Memory { most } => {
            format!("what it holds takes more than {} of memory, so the rest is left out", Bytes(*most))
        }
        Reason::LeftOut { what, besides: Some(reason) } => format!("{what}; {}", text_of(reason)),
        reason => reason.to_string(),
    }
}

/// The room for a profile that is put together of what was read.
pub(crate) fn room_of(recording: &Recording) -> Room {
    Room::while_there_is(recording.room())
}

/// Notes what is missing from the profile that was made of a recording.
pub(crate) fn has_become(recording: &mut Recording, trace: &Trace) {
    if trace.left_out() > 0 {
        recording.note_left_out(format!(
            "{} left out, of threads beyond the first {} or because memory ran short",
            Things(trace.left_out(), "sample"),
            Count(MAX_THREADS as u64)
        ));
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
