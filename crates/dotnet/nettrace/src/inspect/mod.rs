//! The structure of a stream with offsets: for people who look for what is wrong with one. Interprets no payload of an
//! event, and keeps no tables: it says what is there, not what it means.

mod content;

use runtap_wire::DecodeError;

use self::content::Found;
use crate::block::netperf::NetPerfEvent;
use crate::raw::{Format, Kind};
use crate::walk::{Head, Step, Walker};
use crate::{Error, Metadata, Thread, TraceHeader};

/// Walks over the objects and blocks of a stream, piece by piece.
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
    /// Events of `NetPerf` 1 and 2 since the header: they are in no block.
    bare: Option<Block>,
    /// What comes next, behind `bare`.
    waiting: Option<Inspected>,
}

/// What stands at a place of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inspected {
    /// An object or block.
    Block(Block),
    /// The end marker.
    End {
        /// Stream offset of its first byte.
        offset: u64,
        /// Stream offset behind it.
        end: u64,
    },
    /// The stream ends without an end marker.
    Cut {
        /// Stream offset of the first byte that belongs to nothing whole.
        offset: u64,
        /// Bytes from there on.
        left: u64,
    },
    /// Something that no reader gets beyond.
    Damage {
        /// Stream offset in bytes.
        offset: u64,
        /// What is wrong.
        error: Error,
    },
}

/// An object or block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// Stream offset of its first byte.
    pub offset: u64,
    /// Bytes up to the payload: tags, versions, name, size, padding.
    pub header_bytes: u64,
    /// Bytes of the payload, as the header says.
    pub size: u64,
    /// Its name; in Nettrace 6, where blocks have numbers, the name that the format's document gives to the number.
    pub name: String,
    /// Its number (Nettrace 6).
    pub number: Option<u8>,
    /// What is in it; up to the damage, if there is some.
    pub content: Content,
    /// What is wrong inside.
    pub damage: Option<DecodeError>,
    /// Whether the stream ends inside it.
    pub is_cut: bool,
}

/// What is in a block.
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
        /// Id of the first.
        first_id: u32,
        /// How many.
        count: u32,
    },
    /// A sequence point.
    SequencePoint {
        /// Its time.
        timestamp: u64,
        /// What it forgets beside stacks and labels: 1 threads, 2 definitions (Nettrace 6).
        flags: u32,
        /// Threads and their last numbers.
        threads: Listed<(u64, u32)>,
    },
    /// Threads (Nettrace 6).
    Threads(Listed<Thread>),
    /// Threads that are gone, and their last numbers (Nettrace 6).
    RemovedThreads(Listed<(u64, u32)>),
    /// Lists of labels (Nettrace 6).
    Labels {
        /// Id of the first.
        first_id: u32,
        /// How many.
        count: u32,
    },
    /// Nobody knows.
    Unknown,
}

/// The elements of a block: all are counted, and the first are listed. In memory an element takes many times the two bytes that
/// it may have on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    elements: Vec<T>,
    count: u64,
    /// Bytes on the wire of those that are listed.
    bytes: usize,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { elements: Vec::new(), count: 0, bytes: 0 }
    }
}

impl<T> Listed<T> {
    /// The most elements that are listed.
    pub const MOST: usize = 1 << 14;
    /// The most bytes on the wire of all elements that are listed.
    pub const MOST_BYTES: usize = 4 << 20;

    /// The elements that are listed: the first ones.
    pub fn listed(&self) -> &[T] {
        &self.elements
    }

    /// The number of all elements.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of elements that are not listed.
    pub fn left_out(&self) -> u64 {
        self.count.saturating_sub(self.elements.len() as u64)
    }

    /// Takes an element that has `bytes` bytes on the wire.
    pub(super) fn push(&mut self, element: T, bytes: usize) {
        let total = self.bytes.saturating_add(bytes);
        if self.left_out() == 0 && self.elements.len() < Self::MOST && total <= Self::MOST_BYTES {
            self.bytes = total;
            self.elements.push(element);
        }
        self.count += 1;
    }
}

/// What is in a block of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Events {
    /// Whether their headers are compressed.
    pub compressed: bool,
    /// Events, without definitions.
    pub events: u64,
    /// Those of them that start a run.
    pub sorted: u64,
    /// Definitions among them (`NetPerf`).
    pub definitions: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// The least and the greatest time stamp, as the block says (Nettrace).
    pub told_times: Option<(u64, u64)>,
    /// The least and the greatest time stamp that the events have.
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
    /// At the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.walker.feed(bytes);
    }

    /// No more bytes will come.
    pub fn finish(&mut self) {
        self.walker.finish();
    }

    /// What comes next; `None` if more bytes are needed, or after the end.
    #[expect(clippy::should_implement_trait, reason = "more may come after the end")]
    pub fn next(&mut self) -> Option<Inspected> {
        if let Some(waiting) = self.waiting.take() {
            return Some(waiting);
        }
        loop {
            let found = match self.walker.next() {
                Ok(None) => return None,
                Ok(Some((format, Step::Block { head, payload, cut, .. }))) => {
                    Inspected::Block(block(format, &head, payload, cut))
                }
                Ok(Some((_, Step::Bare { start, event }))) => {
                    bare(&mut self.bare, start, event);
                    continue;
                }
                Ok(Some((_, Step::End { start, end }))) => Inspected::End { offset: start, end },
                // This walk does not resynchronise.
                Ok(Some((_, Step::Gap { .. }))) => continue,
                Ok(Some((_, Step::Cut { start, left }))) => Inspected::Cut { offset: start, left },
                Err((offset, error)) => Inspected::Damage { offset, error },
            };
            let Some(bare) = self.bare.take() else { return Some(found) };
            self.waiting = Some(found);
            return Some(Inspected::Block(bare));
        }
    }
}

/// An event of `NetPerf` 1 or 2.
fn bare(block: &mut Option<Block>, start: u64, event: &[u8]) {
    let block = block.get_or_insert_with(|| Block {
        offset: start,
        header_bytes: 0,
        size: 0,
        name: "events".to_owned(),
        number: None,
        content: Content::Events(Events::default()),
        damage: None,
        is_cut: false,
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

fn block(format: Format, head: &Head, payload: &[u8], cut: bool) -> Block {
    let header_bytes = head.bytes.len() as u64;
    let mut found = Found { content: Content::Unknown, damage: None };
    if head.kind != Kind::Unknown {
        found.look(format, head, payload, head.start + header_bytes);
    }
    let number = (format == Format::Nettrace6).then(|| head.bytes.last().copied().unwrap_or_default());
    let name = match number {
        Some(_) if head.kind == Kind::Unknown => "?".to_owned(),
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
        // That it ends early is said once.
        damage: found.damage.filter(|error| !(cut && error.is_incomplete())),
        is_cut: cut,
    }
}
