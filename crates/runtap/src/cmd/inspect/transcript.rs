//! Prints the decoded messages of a transcript, or of a recording of Java agents.

use std::io::BufRead;

use runtap_jvm::recording::{Conversation, find};
use runtap_route::record::DiagnosticIpc;
use runtap_text::document::{TranscriptHead, TranscriptTail};
use runtap_text::{TranscriptRow, TranscriptText};
use runtap_transcript::{Inspector, Reader, Row};

use crate::cli::Inspect;
use crate::cmd::jvm::classify_error;
use crate::cmd::recording::{Partial, each_line, warn_if_missing};
use crate::output::Output;

/// Most names of connections in transcripts are `c1` to `c99999`.
const CONN_WIDTH: usize = 6;

pub(super) fn transcript(options: &Inspect, file: impl BufRead, output: Output) -> anyhow::Result<u8> {
    let mut reader = Reader::new(file);
    let mut inspector = Inspector::new(DiagnosticIpc { shows_values: options.show_values });
    show(options, CONN_WIDTH, output, |take| {
        let partial = each_line(&mut reader, &options.file, |located| {
            inspector.rows(located).into_iter().try_for_each(&mut *take)
        })?;
        Ok(TranscriptTail { connections: inspector.connections(), undecoded: inspector.undecoded(), partial })
    })
}

pub(super) fn java(options: &Inspect, output: Output) -> anyhow::Result<u8> {
    let agents = find(&options.file).map_err(classify_error)?;
    let width = agents.iter().map(|agent| agent.agent.chars().count()).max().unwrap_or(0) + ".data0".len();
    show(options, width, output, |take| {
        let mut conversation = Conversation::new(&agents);
        while let Some(rows) = conversation.next_rows().map_err(classify_error)? {
            rows.into_iter().try_for_each(&mut *take)?;
        }
        let totals = conversation.into_totals();
        let partial = totals.damage.into_iter().next().map(|damage| Partial {
            offset: damage.offset,
            reason: format!("{}: {}", damage.stream, damage.reason),
        });
        Ok(TranscriptTail { connections: totals.connections, undecoded: totals.undecoded, partial })
    })
}

/// Prints the rows that `read` passes on.
fn show(
    options: &Inspect,
    conn_width: usize,
    output: Output,
    read: impl FnOnce(&mut dyn FnMut(Row) -> anyhow::Result<()>) -> anyhow::Result<TranscriptTail>,
) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut document = output.list(&TranscriptHead::new(path.display().to_string()), "rows")?;
    let (mut text, mut is_headed) = (TranscriptText::new(conn_width), false);
    let tail = read(&mut |row| {
        let row = TranscriptRow::from(row);
        if output.json() {
            return Ok(document.element(&row)?);
        }
        if !std::mem::replace(&mut is_headed, true) {
            output.text(text.heading(&output.options()))?;
        }
        output.text(text.row(row, &output.options()))
    })?;
    if !output.json() {
        output.text(text.finish())?;
    }
    let code = warn_if_missing(path, tail.partial.as_ref(), output);
    if output.json() {
        document.finish(&tail)?;
    }
    Ok(code)
}
