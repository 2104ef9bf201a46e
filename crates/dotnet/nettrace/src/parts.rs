//! Parts of a finished stream that can be read side by side: where each begins, and what its reader has to know.
//! Source: nettrace format, "a design that reaches it". Reads no events, starts no thread, and touches no file: it says
//! which bytes it wants.

use std::ops::Range;

use crate::reader::Core;
use crate::{Limits, Reader};

/// More than any header of a frame that a runtime writes.
const FRAME: u64 = 64;
/// More than any header of a frame.
const LONG_FRAME: u64 = 512;

/// Most blocks that the parts of one epoch have to read again. Beyond them the rest of the stream is one part.
const MOST_OF_EPOCH: usize = 1 << 14;

/// Finds the parts of a stream of known length by the headers of its blocks, which tell their sizes. Of the blocks
/// themselves it looks at definitions, threads and sequence points only.
///
/// ```
/// use runtap_nettrace::{Item, Scan};
///
/// # let file = b"Nettrace\x14\0\0\0!FastSerialization.1\x01";
/// let mut events = 0;
/// let mut whole = None;
/// // Each of them could have a thread of its own.
/// for part in Scan::of(file, 1 << 20) {
///     let mut reader = part.reader();
///     for piece in part.pieces() {
///         reader.go_to(piece.start);
///         let bytes = &file[piece.start as usize..piece.end as usize];
///         reader.items(bytes).for_each(|item| {
///             if let Item::Event(_) = item {
///                 events += 1;
///             }
///         })?;
///     }
///     reader.finish();
///     reader.items(&[]).for_each(|_rest_of_a_cut_stream| {})?;
///     match &mut whole {
///         None => whole = Some(reader),
///         Some(whole) => whole.join(reader),
///     }
/// }
/// # let whole = whole.unwrap();
/// println!("{events} events, {} lost", whole.lost());
/// # assert!(whole.is_complete());
/// # Ok::<(), runtap_nettrace::Error>(())
/// ```
#[derive(Debug)]
pub struct Scan {
    length: u64,
    /// Bytes that a part should have.
    size: u64,
    core: Core,
    /// The frame that is looked at begins here.
    at: u64,
    /// How much of it is asked for.
    ask: u64,
    parts: Vec<Part>,
    /// Blocks since the last sequence point that define what events of its epoch name.
    epoch: Vec<Range<u64>>,
    epoch_bytes: u64,
    done: bool,
}

/// A part of a stream: it begins and ends behind the payload of a block.
#[derive(Debug)]
pub struct Part {
    index: u64,
    range: Range<u64>,
    before: Vec<Range<u64>>,
    /// `None` at the start of the stream.
    start: Option<Box<Core>>,
    limits: Limits,
    last: bool,
}

impl Scan {
    /// Looks for parts of about `size` bytes in a stream of `length` bytes.
    pub fn new(length: u64, size: u64) -> Self {
        Self::with_limits(length, size, Limits::default())
    }

    /// The same with limits of its own, which the parts' readers get too.
    pub fn with_limits(length: u64, size: u64, limits: Limits) -> Self {
        let first = Part { index: 0, range: 0..length, before: Vec::new(), start: None, limits, last: true };
        Self {
            length,
            size: size.max(1),
            core: Core::new(limits),
            at: 0,
            ask: FRAME,
            parts: vec![first],
            epoch: Vec::new(),
            epoch_bytes: 0,
            done: false,
        }
    }

    /// The parts of a stream that is in memory.
    pub fn of(stream: &[u8], size: u64) -> Vec<Part> {
        let mut scan = Self::new(stream.len() as u64, size);
        while let Some(range) = scan.wants() {
            scan.handle(slice(stream, &range));
        }
        scan.finish()
    }

    /// The bytes of the stream that are looked at next; `None` when all parts are found.
    pub fn wants(&self) -> Option<Range<u64>> {
        let end = self.at.saturating_add(self.ask).min(self.length);
        if self.done || self.at >= end { None } else { Some(self.at..end) }
    }

    /// Takes the bytes that [`Self::wants`] asked for. Fewer than those end the search.
    pub fn handle(&mut self, bytes: &[u8]) {
        let asked = self.wants().map_or(0, |range| range.end - range.start);
        if (bytes.len() as u64) < asked || self.frame(bytes).is_none() {
            self.done = true;
        }
    }

    /// The parts, in the order of the stream. Whatever was not looked at, or is damaged, is in the last one.
    pub fn finish(self) -> Vec<Part> {
        self.parts
    }

    /// Looks at a frame; `None` if there is nothing to be found any more.
    fn frame(&mut self, bytes: &[u8]) -> Option<()> {
        let Some(frame) = self.core.peek(bytes) else {
            // The header may be longer than what was asked for.
            if self.ask >= LONG_FRAME || self.at + self.ask >= self.length {
                return None;
            }
            self.ask = LONG_FRAME;
            return Some(());
        };
        let length = frame.length?;
        let end = self.at.checked_add(length).filter(|end| *end <= self.length)?;
        if frame.is_read {
            if (bytes.len() as u64) < length {
                self.ask = length;
                return Some(());
            }
            // What is wrong inside of it is told by the reader of the part.
            self.core.pass(slice(bytes, &(0..length)))?;
        }
        self.core.go_to(end);
        let this = self.at..end;
        if frame.is_of_epoch {
            self.epoch.push(this);
            self.epoch_bytes += length;
            // Each part reads them again, and the list of them is kept for each.
            if self.epoch.len() > MOST_OF_EPOCH
                || self.epoch_bytes > self.core.limits().max_stack_bytes as u64
            {
                return None;
            }
        } else if frame.ends_epoch {
            self.epoch.clear();
            self.epoch_bytes = 0;
        }
        (self.at, self.ask) = (end, FRAME);
        let part = self.parts.last_mut()?;
        if end - part.range.start >= self.size && end < self.length {
            part.range.end = end;
            part.last = false;
            let (index, limits) = (part.index + 1, part.limits);
            self.parts.push(Part {
                index,
                range: end..self.length,
                before: self.epoch.clone(),
                start: Some(Box::new(self.core.for_part(index))),
                limits,
                last: true,
            });
        }
        Some(())
    }
}

impl Part {
    /// Its own bytes.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Everything that its reader has to be given, piece by piece, each after a [`Reader::go_to`]: blocks that define
    /// what its events name, then its own bytes. Each piece may be fed in as many chunks as one likes.
    pub fn pieces(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.before.iter().cloned().chain([self.range()])
    }

    /// Whether it is the last one: [`Reader::finish`] is for its reader, and does no harm to the others.
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// A reader that knows what was before. It hands out the header only at the start of the stream.
    pub fn reader(&self) -> Reader {
        let core =
            self.start.as_ref().map_or_else(|| Core::new(self.limits), |core| core.for_part(self.index));
        Reader::of_part(core, self.range.start, self.last)
    }
}

/// The bytes of a range.
fn slice<'a>(bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let place = |n| usize::try_from(n).unwrap_or(usize::MAX);
    bytes.get(place(range.start)..place(range.end)).unwrap_or_default()
}
