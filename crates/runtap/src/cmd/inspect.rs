//! `runtap inspect FILE`: the objects and blocks of a stream, with their offsets.

use std::fmt::Write as _;

use runtap_clr::layout::{self, Layout};
use runtap_nettrace::inspect::{Block, Content, Inspected};
use runtap_nettrace::{Metadata, TraceHeader};
use serde::Serialize;
use serde_json::Value;

use super::recording::Partial;
use crate::cli::Inspect;
use crate::exit::{self, expected};
use crate::output::{Clean, HEADING, Output};
use crate::units::{Count, Things};

/// `runtap.inspect/1`
#[derive(Serialize)]
struct Document {
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

pub(crate) fn run(options: &Inspect, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let json = output.json();
    let mut headed = false;
    // No table where there is nothing to put into it.
    let mut row = |line: String| {
        if !std::mem::replace(&mut headed, true) {
            output.text(format_args!(
                "{HEADING}{:>10}  {:>9}  {:<15} CONTENT{HEADING:#}\n",
                "OFFSET", "SIZE", "BLOCK"
            ))?;
        }
        output.text(line)
    };
    let (mut layout, mut blocks) = (Layout::default(), Vec::new());
    let bytes = runtap_files::inspect(path, |found| {
        layout.see(&found);
        match found {
            Inspected::Block(block) if json => {
                blocks.push(layout::json(&block));
                Ok(())
            }
            Inspected::Block(block) => row(line(&block)),
            Inspected::End { offset, end } if !json => {
                row(format!("{offset:#010x}  {:>9}  end\n", end - offset))
            }
            _ => Ok(()),
        }
    })?;
    let partial = layout.gap.as_ref().map(|gap| Partial { offset: gap.offset, reason: gap.what.to_string() });
    if layout.blocks_count == 0 {
        let why = partial.map_or_else(|| "it is empty".to_owned(), |partial| partial.reason);
        return Err(expected(exit::USAGE, format!("{} can't be read: {why}", path.display()), None));
    }
    let trailing_bytes = layout.trailing_bytes(bytes);
    if trailing_bytes > 0 {
        output.warning(format_args!("{} bytes follow the end marker", Count(trailing_bytes)));
    }
    let code = if layout.is_damaged || partial.is_some() { exit::PARTIAL } else { exit::OK };
    match &partial {
        Some(partial) => output.warning(format_args!(
            "{} is partial: {} at offset {}",
            path.display(),
            partial.reason,
            partial.offset
        )),
        None if layout.is_damaged => output.warning(format_args!("{} has damaged blocks", path.display())),
        None => {}
    }
    if json {
        output.document(&Document {
            schema: "runtap.inspect/1",
            file: path.display().to_string(),
            bytes,
            blocks,
            end: layout.end.map(|(offset, _)| offset),
            trailing_bytes,
            partial,
        })?;
    }
    Ok(code)
}

fn line(block: &Block) -> String {
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
