//! The `FastSerialization` envelope of `NetPerf` and Nettrace 4: object headers and block sizes.
//! Source: nettrace format, "first bytes" and "objects".

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::{Format, Frame, ObjectKind, checked_size};
use crate::{Error, TraceHeader};

/// The first bytes of every Nettrace stream.
pub(crate) const MAGIC: &[u8; 8] = b"Nettrace";
/// The counted string that starts the `FastSerialization` part.
pub(crate) const SERIALIZER: &[u8; 24] = b"\x14\0\0\0!FastSerialization.1";

/// Tag: the end of the stream, in the place of an object; also the type of a type.
pub(crate) const NULL_REFERENCE: u8 = 1;
/// Tag: an object begins, in `NetPerf`.
pub(crate) const BEGIN_OBJECT: u8 = 4;
/// Tag: an object begins, in Nettrace.
pub(crate) const BEGIN_PRIVATE_OBJECT: u8 = 5;
/// Tag: an object, or its type, ends.
pub(crate) const END_OBJECT: u8 = 6;

/// The version of the Trace object, and the oldest reader that can read it.
pub(crate) const TRACE_VERSION: u32 = 4;
/// The version of blocks, and the oldest reader that can read them.
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

/// Returns the name of a kind of objects in Nettrace 4. Empty if the kind has no name.
pub(crate) fn name_of(kind: ObjectKind) -> &'static [u8] {
    match kind {
        ObjectKind::Trace => name::TRACE,
        ObjectKind::Event => name::EVENT,
        ObjectKind::Metadata => name::METADATA,
        ObjectKind::Stack => name::STACK,
        ObjectKind::SequencePoint => name::SEQUENCE_POINT,
        ObjectKind::Thread | ObjectKind::RemoveThread | ObjectKind::LabelList | ObjectKind::Unknown => &[],
    }
}

/// The longest object name that is accepted; the longest known one has 38 bytes.
const MAX_NAME: u32 = 255;

/// Reads the header of an object and the size of its payload.
/// `shift` is the number of additional bytes, modulo 4, that preceded this position when the stream was written.
pub(super) fn frame(r: &mut Reader<'_>, format: Format, max_block: u32, shift: u8) -> Result<Frame, Error> {
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
        return Ok(Frame::Object { start, kind: ObjectKind::Trace, version, size: TraceHeader::SIZE });
    }
    let kind = match name {
        _ if min_reader > BLOCK_VERSION => ObjectKind::Unknown,
        name::EVENT => ObjectKind::Event,
        name::METADATA if nettrace => ObjectKind::Metadata,
        name::STACK if nettrace => ObjectKind::Stack,
        name::SEQUENCE_POINT if nettrace => ObjectKind::SequencePoint,
        _ => ObjectKind::Unknown,
    };
    let size = block_size(r, if kind == ObjectKind::Unknown { u32::MAX } else { max_block }, shift)?;
    Ok(Frame::Object { start, kind, version, size })
}

/// Reads the header of the first object of a `NetPerf` stream, which determines the version.
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
        // The serializer is also used for other files, such as heap dumps.
        _ => return Err(Error::NotNettrace),
    };
    Ok(Frame::Object { start, kind: ObjectKind::Trace, version, size })
}

/// Returns whether `rest`, the bytes after the payload of an object, starts with the tag that ends the object and the tags
/// of another object or of the end of the stream. `None` if more bytes are needed. A stream that ends within these tags
/// counts as valid and truncated.
pub(crate) fn is_followed(rest: &[u8], format: Format, finished: bool) -> Option<bool> {
    let begin = begin_tag(format);
    let starts = |expected: &[u8]| rest.iter().zip(expected).all(|(a, b)| a == b);
    let (object, end) = ([END_OBJECT, begin, begin, NULL_REFERENCE], [END_OBJECT, NULL_REFERENCE]);
    if rest.len() >= object.len() || !(starts(&object) || starts(&end)) {
        return Some(starts(&object) || starts(&end));
    }
    (rest.len() == end.len() && starts(&end) || finished).then_some(true)
}

