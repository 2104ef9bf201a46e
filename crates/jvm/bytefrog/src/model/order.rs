//! The order of events by their sequence IDs.
//!
//! [`Window`] holds events that arrived too early, and decides when an event is lost. In versions 1 to 4, one
//! counter numbers the events of all threads, and data connections deliver them in any order: a displacement of
//! 3,153 has been measured on a single connection.
//!
//! The memory is that of the window, whatever arrives. An ID that is beyond the window makes it give up the oldest
//! IDs that it waits for.

use runtap_bytefrog_proto::Stamp;

/// The output of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ordered<T> {
    /// The next event, with its ID.
    Event(u64, T),
    /// This number of events before the next one is lost.
    Missing(u64),
}

/// The error for an event whose ID was already used or given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late;

/// A window that puts events in order. IDs have 32 bits on the wire and wrap around; here they have 64.
#[derive(Debug)]
pub(crate) struct Window<T> {
    /// The size, a power of two.
    size: usize,
    /// The events; empty until an event has to wait.
    slots: Vec<T>,
    /// A bit per slot: whether it holds an event.
    held: Vec<u64>,
    waiting: usize,
    next: u64,
}

impl<T: Copy + Default> Window<T> {
    /// Creates a window of this number of events, rounded up to a power of two of at least 64.
    pub(crate) fn new(size: usize) -> Self {
        let size = size.clamp(64, 1 << 24).next_power_of_two();
        Self { size, slots: Vec::new(), held: vec![0; size / 64], waiting: 0, next: 0 }
    }

    /// Returns the ID of the next event in order.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of events that wait for earlier ones.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the 64-bit ID of an event that has no room unless earlier IDs are given up.
    #[inline]
    pub(crate) fn beyond(&self, sequence: u64) -> Option<u64> {
        let ahead = sequence.wrapping_sub(self.next) & 0xffff_ffff;
        if ahead < self.size as u64 { None } else { self.beyond_or_before(sequence) }
    }

    #[cold]
    fn beyond_or_before(&self, sequence: u64) -> Option<u64> {
        // Ids of versions 1 to 4 have 32 bits.
        let id = u32::try_from(sequence & 0xffff_ffff).unwrap_or_default();
        self.extend(id).filter(|id| self.is_beyond(*id))
    }

    /// Returns whether the event with this 64-bit ID has no room.
    pub(crate) fn is_beyond(&self, id: u64) -> bool {
        id.saturating_sub(self.next) >= self.size as u64
    }

    /// Returns the ID of the first waiting event. The events before it have not arrived.
    pub(crate) fn first_held(&self) -> Option<u64> {
        (self.waiting > 0).then(|| self.first())
    }

    /// Extends an ID from the wire to 64 bits: the one closest to the expected ID. `None` if that would be before
    /// the first ID.
    pub(crate) fn extend(&self, id: u32) -> Option<u64> {
        let [.., a, b, c, d] = self.next.to_be_bytes();
        let distance = id.wrapping_sub(u32::from_be_bytes([a, b, c, d])).cast_signed();
        self.next.checked_add_signed(distance.into())
    }

