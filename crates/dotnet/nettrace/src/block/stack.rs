//! `StackBlock`: call stacks by id, valid until the next sequence point.
//! Source: nettrace format, "blocks". Does not resolve addresses.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use crate::table::IdTable;

/// The approximate memory of an id in bytes.
pub(super) const ID_OVERHEAD: usize = 24;

/// The stacks of one epoch, that is, between two sequence points.
#[derive(Debug, Clone, Default)]
pub(crate) struct StackTable {
    /// The payloads of all blocks of the epoch, concatenated.
    arena: Vec<u8>,
    /// The size of the arenas of all earlier epochs in bytes. The number of a definition is its position in all arenas.
    earlier_bytes: u64,
    /// The position of each stack in the arena: (start, length).
    places: IdTable<(u32, u32)>,
    epoch: u64,
    pointer_size: u32,
    /// The number of stacks defined in all epochs.
    defined: u64,
}

impl StackTable {
    /// Sets the size of the pointers in stacks: 4 or 8 bytes.
    pub(crate) fn set_pointer_size(&mut self, bytes: u32) {
        self.pointer_size = bytes;
    }

    /// Sets the index of this part of the stream, so that its epochs and definitions get numbers that no other part uses.
    pub(crate) fn set_part(&mut self, index: u64) {
        // Enough for all redefinitions of a part, and for its bytes.
        (self.epoch, self.earlier_bytes) = (index << 32, index << 40);
    }

    /// Resets the number of defined stacks.
    pub(crate) fn reset_defined(&mut self) {
        self.defined = 0;
    }

    /// Adds to the number of defined stacks.
    pub(crate) fn add_defined(&mut self, stacks: u64) {
        self.defined += stacks;
    }

    /// Returns the number of stacks that were defined.
    pub(crate) fn defined(&self) -> u64 {
        self.defined
    }

    /// Handles a sequence point: ids are reassigned after it.
    pub(crate) fn next_epoch(&mut self) {
        self.earlier_bytes += self.arena.len() as u64;
        self.arena.clear();
        self.places.clear();
        self.epoch += 1;
    }

    /// Adds a block. After an error, the stacks before the damage stay in the table.
    pub(crate) fn add_block(&mut self, r: &mut Reader<'_>, max_bytes: usize) -> Result<(), DecodeError> {
        let mut id = r.u32("first stack id")?;
        let count = r.u32("stack count")?;
        let base = self.arena.len();
        let max_bytes = max_bytes.min(usize::try_from(u32::MAX).unwrap_or(usize::MAX));
        if base + r.remaining() > max_bytes {
            let (value, limit) = ((base + r.remaining()) as u64, max_bytes as u64);
            return Err(
                r.error("stacks since the last sequence point", DecodeErrorKind::TooLarge { value, limit })
            );
        }
        let start = r.offset();
        self.arena.extend_from_slice(r.rest());
        for _ in 0..count {
            let length = r.u32("stack length")?;
            // Below the limit that was just checked.
            let place = u32::try_from(base as u64 + (r.offset() - start)).unwrap_or(u32::MAX);
            r.bytes(usize::try_from(length).unwrap_or(usize::MAX), "stack")?;
            // A stack without frames needs memory, too.
            let held = self.arena.len() + self.places.len() * ID_OVERHEAD;
            if held > max_bytes {
                let kind = DecodeErrorKind::TooLarge { value: held as u64, limit: max_bytes as u64 };
                return Err(r.error("stacks since the last sequence point", kind));
            }
            self.defined += 1;
            if self.places.insert(id, (place, length)).is_some() {
                // A caller that remembers stacks by epoch and id must not mistake the old stack for the new one.
                self.epoch += 1;
            }
            id = id.wrapping_add(1);
        }
        Ok(())
    }

    pub(crate) fn is_defined(&self, id: u32) -> bool {
        self.places.get(id).is_some()
    }

    /// Returns a stack by its id, which need not be defined.
    #[inline]
    pub(crate) fn stack(&self, id: u32) -> Stack<'_> {
        Stack { table: self, id, inline: None }
    }

    /// Returns a stack that is part of the event.
    #[inline]
    pub(crate) fn inline_stack<'a>(&'a self, bytes: &'a [u8]) -> Stack<'a> {
        Stack { table: self, id: u32::MAX, inline: Some(bytes) }
    }
}

/// The call stack of an event: instruction pointers from the leaf to the root. The stack is looked up only when one of
/// the methods is called.
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    table: &'a StackTable,
    id: u32,
    /// The stack itself, if it is part of the event.
    inline: Option<&'a [u8]>,
}

impl<'a> Stack<'a> {
    /// Returns the id in the stream, unique only within [`Self::epoch`]. `u32::MAX` in `NetPerf`, where stacks have no ids.
    #[inline]
    pub fn id(self) -> u32 {
        self.id
    }

    /// Returns the number of the definition of this stack. The number is unique in the stream, so it stays valid after the
    /// [epoch](Self::epoch) has ended. `None` if the id is not defined.
    pub fn definition(self) -> Option<u64> {
        let (start, _) = self.table.places.get(self.id)?;
        self.inline.is_none().then(|| self.table.earlier_bytes + u64::from(*start))
    }

    /// Returns the number of the set of stacks that the id belongs to. Two events with equal epoch and id, other than
    /// `u32::MAX`, have equal stacks.
    #[inline]
    pub fn epoch(self) -> u64 {
        self.table.epoch
    }

