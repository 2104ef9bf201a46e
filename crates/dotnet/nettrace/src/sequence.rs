//! Counts lost events: gaps in the sequence numbers that the runtime assigns to each capture thread's events.
//! Source: nettrace format, "drop detection".

use hashbrown::{HashMap, HashSet};

/// The value of `expected` without a current thread; no sequence number equals it.
const NO_SEQUENCE: u64 = u64::MAX;

/// The last sequence number of every capture thread. Numbers start at 1, increase by 1 for every event that the
/// runtime *tried* to write, and wrap at 2^32.
#[derive(Debug, Clone)]
pub(crate) struct Sequences {
    /// The thread of the last event. Events occur in runs of one thread, so that the map is rarely used.
    thread: u64,
    /// The sequence number of its next event if nothing is lost, or [`NO_SEQUENCE`].
    expected: u64,
    last: HashMap<u64, u32, foldhash::fast::RandomState>,
    max_threads: usize,
    /// Whether a new thread may have the id of a previous one without notice: in all versions except 6.
    ids_are_reused: bool,
    lost: u64,
    /// Changes that depend on earlier parts of the stream. `None` if there are no earlier parts.
    part: Option<PartChanges>,
}

/// Changes to threads in a part of a stream, until the state of the threads is known from the part itself.
#[derive(Debug, Clone, Default)]
struct PartChanges {
    changes: Vec<Change>,
    /// Threads whose state is known.
    settled: HashSet<u64, foldhash::fast::RandomState>,
    /// Whether the state of all threads is known.
    all_settled: bool,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Event(u64, u32),
    Point(u64, u32),
    Remove(u64, u32),
    Clear,
}

impl PartChanges {
    /// Records a change and returns `true` if the state of the thread depends on earlier parts.
    fn defer(&mut self, thread: u64, change: Change) -> bool {
        if self.all_settled || self.settled.contains(&thread) {
            return false;
        }
        self.changes.push(change);
        if !matches!(change, Change::Point(..)) {
            self.settled.insert(thread);
        }
        true
    }
}

impl Sequences {
    pub(crate) fn new(max_threads: usize) -> Self {
        Self {
            thread: 0,
            expected: NO_SEQUENCE,
            last: HashMap::default(),
            max_threads: max_threads.max(1),
            ids_are_reused: true,
            lost: 0,
            part: None,
        }
    }

    /// Creates the numbers for a later part of the stream. [`Self::join`] adds them to the earlier parts.
    pub(crate) fn of_part(&self) -> Self {
        let part = Self::new(self.max_threads);
        Self { ids_are_reused: self.ids_are_reused, part: Some(PartChanges::default()), ..part }
    }

