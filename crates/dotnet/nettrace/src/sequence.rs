//! Counts lost events: gaps in the sequence numbers that the runtime gives to each capture thread's events.
//! Source: nettrace format, "drop detection". Knows nothing of blocks.

use hashbrown::{HashMap, HashSet};

/// `expected` when no thread is at hand: no sequence number equals it.
const NONE: u64 = u64::MAX;

/// The last sequence number of every capture thread. Numbers start at 1, go up by 1 for every event that the
/// runtime *tried* to write, and wrap at 2^32.
#[derive(Debug, Clone)]
pub(crate) struct Sequences {
    /// The thread of the last event: events come in runs of one thread, so that the map is hardly touched.
    thread: u64,
    /// The number that its next event has if nothing is lost, or [`NONE`].
    expected: u64,
    last: HashMap<u64, u32, foldhash::fast::RandomState>,
    max_threads: usize,
    /// Whether a thread may be named with the id of one that is gone, unsaid: all versions but 6.
    ids_are_reused: bool,
    lost: u64,
    /// What has to wait for the parts of the stream before this one; `None` if there are none.
    part: Option<Part>,
}

/// What a part of a stream says about threads before their state is known from the part alone.
#[derive(Debug, Clone, Default)]
struct Part {
    open: Vec<Open>,
    /// Threads whose state is known.
    settled: HashSet<u64, foldhash::fast::RandomState>,
    /// All threads are.
    all_settled: bool,
}

#[derive(Debug, Clone, Copy)]
enum Open {
    Event(u64, u32),
    Point(u64, u32),
    Remove(u64, u32),
    Clear,
}

impl Part {
    /// Whether the state of a thread is open; notes what happens to it then.
    fn is_open(&mut self, thread: u64, what: Open) -> bool {
        if self.all_settled || self.settled.contains(&thread) {
            return false;
        }
        self.open.push(what);
        if !matches!(what, Open::Point(..)) {
            self.settled.insert(thread);
        }
        true
    }
}

impl Sequences {
    pub(crate) fn new(max_threads: usize) -> Self {
        Self {
            thread: 0,
            expected: NONE,
            last: HashMap::default(),
            max_threads: max_threads.max(1),
            ids_are_reused: true,
            lost: 0,
            part: None,
        }
    }

    /// The numbers of a part of a stream: what the ones before it have to say comes by [`Self::join`].
    pub(crate) fn of_part(&self) -> Self {
        let part = Self::new(self.max_threads);
        Self { ids_are_reused: self.ids_are_reused, part: Some(Part::default()), ..part }
    }

    /// Goes on with what the next part of the stream has found.
    pub(crate) fn join(&mut self, mut next: Self) {
        next.store();
        let part = next.part.take().unwrap_or_default();
        for what in part.open {
            match what {
                Open::Event(thread, sequence) => self.event(thread, sequence),
                Open::Point(thread, sequence) => self.point(thread, sequence),
                Open::Remove(thread, sequence) => self.remove(thread, sequence),
                Open::Clear => self.clear(),
            }
        }
        self.store();
        self.expected = NONE;
        if part.all_settled {
            self.last.clear();
        } else {
            self.last.retain(|thread, _| !part.settled.contains(thread));
        }
        for (thread, sequence) in next.last {
            self.insert(thread, sequence);
        }
        self.lost += next.lost;
    }

    /// Threads are introduced and removed: Nettrace 6.
    pub(crate) fn threads_are_introduced(&mut self) {
        self.ids_are_reused = false;
    }

    /// A thread that has written no event yet.
    pub(crate) fn introduce(&mut self, thread: u64) {
        self.store();
        self.expected = NONE;
        if let Some(part) = &mut self.part {
            part.settled.insert(thread);
        }
        self.insert(thread, 0);
    }

    /// A thread that will write no further event; its last one had the number `sequence`.
    pub(crate) fn remove(&mut self, thread: u64, sequence: u32) {
        self.store();
        self.expected = NONE;
        if let Some(part) = &mut self.part
            && part.is_open(thread, Open::Remove(thread, sequence))
        {
            return;
        }
        self.point(thread, sequence);
        self.last.remove(&thread);
    }

