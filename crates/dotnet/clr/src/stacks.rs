//! Collects the distinct stacks of a stream.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use runtap_nettrace::Stack;

/// Distinct stacks of addresses, leaf first. All stacks must come from the events of one reader; other parts of the stream need
/// separate objects ([`Self::of_part`]).
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// The addresses of all stacks, concatenated.
    ips: Vec<u64>,
    /// The hash of each stack, and the end of its addresses; each stack starts where the previous one ends.
    list: Vec<(u64, usize)>,
    /// Indexes into `list`, by hash.
    by_hash: HashTable<u32>,
    hasher: RandomState,
    /// Indexes by definition, so that a deep stack is hashed once. A set ends with each redefined id.
    by_definition: HashMap<u64, u32, RandomState>,
    /// The index by the stream's stack id; [`NONE`] if unknown.
    by_id: Vec<u32>,
    /// The ids in that table. Clearing the table costs only as much as it contains.
    known_ids: Vec<usize>,
    /// The set of stacks that those ids belong to.
    epoch: u64,
    scratch: Vec<u64>,
}

/// The value for an unknown index.
const NONE: u32 = u32::MAX;
/// The approximate number of definitions that are cached, which exceeds the number between two sequence points.
const DEFINITIONS: usize = 1 << 16;

impl Stacks {
    /// Creates an object for the stacks of a part of the stream, for [`Self::join`].
    #[must_use]
    pub fn of_part(&self) -> Self {
        Self { hasher: self.hasher.clone(), ..Self::default() }
    }

    /// Returns the index of an event's stack, starting at 0.
    #[inline]
    pub fn index(&mut self, stack: Stack<'_>) -> u32 {
        let id = usize::try_from(stack.id()).unwrap_or(usize::MAX);
        match self.by_id.get(id) {
            Some(index) if *index != NONE && self.epoch == stack.epoch() => *index,
            _ => self.index_slow(stack, id),
        }
    }

    #[inline(never)]
    fn index_slow(&mut self, stack: Stack<'_>, id: usize) -> u32 {
        if self.epoch != stack.epoch() {
            self.forget_ids();
            self.epoch = stack.epoch();
        }
        let index = self.index_of_definition(stack);
        if id < 1 << 20 {
            if self.by_id.len() <= id {
                self.by_id.resize(id + 1, NONE);
            }
            if let Some(slot) = self.by_id.get_mut(id) {
                *slot = index;
                self.known_ids.push(id);
            }
        }
        index
    }

    fn index_of_definition(&mut self, stack: Stack<'_>) -> u32 {
        let Some(definition) = stack.definition() else { return self.intern(stack) };
        if let Some(index) = self.by_definition.get(&definition) {
            return *index;
        }
        if self.by_definition.len() >= DEFINITIONS {
            self.by_definition.clear();
        }
        let index = self.intern(stack);
        self.by_definition.insert(definition, index);
        index
    }

    fn forget_ids(&mut self) {
        for id in self.known_ids.drain(..) {
            if let Some(slot) = self.by_id.get_mut(id) {
                *slot = NONE;
            }
        }
    }

    fn intern(&mut self, stack: Stack<'_>) -> u32 {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend(stack.ips());
        let index = self.insert(self.hasher.hash_one(scratch.as_slice()), &scratch);
        self.scratch = scratch;
        index
    }

    /// Adds a stack of addresses, leaf first. Returns its index.
    pub(crate) fn add(&mut self, stack: &[u64]) -> u32 {
        self.insert(self.hasher.hash_one(stack), stack)
    }

    fn insert(&mut self, hash: u64, stack: &[u64]) -> u32 {
        if let Some(index) = self.by_hash.find(hash, |index| self.get(place(*index)) == stack) {
            return *index;
        }
        let Self { ips, list, by_hash, .. } = self;
        let index = u32::try_from(list.len()).unwrap_or(NONE);
        ips.extend_from_slice(stack);
        list.push((hash, ips.len()));
        by_hash.insert_unique(hash, index, |index| list.get(place(*index)).map_or(0, |(hash, _)| *hash));
        index
    }

    /// Adds the stacks of the next part. Returns the index here of each of them.
    pub fn join(&mut self, next: &Self) -> Vec<u32> {
        // Readers of other parts number their epochs and definitions differently.
        self.forget_ids();
        self.by_definition.clear();
        (0..next.len())
            .map(|index| self.insert(next.list.get(index).map_or(0, |(hash, _)| *hash), next.get(index)))
            .collect()
    }

    /// Returns the number of stacks.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the addresses of a stack, leaf first.
    pub fn get(&self, index: usize) -> &[u64] {
        let Some((_, end)) = self.list.get(index) else { return &[] };
        let start = index.checked_sub(1).and_then(|before| self.list.get(before)).map_or(0, |(_, end)| *end);
        self.ips.get(start..*end).unwrap_or_default()
    }
}

fn place(index: u32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use runtap_nettrace::{EventToWrite, Metadata, Reader, StreamItem, TraceHeader, Version, Writer};

    use super::*;

    /// Defines a stack with this id, without frames, in a block of Nettrace 6.
    fn empty_stack(id: u8) -> Vec<u8> {
        [&[12, 0, 0, 5][..], &[id, 0, 0, 0], &[1, 0, 0, 0], &[0; 4]].concat()
    }

    #[test]
    fn a_stack_is_hashed_once_even_if_others_are_redefined() {
        let mut writer = Writer::with_version(&TraceHeader::new(0, 0, 1), Version::Nettrace6);
        let metadata_id = writer.define_event(&Metadata::new("P", 1, "E")).unwrap();
        let mut bytes = Vec::new();
        for timestamp in 0..10 {
            let stack = [[1, 2, 3], [4, 5, 6]][usize::from(timestamp == 9)];
            writer
                .event(&EventToWrite { metadata_id, timestamp, stack: &stack, ..Default::default() })
                .unwrap();
            writer.flush();
            bytes.extend(writer.take_output());
            bytes.extend(empty_stack(100));
        }
        bytes.extend(writer.finish());
        let mut reader = Reader::new();
        reader.feed(&bytes);
        reader.finish();
        let (mut stacks, mut epochs) = (Stacks::default(), Vec::new());
        while let Some(item) = reader.next().unwrap() {
            let StreamItem::Event(event) = item else { continue };
            epochs.push(event.stack.epoch());
            stacks.scratch.clear();
            let index = stacks.index(event.stack);
            let ips: Vec<u64> = event.stack.ips().collect();
            assert_eq!(stacks.get(usize::try_from(index).unwrap()), ips);
            assert_eq!(stacks.scratch.is_empty(), !matches!(event.timestamp, 0 | 9), "{}", event.timestamp);
        }
        epochs.dedup();
        assert!(epochs.len() >= 9, "{epochs:?}");
        assert_eq!(stacks.len(), 2);
    }
}
