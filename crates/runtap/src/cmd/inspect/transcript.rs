//! The messages of a transcript, decoded.

use std::io::BufRead;

use runtap_route::record::{Inspector, Reader, Row, TranscriptError};
use runtap_text::document::{Partial, TranscriptDocument};
use runtap_text::{TranscriptRow, TranscriptText, transcript_heading};

use crate::cli::Inspect;
use crate::cmd::recording::warn_of;
use crate::exit::{self, expected};
use crate::output::Output;

pub(super) fn transcript(options: &Inspect, file: impl BufRead, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut reader = Reader::new(file);
    let mut inspector = Inspector::new(options.show_values);
    let mut document = TranscriptDocument::new(path.display().to_string());
    let (mut text, mut rows) = (TranscriptText::default(), 0u64);
    let wrong = |error: TranscriptError| match error {
        TranscriptError::Io(error) => runtap_files::Error::Read { path: path.clone(), error }.into(),
        error => expected(exit::USAGE, format!("{} can't be read: {error}", path.display()), None),
    };
    while let Some(located) = reader.read().map_err(wrong)? {
        for row in inspector.rows(located) {
            document.connections += u64::from(row.what == "open");
            document.undecoded += u64::from(row.is_undecoded());
            let row = shown(row);
            if output.json() {
                document.push(row);
                continue;
            }
            if rows == 0 {
                output.text(transcript_heading(&output.options()))?;
            }
            rows += 1;
            output.text(text.row(row, &output.options()))?;
        }
    }
    let partial = reader.cut().map(|cut| Partial {
        offset: cut.offset,
        reason: format!("line {} ends after {} bytes", cut.line, cut.bytes),
    });
    if !output.json() {
        output.text(text.finish())?;
    }
    if let Some(partial) = &partial {
        warn_of(path, partial, output);
    }
    let code = if partial.is_some() { exit::PARTIAL } else { exit::OK };
    document.partial = partial;
    if output.json() {
        output.document(&document)?;
    }
    Ok(code)
}

fn shown(row: Row) -> TranscriptRow {
    let Row { line, t, conn, dir, what, id, name, bytes, file, fields } = row;
    let (file, offset) = file.unzip();
    let id = id.map(|id| format!("{id:#06x}"));
    TranscriptRow { line, t, conn, dir, what, id, name, bytes, file, offset, fields }
}
