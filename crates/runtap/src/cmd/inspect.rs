//! `runtap inspect FILE`: the objects and blocks of a stream, with their offsets.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use runtap_nettrace::inspect::{Block, Content, Inspected};
use runtap_nettrace::{Metadata, TraceHeader};
use serde::Serialize;
use serde_json::{Value, json};

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
    partial: Option<super::recording::Partial>,
}

/// How much is read at a time.
const PIECE: usize = 1 << 20;

pub(crate) fn run(options: &Inspect, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut document = Document {
        schema: "runtap.inspect/1",
        file: path.display().to_string(),
        bytes: 0,
        blocks: Vec::new(),
        end: None,
        trailing_bytes: 0,
        partial: None,
    };
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
    let (mut damaged, mut after, mut any) = (false, 0, false);
    let see = |found: Inspected| -> anyhow::Result<()> {
        match found {
            Inspected::Block(block) => {
                any = true;
                damaged |= block.damage.is_some();
                if block.is_cut {
                    let reason = format!("cut off inside {}", block.name);
                    document.partial = Some(super::recording::Partial { offset: block.offset, reason });
                }
                if json {
                    document.blocks.push(value(&block));
                } else {
                    row(line(&block))?;
                }
            }
            Inspected::End { offset, end } => {
                (document.end, after) = (Some(offset), end);
                if !json {
                    row(format!("{offset:#010x}  {:>9}  end\n", end - offset))?;
                }
            }
            Inspected::Cut { offset, left } => {
                let reason = format!("cut off: {left} bytes from here on belong to nothing whole");
                document.partial = Some(super::recording::Partial { offset, reason });
            }
            Inspected::Damage { offset, error } => {
                let reason = format!("damaged: {error}");
                document.partial = Some(super::recording::Partial { offset, reason });
            }
            _ => {}
        }
        Ok(())
    };
    let bytes = inspect(path, see)?;
    document.bytes = bytes;
    if document.end.is_some() {
        document.trailing_bytes = bytes - after;
    }
    if !any {
        let why = document.partial.map_or_else(|| "it is empty".to_owned(), |partial| partial.reason);
        return Err(expected(exit::USAGE, format!("{} can't be read: {why}", path.display()), None));
    }
    if document.trailing_bytes > 0 {
        output.warning(format_args!("{} bytes follow the end marker", Count(document.trailing_bytes)));
    }
    let code = if damaged || document.partial.is_some() { exit::PARTIAL } else { exit::OK };
    match &document.partial {
        Some(partial) => output.warning(format_args!(
            "{} is partial: {} at offset {}",
            path.display(),
            partial.reason,
            partial.offset
        )),
        None if damaged => output.warning(format_args!("{} has damaged blocks", path.display())),
        None => {}
    }
    if json {
        output.document(&document)?;
    }
    Ok(code)
}

/// Shows everything to `see`; gives the size of the file.
fn inspect(path: &Path, mut see: impl FnMut(Inspected) -> anyhow::Result<()>) -> anyhow::Result<u64> {
    let mut file = File::open(path)
        .map_err(|error| expected(exit::USAGE, format!("can't read {}: {error}", path.display()), None))?;
    let mut inspect = runtap_nettrace::inspect::Inspect::new();
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        let n = file.read(&mut piece).with_context(|| format!("can't read {}", path.display()))?;
        if n == 0 {
            inspect.finish();
        }
        bytes += n as u64;
        inspect.feed(piece.get(..n).unwrap_or_default());
        while let Some(found) = inspect.next() {
            see(found)?;
        }
        if n == 0 {
            return Ok(bytes);
        }
    }
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

/// A block as JSON has it: `content` names the kind of what is in it, whose members follow.
fn value(block: &Block) -> Value {
    let mut value = json!({
        "offset": block.offset,
        "header_bytes": block.header_bytes,
        "size": block.size,
        "name": block.name,
        "number": block.number,
        "cut": block.is_cut,
        "damage": block.damage.as_ref().map(ToString::to_string),
    });
    let more = match &block.content {
        Content::Trace(header) => json!({
            "content": "trace",
            "format": header.format_name(),
            "version": header.version,
            "pointer_size": header.pointer_size,
            "process_id": Some(header.process_id).filter(|id| *id != 0),
            "qpc_frequency": header.qpc_frequency,
            "sync_qpc": header.sync_qpc,
            "sync_systemtime": header.sync_systemtime,
            "attributes": header.attributes,
        }),
        Content::Events(events) => json!({
            "content": "events",
            "compressed": events.compressed,
            "events": events.events,
            "sorted": events.sorted,
            "definitions_count": events.definitions,
            "payload_bytes": events.payload_bytes,
            "ts_min": events.times.map(|times| times.0),
            "ts_max": events.times.map(|times| times.1),
            "told_ts_min": events.told_times.map(|times| times.0),
            "told_ts_max": events.told_times.map(|times| times.1),
        }),
        Content::Metadata(definitions) => json!({
            "content": "metadata",
            "definitions": definitions.iter().map(definition).collect::<Vec<_>>(),
        }),
        Content::Stacks { first_id, count } => {
            json!({"content": "stacks", "first_id": first_id, "count": count})
        }
        Content::Labels { first_id, count } => {
            json!({"content": "labels", "first_id": first_id, "count": count})
        }
        Content::SequencePoint { timestamp, flags, threads } => json!({
            "content": "sequence_point",
            "timestamp": timestamp,
            "flags": flags,
            "threads": threads.iter().map(|(thread, sequence)| json!([thread, sequence])).collect::<Vec<_>>(),
        }),
        Content::Threads(threads) => json!({
            "content": "threads",
            "threads": threads
                .iter()
                .map(|thread| {
                    json!({
                        "index": thread.index,
                        "name": thread.name,
                        "process": thread.process_id,
                        "thread": thread.thread_id,
                    })
                })
                .collect::<Vec<_>>(),
        }),
        Content::RemovedThreads(threads) => json!({
            "content": "removed_threads",
            "threads": threads.iter().map(|(thread, sequence)| json!([thread, sequence])).collect::<Vec<_>>(),
        }),
        _ => json!({"content": null}),
    };
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

fn definition(metadata: &Metadata) -> Value {
    json!({
        "id": metadata.id,
        "provider": metadata.provider,
        "event_id": metadata.event_id,
        "name": metadata.name,
        "version": metadata.version,
        "level": metadata.level,
        "keywords": format!("{:#x}", metadata.keywords),
        "opcode": metadata.opcode,
        "fields": metadata.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(),
    })
}
