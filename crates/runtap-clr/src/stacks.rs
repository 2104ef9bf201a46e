//! The distinct stacks of a stream: most samples show one that was seen before.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use runtap_nettrace::Stack;

/// Distinct stacks of addresses, leaf first. Give it the stacks of one reader's events; those of other parts of the stream
/// have an object of their own ([`Self::of_part`]).
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// The addresses of all stacks, one stack after the other.
    ips: Vec<u64>,
    /// Hash of each stack, and where its addresses end; they begin where those before them end.
    list: Vec<(u64, usize)>,
    /// Indexes into `list`, by hash.
    by_hash: HashTable<u32>,
    hasher: RandomState,
    /// Index by the stream's stack id; [`NONE`] where it is not known.
    by_id: Vec<u32>,
    /// The ids that are known there: what follows a new set costs what the old one had.
    known_ids: Vec<usize>,
    /// Which set of stacks those ids are of.
    epoch: u64,
    scratch: Vec<u64>,
}

/// No index.
const NONE: u32 = u32::MAX;

impl Stacks {
    /// For the stacks of a part of the stream, which [`Self::join`] takes in later.
    #[must_use]
    pub fn of_part(&self) -> Self {
        Self { hasher: self.hasher.clone(), ..Self::default() }
    }

    /// The index of an event's stack. Indexes begin at 0.
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
        let index = self.intern(stack);
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

    /// Takes in the stacks of the next part; the index here of each of them.
    pub fn join(&mut self, next: &Self) -> Vec<u32> {
        // Readers of other parts number their epochs otherwise.
        self.forget_ids();
        (0..next.len())
            .map(|index| self.insert(next.list.get(index).map_or(0, |(hash, _)| *hash), next.get(index)))
            .collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The addresses of a stack by its index, leaf first.
    pub fn get(&self, index: usize) -> &[u64] {
        let Some((_, end)) = self.list.get(index) else { return &[] };
        let start = index.checked_sub(1).and_then(|before| self.list.get(before)).map_or(0, |(_, end)| *end);
        self.ips.get(start..*end).unwrap_or_default()
    }
}

fn place(index: u32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}