    /// Returns the encoded stack. `None` if the stream does not define the id.
    #[inline]
    pub fn defined_bytes(self) -> Option<&'a [u8]> {
        if self.inline.is_some() {
            return self.inline;
        }
        let (start, length) = *self.table.places.get(self.id)?;
        let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
        self.table.arena.get(start..)?.get(..length)
    }

    /// Returns the encoded stack: little-endian pointers of the target's size. Empty for an event without a stack.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.defined_bytes().unwrap_or_default()
    }

    /// Returns whether the event has no stack, or one that the stream does not define.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bytes().is_empty()
    }

    /// Returns the instruction pointers from the leaf to the root, widened to 64 bits.
    #[inline]
    pub fn ips(self) -> Ips<'a> {
        if self.table.pointer_size == 4 {
            let (pointers, _rest) = self.bytes().as_chunks();
            Ips { pointers32: pointers.iter(), pointers64: [].iter() }
        } else {
            let (pointers, _rest) = self.bytes().as_chunks();
            Ips { pointers32: [].iter(), pointers64: pointers.iter() }
        }
    }
}

impl std::fmt::Debug for Stack<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.ips().map(|ip| format!("{ip:#x}"))).finish()
    }
}

/// An iterator over the instruction pointers of a [`Stack`], leaf first.
#[derive(Debug, Clone)]
pub struct Ips<'a> {
    // One of the two slices is empty.
    pointers32: std::slice::Iter<'a, [u8; 4]>,
    pointers64: std::slice::Iter<'a, [u8; 8]>,
}

impl Iterator for Ips<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match self.pointers64.next() {
            Some(ip) => Some(u64::from_le_bytes(*ip)),
            None => self.pointers32.next().map(|ip| u64::from(u32::from_le_bytes(*ip))),
        }
    }

    /// Skips in constant time.
    fn nth(&mut self, n: usize) -> Option<u64> {
        if self.pointers64.len() > 0 {
            return self.pointers64.nth(n).map(|ip| u64::from_le_bytes(*ip));
        }
        self.pointers32.nth(n).map(|ip| u64::from(u32::from_le_bytes(*ip)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.pointers64.len() + self.pointers32.len();
        (n, Some(n))
    }
}

impl DoubleEndedIterator for Ips<'_> {
    fn next_back(&mut self) -> Option<u64> {
        match self.pointers64.next_back() {
            Some(ip) => Some(u64::from_le_bytes(*ip)),
            None => self.pointers32.next_back().map(|ip| u64::from(u32::from_le_bytes(*ip))),
        }
    }
}

impl ExactSizeIterator for Ips<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: [u8; 28] =
        [5, 0, 0, 0, 2, 0, 0, 0, 12, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0, 0, 0x80, 0, 0, 0, 0];

    fn table(pointer_size: u32) -> StackTable {
        let mut table = StackTable::default();
        table.set_pointer_size(pointer_size);
        table.add_block(&mut Reader::new(&BLOCK), 1000).unwrap();
        table
    }

    #[test]
    fn pointers_of_both_sizes() {
        let (narrow, wide) = (table(4), table(8));
        let ips: Vec<u64> = narrow.stack(5).ips().collect();
        assert_eq!(ips, [0x0403_0201, 0x0807_0605, 0x8000_00ff]);
        assert_eq!(narrow.stack(5).ips().next_back(), Some(0x8000_00ff));
        for skipped in 0..5 {
            for table in [&narrow, &wide] {
                let rest: Vec<u64> = table.stack(5).ips().skip(skipped).collect();
                let mut all: Vec<u64> = table.stack(5).ips().collect();
                assert_eq!(rest, all.split_off(skipped.min(all.len())));
            }
        }
        assert_eq!(
            wide.stack(5).ips().collect::<Vec<_>>(),
            [0x0807_0605_0403_0201],
            "an odd rest is left out"
        );
        assert_eq!(wide.stack(5).ips().len(), 1);
        assert_eq!(wide.stack(5).bytes().len(), 12);
        assert!(wide.stack(6).is_empty() && wide.stack(6).defined_bytes().is_some());
        assert!(wide.stack(7).is_empty() && wide.stack(7).defined_bytes().is_none());
    }

    #[test]
    fn epochs_end_at_sequence_points_and_at_redefinitions() {
        let mut table = table(8);
        let kept = table.stack(6).definition();
        assert_eq!(table.stack(5).epoch(), 0);
        table.add_block(&mut Reader::new(&BLOCK), 1000).unwrap();
        assert_ne!(table.stack(5).epoch(), 0);
        let (before, defined) = (table.stack(5).epoch(), table.stack(6).definition());
        assert!(kept.is_some() && defined > kept);
        // Another id that is redefined.
        table.add_block(&mut Reader::new(&[5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), 1000).unwrap();
        assert_ne!(table.stack(6).epoch(), before);
        assert_eq!(table.stack(6).definition(), defined);
        let before = table.stack(5).epoch();
        table.next_epoch();
        assert_eq!(table.stack(6).definition(), None);
        assert_ne!(table.stack(5).epoch(), before);
        assert!(table.stack(5).defined_bytes().is_none());
        assert_eq!(table.defined(), 5);
    }

    #[test]
    fn damage_and_limits() {
        let mut table = StackTable::default();
        let error = table.add_block(&mut Reader::at(&BLOCK[..26], 100), 1000).unwrap_err();
        assert_eq!(error.to_string(), "stack length at offset 124: needs 4 bytes, 2 are left");
        assert_eq!(table.stack(5).bytes().len(), 12, "what came before the damage stays");
        let error = table.add_block(&mut Reader::new(&BLOCK), 30).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::TooLarge { value: 38, limit: 30 });
        let huge = [1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(table.add_block(&mut Reader::new(&huge), 1000).unwrap_err().field, "stack");
    }
}
