//! The structure of a stream with offsets, for finding out what is wrong with a stream. Does not interpret the payloads
//! of events, and keeps no tables.

mod content;

use runtap_wire::DecodeError;

use self::content::BlockContent;
use crate::block::netperf::NetPerfEvent;
use crate::raw::{Format, ObjectKind};
use crate::walk::{FrameHeader, Step, Walker};
use crate::{Error, Metadata, Thread, TraceHeader};

/// Walks over the objects and blocks of a stream incrementally.
///
/// ```
/// use runtap_nettrace::inspect::{Inspect, Inspected};
///
/// # let file = b"Nettrace\x14\0\0\0!FastSerialization.1\x01";
/// let mut inspect = Inspect::new();
/// inspect.feed(file);
/// inspect.finish();
/// while let Some(found) = inspect.next() {
///     if let Inspected::Block(block) = found {
///         println!("{:#x}: {}, {} bytes", block.offset, block.name, block.size);
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct Inspect {
    walker: Walker,
    /// Events of `NetPerf` 1 and 2 since the header, which are in no block.
    bare: Option<Block>,
    /// The next result, after `bare`.
    waiting: Option<Inspected>,
}

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inspected {
    /// An object or block.
    Block(Block),
    /// The end marker.
    End {
        /// The stream offset of its first byte.
        offset: u64,
        /// The stream offset after it.
        end: u64,
    },
    /// The stream ends without an end marker.
    Truncated {
        /// The stream offset of the first byte after the last complete object.
        offset: u64,
        /// The number of bytes from there to the end.
        left: u64,
    },
    /// Damage beyond which no reader can continue.
    Damage {
        /// The stream offset of the damage in bytes.
        offset: u64,
        /// The error.
        error: Error,
    },
}

/// An object or block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// The stream offset of its first byte.
    pub offset: u64,
    /// The number of bytes before the payload: tags, versions, name, size, padding.
    pub header_bytes: u64,
    /// The size of the payload in bytes, as the header states.
    pub size: u64,
    /// The name; in Nettrace 6, where blocks have numbers, the name that the format's specification assigns to the number.
    pub name: String,
    /// The number of its kind (Nettrace 6).
    pub number: Option<u8>,
    /// The contents, up to the damage if there is any.
    pub content: Content,
    /// The first error inside the block.
    pub damage: Option<DecodeError>,
    /// Whether the stream ends inside the block.
    pub is_truncated: bool,
}

/// The contents of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// The header.
    Trace(Box<TraceHeader>),
    /// Events.
    Events(Events),
    /// Definitions.
    Metadata(Listed<Metadata>),
    /// Call stacks.
    Stacks {
        /// The id of the first stack.
        first_id: u32,
        /// The number of stacks.
        count: u32,
    },
    /// A sequence point.
    SequencePoint {
        /// The time of the sequence point in ticks.
        timestamp: u64,
        /// What the point resets besides stacks and labels: 1 threads, 2 definitions (Nettrace 6).
        flags: u32,
        /// Threads with their last sequence numbers.
        threads: Listed<(u64, u32)>,
    },
    /// Threads (Nettrace 6).
    Threads(Listed<Thread>),
    /// Removed threads with their last sequence numbers (Nettrace 6).
    RemovedThreads(Listed<(u64, u32)>),
    /// Lists of labels (Nettrace 6).
    Labels {
        /// The id of the first list.
        first_id: u32,
        /// The number of lists.
        count: u32,
    },
    /// An unknown kind of block.
    Unknown,
}

/// The elements of a block: all are counted, and the first ones are listed. In memory an element takes many times the two
/// bytes that it may have in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    elements: Vec<T>,
    count: u64,
    /// The encoded size of the listed elements in bytes.
    bytes: usize,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { elements: Vec::new(), count: 0, bytes: 0 }
    }
}

impl<T> Listed<T> {
    /// The maximum number of listed elements.
    pub const MAX: usize = 1 << 14;
    /// The maximum encoded size of all listed elements in bytes.
    pub const MAX_BYTES: usize = 4 << 20;

    /// Returns the listed elements: the first ones.
    pub fn listed(&self) -> &[T] {
        &self.elements
    }

    /// Returns the number of all elements.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of elements that are not listed.
    pub fn left_out(&self) -> u64 {
        self.count.saturating_sub(self.elements.len() as u64)
    }

