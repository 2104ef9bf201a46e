//! Nettrace 6: the versions at the start, and block headers. Source: nettrace format, "V6, blocks".

use runtap_wire::{DecodeError, Reader};

use super::{Frame, ObjectKind, checked_size};
use crate::Error;

/// The major version that is read and written. Any minor version is accepted.
pub(crate) const MAJOR: u32 = 6;

/// The kinds of blocks.
pub(crate) mod kind {
    pub(crate) const END_OF_STREAM: u8 = 0;
    pub(crate) const TRACE: u8 = 1;
    pub(crate) const EVENT: u8 = 2;
    pub(crate) const METADATA: u8 = 3;
    pub(crate) const SEQUENCE_POINT: u8 = 4;
    pub(crate) const STACK: u8 = 5;
    pub(crate) const THREAD: u8 = 6;
    pub(crate) const REMOVE_THREAD: u8 = 7;
    pub(crate) const LABEL_LIST: u8 = 8;
}

/// Returns the number of a kind of blocks; the number of the end marker if the kind has none.
pub(crate) fn kind_of(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Trace => kind::TRACE,
        ObjectKind::Event => kind::EVENT,
        ObjectKind::Metadata => kind::METADATA,
        ObjectKind::SequencePoint => kind::SEQUENCE_POINT,
        ObjectKind::Stack => kind::STACK,
        ObjectKind::Thread => kind::THREAD,
        ObjectKind::RemoveThread => kind::REMOVE_THREAD,
        ObjectKind::LabelList => kind::LABEL_LIST,
        ObjectKind::Unknown => kind::END_OF_STREAM,
    }
}

/// Reads the major and minor version, which follow the 0 that identifies this header.
pub(super) fn prelude(r: &mut Reader<'_>) -> Result<(), Error> {
    let version = r.u32("major version")?;
    if version != MAJOR {
        return Err(Error::Unsupported { version });
    }
    r.u32("minor version")?;
    Ok(())
}

/// Reads the header of a block.
pub(super) fn frame(r: &mut Reader<'_>, max_block: u32) -> Result<Frame, DecodeError> {
    let at = r.clone();
    let [a, b, c, kind] = r.array("block header")?;
    let size = u32::from_le_bytes([a, b, c, 0]);
    let kind = match kind {
        kind::END_OF_STREAM => return Ok(Frame::End),
        kind::TRACE => ObjectKind::Trace,
        kind::EVENT => ObjectKind::Event,
        kind::METADATA => ObjectKind::Metadata,
        kind::SEQUENCE_POINT => ObjectKind::SequencePoint,
        kind::STACK => ObjectKind::Stack,
        kind::THREAD => ObjectKind::Thread,
        kind::REMOVE_THREAD => ObjectKind::RemoveThread,
        kind::LABEL_LIST => ObjectKind::LabelList,
        _ => ObjectKind::Unknown,
    };
    let size = if kind == ObjectKind::Unknown {
        size
    } else {
        checked_size(at.offset(), "block size", size, max_block)?
    };
    Ok(Frame::Object { start: at.offset(), kind, version: MAJOR, size })
}
