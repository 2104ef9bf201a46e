//! The blocks of a stream: `runtap.inspect/1` (docs/recordings.md), and a row for each.

use std::fmt::Write as _;

use runtap_clr::layout::{self, Layout};
use runtap_nettrace::inspect::{Block, Content, Inspected};
use runtap_nettrace::{Metadata, TraceHeader};
use serde::Serialize;
use serde_json::Value;

use crate::document::Partial;
use crate::units::{Count, Things};
use crate::{Clean, TextOptions};

/// `runtap.inspect/1`: gathers blocks as they are found.
#[derive(Debug, Serialize)]
pub struct LayoutDocument {
    schema: &'static str,
    file: String,
    bytes: u64,
    blocks: Vec<Value>,
    /// Where the end marker is.
    end: Option<u64>,
    trailing_bytes: u64,
    /// What no reader gets beyond.
    partial: Option<Partial>,
}

impl LayoutDocument {
    /// Of a file.
    pub fn new(file: String) -> Self {
        let (blocks, schema) = (Vec::new(), "runtap.inspect/1");
        Self { schema, file, bytes: 0, blocks, end: None, trailing_bytes: 0, partial: None }
    }

    /// Takes a block.
    pub fn push(&mut self, block: &Block) {
        self.blocks.push(layout::json(block));
    }

    /// Takes what is known at the end of a file of so many bytes.
    pub fn finish(&mut self, layout: &Layout, bytes: u64, partial: Option<Partial>) {
        self.end = layout.end.map(|(offset, _)| offset);
        self.trailing_bytes = layout.trailing_bytes(bytes);
        (self.bytes, self.partial) = (bytes, partial);
    }
}

/// The titles of [`layout_row`]s.
pub fn layout_heading(options: &TextOptions<'_>) -> String {
    let heading = options.heading();
    format!("{heading}{:>10}  {:>9}  {:<15} CONTENT{heading:#}\n", "OFFSET", "SIZE", "BLOCK")
}

/// A block, or the end marker, as a row; nothing for what is no block.
pub fn layout_row(found: &Inspected) -> Option<String> {
    match found {
        Inspected::Block(block) => Some(row(block)),
        Inspected::End { offset, end } => Some(format!("{offset:#010x}  {:>9}  end\n", end - offset)),
        _ => None,
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
    // Writing to a String can't fail.
    if block.is_cut {
        let _ = write!(text, "; CUT");
    }
    if let Some(damage) = &block.damage {
        let _ = write!(text, "; DAMAGED: {damage}");
    }
    text.push('\n');
    text
}

/// In a few words.
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
            format!("{name} {version}, {} bits{process}, {qpc_frequency} ticks a second", pointer_size * 8)
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
            let mut text = Things(definitions.len() as u64, "definition").to_string();
            for metadata in definitions.iter().take(3) {
                let Metadata { id, provider, event_id, name, .. } = metadata;
                let separator = if name.is_empty() { "" } else { " " };
                let _ = write!(text, ", {id} = {provider}/{event_id}{separator}{name}");
            }
            if definitions.len() > 3 {
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
            format!("{}, tick {timestamp}{flags}", Things(threads.len() as u64, "thread"))
        }
        Content::Threads(threads) => Things(threads.len() as u64, "thread").to_string(),
        Content::RemovedThreads(threads) => format!("{} removed", Things(threads.len() as u64, "thread")),
        _ => "?".to_owned(),
    }
}