    /// Adds an element with an encoded size of `bytes` bytes.
    pub(super) fn push(&mut self, element: T, bytes: usize) {
        let total = self.bytes.saturating_add(bytes);
        if self.left_out() == 0 && self.elements.len() < Self::MAX && total <= Self::MAX_BYTES {
            self.bytes = total;
            self.elements.push(element);
        }
        self.count += 1;
    }
}

/// A summary of a block of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Events {
    /// Whether the event headers are compressed.
    pub compressed: bool,
    /// The number of events, without definitions.
    pub events: u64,
    /// The number of events that start a run.
    pub sorted: u64,
    /// The number of definitions between the events (`NetPerf`).
    pub definitions: u64,
    /// The number of bytes of the payloads.
    pub payload_bytes: u64,
    /// The least and the greatest time stamp in the header of the block (Nettrace).
    pub stated_times: Option<(u64, u64)>,
    /// The least and the greatest time stamp of the events.
    pub times: Option<(u64, u64)>,
}

impl Events {
    fn add(&mut self, timestamp: u64, sorted: bool, payload: usize) {
        self.events += 1;
        self.sorted += u64::from(sorted);
        self.payload_bytes += payload as u64;
        let (least, greatest) = self.times.unwrap_or((timestamp, timestamp));
        self.times = Some((least.min(timestamp), greatest.max(timestamp)));
    }

    fn add_netperf(&mut self, event: &NetPerfEvent) {
        if event.metadata_id == 0 {
            self.definitions += 1;
        } else {
            self.add(event.timestamp, false, event.payload.len());
        }
    }
}

impl Inspect {
    /// Creates an inspection at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.walker.feed(bytes);
    }

    /// Marks the end of the stream.
    pub fn finish(&mut self) {
        self.walker.finish();
    }

    /// Returns the next part of the stream. `None` if more bytes are needed, or after the end.
    #[expect(clippy::should_implement_trait, reason = "more items may follow `None`")]
    pub fn next(&mut self) -> Option<Inspected> {
        if let Some(waiting) = self.waiting.take() {
            return Some(waiting);
        }
        loop {
            let found = match self.walker.next() {
                Ok(None) => return None,
                Ok(Some((format, Step::Block { head, payload, truncated, .. }))) => {
                    Inspected::Block(block(format, &head, payload, truncated))
                }
                Ok(Some((_, Step::Bare { start, event }))) => {
                    bare(&mut self.bare, start, event);
                    continue;
                }
                Ok(Some((_, Step::End { start, end }))) => Inspected::End { offset: start, end },
                // This walk does not resynchronize.
                Ok(Some((_, Step::Gap { .. }))) => continue,
                Ok(Some((_, Step::Truncated { start, left }))) => {
                    Inspected::Truncated { offset: start, left }
                }
                Err((offset, error)) => Inspected::Damage { offset, error },
            };
            let Some(bare) = self.bare.take() else { return Some(found) };
            self.waiting = Some(found);
            return Some(Inspected::Block(bare));
        }
    }
}

/// Adds an event of `NetPerf` 1 or 2.
fn bare(block: &mut Option<Block>, start: u64, event: &[u8]) {
    let block = block.get_or_insert_with(|| Block {
        offset: start,
        header_bytes: 0,
        size: 0,
        name: "events".to_owned(),
        number: None,
        content: Content::Events(Events::default()),
        damage: None,
        is_truncated: false,
    });
    block.size += event.len() as u64;
    let Content::Events(events) = &mut block.content else { return };
    match NetPerfEvent::decode(event, &(0..event.len())) {
        Ok(event) => events.add_netperf(&event),
        Err(fault) => {
            block.damage.get_or_insert_with(|| fault.into_error(start + event.len() as u64));
        }
    }
}

fn block(format: Format, head: &FrameHeader, payload: &[u8], truncated: bool) -> Block {
    let header_bytes = head.bytes.len() as u64;
    let mut found = BlockContent { content: Content::Unknown, damage: None };
    if head.kind != ObjectKind::Unknown {
        found.read(format, head, payload, head.start + header_bytes);
    }
    let number = (format == Format::Nettrace6).then(|| head.bytes.last().copied().unwrap_or_default());
    let name = match number {
        Some(_) if head.kind == ObjectKind::Unknown => "?".to_owned(),
        Some(_) => format!("{:?}", head.kind),
        None => String::from_utf8_lossy(head.name()).into_owned(),
    };
    Block {
        offset: head.start,
        header_bytes,
        size: head.size.into(),
        name,
        number,
        content: found.content,
        // The end of the stream reports the truncation.
        damage: found.damage.filter(|error| !(truncated && error.is_incomplete())),
        is_truncated: truncated,
    }
}
