//! All definitions of a stream, by id.

use std::sync::Arc;

use runtap_wire::DecodeErrorKind;

use super::Metadata;
use crate::Limits;
use crate::table::IdTable;

/// All definitions of a stream by id; the last definition of an id is used.
#[derive(Debug, Clone, Default)]
pub(crate) struct MetadataTable {
    /// Each definition with its approximate size in memory, shared to make copies of the table cheap.
    records: IdTable<(Arc<Metadata>, usize)>,
    bytes: usize,
}

impl MetadataTable {
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Metadata> {
        self.records.get(id).map(|(metadata, _)| &**metadata)
    }

    /// Adds a definition with an encoded size of `size` bytes. The result tells whether its id was defined before.
    pub(crate) fn insert(
        &mut self,
        metadata: Metadata,
        size: usize,
        limits: &Limits,
    ) -> Result<bool, DecodeErrorKind> {
        let size = size + metadata.overhead();
        let known = self.get(metadata.id).is_some();
        for (value, limit) in [
            (self.records.len() + usize::from(!known), limits.max_metadata),
            (self.bytes + size, limits.max_metadata_bytes),
        ] {
            if value > limit {
                return Err(DecodeErrorKind::TooLarge { value: value as u64, limit: limit as u64 });
            }
        }
        let old = self.records.insert(metadata.id, (Arc::new(metadata), size));
        self.bytes = self.bytes + size - old.map_or(0, |(_, size)| size);
        Ok(known)
    }

    /// Removes all definitions.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
    }
}
