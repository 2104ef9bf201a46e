//! Prints the decoded messages of a transcript.

use std::io::BufRead;

use runtap_route::record::DiagnosticIpc;
use runtap_text::document::{Partial, TranscriptHead, TranscriptTail};
use runtap_text::{TranscriptRow, TranscriptText, transcript_heading};
use runtap_transcript::{Error as TranscriptError, Inspector, Reader, Row};

use crate::cli::Inspect;
use crate::cmd::recording::warn_of;
use crate::exit::{self, expected};
use crate::output::Output;

pub(super) fn transcript(options: &Inspect, file: impl BufRead, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut reader = Reader::new(file);
    let mut inspector = Inspector::new(DiagnosticIpc { shows_values: options.show_values });
    let mut document = output.list(TranscriptHead::new(path.display().to_string()), "rows");
    let mut tail = TranscriptTail::default();
    let (mut text, mut rows) = (TranscriptText::default(), 0u64);
    let wrong = |error: TranscriptError| match error {
        TranscriptError::Io(error) => {
            runtap_convert::source::Error::Read { path: path.clone(), error }.into()
        }
        error => expected(exit::USAGE, format!("{} can't be read: {error}", path.display()), None),
    };
    let mut damage = None;
    loop {
        let located = match reader.read() {
            Ok(Some(located)) => located,
            Ok(None) => break,
            Err(error) if rows == 0 => return Err(wrong(error)),
            Err(error) => {
                damage = Some(Partial { offset: reader.offset(), reason: error.to_string() });
                break;
            }
        };
        for row in inspector.rows(located) {
            let row = shown(row);
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
    }
    let cut = reader.cut().map(|cut| Partial {
        offset: cut.offset,
        reason: format!("line {} ends after {} bytes", cut.line, cut.bytes),
    });
    let partial = damage.or(cut);
    if !output.json() {
        output.text(text.finish())?;
    }
    if let Some(partial) = &partial {
        warn_of(path, partial, output);
    }
    let code = if partial.is_some() { exit::PARTIAL } else { exit::OK };
    tail.connections = inspector.connections();
    tail.undecoded = inspector.undecoded();
    tail.partial = partial;
    if output.json() {
        document.finish(&tail)?;
    }
    Ok(code)
}

fn shown(row: Row) -> TranscriptRow {
    let Row { line, t, conn, dir, side, what, id, name, bytes, file, fields, .. } = row;
    let (file, offset) = file.unzip();
    let fields = fields.into_iter().flatten().map(|field| (field.name, field.value)).collect();
    let dir = dir.or(side);
    let id = id.map(|id| format!("{id:#06x}"));
    TranscriptRow { line, t, conn, dir, what, id, name, bytes, file, offset, fields }
}
