//! Prints the decoded messages of a transcript, or of a recording of Java agents.

use std::io::BufRead;

use runtap_jvm::recording::{Conversation, ConversationTotals, find};
use runtap_route::record::DiagnosticIpc;
use runtap_text::document::TranscriptTail;
use runtap_text::{Output, TranscriptPrinter};
use runtap_transcript::{Inspector, Reader};

use crate::cli::Inspect;
use crate::cmd::jvm::classify_error;
use crate::cmd::recording::{Partial, each_line, warn_if_missing};

/// Most names of connections in transcripts are `c1` to `c99999`.
const CONN_WIDTH: usize = 6;

pub(super) fn transcript(options: &Inspect, file: impl BufRead, output: Output) -> anyhow::Result<u8> {
    let mut reader = Reader::new(file);
    let mut inspector = Inspector::new(DiagnosticIpc { shows_values: options.show_values });
    let mut printer = TranscriptPrinter::new(&options.file, CONN_WIDTH, output)?;
    let partial =
        each_line(&mut reader, &options.file, |located| Ok(printer.rows(inspector.rows(located))?))?;
    let (connections, undecoded) = (inspector.connections(), inspector.undecoded());
    printer.finish(&TranscriptTail { connections, undecoded, partial: partial.clone() })?;
    Ok(warn_if_missing(&options.file, partial.as_ref(), output))
}

pub(super) fn java(options: &Inspect, output: Output) -> anyhow::Result<u8> {
    let agents = find(&options.file).map_err(classify_error)?;
    let width = agents.iter().map(|agent| agent.agent.chars().count()).max().unwrap_or(0) + ".data0".len();
    let mut printer = TranscriptPrinter::new(&options.file, width, output)?;
    let mut conversation = Conversation::new(&agents);
    while let Some(rows) = conversation.next_rows().map_err(classify_error)? {
        printer.rows(rows)?;
    }
    let ConversationTotals { connections, undecoded, damage, .. } = conversation.into_totals();
    let partial = damage.into_iter().next().map(|damage| Partial {
        offset: damage.offset,
        reason: format!("{}: {}", damage.stream, damage.reason),
    });
    printer.finish(&TranscriptTail { connections, undecoded, partial: partial.clone() })?;
    Ok(warn_if_missing(&options.file, partial.as_ref(), output))
}