    /// Offers an event, and emits the events that are in order now.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        at: &Stamp,
        event: T,
        mut emit: impl FnMut(Ordered<T>),
    ) -> Result<(), Late> {
        // The distance to the expected ID, modulo 2^32.
        let ahead = at.sequence.wrapping_sub(self.next) & 0xffff_ffff;
        if ahead == 0 {
            self.next += 1;
            emit(Ordered::Event(self.next - 1, event));
            if self.waiting > 0 {
                self.drain(&mut emit);
            }
            return Ok(());
        }
        if ahead >= self.size as u64 {
            return self.offer_outside(at.sequence, event, emit);
        }
        self.hold(self.next + ahead, event)
    }

    /// Stores an event that is inside of the window.
    #[inline]
    fn hold(&mut self, id: u64, event: T) -> Result<(), Late> {
        let (slot, word, bit) = self.place(id);
        let Some(held) = self.held.get_mut(word) else { return Err(Late) };
        if *held & bit != 0 {
            return Err(Late);
        }
        *held |= bit;
        if self.slots.is_empty() {
            self.slots = vec![T::default(); self.size];
        }
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = event;
        }
        self.waiting += 1;
        Ok(())
    }

    /// Offers an event that is late, or beyond the window.
    #[cold]
    fn offer_outside(&mut self, id: u64, event: T, mut emit: impl FnMut(Ordered<T>)) -> Result<(), Late> {
        // Ids of versions 1 to 4 have 32 bits.
        let id = u32::try_from(id & 0xffff_ffff).unwrap_or_default();
        let whole = match self.extend(id) {
            // The first of all events cannot be late, whatever ID its agent starts with.
            None if self.next == 0 && self.waiting == 0 => Some(id.into()),
            whole => whole,
        };
        let Some(id) = whole.filter(|id| *id >= self.next) else { return Err(Late) };
        while id - self.next >= self.size as u64 {
            // Give up no more than is needed to make room.
            let reach = id + 1 - self.size as u64;
            self.give_up(reach, &mut emit);
        }
        // The event may be the next one now.
        if id == self.next {
            self.next += 1;
            emit(Ordered::Event(id, event));
            self.drain(&mut emit);
            return Ok(());
        }
        self.hold(id, event)
    }

    /// Gives up the IDs before this one that have not arrived.
    pub(crate) fn give_up_before(&mut self, id: u64, mut emit: impl FnMut(Ordered<T>)) {
        while self.next < id {
            self.give_up(id, &mut emit);
        }
    }

    /// Emits all waiting events, with the gaps between them, and frees the memory: no more events are expected.
    pub(crate) fn flush(&mut self, mut emit: impl FnMut(Ordered<T>)) {
        while self.waiting > 0 {
            self.give_up(u64::MAX, &mut emit);
        }
        self.slots = Vec::new();
    }

    /// Advances to the first waiting event, or to `reach` if that is earlier, and then emits what is in order.
    fn give_up(&mut self, reach: u64, emit: &mut impl FnMut(Ordered<T>)) {
        let to = if self.waiting == 0 { reach } else { self.first().min(reach) };
        if to > self.next {
            emit(Ordered::Missing(to - self.next));
            self.next = to;
        }
        self.drain(emit);
    }

    /// Returns the first ID that is held. The window must not be empty.
    fn first(&self) -> u64 {
        let size = self.size as u64;
        let mut ahead = 0;
        while ahead < size {
            let (_, word, bit) = self.place(self.next + ahead);
            let held = self.held.get(word).copied().unwrap_or(0);
            // The bits of this word from this position on.
            let rest = held & !(bit - 1);
            let from = u64::from(bit.trailing_zeros());
            if rest != 0 {
                return self.next + ahead + u64::from(rest.trailing_zeros()) - from;
            }
            ahead += 64 - from;
        }
        self.next
    }

    #[inline]
    fn drain(&mut self, emit: &mut impl FnMut(Ordered<T>)) {
        while self.waiting > 0 {
            let (slot, word, bit) = self.place(self.next);
            let Some(held) = self.held.get_mut(word).filter(|held| **held & bit != 0) else { return };
            *held &= !bit;
            self.waiting -= 1;
            self.next += 1;
            let event = self.slots.get(slot).copied().unwrap_or_default();
            emit(Ordered::Event(self.next - 1, event));
        }
    }

    /// Returns the slot, word and bit of an ID.
    #[inline]
    fn place(&self, id: u64) -> (usize, usize, u64) {
        let slot = usize::try_from(id & (self.size as u64 - 1)).unwrap_or_default();
        (slot, slot / 64, 1 << (slot % 64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(size: usize, start: u64, ids: &[u64]) -> (Vec<Ordered<u64>>, usize) {
        let mut window = Window::new(size);
        window.next = start;
        let (mut out, mut late) = (Vec::new(), 0);
        for id in ids {
            let at = Stamp { sequence: id & 0xffff_ffff, ..Stamp::default() };
            late += usize::from(window.offer(&at, *id, |ordered| out.push(ordered)).is_err());
        }
        window.flush(|ordered| out.push(ordered));
        assert_eq!((window.waiting(), window.slots.capacity()), (0, 0));
        (out, late)
    }

    #[test]
    fn gaps_are_reported_and_repeated_ids_are_late() {
        let event = |id| Ordered::Event(id, id);
        assert_eq!(run(64, 0, &[1, 0, 2, 2, 0]), (vec![event(0), event(1), event(2)], 2));
        assert_eq!(run(64, 0, &[2, 0]), (vec![event(0), Ordered::Missing(1), event(2)], 0));
        // 70 is beyond the window while 1 is awaited.
        let far = run(64, 0, &[0, 5, 70]);
        let missing = Ordered::Missing;
        assert_eq!(far.0, [event(0), missing(4), event(5), missing(1), missing(63), event(70)]);
        // Nothing is held, so a jump takes constant time.
        let jump = run(64, 0, &[0, 2_000_000_000]);
        let missing: u64 =
            jump.0.iter().map(|ordered| if let Ordered::Missing(n) = ordered { *n } else { 0 }).sum();
        assert_eq!(missing, 1_999_999_999);
        assert_eq!(run(64, 0, &[0, u64::from(u32::MAX)]).1, 1);
    }

    #[test]
    fn an_agent_may_start_shortly_before_the_wrap() {
        let start = (1u64 << 32) - 2;
        let (out, late) = run(64, 0, &[start + 1, start, start + 2, start + 3]);
        let (mut missing, mut events) = (0, Vec::new());
        for ordered in out {
            match ordered {
                Ordered::Missing(count) => missing += count,
                Ordered::Event(id, _) => events.push(id),
            }
        }
        assert_eq!((missing, late), (start, 0));
        assert_eq!(events, [start, start + 1, start + 2, start + 3]);
    }

    #[test]
    fn ids_wrap() {
        let start = (1u64 << 32) - 2;
        let ids: Vec<u64> = [1, 0, 3, 2].map(|n| start + n).to_vec();
        let (out, late) = run(64, start, &ids);
        assert_eq!((out, late), ((0..4).map(|n| Ordered::Event(start + n, start + n)).collect(), 0));
    }

    proptest! {
        #[test]
        fn events_shuffled_within_the_window_come_out_in_order(
            keys in prop::collection::vec(0..50u64, 1..300), start in prop_oneof![Just(0), Just((1u64 << 32) - 100)]
        ) {
            let mut order: Vec<usize> = (0..keys.len()).collect();
            order.sort_by_key(|i| keys[*i] + *i as u64);
            let ids: Vec<u64> = order.iter().map(|i| start + *i as u64).collect();
            let (out, late) = run(64, start, &ids);
            prop_assert_eq!(late, 0);
            let expected: Vec<_> =
                (start..start + keys.len() as u64).map(|id| Ordered::Event(id, id)).collect();
            prop_assert_eq!(out, expected);
        }

        #[test]
        fn ids_always_ascend_and_each_event_is_emitted_or_late(ids in prop::collection::vec(0..400u64, 0..200)) {
            let (out, late) = run(64, 0, &ids);
            let (mut next, mut events) = (0, 0);
            for ordered in out {
                match ordered {
                    Ordered::Event(id, event) => {
                        prop_assert_eq!((id, event), (next, next));
                        next += 1;
                        events += 1;
                    }
                    Ordered::Missing(count) => next += count,
                }
            }
            prop_assert_eq!(events + late, ids.len());
        }
    }
}
