//! What is missing from a recording, as verbs tell it.

use runtap_convert::source::Recording;
pub(crate) use runtap_text::document::Partial;
use std::path::Path;

use crate::exit;
use crate::output::Output;
use crate::units::Things;

/// What is missing from a recording that was read.
pub(crate) fn partial_of(recording: &Recording) -> Option<Partial> {
    recording.partial().map(Into::into)
}

/// What is missing at least, by the numbers of the events, and who is to blame; `None` if nothing is.
pub(crate) fn loss(recording: &Recording) -> Option<String> {
    Some(recording.lost()).filter(|lost| *lost > 0).map(|events| lost(events, recording.has_skipped()))
}

/// The same of so many events.
pub(super) fn lost(events: u64, skipped: bool) -> String {
    if skipped {
        format!(
            "at least {} missing: dropped by the target, or in blocks that were skipped",
            Things(events, "event")
        )
    } else {
        format!(
            "the target dropped at least {} because its buffer was full, or because their size was above 64 KiB",
            Things(events, "event")
        )
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
