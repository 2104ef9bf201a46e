//! What a stream consists of, block by block: what is kept of it, and how JSON has it (docs/recordings.md).

use std::fmt;

use runtap_nettrace::Metadata;
use runtap_nettrace::inspect::{Block, Content, Inspected, Listed};
use serde_json::{Value, json};

/// What was found in a stream by now.
#[derive(Debug, Default)]
pub struct Layout {
    /// How many blocks there are.
    pub blocks_count: u64,
    /// Whether one of them is damaged.
    pub is_damaged: bool,
    /// Where the end marker begins and ends.
    pub end: Option<(u64, u64)>,
    /// What no reader gets beyond.
    pub gap: Option<Gap>,
}

/// Where a stream can't be read any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Where it is, from the start of the stream.
    pub offset: u64,
    /// What is there.
    pub what: GapKind,
}

/// Why a stream can't be read any further.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GapKind {
    /// It ends inside a block of this name.
    CutBlock(String),
    /// It ends with so many bytes that are nothing whole.
    Cut(u64),
    /// What is there is no block.
    Damage(runtap_nettrace::Error),
}

impl fmt::Display for GapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutBlock(name) => write!(f, "cut off inside {name}"),
            Self::Cut(left) => write!(f, "cut off: {left} bytes from here on belong to nothing whole"),
            Self::Damage(error) => write!(f, "damaged: {error}"),
        }
    }
}

impl Layout {
    /// Takes what was found next.
    pub fn see(&mut self, found: &Inspected) {
        let (offset, what) = match found {
            Inspected::Block(block) => {
                self.blocks_count += 1;
                self.is_damaged |= block.damage.is_some();
                if !block.is_truncated {
                    return;
                }
                (block.offset, GapKind::CutBlock(block.name.clone()))
            }
            Inspected::End { offset, end } => {
                self.end = Some((*offset, *end));
                return;
            }
            Inspected::Truncated { offset, left } => (*offset, GapKind::Cut(*left)),
            Inspected::Damage { offset, error } => (*offset, GapKind::Damage(error.clone())),
            _ => return,
        };
        self.gap = Some(Gap { offset, what });
    }

    /// How many of the `bytes` of a file follow the end marker.
    pub fn trailing_bytes(&self, bytes: u64) -> u64 {
        self.end.map_or(0, |(_, end)| bytes.saturating_sub(end))
    }
}

/// A block as JSON has it: `content` names the kind of what is in it, whose members follow. `left_out` is how many elements of
/// its list are not listed.
pub fn json(block: &Block) -> Value {
    let mut value = json!({
        "offset": block.offset,
        "header_bytes": block.header_bytes,
        "size": block.size,
        "name": block.name,
        "number": block.number,
        "cut": block.is_truncated,
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
            "told_ts_min": events.stated_times.map(|times| times.0),
            "told_ts_max": events.stated_times.map(|times| times.1),
        }),
        Content::Metadata(definitions) => json!({
            "content": "metadata",
            "definitions": definitions.listed().iter().map(definition).collect::<Vec<_>>(),
            "left_out": definitions.left_out(),
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
            "threads": pairs(threads),
            "left_out": threads.left_out(),
        }),
        Content::Threads(threads) => json!({
            "content": "threads",
            "threads": threads
                .listed()
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
            "left_out": threads.left_out(),
        }),
        Content::RemovedThreads(threads) => json!({
            "content": "removed_threads",
            "threads": pairs(threads),
            "left_out": threads.left_out(),
        }),
        _ => json!({"content": null}),
    };
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

/// Threads and their last numbers.
fn pairs(threads: &Listed<(u64, u32)>) -> Vec<Value> {
    threads.listed().iter().map(|(thread, sequence)| json!([thread, sequence])).collect()
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
