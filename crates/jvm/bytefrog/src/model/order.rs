//! Events in the order of their sequence ids.
//!
//! Owns: [`Window`], which holds events that came too early, and the decision that an event will never come. In versions 1 to
//! 4 one counter numbers the events of all threads, and data connections carry them in any order: 3,153 places were measured
//! on a single connection.
//!
//! Memory is that of the window, whatever comes. An id that is further ahead than the window reaches makes it give up the
//! oldest ids that it waits for.

use runtap_bytefrog_proto::Stamp;

/// What comes out of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ordered<T> {
    /// The next event, with its id.
    Event(u64, T),
    /// So many events before the next one will not come.
    Missing(u64),
}

/// An event that can't be used: its id was used, or given up, before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late;

/// Puts events in order. Ids have 32 bits on the wire and wrap; here they have 64.
#[derive(Debug)]
pub(crate) struct Window<T> {
    /// A power of two.
    size: usize,
    /// Nothing until an event has to wait.
    slots: Vec<T>,
    /// A bit for each slot that holds an event.
    held: Vec<u64>,
    waiting: usize,
    next: u64,
}

impl<T: Copy + Default> Window<T> {
    /// A window of at least 64 events; a power of two.
    pub(crate) fn new(size: usize) -> Self {
        let size = size.clamp(64, 1 << 24).next_power_of_two();
        Self { size, slots: Vec::new(), held: vec![0; size / 64], waiting: 0, next: 0 }
    }

    /// The id that the next event should have.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// How many events wait for those before them.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The whole id of an event that has no room unless ids before it are given up.
    #[inline]
    pub(crate) fn beyond(&self, sequence: u64) -> Option<u64> {
        let ahead = sequence.wrapping_sub(self.next) & 0xffff_ffff;
        if ahead < self.size as u64 { None } else { self.beyond_or_before(sequence) }
    }

    #[cold]
    fn beyond_or_before(&self, sequence: u64) -> Option<u64> {
        // Ids of versions 1 to 4 have 32 bits.
        let id = u32::try_from(sequence & 0xffff_ffff).unwrap_or_default();
        self.whole(id).filter(|id| self.is_beyond(*id))
    }

    /// Whether the event with this whole id has no room.
    pub(crate) fn is_beyond(&self, id: u64) -> bool {
        id.saturating_sub(self.next) >= self.size as u64
    }

    /// The first id that is held. Those before it have not come.
    pub(crate) fn first_held(&self) -> Option<u64> {
        (self.waiting > 0).then(|| self.first())
    }

    /// The whole id of one from the wire: the closest to the one that is expected. Before the first there is none, which
    /// `None` says.
    pub(crate) fn whole(&self, id: u32) -> Option<u64> {
        let [.., a, b, c, d] = self.next.to_be_bytes();
        let distance = id.wrapping_sub(u32::from_be_bytes([a, b, c, d])).cast_signed();
        self.next.checked_add_signed(distance.into())
    }

