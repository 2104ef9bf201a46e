//! The blocks of a stream: a summary, and their JSON form (docs/recordings.md).

use std::fmt;

use runtap_nettrace::Metadata;
use runtap_nettrace::inspect::{Block, Content, Inspected, Listed};
use serde_json::{Value, json};

/// A summary of the blocks read so far.
#[derive(Debug, Default)]
pub struct Layout {
    /// The number of blocks.
    pub blocks_count: u64,
    /// Whether a block is damaged.
    pub is_damaged: bool,
    /// The offsets of the start and the end of the end marker. `None` if the file has no end marker.
    pub end: Option<(u64, u64)>,
    /// The point where reading stops before the end of the file.
    pub gap: Option<Gap>,
}

/// A point in a stream where reading stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The offset from the start of the stream.
    pub offset: u64,
    /// Why reading stops.
    pub kind: GapKind,
}

/// Why a stream can't be read any further.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GapKind {
    /// The stream ends inside a block with this name.
    TruncatedBlock(String),
    /// The stream ends with this number of bytes that are no complete block.
    Truncated(u64),
    /// The data is not a valid block.
    Damage(runtap_nettrace::Error),
}

impl fmt::Display for GapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TruncatedBlock(name) => write!(f, "truncated inside {name}"),
            Self::Truncated(left) => {
                write!(f, "truncated: {left} bytes from here on are not a complete block")
            }
            Self::Damage(error) => write!(f, "damaged: {error}"),
        }
    }
}

impl Layout {
    /// Adds the next element of the stream.
    pub fn see(&mut self, found: &Inspected) {
        let (offset, kind) = match found {
            Inspected::Block(block) => {
                self.blocks_count += 1;
                self.is_damaged |= block.damage.is_some();
                if !block.is_truncated {
                    return;
                }
                (block.offset, GapKind::TruncatedBlock(block.name.clone()))
            }
            Inspected::End { offset, end } => {
                self.end = Some((*offset, *end));
                return;
            }
            Inspected::Truncated { offset, left } => (*offset, GapKind::Truncated(*left)),
            Inspected::Damage { offset, error } => (*offset, GapKind::Damage(error.clone())),
            _ => return,
        };
        self.gap = Some(Gap { offset, kind });
    }

    /// Returns the number of bytes that follow the end marker in a file of `bytes` bytes.
    pub fn trailing_bytes(&self, bytes: u64) -> u64 {
        self.end.map_or(0, |(_, end)| bytes.saturating_sub(end))
    }
}

/// Returns the JSON form of a block. `content` names the kind of content, whose members follow; `left_out` is the number of list
/// elements that are not included.
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

/// Returns threads with their last sequence numbers.
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
