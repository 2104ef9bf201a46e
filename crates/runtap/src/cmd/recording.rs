//! Messages about missing and damaged data of a recording or a transcript.

use std::io::BufRead;
use std::path::Path;

use runtap_convert::source::{Error as SourceError, Recording};
pub(crate) use runtap_text::document::Partial;
use runtap_text::{Output, lost_events};
use runtap_transcript::{Error as TranscriptError, Located, Reader};

use crate::exit::{self, expected};

/// Returns where and why reading a recording stopped early, or `None` if the recording is complete.
pub(crate) fn partial_of(recording: &Recording) -> Option<Partial> {
    recording.partial().map(Into::into)
}

/// Formats how many events are missing at least, and why; `None` if none are missing.
pub(crate) fn loss_message(recording: &Recording) -> Option<String> {
    Some(recording.lost()).filter(|lost| *lost > 0).map(|events| lost_events(events, recording.has_skipped()))
}

/// Warns if a recording is incomplete, and returns the exit code.
pub(crate) fn warn_if_partial(recording: &Recording, output: Output) -> u8 {
    warn_if_missing(recording.path(), partial_of(recording).as_ref(), output)
}

/// Warns of missing data, and returns the exit code.
pub(super) fn warn_if_missing(path: &Path, partial: Option<&Partial>, output: Output) -> u8 {
    let Some(partial) = partial else { return exit::OK };
    warn_of(path, partial, output);
    exit::PARTIAL
}

/// Reads a transcript to its end or to the first damage. Returns what is missing; fails if the transcript is damaged from the
/// start.
pub(super) fn each_line<R: BufRead>(
    reader: &mut Reader<R>,
    path: &Path,
    mut take: impl FnMut(Located) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Partial>> {
    let mut is_first = true;
    loop {
        match reader.read() {
            Ok(Some(located)) => take(located)?,
            Ok(None) => {
                return Ok(reader.cut().map(|cut| Partial {
                    offset: cut.offset,
                    reason: format!("line {} ends after {} bytes", cut.line, cut.bytes),
                }));
            }
            Err(TranscriptError::Io(error)) if is_first => {
                return Err(SourceError::Read { path: path.to_owned(), error }.into());
            }
            Err(error) if is_first => return Err(unreadable(path, &error.to_string())),
            Err(error) => return Ok(Some(Partial { offset: reader.offset(), reason: error.to_string() })),
        }
        is_first = false;
    }
}

/// Creates the error for a file that is no recording or transcript.
pub(super) fn unreadable(path: &Path, why: &str) -> anyhow::Error {
    expected(exit::USAGE, format!("{} can't be read: {why}", path.display()), None)
}

/// Warns that the recording at this path is incomplete.
pub(super) fn warn_of(path: &Path, Partial { offset, reason }: &Partial, output: Output) {
    output.warning(format_args!("{} is partial: {reason} at offset {offset}", path.display()));
}
