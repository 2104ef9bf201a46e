//! Maps from machine code to IL (`MethodILToNativeMap` events).

use runtap_wire::{DecodeError, Reader};

use super::{RUNDOWN, RUNTIME};

/// A position that belongs to no instruction of the IL.
const NO_MAPPING: u32 = u32::MAX;
const PROLOG: u32 = u32::MAX - 1;
const EPILOG: u32 = u32::MAX - 2;

/// The map of the code of one method. Layout: `u64 methodId, u64 rejitId, u8 extent, u16 count, u32 il[count], u32 native[count], u16
/// clrInstance, [v1] u64 ilVersionId`. The rundown sends it immediately before the event about that code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IlMapEvent {
    /// Identifies the method while it is loaded.
    pub method_id: u64,
    /// The number of this version of the method if profilers replaced it. 0 for the original.
    pub rejit_id: u64,
    /// The map.
    pub map: IlMap,
}

/// The positions in machine code and IL that correspond, sorted by the former.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IlMap(Vec<(u32, Option<u32>)>);

impl IlMapEvent {
    /// Decodes an event of `provider` with id `id`. Returns `None` if it is not such an event.
    ///
    /// # Errors
    /// Returns the offset in the payload and the field if the payload is too short.
    pub fn decode(provider: &str, id: u32, payload: &[u8]) -> Result<Option<Self>, DecodeError> {
        if !matches!((provider, id), (RUNTIME, 190) | (RUNDOWN, 149 | 150)) {
            return Ok(None);
        }
        let mut r = Reader::new(payload);
        let method_id = r.u64("MethodID")?;
        let rejit_id = r.u64("ReJITID")?;
        r.u8("MethodExtent")?;
        let count = usize::from(r.u16("CountOfMapEntries")?);
        // A payload is at most 64 KiB long, so an invalid number fails here.
        let il: Vec<u8> = r.bytes(count * 4, "ILOffsets")?.to_vec();
        let native = r.bytes(count * 4, "NativeOffsets")?;
        let numbers = |bytes: &[u8]| -> Vec<u32> {
            bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
        };
        let il = numbers(&il).into_iter().map(|il| Some(il).filter(|il| !is_special(*il)));
        let mut map: Vec<(u32, Option<u32>)> = numbers(native).into_iter().zip(il).collect();
        map.sort_unstable();
        Ok(Some(Self { method_id, rejit_id, map: IlMap(map) }))
    }
}

fn is_special(il: u32) -> bool {
    matches!(il, NO_MAPPING | PROLOG | EPILOG)
}

impl IlMap {
    /// Returns the position in the IL for a position in the machine code. `None` if the code there belongs to no instruction.
    pub fn il_offset(&self, native: u32) -> Option<u32> {
        let after = self.0.partition_point(|(start, _)| *start <= native);
        self.0.get(after.checked_sub(1)?)?.1
    }
}

#[cfg(test)]
mod tests {
    use runtap_wire::Writer;

    use super::*;

    fn payload(entries: &[(u32, u32)]) -> Vec<u8> {
        let mut w = Writer::new();
        w.u64(0x10).u64(0).u8(0).u16(u16::try_from(entries.len()).unwrap());
        for (il, _) in entries {
            w.u32(*il);
        }
        for (_, native) in entries {
            w.u32(*native);
        }
        w.u16(0).u64(0);
        w.into_bytes()
    }

    #[test]
    fn unsorted_entries_are_found_and_special_ones_have_no_position() {
        let bytes = payload(&[(PROLOG, 0), (0, 17), (8, 40), (EPILOG, 60), (12, 30), (NO_MAPPING, 70)]);
        let event = IlMapEvent::decode(RUNDOWN, 150, &bytes).unwrap().unwrap();
        assert_eq!((event.method_id, event.rejit_id), (0x10, 0));
        let at = |native| event.map.il_offset(native);
        assert_eq!(
            [0, 16, 17, 29, 30, 45, 60, 99].map(at),
            [None, None, Some(0), Some(0), Some(12), Some(8), None, None]
        );
        assert_eq!(IlMap::default().il_offset(0), None);
    }

    #[test]
    fn truncated_payloads_report_the_offset() {
        let bytes = payload(&[(0, 0), (4, 9)]);
        for n in 0..bytes.len() - 10 {
            let error = IlMapEvent::decode(RUNTIME, 190, &bytes[..n]).unwrap_err();
            assert!(error.is_incomplete() && error.offset <= n as u64, "{error}");
        }
        assert_eq!(IlMapEvent::decode(RUNDOWN, 144, &[]).unwrap(), None);
    }
}
