//! The `FastSerialization` envelope of Nettrace 4: first bytes, object headers, block sizes.
//! Source: nettrace format, "first bytes" and "objects". Does not look into objects, and only recognises the
//! streams of other versions.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use crate::{Error, TraceHeader};

/// First bytes of every Nettrace stream.
pub(crate) const MAGIC: &[u8; 8] = b"Nettrace";
/// The counted string that starts the `FastSerialization` part.
pub(crate) const SERIALIZER: &[u8; 24] = b"\x14\0\0\0!FastSerialization.1";

/// Tag: where an object would begin, the end of the stream; also the type of a type.
pub(crate) const NULL_REFERENCE: u8 = 1;
/// Tag: an object begins, in `NetPerf`.
const BEGIN_OBJECT: u8 = 4;
/// Tag: an object begins, in Nettrace.
pub(crate) const BEGIN_PRIVATE_OBJECT: u8 = 5;
/// Tag: an object, or its type, ends.
pub(crate) const END_OBJECT: u8 = 6;

/// Version of the Trace object, and the oldest reader it asks for.
pub(crate) const TRACE_VERSION: u32 = 4;
/// The same of blocks.
pub(crate) const BLOCK_VERSION: u32 = 2;

/// Object names.
pub(crate) mod name {
    pub(crate) const TRACE: &[u8] = b"Trace";
    pub(crate) const EVENT: &[u8] = b"EventBlock";
    pub(crate) const METADATA: &[u8] = b"MetadataBlock";
    pub(crate) const STACK: &[u8] = b"StackBlock";
    pub(crate) const SEQUENCE_POINT: &[u8] = b"SPBlock";
    /// The Trace object of `NetPerf` 1 and 2.
    pub(super) const NETPERF_FILE: &[u8] = b"Microsoft.DotNet.Runtime.EventPipeFile";
}

/// Longest object name that is read; the longest known one has 38 bytes.
const MAX_NAME: u32 = 255;

/// What comes next in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The payload of an object that begins at `start`: `size` bytes, directly behind what was read.
    Object { start: u64, kind: Kind, version: u32, size: u32 },
    /// The end marker.
    End,
}

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Trace,
    Event,
    Metadata,
    Stack,
    SequencePoint,
    /// A name that nobody knows, or a version that asks for a newer reader.
    Unknown,
}

/// Splits a stream into frames.
#[derive(Debug, Default)]
pub(crate) enum Envelope {
    /// At the first byte.
    #[default]
    Start,
    /// At an object or the end marker.
    Between,
    /// Behind the payload of an object.
    InObject,
}

impl Envelope {
    /// Reads up to the next payload, which the caller then takes off the stream before it asks again.
    ///
    /// An error for which [`DecodeError::is_incomplete`] holds means that more bytes are needed; what `r` has passed
    /// over is done with.
    pub(crate) fn next(&mut self, r: &mut Reader<'_>, max_block: u32) -> Result<Frame, Error> {
        let mut probe = r.clone();
        match self {
            Self::Start => prelude(&mut probe)?,
            Self::Between => {}
            Self::InObject => tag(&mut probe, END_OBJECT, "object tag", "the end of an object")?,
        }
        *r = probe.clone();
        *self = Self::Between;
        let frame = frame(&mut probe, max_block)?;
        *r = probe;
        *self = Self::InObject;
        Ok(frame)
    }
}

/// Reads the first bytes of a Nettrace 4 stream and recognises those of other versions.
fn prelude(r: &mut Reader<'_>) -> Result<(), Error> {
    fn starts(r: &Reader<'_>, expected: &[u8]) -> bool {
        r.rest().iter().zip(expected).all(|(a, b)| a == b)
    }
    if starts(r, SERIALIZER) {
        r.bytes(SERIALIZER.len(), "serializer name")?;
        return Err(match object(r, BEGIN_OBJECT) {
            Ok(Some(Object { version, name: name::TRACE | name::NETPERF_FILE, .. })) => {
                Error::Unsupported { version }
            }
            Err(error) if error.is_incomplete() => error.into(),
            // The serializer has other uses, heap dumps among them.
            _ => Error::NotNettrace,
        });
    }
    if !starts(r, MAGIC) {
        return Err(Error::NotNettrace);
    }
    r.bytes(MAGIC.len(), "magic bytes")?;
    let mut blocks = r.clone();
    if blocks.u32("header version")? == 0 {
        return Err(Error::Unsupported { version: blocks.u32("major version")? });
    }
    if !starts(r, SERIALIZER) {
        return Err(Error::NotNettrace);
    }
    r.bytes(SERIALIZER.len(), "serializer name")?;
    Ok(())
}

