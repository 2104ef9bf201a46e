//! The blocks of a stream: `runtap.inspect/1` (docs/recordings.md) and its rows.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use runtap_clr::layout::{Layout, json};
use runtap_nettrace::inspect::{Block, Content, Inspected};
use runtap_nettrace::{Metadata, TraceHeader};
use serde::Serialize;

use crate::document::Partial;
use crate::rows::RowPrinter;
use crate::units::{Count, Things};
use crate::{Clean, Output};

/// The members of `runtap.inspect/1` after the list `blocks`.
#[derive(Serialize)]
struct LayoutTail {
    bytes: u64,
    /// Offset of the end marker.
    end: Option<u64>,
    trailing_bytes: u64,
    /// What is missing for readers.
    partial: Option<Partial>,
}

/// Prints the blocks of a stream: `runtap.inspect/1`, or lines.
#[derive(Debug)]
pub struct BlockPrinter(RowPrinter);

impl BlockPrinter {
    /// Creates the printer for a file.
    pub fn new(file: &Path, output: Output) -> io::Result<Self> {
        let heading = output.options().heading();
        let heading =
            format!("{heading}{:>10}  {:>9}  {:<15} CONTENT{heading:#}\n", "OFFSET", "SIZE", "BLOCK");
        RowPrinter::new("runtap.inspect/1", file, "blocks", heading, output).map(Self)
    }

    /// Prints a block or, as text, the end marker.
    pub fn found(&mut self, found: &Inspected) -> io::Result<()> {
        match found {
            Inspected::Block(block) if self.0.output.json() => self.0.element(&json(block)),
            Inspected::Block(block) => self.0.line(row(block)),
            Inspected::End { offset, end } if !self.0.output.json() => {
                self.0.line(format_args!("{offset:#010x}  {:>9}  end\n", end - offset))
            }
            _ => Ok(()),
        }
    }

    /// Ends the output for a file of `bytes` bytes.
    pub fn finish(self, layout: &Layout, bytes: u64, partial: Option<Partial>) -> io::Result<()> {
        let (end, trailing_bytes) = (layout.end.map(|(offset, _)| offset), layout.trailing_bytes(bytes));
        self.0.finish(&LayoutTail { bytes, end, trailing_bytes, partial })
    }
}

fn row(block: &Block) -> String {
    let name = block.number.map_or_else(|| block.name.clone(), |number| format!("{} ({number})", block.name));
    let mut text = format!(
        "{:#010x}  {:>9}  {:<15} {}",
        block.offset,
        block.size,
        Clean(&name).to_string(),
        Clean(&content(&block.content))
    );
    // Writing to a `String` cannot fail.
    if block.is_truncated {
        let _ = write!(text, "; TRUNCATED");
    }
    if let Some(damage) = &block.damage {
        let _ = write!(text, "; DAMAGED: {damage}");
    }
    text.push('\n');
    text
}

/// Describes the content of a block.
fn content(content: &Content) -> String {
    match content {
        Content::Trace(header) => {
            let TraceHeader { version, pointer_size, qpc_frequency, .. } = **header;
            let process = if header.process_id == 0 {
                String::new()
            } else {
                format!(", process {}", header.process_id)
            };
            let name = header.format_name();
            format!("{name} {version}, {} bits{process}, {qpc_frequency} ticks per second", pointer_size * 8)
        }
        Content::Events(events) => {
            let mut text = Things(events.events, "event").to_string();
            if events.definitions > 0 {
                let _ = write!(text, ", {}", Things(events.definitions, "definition"));
            }
            if events.sorted > 0 {
                let _ = write!(text, ", {}", Things(events.sorted, "run"));
            }
            if let Some((first, last)) = events.times {
                let _ = write!(
                    text,
                    ", {} bytes of payload, ticks {first} to {last}",
                    Count(events.payload_bytes)
                );
            }
            text
        }
        Content::Metadata(definitions) => {
            let mut text = Things(definitions.count(), "definition").to_string();
            for metadata in definitions.listed().iter().take(3) {
                let Metadata { id, provider, event_id, name, .. } = metadata;
                let separator = if name.is_empty() { "" } else { " " };
                let _ = write!(text, ", {id} = {provider}/{event_id}{separator}{name}");
            }
            if definitions.count() > 3 {
                text.push_str(", …");
            }
            text
        }
        Content::Stacks { first_id, count } => {
            format!("{} from id {first_id} on", Things((*count).into(), "stack"))
        }
        Content::Labels { first_id, count } => {
            format!("{} from id {first_id} on", Things((*count).into(), "list"))
        }
        Content::SequencePoint { timestamp, flags, threads } => {
            let flags = if *flags == 0 { String::new() } else { format!(", flags {flags}") };
            format!("{}, tick {timestamp}{flags}", Things(threads.count(), "thread"))
        }
        Content::Threads(threads) => Things(threads.count(), "thread").to_string(),
        Content::RemovedThreads(threads) => format!("{} removed", Things(threads.count(), "thread")),
        _ => "?".to_owned(),
    }
}
