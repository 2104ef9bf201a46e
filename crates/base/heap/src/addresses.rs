//! From addresses to objects: objects in groups by page, sorted within each.

use crate::ObjectId;
use crate::dense::{Map, at, set, small, starts};

/// The base-2 logarithm of the addresses per group.
const PAGE_BITS: u32 = 12;

/// Finds objects by address. Takes 4 bytes an object and 16 bytes a page.
#[derive(Debug)]
pub(crate) struct AddressIndex<'a> {
    addresses: &'a [u64],
    pages: Map<u64, u32>,
    /// Where the objects of each page start.
    starts: Vec<u32>,
    order: Vec<ObjectId>,
    /// The last page that was looked up: references are often to the neighborhood.
    last: (u64, u32),
}

impl<'a> AddressIndex<'a> {
    /// Creates an index of objects, whose positions are their numbers.
    pub(crate) fn new(addresses: &'a [u64]) -> Self {
        let mut pages: Map<u64, u32> = Map::default();
        let mut counts: Vec<u32> = Vec::new();
        let mut last = (u64::MAX, 0);
        let mut slot_of = |address: u64, counts: &mut Vec<u32>| {
            let page = address >> PAGE_BITS;
            if page != last.0 {
                let next = small(counts.len());
                let slot = *pages.entry(page).or_insert(next);
                if slot == next {
                    counts.push(0);
                }
                last = (page, slot);
            }
            last.1
        };
        for address in addresses {
            let slot = slot_of(*address, &mut counts);
            if let Some(count) = counts.get_mut(slot as usize) {
                *count += 1;
            }
        }
        let starts = starts(counts);
        let mut cursors = starts.clone();
        let mut order = vec![0; addresses.len()];
        for (object, address) in (0..).zip(addresses) {
            let slot = slot_of(*address, &mut cursors);
            if let Some(cursor) = cursors.get_mut(slot as usize) {
                set(&mut order, *cursor, object);
                *cursor += 1;
            }
        }
        for ends in starts.windows(2) {
            if let [start, end] = *ends
                && let Some(objects) = order.get_mut(start as usize..end as usize)
                && !objects.is_sorted_by_key(|object| at(addresses, *object))
            {
                objects.sort_unstable_by_key(|object| (at(addresses, *object), *object));
            }
        }
        Self { addresses, pages, starts, order, last: (u64::MAX, 0) }
    }

    /// Returns the first object at this address.
    #[inline]
    pub(crate) fn find(&mut self, address: u64) -> Option<ObjectId> {
        let page = address >> PAGE_BITS;
        if page != self.last.0 {
            self.last = (page, *self.pages.get(&page)?);
        }
        let slot = self.last.1;
        let (start, end) = (at(&self.starts, slot) as usize, at(&self.starts, slot + 1) as usize);
        let objects = self.order.get(start..end)?;
        let place = objects.partition_point(|object| at(self.addresses, *object) < address);
        objects.get(place).copied().filter(|object| at(self.addresses, *object) == address)
    }
}
