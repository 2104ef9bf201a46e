//! From addresses to objects. A page has a bit for each address at which an object can start; the number of bits before that of
//! an address is the place of its object.

use crate::ObjectId;
use crate::dense::{Map, small};

/// The greatest alignment of addresses that is used, as a base-2 logarithm.
const MAX_ALIGNMENT: u32 = 6;
/// The number of addresses per page, as a base-2 logarithm.
const PAGE_BITS: u32 = 9;
const WORDS: usize = 1 << (PAGE_BITS - u64::BITS.trailing_zeros());
/// The number of pages per region, as a base-2 logarithm.
const REGION_BITS: u32 = 6;
/// The place of no object, and the position of no page.
const NONE: u32 = u32::MAX;

/// The addresses at which objects start.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// A bit for each address.
    bits: u64,
    /// The number of objects before those of this word.
    before: u32,
}

/// The positions of the pages of a region. A reference is often to the same region, and the regions of a large heap are few.
type Region = [u32; 1 << REGION_BITS];

/// Finds objects by address. Takes 128 bytes a page, which has 4 KiB if objects are aligned to 8 bytes, 260 bytes a region,
/// and 4 bytes an object if objects are not in the order of pages.
#[derive(Debug, Default)]
pub(crate) struct AddressIndex {
    /// The number of low bits that are 0 in all addresses.
    alignment: u32,
    region_positions: Map<u64, u32>,
    regions: Vec<Region>,
    pages: Vec<[Word; WORDS]>,
    address_count: usize,
    /// The object of each place. Empty if that is the place.
    objects: Vec<ObjectId>,
}

/// The region that was looked up last, with its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor(u64, u32);

impl Default for Cursor {
    fn default() -> Self {
        Self(u64::MAX, NONE)
    }
}

impl AddressIndex {
    /// Creates an index of objects, whose positions are their numbers. The first object at an address is found.
    pub(crate) fn new(addresses: &[u64]) -> Self {
        let any_bits = addresses.iter().fold(0, |all, address| all | address);
        let alignment = any_bits.trailing_zeros().min(MAX_ALIGNMENT);
        let mut index = Self { alignment, ..Self::default() };
        let mut cursor = Cursor::default();
        for address in addresses {
            let unit = address >> alignment;
            let position = index.page_of(unit, &mut cursor);
            let (word, bit) = place(unit);
            if let Some(word) = index.pages.get_mut(position).and_then(|page| page.get_mut(word)) {
                word.bits |= bit;
            }
        }
        let mut count = 0;
        for word in index.pages.iter_mut().flatten() {
            word.before = count;
            count += word.bits.count_ones();
        }
        index.address_count = count as usize;
        index.assign(addresses);
        index
    }

    /// Returns the position of a page, which may be new.
    fn page_of(&mut self, unit: u64, cursor: &mut Cursor) -> usize {
        let region = unit >> (PAGE_BITS + REGION_BITS);
        if region != cursor.0 {
            let new = small(self.regions.len());
            let position = *self.region_positions.entry(region).or_insert(new);
            if position == new {
                self.regions.push([NONE; 1 << REGION_BITS]);
            }
            *cursor = Cursor(region, position);
        }
        let pages = self.regions.get_mut(cursor.1 as usize);
        let Some(page) = pages.and_then(|pages| pages.get_mut(page_in_region(unit))) else {
            return usize::MAX;
        };
        if *page == NONE {
            *page = small(self.pages.len());
            self.pages.push([Word::default(); WORDS]);
        }
        *page as usize
    }

    /// Assigns objects to places.
    fn assign(&mut self, addresses: &[u64]) {
        let mut cursor = Cursor::default();
        let mut places = (0..).zip(addresses);
        let is_in_order =
            |(object, address): (usize, &u64)| self.place_of(*address, &mut cursor) == Some(object);
        if self.address_count == addresses.len() && places.all(is_in_order) {
            return;
        }
        let mut objects = vec![NONE; self.address_count];
        for (object, address) in (0..).zip(addresses) {
            if let Some(place) = self.place_of(*address, &mut cursor)
                && let Some(known @ &mut NONE) = objects.get_mut(place)
            {
                *known = object;
            }
        }
        self.objects = objects;
    }

    /// Returns the number of different addresses.
    pub(crate) fn address_count(&self) -> usize {
        self.address_count
    }

    /// Returns the first object at this address.
    #[inline]
    pub(crate) fn find(&self, address: u64, cursor: &mut Cursor) -> Option<ObjectId> {
        let place = self.place_of(address, cursor)?;
        if self.objects.is_empty() { Some(small(place)) } else { self.objects.get(place).copied() }
    }

    #[inline]
    fn place_of(&self, address: u64, cursor: &mut Cursor) -> Option<usize> {
        let unit = address >> self.alignment;
        if unit << self.alignment != address {
            return None;
        }
        let region = unit >> (PAGE_BITS + REGION_BITS);
        if region != cursor.0 {
            *cursor = Cursor(region, *self.region_positions.get(&region)?);
        }
        let page = *self.regions.get(cursor.1 as usize)?.get(page_in_region(unit))?;
        let (word, bit) = place(unit);
        let word = self.pages.get(page as usize)?.get(word)?;
        let is_object = word.bits & bit != 0;
        is_object.then(|| (word.before + (word.bits & (bit - 1)).count_ones()) as usize)
    }
}

#[inline]
fn page_in_region(unit: u64) -> usize {
    low_bits(unit >> PAGE_BITS, REGION_BITS)
}

/// Returns the word of a page and the bit in the word.
#[inline]
fn place(unit: u64) -> (usize, u64) {
    let in_page = low_bits(unit, PAGE_BITS);
    (in_page / 64, 1 << (in_page % 64))
}

/// Returns at most 16 low bits.
#[inline]
fn low_bits(value: u64, count: u32) -> usize {
    let [low, high, ..] = value.to_le_bytes();
    usize::from(u16::from_le_bytes([low, high])) & ((1 << count) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_address_at_any_alignment() {
        for step in [1, 3, 8, 24, 4096, 1 << 40] {
            let addresses: Vec<u64> = (1..2000).rev().map(|n| n * step).chain([5 * step]).collect();
            let (index, mut cursor) = (AddressIndex::new(&addresses), Cursor::default());
            for (object, address) in (0..1999).zip(&addresses) {
                assert_eq!(index.find(*address, &mut cursor), Some(object), "{step}");
            }
            for other in [0, step * 2001, u64::MAX, 1 << 63] {
                assert_eq!(index.find(other, &mut cursor), None, "{step} {other}");
            }
            let expected = if step == 1 { Some(1997) } else { None };
            assert_eq!(index.find(step + 1, &mut cursor), expected);
        }
        assert_eq!(AddressIndex::new(&[]).find(0, &mut Cursor::default()), None);
    }
}
