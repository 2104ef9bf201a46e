//! Messages about missing and damaged data of a recording.

use runtap_convert::source::Recording;
pub(crate) use runtap_text::document::Partial;
use std::path::Path;

use crate::exit;
use crate::output::Output;
use crate::units::Things;

/// Returns where and why reading a recording stopped early, or `None` if the recording is complete.
pub(crate) fn partial_of(recording: &Recording) -> Option<Partial> {
    recording.partial().map(Into::into)
}

/// Formats how many events are missing at least, and why; `None` if none are missing.
pub(crate) fn loss_message(recording: &Recording) -> Option<String> {
    Some(recording.lost())
        .filter(|lost| *lost > 0)
        .map(|events| lost_message(events, recording.has_skipped()))
}

/// Formats that at least this number of events is missing, and why.
pub(super) fn lost_message(events: u64, skipped: bool) -> String {
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

/// Warns if a recording is incomplete, and returns the exit code.
pub(crate) fn warn_if_partial(recording: &Recording, output: Output) -> u8 {
    let Some(partial) = partial_of(recording) else { return exit::OK };
    warn_of(recording.path(), &partial, output);
    exit::PARTIAL
}

/// Warns that the recording at this path is incomplete.
pub(super) fn warn_of(path: &Path, Partial { offset, reason }: &Partial, output: Output) {
    output.warning(format_args!("{} is partial: {reason} at offset {offset}", path.display()));
}