    /// Forgets all threads.
    pub(crate) fn clear(&mut self) {
        self.expected = NONE;
        self.last.clear();
        if let Some(part) = &mut self.part
            && !part.all_settled
        {
            part.open.push(Open::Clear);
            part.all_settled = true;
        }
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// An event of `thread` that has the number `sequence`.
    #[inline]
    pub(crate) fn event(&mut self, thread: u64, sequence: u32) {
        if thread != self.thread || u64::from(sequence) != self.expected {
            self.event_slow(thread, sequence);
        }
        self.run_to(sequence);
    }

    /// The events of the thread at hand went on, one after the other, up to `sequence`.
    #[inline]
    pub(crate) fn run_to(&mut self, sequence: u32) {
        self.expected = u64::from(sequence.wrapping_add(1));
    }

    #[inline(never)]
    fn event_slow(&mut self, thread: u64, sequence: u32) {
        self.store();
        self.thread = thread;
        if let Some(part) = &mut self.part
            && part.is_open(thread, Open::Event(thread, sequence))
        {
            return;
        }
        // The first sight of a thread says nothing about what came before. Neither does a last number of 0: that
        // is how a sequence point lists a thread which has not written yet, and its id may be a used one.
        if let Some(last) = self.last.get(&thread).copied().filter(|last| *last != 0 || !self.ids_are_reused)
        {
            let gap = sequence.wrapping_sub(1).wrapping_sub(last);
            // A number that is not ahead belongs to a new thread with the id of an old one.
            if gap.cast_signed() > 0 && (sequence != 1 || !self.ids_are_reused) {
                self.lost += u64::from(gap);
            }
        }
    }

    /// A sequence point: `thread` has tried to write the events up to the number `sequence`.
    pub(crate) fn point(&mut self, thread: u64, sequence: u32) {
        self.store();
        self.expected = NONE;
        if let Some(part) = &mut self.part
            && part.is_open(thread, Open::Point(thread, sequence))
        {
            return;
        }
        match self.last.get_mut(&thread) {
            Some(last) => {
                let gap = sequence.wrapping_sub(*last);
                if gap.cast_signed() > 0 {
                    if *last != 0 || !self.ids_are_reused {
                        self.lost += u64::from(gap);
                    }
                    *last = sequence;
                }
            }
            None => self.insert(thread, sequence),
        }
    }

    /// Puts the number of the thread at hand into the map.
    fn store(&mut self) {
        if let Ok(next) = u32::try_from(self.expected) {
            self.insert(self.thread, next.wrapping_sub(1));
        }
    }

    fn insert(&mut self, thread: u64, sequence: u32) {
        if self.last.len() >= self.max_threads && !self.last.contains_key(&thread) {
            self.last.clear();
        }
        self.last.insert(thread, sequence);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Say {
        Event(u64, u32),
        Point(u64, u32),
        Introduce(u64),
        Remove(u64, u32),
        Clear,
    }

    fn say() -> impl Strategy<Value = Say> {
        let number = || prop_oneof![0..12u32, any::<u32>()];
        prop_oneof![
            6 => (0..4u64, number()).prop_map(|(thread, sequence)| Say::Event(thread, sequence)),
            2 => (0..4u64, number()).prop_map(|(thread, sequence)| Say::Point(thread, sequence)),
            1 => (0..4u64).prop_map(Say::Introduce),
            1 => (0..4u64, number()).prop_map(|(thread, sequence)| Say::Remove(thread, sequence)),
            1 => Just(Say::Clear),
        ]
    }

    fn tell(sequences: &mut Sequences, all: &[Say]) {
        for say in all {
            match *say {
                Say::Event(thread, sequence) => sequences.event(thread, sequence),
                Say::Point(thread, sequence) => sequences.point(thread, sequence),
                Say::Introduce(thread) => sequences.introduce(thread),
                Say::Remove(thread, sequence) => sequences.remove(thread, sequence),
                Say::Clear => sequences.clear(),
            }
        }
    }

    proptest! {
        /// Parts that are read apart and joined lose what the whole loses.
        #[test]
        fn parts_join(
            parts in prop::collection::vec(prop::collection::vec(say(), 0..12), 1..5),
            rest in prop::collection::vec(say(), 0..6),
            reused: bool,
        ) {
            let mut whole = Sequences::new(100);
            whole.ids_are_reused = reused;
            let mut joined = whole.clone();
            for part in &parts {
                tell(&mut whole, part);
                let mut apart = joined.of_part();
                tell(&mut apart, part);
                joined.join(apart);
                prop_assert_eq!(joined.lost(), whole.lost());
            }
            tell(&mut whole, &rest);
            tell(&mut joined, &rest);
            prop_assert_eq!(joined.lost(), whole.lost());
        }
    }

    fn lost(events: &[(u64, u32)]) -> u64 {
        let mut sequences = Sequences::new(10);
        for (thread, sequence) in events {
            sequences.event(*thread, *sequence);
        }
        sequences.lost()
    }

    #[test]
    fn gaps_count_per_thread() {
        assert_eq!(lost(&[(1, 1), (1, 2), (2, 1), (1, 3), (2, 2)]), 0);
        assert_eq!(lost(&[(1, 1), (1, 4), (2, 1), (1, 5), (2, 12), (2, 13)]), 2 + 10);
        assert_eq!(lost(&[(1, 700), (1, 701)]), 0, "the first sight says nothing");
        assert_eq!(lost(&[(0, 0), (0, 1)]), 0);
    }

    #[test]
    fn numbers_wrap() {
        assert_eq!(lost(&[(1, u32::MAX - 1), (1, u32::MAX), (1, 0), (1, 1), (1, 2)]), 0);
        assert_eq!(lost(&[(1, u32::MAX - 1), (1, 2)]), 3);
    }

    #[test]
    fn a_used_thread_id_starts_anew() {
        assert_eq!(lost(&[(1, 700), (2, 1), (1, 1), (1, 2)]), 0);
        assert_eq!(lost(&[(1, 700), (1, 3), (1, 5)]), 1, "its first events may be lost too");
    }

    #[test]
    fn sequence_points_show_losses_at_the_end() {
        let mut sequences = Sequences::new(10);
        sequences.event(1, 5);
        sequences.point(1, 5);
        sequences.point(2, 40);
        assert_eq!(sequences.lost(), 0);
        sequences.event(1, 6);
        sequences.point(1, 10);
        assert_eq!(sequences.lost(), 4);
        sequences.event(2, 43);
        assert_eq!(sequences.lost(), 6);
        sequences.point(2, 41);
        sequences.event(2, 44);
        assert_eq!(sequences.lost(), 6, "a point is a lower bound");
        sequences.point(3, 0);
        sequences.event(3, 9);
        assert_eq!(sequences.lost(), 6, "a point of 0 says nothing");
    }

    #[test]
    fn introduced_threads_count_from_their_first_event() {
        let mut sequences = Sequences::new(10);
        sequences.threads_are_introduced();
        sequences.introduce(1);
        sequences.introduce(2);
        sequences.event(1, 4);
        assert_eq!(sequences.lost(), 3);
        sequences.remove(1, 6);
        assert_eq!(sequences.lost(), 5);
        sequences.point(2, 7);
        assert_eq!(sequences.lost(), 12, "a thread all of whose events were dropped");
        sequences.introduce(1);
        sequences.event(1, 1);
        sequences.event(9, 50);
        sequences.clear();
        sequences.event(1, 90);
        assert_eq!(sequences.lost(), 12, "nothing is known of a thread that was not introduced");
    }

    #[test]
    fn the_table_stays_small() {
        let mut sequences = Sequences::new(10);
        for thread in 0..1000 {
            sequences.event(thread, 1);
            sequences.point(thread + 5000, 1);
        }
        assert!(sequences.last.len() <= 10);
        assert_eq!(sequences.lost(), 0);
    }
}
