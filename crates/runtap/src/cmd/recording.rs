//! What is missing from a recording, as verbs tell it.

pub(crate) use runtap_convert::{has_become, room_of};
use runtap_files::{Reason, Recording};
use runtap_model::MAX_THREADS;
use serde::Serialize;
use std::path::Path;

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
        Reason::LeftOut { samples, besides } => {
            let what = format!(
                "{} left out, of threads beyond the first {} or because memory ran short",
                Things(*samples, "sample"),
                Count(MAX_THREADS as u64)
            );
            match besides {
                Some(reason) => format!("{what}; {}", text_of(reason)),
                None => what,
            }
        }
        reason => reason.to_string(),
    }
}

/// What is missing from a recording that was read.
pub(crate) fn partial_of(recording: &Recording) -> Option<Partial> {
    recording.partial().map(Into::into)
}

/// What is missing by the numbers of the events, and who is to blame; `None` if nothing is.
pub(crate) fn loss(recording: &Recording) -> Option<String> {
    Some(recording.lost()).filter(|lost| *lost > 0).map(|events| lost(events, recording.has_skipped()))
}

/// The same of so many events.
pub(super) fn lost(events: u64, skipped: bool) -> String {
    if skipped {
        format!("{} missing: dropped by the target, or in blocks that were skipped", Things(events, "event"))
    } else {
        format!("the target dropped {} because its buffer was full", Things(events, "event"))
    }
}

/// Says what is missing; the exit code for it.
pub(crate) fn warn_if_partial(recording: &Recording, output: Output) -> u8 {
    let Some(partial) = partial_of(recording) else { return exit::OK };
    warn_of(recording.path(), &partial, output);
    exit::PARTIAL
}

/// Says what is missing from the recording at this path.
pub(super) fn warn_of(path: &Path, Partial { offset, reason }: &Partial, output: Output) {
    output.warning(format_args!("{} is partial: {reason} at offset {offset}", path.display()));
}