/// Returns the first three bytes of every object.
pub(crate) fn first_tags(format: Format) -> [u8; 3] {
    [begin_tag(format), begin_tag(format), NULL_REFERENCE]
}

fn begin_tag(format: Format) -> u8 {
    if format == Format::Nettrace4 { BEGIN_PRIVATE_OBJECT } else { BEGIN_OBJECT }
}

/// The result of checking whether an object starts at a position.
pub(crate) enum Candidate {
    /// No object starts here, or no valid tags follow it.
    No,
    /// More bytes are needed to decide.
    More,
    /// An object starts here, and blocks after it are aligned with this shift (see [`frame`]).
    Yes { shift: u8 },
}

/// Checks whether an object of a known kind starts at `bytes`, at `offset`, and is followed by valid tags. `known` is the
/// shift of the bytes read before; `None` if nothing was read, so that only the Trace object can be next.
pub(crate) fn candidate(
    bytes: &[u8],
    offset: u64,
    (format, known): (Format, Option<u8>),
    max_block: u32,
    finished: bool,
) -> Candidate {
    let unknown = if finished { Candidate::No } else { Candidate::More };
    let mut r = Reader::at(bytes, offset);
    let name = match object(&mut r, begin_tag(format)) {
        Ok(Some(object)) => object.name,
        Err(error) if error.is_incomplete() => return unknown,
        _ => return Candidate::No,
    };
    let position = bytes.len() - r.remaining();
    let Some(known) = known else {
        if name != name::TRACE {
            return Candidate::No;
        }
        let rest = bytes.get(position + TRACE_SIZE..);
        // The Trace object is the first object of every stream.
        let first = if format == Format::Nettrace4 { MAGIC.len() } else { 0 } + SERIALIZER.len();
        let shift = u8::try_from((first as u64).wrapping_sub(offset) % 4).unwrap_or(0);
        return match rest.and_then(|rest| is_followed(rest, format, finished)) {
            Some(true) => Candidate::Yes { shift },
            Some(false) => Candidate::No,
            None => unknown,
        };
    };
    let nettrace = format == Format::Nettrace4;
    let is_block = name == name::EVENT
        || nettrace && [name::METADATA, name::STACK, name::SEQUENCE_POINT].contains(&name);
    if !is_block {
        return Candidate::No;
    }
    let size = match r.u32("block size") {
        Ok(size) if size <= max_block => usize::try_from(size).unwrap_or(usize::MAX),
        Ok(_) => return Candidate::No,
        Err(_) => return unknown,
    };
    let mut needs_more = false;
    for shift in (0..4).map(|more| (known + more) % 4) {
        let pad = padding(r.offset() + u64::from(shift));
        if r.rest().iter().take(pad).any(|byte| *byte != 0) {
            continue;
        }
        match r.rest().get(pad.saturating_add(size)..).and_then(|rest| is_followed(rest, format, finished)) {
            Some(true) => return Candidate::Yes { shift },
            Some(false) => {}
            None => needs_more = true,
        }
    }
    if needs_more { unknown } else { Candidate::No }
}

/// [`TraceHeader::SIZE`] as `usize`.
const TRACE_SIZE: usize = 48;

/// Reads the tag after the payload of an object.
pub(super) fn end_of_object(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    tag(r, END_OBJECT, "object tag", "the end of an object")
}

/// The header of an object, before its data.
struct Object<'a> {
    /// The version of the object's layout.
    version: u32,
    /// The oldest version of a reader that can read the object.
    min_reader: u32,
    name: &'a [u8],
}

/// Reads the header of the next object, which starts with the tag `begin`. `None` at the end of the stream.
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

/// Reads the size of a block and the padding after it.
fn block_size(r: &mut Reader<'_>, max_block: u32, shift: u8) -> Result<u32, DecodeError> {
    let offset = r.offset();
    let size = r.u32("block size")?;
    let size = checked_size(offset, "block size", size, max_block.min(i32::MAX.cast_unsigned()))?;
    r.bytes(padding(r.offset() + u64::from(shift)), "block padding")?;
    Ok(size)
}

/// Returns the number of bytes between the size of a block, which ends at `offset`, and its payload, which starts at a
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
