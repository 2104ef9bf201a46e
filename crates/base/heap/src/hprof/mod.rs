//! Heap dumps of JVMs: the format hprof, versions 1.0.1 and 1.0.2, and the records that Android adds in 1.0.3.
//!
//! Source: `hprof_b_spec.h` of the JDK describes the format, `heapDumper.cpp` of `HotSpot` writes it. All numbers are
//! big-endian; an *id* is the address of an object, with 4 or 8 bytes.
//!
//! - The size of an object in the dump is that of its fields with uncompressed references. [`Graph::size_of`] is what the
//!   object occupies in the JVM, which follows from the distances of addresses (`sizes.rs`).
//! - The references of weak and phantom references to their objects keep nothing alive and are not part of the graph.
//! - An object of class `java.lang.Class` references the superclass, the loader and the values of static fields.
//! - Contents of arrays are compared with each other to find [`RepeatedText`]s, and then dropped.

mod classes;
mod frames;
mod segment;
mod sizes;
mod texts;

use runtap_wire::{DecodeError, DecodeErrorKind, Deframer, Reader};

pub(crate) use self::classes::source_name;
pub use self::texts::{RepeatedText, RepeatedTexts};
use crate::hprof::segment::DumpBuilder;
use crate::{Graph, Incomplete};

/// How every file starts.
pub const MAGIC: &[u8] = b"JAVA PROFILE 1.0.";
/// The longest version, with its NUL.
const MAX_VERSION: usize = 32;
/// The longest stack that is kept, in bytes.
const MAX_STACK: u32 = 1 << 20;
/// The longest text that is kept, in bytes. A class file cannot contain a longer one.
const MAX_NAME: u32 = 1 << 16;

const UTF8: u8 = 0x01;
const LOAD_CLASS: u8 = 0x02;
const FRAME: u8 = 0x04;
const STACK: u8 = 0x05;
const HEAP_DUMP: u8 = 0x0c;
const HEAP_DUMP_SEGMENT: u8 = 0x1c;
const HEAP_DUMP_END: u8 = 0x2c;

/// A heap dump that was read.
#[derive(Debug)]
pub struct HeapDump {
    /// The objects.
    pub graph: Graph,
    /// The texts that occur more than once.
    pub texts: RepeatedTexts,
}

/// Reads a heap dump from pieces of any size.
///
/// An object takes at most 40 bytes while it is read if it has up to two references, each further reference 8 bytes.
#[derive(Debug, Default)]
pub struct HprofReader {
    queue: Deframer,
    expected: Expected,
    builder: DumpBuilder,
    /// Whether an end marker has been read.
    has_end: bool,
}

/// What the next bytes are.
#[derive(Debug, Default, Clone, Copy)]
enum Expected {
    #[default]
    Header,
    Record,
    /// The rest of a part of the heap, in bytes.
    Segment {
        left: u64,
    },
    /// Bytes of a record that is not needed.
    Skip {
        left: u64,
    },
    /// Nothing can be read beyond a damage.
    Damaged,
}

impl HprofReader {
    /// Creates a reader at the start of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes of the file. A damage behind the header ends the graph and is stated by it.
    ///
    /// # Errors
    /// If the file does not start like a heap dump.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if matches!(self.expected, Expected::Damaged) {
            return Ok(());
        }
        self.queue.feed(bytes);
        loop {
            let pending = self.queue.pending();
            let mut r = Reader::at(pending, self.queue.offset());
            let start = r.offset();
            let result = match self.expected {
                Expected::Header => self.builder.header(&mut r),
                Expected::Record => self.builder.record(&mut r, &mut self.has_end),
                Expected::Segment { left: 0 } | Expected::Skip { left: 0 } => Ok((Expected::Record, start)),
                Expected::Segment { left } => {
                    self.builder.read(&mut r, left).map(|left| (Expected::Segment { left }, r.offset()))
                }
                Expected::Skip { left } => {
                    let n = left.min(pending.len() as u64);
                    Ok((Expected::Skip { left: left - n }, start + n))
                }
                Expected::Damaged => return Ok(()),
            };
            let is_header = matches!(self.expected, Expected::Header);
            match result {
                Ok((expected, end)) => {
                    let has_moved =
                        end > start || !matches!(expected, Expected::Segment { .. } | Expected::Skip { .. });
                    self.expected = expected;
                    self.queue.consume(usize::try_from(end - start).unwrap_or(usize::MAX));
                    if !has_moved {
                        return Ok(());
                    }
                }
                Err(error) if error.is_incomplete() => return Ok(()),
                Err(error) if is_header => return Err(error),
                Err(error) => {
                    self.builder.graph.incomplete(Incomplete::Damaged(error));
                    self.expected = Expected::Damaged;
                    return Ok(());
                }
            }
        }
    }

    /// Returns the heap dump at the end of the file.
    pub fn finish(self) -> HeapDump {
        let is_between = matches!(self.expected, Expected::Record) && self.queue.pending().is_empty();
        let end = self.queue.offset() + self.queue.pending().len() as u64;
        let mut builder = self.builder;
        if !(is_between && (self.has_end || builder.is_old_dump)) {
            builder.graph.incomplete(Incomplete::Truncated { offset: end });
        }
        builder.finish()
    }
}

