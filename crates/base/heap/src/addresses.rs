//! From addresses to objects. A page has a bit for each address at which an object can start; the number of bits before that of
//! an address is the place of its object.

use crate::ObjectId;
use crate::dense::{Map, small, starts};

/// The greatest alignment of addresses that is used, as a base-2 logarithm.
const MAX_ALIGNMENT: u32 = 6;
/// The number of addresses per page, as a base-2 logarithm.
const PAGE_BITS: u32 = 9;
const WORDS: usize = 1 << (PAGE_BITS - u64::BITS.trailing_zeros());
/// The place of no object.
const NONE: ObjectId = u32::MAX;

/// Finds objects by address. Takes 4 bytes an object and about 90 bytes a page, which has 4 KiB if objects are aligned to
/// 8 bytes.
#[derive(Debug)]
pub(crate) struct AddressIndex {
    /// The number of low bits that are 0 in all addresses.
    alignment: u32,
    pages: Map<u64, u32>,
    bits: Vec<[u64; WORDS]>,
    /// Where the objects of each page start.
    starts: Vec<u32>,
    objects: Vec<ObjectId>,
    /// The last page that was looked up, with its position: references are often to the neighborhood.
    last: (u64, u32),
}

impl AddressIndex {
    /// Creates an index of objects, whose positions are their numbers. The first object at an address is found.
    pub(crate) fn new(addresses: &[u64]) -> Self {
        let any_bits = addresses.iter().fold(0, |all, address| all | address);
        let alignment = any_bits.trailing_zeros().min(MAX_ALIGNMENT);
        let (pages, bits, last) = (Map::default(), Vec::new(), (u64::MAX, 0));
        let mut index = Self { alignment, pages, bits, starts: Vec::new(), objects: Vec::new(), last };
        for address in addresses {
            let unit = address >> alignment;
            let page = unit >> PAGE_BITS;
            if page != index.last.0 {
                let new = small(index.bits.len());
                let position = *index.pages.entry(page).or_insert(new);
                if position == new {
                    index.bits.push([0; WORDS]);
                }
                index.last = (page, position);
            }
            let (word, bit) = place(unit);
            if let Some(word) = index.bits.get_mut(index.last.1 as usize).and_then(|page| page.get_mut(word))
            {
                *word |= bit;
            }
        }
        let counts = index.bits.iter().map(|page| page.iter().map(|word| word.count_ones()).sum());
        index.starts = starts(counts.collect());
        index.objects = vec![NONE; index.starts.last().copied().unwrap_or(0) as usize];
        for (object, address) in (0..).zip(addresses) {
            if let Some(place) = index.position(*address)
                && let Some(known @ &mut NONE) = index.objects.get_mut(place)
            {
                *known = object;
            }
        }
        index
    }

    /// Returns the number of different addresses.
    pub(crate) fn address_count(&self) -> usize {
        self.objects.len()
    }

    /// Returns the first object at this address.
    #[inline]
    pub(crate) fn find(&mut self, address: u64) -> Option<ObjectId> {
        let position = self.position(address)?;
        self.objects.get(position).copied()
    }

    /// Returns the position of the object at this address.
    #[inline]
    fn position(&mut self, address: u64) -> Option<usize> {
        let unit = address >> self.alignment;
        if unit << self.alignment != address {
            return None;
        }
        let page = unit >> PAGE_BITS;
        if page != self.last.0 {
            self.last = (page, *self.pages.get(&page)?);
        }
        let words = self.bits.get(self.last.1 as usize)?;
        let (word, bit) = place(unit);
        let own = *words.get(word)?;
        if own & bit == 0 {
            return None;
        }
        let before: u32 = words.iter().take(word).map(|word| word.count_ones()).sum();
        let before = before + (own & (bit - 1)).count_ones();
        Some((*self.starts.get(self.last.1 as usize)? + before) as usize)
    }
}

/// Returns the word of a page and the bit in the word.
#[inline]
fn place(unit: u64) -> (usize, u64) {
    let [low, high, ..] = unit.to_le_bytes();
    let in_page = usize::from(u16::from_le_bytes([low, high])) & ((1 << PAGE_BITS) - 1);
    (in_page / 64, 1 << (in_page % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_address_at_any_alignment() {
        for step in [1, 3, 8, 24, 4096, 1 << 40] {
            let addresses: Vec<u64> = (1..2000).rev().map(|n| n * step).chain([5 * step]).collect();
            let mut index = AddressIndex::new(&addresses);
            for (object, address) in (0..1999).zip(&addresses) {
                assert_eq!(index.find(*address), Some(object), "{step}");
            }
            for other in [0, step * 2001, u64::MAX, 1 << 63] {
                assert_eq!(index.find(other), None, "{step} {other}");
            }
            assert_eq!(index.find(step + 1), if step == 1 { Some(1997) } else { None });
        }
        assert_eq!(AddressIndex::new(&[]).find(0), None);
    }
}