    /// Takes an event, and gives those that are in order now.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        at: &Stamp,
        event: T,
        mut give: impl FnMut(Ordered<T>),
    ) -> Result<(), Late> {
        // How far ahead it is, as far as 32 bits can say.
        let ahead = at.sequence.wrapping_sub(self.next) & 0xffff_ffff;
        if ahead == 0 {
            self.next += 1;
            give(Ordered::Event(self.next - 1, event));
            if self.waiting > 0 {
                self.drain(&mut give);
            }
            return Ok(());
        }
        if ahead >= self.size as u64 {
            return self.far(at.sequence, event, give);
        }
        self.hold(self.next + ahead, event)
    }

    /// Holds an event that is inside of the window.
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

    /// An event that came before, or that is beyond the window.
    #[cold]
    fn far(&mut self, id: u64, event: T, mut give: impl FnMut(Ordered<T>)) -> Result<(), Late> {
        // Ids of versions 1 to 4 have 32 bits.
        let id = u32::try_from(id & 0xffff_ffff).unwrap_or_default();
        let whole = match self.whole(id) {
            // The first of all: it can't have come before, wherever its agent begins to count.
            None if self.next == 0 && self.waiting == 0 => Some(id.into()),
            whole => whole,
        };
        let Some(id) = whole.filter(|id| *id >= self.next) else { return Err(Late) };
        while id - self.next >= self.size as u64 {
            // What is needed to make room, and no more.
            let reach = id + 1 - self.size as u64;
            self.give_up(reach, &mut give);
        }
        // Giving up may have led to it.
        if id == self.next {
            self.next += 1;
            give(Ordered::Event(id, event));
            self.drain(&mut give);
            return Ok(());
        }
        self.hold(id, event)
    }

    /// Gives up the ids before this one that have not come.
    pub(crate) fn give_up_before(&mut self, id: u64, mut give: impl FnMut(Ordered<T>)) {
        while self.next < id {
            self.give_up(id, &mut give);
        }
    }

    /// Gives everything that is held, with what is missing between, and returns the memory: nothing more is expected.
    pub(crate) fn flush(&mut self, mut give: impl FnMut(Ordered<T>)) {
        while self.waiting > 0 {
            self.give_up(u64::MAX, &mut give);
        }
        self.slots = Vec::new();
    }

    /// Skips to the next event that is held, or to `reach` if that comes first; then gives what is in order.
    fn give_up(&mut self, reach: u64, give: &mut impl FnMut(Ordered<T>)) {
        let to = if self.waiting == 0 { reach } else { self.first().min(reach) };
        if to > self.next {
            give(Ordered::Missing(to - self.next));
            self.next = to;
        }
        self.drain(give);
    }

    /// The first id that is held; there is one.
    fn first(&self) -> u64 {
        let size = self.size as u64;
        let mut ahead = 0;
        while ahead < size {
            let (_, word, bit) = self.place(self.next + ahead);
            let held = self.held.get(word).copied().unwrap_or(0);
            // The bits of this word from here on.
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
    fn drain(&mut self, give: &mut impl FnMut(Ordered<T>)) {
        while self.waiting > 0 {
            let (slot, word, bit) = self.place(self.next);
            let Some(held) = self.held.get_mut(word).filter(|held| **held & bit != 0) else { return };
            *held &= !bit;
            self.waiting -= 1;
            self.next += 1;
            let event = self.slots.get(slot).copied().unwrap_or_default();
            give(Ordered::Event(self.next - 1, event));
        }
    }

    /// Slot, word and bit of an id.
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
    fn gaps_repeats_and_jumps() {
        let event = |id| Ordered::Event(id, id);
        assert_eq!(run(64, 0, &[1, 0, 2, 2, 0]), (vec![event(0), event(1), event(2)], 2));
        assert_eq!(run(64, 0, &[2, 0]), (vec![event(0), Ordered::Missing(1), event(2)], 0));
        // 70 does not fit while 1 is awaited.
        let far = run(64, 0, &[0, 5, 70]);
        let missing = Ordered::Missing;
        assert_eq!(far.0, [event(0), missing(4), event(5), missing(1), missing(63), event(70)]);
        // Nothing is held: a jump costs nothing.
        let jump = run(64, 0, &[0, 2_000_000_000]);
        let missing: u64 =
            jump.0.iter().map(|ordered| if let Ordered::Missing(n) = ordered { *n } else { 0 }).sum();
        assert_eq!(missing, 1_999_999_999);
        assert_eq!(run(64, 0, &[0, u64::from(u32::MAX)]).1, 1);
    }

    #[test]
    fn an_agent_may_begin_shortly_before_the_wrap() {
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
        fn what_is_shuffled_within_the_window_comes_out_in_order(
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
        fn whatever_comes_ids_ascend_and_nothing_is_lost_twice(ids in prop::collection::vec(0..400u64, 0..200)) {
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