    /// Adds the results of the next part of the stream.
    pub(crate) fn join(&mut self, mut next: Self) {
        next.store();
        let part = next.part.take().unwrap_or_default();
        for what in part.changes {
            match what {
                Change::Event(thread, sequence) => self.event(thread, sequence),
                Change::Point(thread, sequence) => self.point(thread, sequence),
                Change::Remove(thread, sequence) => self.remove(thread, sequence),
                Change::Clear => self.clear(),
            }
        }
        self.store();
        self.expected = NO_SEQUENCE;
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

    /// Marks that the stream introduces and removes threads (Nettrace 6).
    pub(crate) fn threads_are_introduced(&mut self) {
        self.ids_are_reused = false;
    }

    /// Adds a thread that has written no event yet.
    pub(crate) fn introduce(&mut self, thread: u64) {
        self.store();
        self.expected = NO_SEQUENCE;
        if let Some(part) = &mut self.part {
            part.settled.insert(thread);
        }
        self.insert(thread, 0);
    }

    /// Removes a thread that will write no further event; `sequence` is the number of its last event.
    pub(crate) fn remove(&mut self, thread: u64, sequence: u32) {
        self.store();
        self.expected = NO_SEQUENCE;
        if let Some(part) = &mut self.part
            && part.defer(thread, Change::Remove(thread, sequence))
        {
            return;
        }
        self.point(thread, sequence);
        self.last.remove(&thread);
    }

    /// Forgets all threads.
    pub(crate) fn clear(&mut self) {
        self.expected = NO_SEQUENCE;
        self.last.clear();
        if let Some(part) = &mut self.part
            && !part.all_settled
        {
            part.changes.push(Change::Clear);
            part.all_settled = true;
        }
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Counts an event of `thread` with the number `sequence`.
    #[inline]
    pub(crate) fn event(&mut self, thread: u64, sequence: u32) {
        if thread != self.thread || u64::from(sequence) != self.expected {
            self.event_slow(thread, sequence);
        }
        self.run_to(sequence);
    }

    /// Counts consecutive events of the current thread, up to `sequence`.
    #[inline]
    pub(crate) fn run_to(&mut self, sequence: u32) {
        self.expected = u64::from(sequence.wrapping_add(1));
    }

    #[inline(never)]
    fn event_slow(&mut self, thread: u64, sequence: u32) {
        self.store();
        self.thread = thread;
        if let Some(part) = &mut self.part
            && part.defer(thread, Change::Event(thread, sequence))
        {
            return;
        }
        // The first event of a thread does not reveal earlier losses. Neither does a last number of 0: a sequence
        // point lists threads that have not written yet with 0, and the thread's id may be a reused one.
        if let Some(last) = self.last.get(&thread).copied().filter(|last| *last != 0 || !self.ids_are_reused)
        {
            let gap = sequence.wrapping_sub(1).wrapping_sub(last);
            // A number that is not ahead belongs to a new thread with a reused id.
            if gap.cast_signed() > 0 && (sequence != 1 || !self.ids_are_reused) {
                self.lost += u64::from(gap);
            }
        }
    }

    /// Handles an entry of a sequence point: `thread` has tried to write the events up to the number `sequence`.
    pub(crate) fn point(&mut self, thread: u64, sequence: u32) {
        self.store();
        self.expected = NO_SEQUENCE;
        if let Some(part) = &mut self.part
            && part.defer(thread, Change::Point(thread, sequence))
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

    /// Stores the number of the current thread in the map.
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
    enum Call {
        Event(u64, u32),
        Point(u64, u32),
        Introduce(u64),
        Remove(u64, u32),
        Clear,
    }

    fn call() -> impl Strategy<Value = Call> {
        let number = || prop_oneof![0..12u32, any::<u32>()];
        prop_oneof![
            6 => (0..4u64, number()).prop_map(|(thread, sequence)| Call::Event(thread, sequence)),
            2 => (0..4u64, number()).prop_map(|(thread, sequence)| Call::Point(thread, sequence)),
            1 => (0..4u64).prop_map(Call::Introduce),
            1 => (0..4u64, number()).prop_map(|(thread, sequence)| Call::Remove(thread, sequence)),
            1 => Just(Call::Clear),
        ]
    }

    fn apply(sequences: &mut Sequences, all: &[Call]) {
        for say in all {
            match *say {
                Call::Event(thread, sequence) => sequences.event(thread, sequence),
                Call::Point(thread, sequence) => sequences.point(thread, sequence),
                Call::Introduce(thread) => sequences.introduce(thread),
                Call::Remove(thread, sequence) => sequences.remove(thread, sequence),
                Call::Clear => sequences.clear(),
            }
        }
    }

    proptest! {
        /// Parts that are counted separately and joined have the losses of the whole stream.
        #[test]
        fn parts_join(
            parts in prop::collection::vec(prop::collection::vec(call(), 0..12), 1..5),
            rest in prop::collection::vec(call(), 0..6),
            reused: bool,
        ) {
            let mut whole = Sequences::new(100);
            whole.ids_are_reused = reused;
            let mut joined = whole.clone();
            for part in &parts {
                apply(&mut whole, part);
                let mut apart = joined.of_part();
                apply(&mut apart, part);
                joined.join(apart);
                prop_assert_eq!(joined.lost(), whole.lost());
            }
            apply(&mut whole, &rest);
            apply(&mut joined, &rest);
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
    fn a_reused_thread_id_starts_anew() {
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
