//! The distinct stacks of a stream: most samples show one that was seen before.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use runtap_nettrace::{Event, Stack};

/// Distinct stacks of addresses, leaf first.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    list: Vec<Box<[u64]>>,
    /// Indexes into `list`, by the hash of the addresses.
    by_addresses: HashTable<u32>,
    hasher: RandomState,
    /// Index by the stream's stack id, which means something up to the next sequence point.
    by_id: Vec<Option<u32>>,
    scratch: Vec<u64>,
}

impl Stacks {
    /// The index of an event's stack.
    pub(crate) fn index(&mut self, event: &Event<'_>) -> u32 {
        let id = usize::try_from(event.stack_id).unwrap_or(usize::MAX);
        if let Some(Some(index)) = self.by_id.get(id) {
            return *index;
        }
        let index = self.intern(event.stack);
        if id < 1 << 20 {
            if self.by_id.len() <= id {
                self.by_id.resize(id + 1, None);
            }
            if let Some(slot) = self.by_id.get_mut(id) {
                *slot = Some(index);
            }
        }
        index
    }

    /// At a sequence point ids start anew.
    pub(crate) fn forget_ids(&mut self) {
        self.by_id.clear();
    }

    fn intern(&mut self, stack: Stack<'_>) -> u32 {
        self.scratch.clear();
        self.scratch.extend(stack.ips());
        let Self { list, by_addresses, hasher, scratch, .. } = self;
        let at = |index: &u32| {
            usize::try_from(*index).ok().and_then(|i| list.get(i)).map_or(&[][..], |stack| stack)
        };
        let hash = hasher.hash_one(scratch.as_slice());
        if let Some(index) = by_addresses.find(hash, |index| at(index) == scratch.as_slice()) {
            return *index;
        }
        let index = u32::try_from(list.len()).unwrap_or(u32::MAX);
        by_addresses.insert_unique(hash, index, |index| hasher.hash_one(at(index)));
        list.push(scratch.as_slice().into());
        index
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The addresses of a stack, leaf first.
    pub(crate) fn get(&self, index: usize) -> &[u64] {
        self.list.get(index).map_or(&[], |stack| stack)
    }
}
