//! The `FastSerialization` envelope of `NetPerf` and Nettrace 4: object headers, block sizes.
//! Source: nettrace format, "first bytes" and "objects". Does not look into objects.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::{Format, Frame, Kind, checked_size};
use crate::{Error, TraceHeader};

/// First bytes of every Nettrace stream.
pub(crate) const MAGIC: &[u8; 8] = b"Nettrace";
/// The counted string that starts the `FastSerialization` part.
pub(crate) const SERIALIZER: &[u8; 24] = b"\x14\0\0\0!FastSerialization.1";

/// Tag: where an object would begin, the end of the stream; also the type of a type.
pub(crate) const NULL_REFERENCE: u8 = 1;
/// Tag: an object begins, in `NetPerf`.
pub(crate) const BEGIN_OBJECT: u8 = 4;
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

/// The name of a kind of objects in Nettrace 4; empty for one without a name.
pub(crate) fn name_of(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Trace => name::TRACE,
        Kind::Event => name::EVENT,
        Kind::Metadata => name::METADATA,
        Kind::Stack => name::STACK,
        Kind::SequencePoint => name::SEQUENCE_POINT,
        Kind::Thread | Kind::RemoveThread | Kind::LabelList | Kind::Unknown => &[],
    }
}

/// Longest object name that is read; the longest known one has 38 bytes.
const MAX_NAME: u32 = 255;

/// Reads the header of an object and the size of its payload.
pub(super) fn frame(r: &mut Reader<'_>, format: Format, max_block: u32) -> Result<Frame, Error> {
    let start = r.offset();
    let nettrace = format == Format::Nettrace4;
    let begin = if nettrace { BEGIN_PRIVATE_OBJECT } else { BEGIN_OBJECT };
    let Some(Object { version, min_reader, name }) = object(r, begin)? else {
        return Ok(Frame::End);
    };
    if name == name::TRACE {
        if nettrace && (version < TRACE_VERSION || min_reader > TRACE_VERSION) {
            return Err(Error::Unsupported { version });
        }
        return Ok(Frame::Object { start, kind: Kind::Trace, version, size: TraceHeader::SIZE });
    }
    let kind = match name {
        _ if min_reader > BLOCK_VERSION => Kind::Unknown,
        name::EVENT => Kind::Event,
        name::METADATA if nettrace => Kind::Metadata,
        name::STACK if nettrace => Kind::Stack,
        name::SEQUENCE_POINT if nettrace => Kind::SequencePoint,
        _ => Kind::Unknown,
    };
    let size = block_size(r, if kind == Kind::Unknown { u32::MAX } else { max_block })?;
    Ok(Frame::Object { start, kind, version, size })
}

/// Reads the header of the first object of a `NetPerf` stream, which tells the version.
pub(super) fn first_of_netperf(r: &mut Reader<'_>, format: &mut Format) -> Result<Frame, Error> {
    let start = r.offset();
    let (version, size) = match object(r, BEGIN_OBJECT) {
        Ok(Some(Object { version: 3, name: name::TRACE, .. })) => (3, TraceHeader::SIZE),
        Ok(Some(Object { version: version @ (1 | 2), name: name::NETPERF_FILE, .. })) => {
            *format = Format::NetPerf1;
            (version, TraceHeader::SIZE_V1)
        }
        Ok(Some(Object { version, name: name::TRACE | name::NETPERF_FILE, .. })) => {
            return Err(Error::Unsupported { version });
        }
        Err(error) if error.is_incomplete() => return Err(error.into()),
        // The serializer has other uses, heap dumps among them.
        _ => return Err(Error::NotNettrace),
    };
    Ok(Frame::Object { start, kind: Kind::Trace, version, size })
}

/// Reads the tag behind the payload of an object.
pub(super) fn end_of_object(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    tag(r, END_OBJECT, "object tag", "the end of an object")
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
    let size = checked_size(&at, size, max_block.min(i32::MAX.cast_unsigned()))?;
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
