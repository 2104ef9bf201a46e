//! Nettrace 6: the versions at the start and the headers of blocks. Source: nettrace format, "V6, blocks".

use runtap_wire::{DecodeError, Reader};

use super::{Frame, Kind, checked_size};
use crate::Error;

/// The version that is read and written. The minor one may be any.
pub(crate) const MAJOR: u32 = 6;

/// Kinds of blocks.
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

/// The number of a kind of blocks; that of the end for one without a number.
pub(crate) fn kind_of(kind: Kind) -> u8 {
    match kind {
        Kind::Trace => kind::TRACE,
        Kind::Event => kind::EVENT,
        Kind::Metadata => kind::METADATA,
        Kind::SequencePoint => kind::SEQUENCE_POINT,
        Kind::Stack => kind::STACK,
        Kind::Thread => kind::THREAD,
        Kind::RemoveThread => kind::REMOVE_THREAD,
        Kind::LabelList => kind::LABEL_LIST,
        Kind::Unknown => kind::END_OF_STREAM,
    }
}

/// Reads major and minor version, behind the 0 that tells such a header apart.
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
        kind::TRACE => Kind::Trace,
        kind::EVENT => Kind::Event,
        kind::METADATA => Kind::Metadata,
        kind::SEQUENCE_POINT => Kind::SequencePoint,
        kind::STACK => Kind::Stack,
        kind::THREAD => Kind::Thread,
        kind::REMOVE_THREAD => Kind::RemoveThread,
        kind::LABEL_LIST => Kind::LabelList,
        _ => Kind::Unknown,
    };
    let size = if kind == Kind::Unknown { size } else { checked_size(&at, size, max_block)? };
    Ok(Frame::Object { start: at.offset(), kind, version: MAJOR, size })
}
