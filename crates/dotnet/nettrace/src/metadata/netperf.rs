//! Definitions in `NetPerf` 1 and 2. Source: nettrace format, "NetPerf V1 and V2". (Version 3 uses those of Nettrace 4.)

use runtap_wire::{DecodeError, Reader};

use super::{Metadata, v4};
use crate::raw::Format;

impl Metadata {
    /// Reads a record of a `NetPerf` stream of this version, in an event at `offset`.
    pub(crate) fn decode_netperf(
        r: &mut Reader<'_>,
        format: Format,
        offset: u64,
        version: u32,
    ) -> Result<Self, DecodeError> {
        if format != Format::NetPerf1 {
            return Self::decode_v4(r);
        }
        // Offsets are 32-bit.
        let id = u32::try_from(offset & u64::from(u32::MAX)).unwrap_or(0);
        Self::decode_netperf1(r, id, version)
    }

    /// Reads a record. Its id, the stream offset of the event that contains it, is not encoded. Damage after the level loses
    /// only the fields.
    fn decode_netperf1(r: &mut Reader<'_>, id: u32, version: u32) -> Result<Self, DecodeError> {
        let mut metadata = Self::new("", 0, "");
        metadata.id = id;
        metadata.level = 0;
        if version == 1 {
            let guid = r.guid("provider GUID")?;
            metadata.provider = guid.to_string();
            metadata.provider_guid = Some(guid);
        } else {
            metadata.provider = r.utf16z("provider name")?.to_string();
        }
        metadata.event_id = r.u32("event id")?;
        metadata.version = r.u32("event version")?;
        let length = r.u32("length of the definition")?;
        if length == 0 {
            return Ok(metadata);
        }
        let mut r = r.sub(usize::try_from(length).unwrap_or(usize::MAX), "definition")?;
        metadata.event_id = r.u32("event id")?;
        metadata.name = r.utf16z("event name")?.to_string();
        metadata.keywords = r.u64("keywords")?;
        metadata.version = r.u32("event version")?;
        metadata.level = r.u32("event level")?;
        if !r.is_empty()
            && let Ok(fields) = v4::fields_v1(&mut r)
        {
            metadata.fields = fields;
        }
        Ok(metadata)
    }
}