/// Reads the header of an object and the size of its payload.
fn frame(r: &mut Reader<'_>, max_block: u32) -> Result<Frame, Error> {
    let start = r.offset();
    let Some(Object { version, min_reader, name }) = object(r, BEGIN_PRIVATE_OBJECT)? else {
        return Ok(Frame::End);
    };
    if name == name::TRACE {
        if version < TRACE_VERSION || min_reader > TRACE_VERSION {
            return Err(Error::Unsupported { version });
        }
        return Ok(Frame::Object { start, kind: Kind::Trace, version, size: TraceHeader::SIZE });
    }
    let kind = match name {
        _ if min_reader > BLOCK_VERSION => Kind::Unknown,
        name::EVENT => Kind::Event,
        name::METADATA => Kind::Metadata,
        name::STACK => Kind::Stack,
        name::SEQUENCE_POINT => Kind::SequencePoint,
        _ => Kind::Unknown,
    };
    Ok(Frame::Object {
        start,
        kind,
        version,
        size: block_size(r, if kind == Kind::Unknown { u32::MAX } else { max_block })?,
    })
}

/// The header of an object, up to its data.
struct Object<'a> {
    /// Version of the object's layout.
    version: u32,
    /// Oldest version of a reader that can read it.
    min_reader: u32,
    name: &'a [u8],
}

/// Reads the header of the next object, whose beginning has the tag `begin`; `None` is the end of the stream.
fn object<'a>(r: &mut Reader<'a>, begin: u8) -> Result<Option<Object<'a>>, DecodeError> {
    if r.clone().u8("object tag")? == NULL_REFERENCE {
        r.u8("object tag")?;
        return Ok(None);
    }
    tag(r, begin, "object tag", "the beginning of an object or the end of the stream")?;
    tag(r, begin, "type tag", "the beginning of a type")?;
    tag(r, NULL_REFERENCE, "type tag", "a null reference")?;
    let version = r.u32("object version")?;
    let min_reader = r.u32("object's minimum reader version")?;
    let at = r.clone();
    let name_len = r.u32("object name length")?;
    if name_len > MAX_NAME {
        let kind = DecodeErrorKind::TooLarge { value: name_len.into(), limit: MAX_NAME.into() };
        return Err(at.error("object name length", kind));
    }
    let name = r.bytes(usize::try_from(name_len).unwrap_or(usize::MAX), "object name")?;
    tag(r, END_OBJECT, "type tag", "the end of a type")?;
    Ok(Some(Object { version, min_reader, name }))
}

/// Reads the size of a block and the padding behind it.
fn block_size(r: &mut Reader<'_>, max_block: u32) -> Result<u32, DecodeError> {
    let at = r.clone();
    let size = r.u32("block size")?;
    let limit = max_block.min(i32::MAX.cast_unsigned());
    if size > limit {
        return Err(
            at.error("block size", DecodeErrorKind::TooLarge { value: size.into(), limit: limit.into() })
        );
    }
    r.bytes(padding(r.offset()), "block padding")?;
    Ok(size)
}

/// Bytes between the size of a block and its payload, for a size that ends at `offset`: the payload starts at a
/// stream offset divisible by 4.
pub(crate) fn padding(offset: u64) -> usize {
    usize::try_from(offset.wrapping_neg() % 4).unwrap_or(0)
}

fn tag(r: &mut Reader<'_>, tag: u8, what: &'static str, expected: &'static str) -> Result<(), DecodeError> {
    let at = r.clone();
    let value = r.u8(what)?;
    if value == tag {
        return Ok(());
    }
    Err(at.error(what, DecodeErrorKind::Unexpected { value: value.into(), expected }))
}