impl DumpBuilder {
    /// Reads the header of the file.
    fn header(&mut self, r: &mut Reader<'_>) -> Result<(Expected, u64), DecodeError> {
        let wrong =
            |r: &Reader<'_>| r.error("magic", DecodeErrorKind::Invalid("is not that of a heap dump (hprof)"));
        let rest = r.rest();
        if !rest.starts_with(MAGIC.get(..rest.len().min(MAGIC.len())).unwrap_or(MAGIC)) {
            return Err(wrong(r));
        }
        let Some(length) = rest.iter().take(MAX_VERSION).position(|byte| *byte == 0) else {
            if rest.len() >= MAX_VERSION {
                return Err(wrong(r));
            }
            r.bytes(MAX_VERSION, "version")?;
            return Err(wrong(r));
        };
        r.bytes(length + 1, "version")?;
        let size = u32::from_be_bytes(r.clone().array("size of an id")?);
        if size != 4 && size != 8 {
            let kind = DecodeErrorKind::Unexpected { value: size.into(), expected: "4 or 8" };
            return Err(r.error("size of an id", kind));
        }
        r.bytes(12, "time")?;
        self.set_id_bytes(if size == 4 { 4 } else { 8 });
        Ok((Expected::Record, r.offset()))
    }

    /// Reads the header of a record, and the record if it is short and needed.
    fn record(&mut self, r: &mut Reader<'_>, has_end: &mut bool) -> Result<(Expected, u64), DecodeError> {
        let tag = r.u8("tag")?;
        r.bytes(4, "time of a record")?;
        let length = u32::from_be_bytes(r.array("length of a record")?);
        let expected = match tag {
            HEAP_DUMP | HEAP_DUMP_SEGMENT => {
                self.is_old_dump |= tag == HEAP_DUMP;
                Expected::Segment { left: length.into() }
            }
            HEAP_DUMP_END => {
                *has_end = true;
                Expected::Skip { left: length.into() }
            }
            UTF8 if length <= MAX_NAME => {
                let mut record = r.sub(length as usize, "name")?;
                let id = self.id(&mut record, "name id")?;
                self.classes.add_name(id, record.rest());
                Expected::Record
            }
            LOAD_CLASS if length <= MAX_NAME => {
                let mut record = r.sub(length as usize, "class")?;
                let serial = u32::from_be_bytes(record.array("class serial number")?);
                let class = self.id(&mut record, "class id")?;
                record.bytes(4, "stack trace serial number")?;
                let name = self.id(&mut record, "class name id")?;
                self.classes.load(class, name);
                self.frames.load_class(serial, name);
                Expected::Record
            }
            FRAME if length <= MAX_NAME => {
                let id_bytes = self.id_bytes();
                self.frames.add_frame(&mut r.sub(length as usize, "frame")?, id_bytes);
                Expected::Record
            }
            STACK if length <= MAX_STACK => {
                let id_bytes = self.id_bytes();
                self.frames.add_stack(&mut r.sub(length as usize, "stack")?, id_bytes);
                Expected::Record
            }
            _ => Expected::Skip { left: length.into() },
        };
        Ok((expected, r.offset()))
    }
}

/// Turns an "unexpected end" of a record whose bytes are all there into an error that more bytes cannot mend.
fn beyond_record(error: &DecodeError) -> DecodeError {
    DecodeError::new(error.offset, error.field, DecodeErrorKind::Invalid("extends beyond its record"))
}
