//! Parts of a finished stream that can be read in parallel: where each starts, and what its reader must know.
//! Source: nettrace format, "a design that reaches it". Reads no events, starts no thread, and opens no file: the caller
//! provides the requested bytes.

use std::ops::Range;

use crate::reader::Decoder;
use crate::{Limits, Reader};

/// The number of bytes to request for the header of a frame: longer than any header that a runtime writes.
const HEADER_BYTES: u64 = 64;
/// The number of bytes to request for an unusually long header.
const LONG_HEADER_BYTES: u64 = 512;

/// The most blocks of an epoch that its parts read again. Beyond this limit the rest of the stream is one part.
const MAX_EPOCH_BLOCKS: usize = 1 << 14;

/// Finds the parts of a stream of known length by the headers of its blocks, which state their sizes. Only the contents
/// of definitions, threads and sequence points are read.
///
/// ```
/// use runtap_nettrace::{Scan, StreamItem};
///
/// # let file = b"Nettrace\x14\0\0\0!FastSerialization.1\x01";
/// let mut events = 0;
/// let mut whole = None;
/// // Each part can be read on its own thread.
/// for part in Scan::of(file, 1 << 20) {
///     let mut reader = part.reader();
///     for range in part.feed_ranges() {
///         reader.seek(range.start);
///         let bytes = &file[range.start as usize..range.end as usize];
///         reader.items(bytes).for_each(|item| {
///             if let StreamItem::Event(_) = item {
///                 events += 1;
///             }
///         })?;
///     }
///     reader.finish();
///     reader.items(&[]).for_each(|_rest_of_a_truncated_stream| {})?;
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
    /// The intended size of a part in bytes.
    size: u64,
    decoder: Decoder,
    /// The offset of the current frame.
    at: u64,
    /// The number of bytes to request for the frame.
    ask: u64,
    parts: Vec<Part>,
    /// Blocks since the last sequence point with definitions for the events of its epoch.
    epoch: Vec<Range<u64>>,
    epoch_bytes: u64,
    done: bool,
}

/// A part of a stream: it starts and ends after the payload of a block.
#[derive(Debug)]
pub struct Part {
    index: u64,
    range: Range<u64>,
    before: Vec<Range<u64>>,
    /// The state at the start of the part. `None` at the start of the stream.
    start: Option<Box<Decoder>>,
    limits: Limits,
    last: bool,
}

impl Scan {
    /// Creates a scan for parts of about `size` bytes in a stream of `length` bytes.
    pub fn new(length: u64, size: u64) -> Self {
        Self::with_limits(length, size, Limits::default())
    }

    /// Like [`new`](Self::new), with limits that the parts' readers use, too.
    pub fn with_limits(length: u64, size: u64, limits: Limits) -> Self {
        let first = Part { index: 0, range: 0..length, before: Vec::new(), start: None, limits, last: true };
        Self {
            length,
            size: size.max(1),
            decoder: Decoder::new(limits),
            at: 0,
            ask: HEADER_BYTES,
            parts: vec![first],
            epoch: Vec::new(),
            epoch_bytes: 0,
            done: false,
        }
    }

    /// Returns the parts of a stream in memory.
    pub fn of(stream: &[u8], size: u64) -> Vec<Part> {
        let mut scan = Self::new(stream.len() as u64, size);
        while let Some(range) = scan.next_range() {
            scan.handle(slice(stream, &range));
        }
        scan.finish()
    }

    /// Returns the range of bytes to pass to [`Self::handle`] next. `None` if all parts were found.
    pub fn next_range(&self) -> Option<Range<u64>> {
        let end = self.at.saturating_add(self.ask).min(self.length);
        if self.done || self.at >= end { None } else { Some(self.at..end) }
    }

    /// Handles the bytes that [`Self::next_range`] requested. Fewer bytes end the scan.
    pub fn handle(&mut self, bytes: &[u8]) {
        let asked = self.next_range().map_or(0, |range| range.end - range.start);
        if (bytes.len() as u64) < asked || self.frame(bytes).is_none() {
            self.done = true;
        }
    }

    /// Returns the parts, in the order of the stream. The last part includes everything unread or damaged.
    pub fn finish(self) -> Vec<Part> {
        self.parts
    }

    /// Handles a frame. `None` if no further part can be found.
    fn frame(&mut self, bytes: &[u8]) -> Option<()> {
        let Some(frame) = self.decoder.peek(bytes) else {
            // The header may be longer than the requested bytes.
            if self.ask >= LONG_HEADER_BYTES || self.at + self.ask >= self.length {
                return None;
            }
            self.ask = LONG_HEADER_BYTES;
            return Some(());
        };
        let length = frame.length?;
        let end = self.at.checked_add(length).filter(|end| *end <= self.length)?;
        if frame.is_read {
            if (bytes.len() as u64) < length {
                self.ask = length;
                return Some(());
            }
            // The reader of the part reports damage inside the block.
            self.decoder.pass(slice(bytes, &(0..length)))?;
        }
        self.decoder.seek(end);
        let this = self.at..end;
        if frame.is_of_epoch {
            self.epoch.push(this);
            self.epoch_bytes += length;
            // Each part reads these blocks again and keeps a list of them.
            if self.epoch.len() > MAX_EPOCH_BLOCKS
                || self.epoch_bytes > self.decoder.limits().max_stack_bytes as u64
            {
                return None;
            }
        } else if frame.ends_epoch {
            self.epoch.clear();
            self.epoch_bytes = 0;
        }
        (self.at, self.ask) = (end, HEADER_BYTES);
        let part = self.parts.last_mut()?;
        if end - part.range.start >= self.size && end < self.length {
            part.range.end = end;
            part.last = false;
            let (index, limits) = (part.index + 1, part.limits);
            self.parts.push(Part {
                index,
                range: end..self.length,
                before: self.epoch.clone(),
                start: Some(Box::new(self.decoder.for_part(index))),
                limits,
                last: true,
            });
        }
        Some(())
    }
}

impl Part {
    /// Returns the range of the part in the stream, in bytes.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns the ranges of the stream to feed to the reader, each after a [`Reader::seek`]: blocks with definitions for
    /// the events of this part, then the part itself. Each range may be fed in chunks of any size.
    pub fn feed_ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.before.iter().cloned().chain([self.range()])
    }

    /// Returns whether this is the last part, whose reader needs [`Reader::finish`] (harmless for other readers).
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// Creates a reader that starts with the state of the stream before this part. Only the reader of the first part
    /// returns the header.
    pub fn reader(&self) -> Reader {
        let decoder = self
            .start
            .as_ref()
            .map_or_else(|| Decoder::new(self.limits), |decoder| decoder.for_part(self.index));
        Reader::of_part(decoder, self.range.start, self.last)
    }
}

/// Returns the bytes of a range.
fn slice<'a>(bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let place = |n| usize::try_from(n).unwrap_or(usize::MAX);
    bytes.get(place(range.start)..place(range.end)).unwrap_or_default()
}
