//! Sequence points, and the removal of threads. Source: nettrace format, "blocks" and "V6, blocks".

use runtap_wire::{DecodeError, Reader};

use crate::raw::Format;
use crate::{SequencePoint, ThreadSequences};

/// The flag of Nettrace 6 that reassigns thread indexes.
pub(crate) const FLUSH_THREADS: u32 = 1;
/// The flag of Nettrace 6 that reassigns metadata ids.
pub(crate) const FLUSH_METADATA: u32 = 2;

impl<'a> SequencePoint<'a> {
    /// Reads the payload of a sequence point.
    pub(crate) fn decode(r: &mut Reader<'a>, format: Format) -> Result<Self, DecodeError> {
        let timestamp = r.u64("time stamp")?;
        if format == Format::Nettrace6 {
            let flags = r.u32("sequence point flags")?;
            let count = r.u32("thread count")?;
            let start = r.rest();
            for _ in 0..count {
                r.varu64("thread index")?;
                r.varu32("sequence number")?;
            }
            let bytes = start.get(..start.len() - r.remaining()).unwrap_or_default();
            return Ok(Self { timestamp, flags, threads: ThreadSequences::variable(bytes, count) });
        }
        let count = u64::from(r.u32("thread count")?) * 12;
        let records = r.bytes(usize::try_from(count).unwrap_or(usize::MAX), "sequence numbers of threads")?;
        Ok(Self { timestamp, flags: 0, threads: ThreadSequences::fixed(records.as_chunks().0) })
    }
}

/// Reads a row of a block that removes threads: the index and the last sequence number.
pub(crate) fn removed_thread(r: &mut Reader<'_>) -> Result<(u64, u32), DecodeError> {
    Ok((r.varu64("thread index")?, r.varu32("sequence number")?))
}
