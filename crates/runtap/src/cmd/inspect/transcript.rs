//! Prints the decoded messages of a transcript.

use std::io::BufRead;

use runtap_route::record::DiagnosticIpc;
use runtap_text::document::{TranscriptHead, TranscriptTail};
use runtap_text::{TranscriptRow, TranscriptText, transcript_heading};
use runtap_transcript::{Inspector, Reader};

use crate::cli::Inspect;
use crate::cmd::recording::{each_line, warn_if_missing};
use crate::output::Output;

pub(super) fn transcript(options: &Inspect, file: impl BufRead, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut reader = Reader::new(file);
    let mut inspector = Inspector::new(DiagnosticIpc { shows_values: options.show_values });
    let mut document = output.list(TranscriptHead::new(path.display().to_string()), "rows");
    let mut tail = TranscriptTail::default();
    let (mut text, mut rows) = (TranscriptText::default(), 0u64);
    let partial = each_line(&mut reader, path, |located| {
        for row in inspector.rows(located) {
            let row = TranscriptRow::from(row);
            rows += 1;
            if output.json() {
                document.element(&row)?;
                continue;
            }
            if rows == 1 {
                output.text(transcript_heading(&output.options()))?;
            }
            output.text(text.row(row, &output.options()))?;
        }
        Ok(())
    })?;
    if !output.json() {
        output.text(text.finish())?;
    }
    let code = warn_if_missing(path, partial.as_ref(), output);
    tail.connections = inspector.connections();
    tail.undecoded = inspector.undecoded();
    tail.partial = partial;
    if output.json() {
        document.finish(&tail)?;
    }
    Ok(code)
}
