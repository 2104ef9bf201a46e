//! All definitions of a stream, by id.

use std::sync::Arc;

use runtap_wire::DecodeErrorKind;

use super::Metadata;
use crate::Limits;
use crate::table::IdTable;

/// All definitions of a stream by id; the last one of an id counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct MetadataTable {
    /// Each with its size in memory, about. Shared, so that a copy of the table costs little.
    records: IdTable<(Arc<Metadata>, usize)>,
    bytes: usize,
}

impl MetadataTable {
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Metadata> {
        self.records.get(id).map(|(metadata, _)| &**metadata)
    }

    /// Adds a definition that took `size` bytes; the result says whether its id was defined before.
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

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
    }
}
