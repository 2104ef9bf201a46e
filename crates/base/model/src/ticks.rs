//! The sampler's ticks as decoded from a stream: with times in ticks of the target's clock, and stacks without names.
//!
//! Names follow at the end of a stream, and a long one has hundreds of millions of ticks. Most of them find a thread
//! where the previous tick found it; they are merged into runs of 16 bytes immediately. A thread takes ten times that,
//! so a stream with a new thread per tick could exhaust memory: there is a [limit](MAX_THREADS).

use crate::kinds::SampleKind;
use crate::period::{DEFAULT_NS, Period};
use crate::samples::{self, Run};
use crate::stacks::StackHandle;
use crate::threads::MAX_THREADS;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// The ticks of all threads.
#[derive(Debug, Clone)]
pub struct Ticks {
    threads: Vec<ThreadTicks>,
    /// Maximum number of threads.
    most_threads: usize,
    /// Number of ticks of threads beyond the maximum.
    left_out: u64,
    by_tid: HashMap<u64, usize, RandomState>,
    /// Index of the expected thread: the sampler visits threads in the same order each time.
    expected: usize,
    period: Period,
    count: usize,
    out_of_order: u64,
    /// Number of name changes.
    epoch: u32,
    /// For the first tick of each thread, which has no preceding interval: the number of intervals recorded before, and
    /// the index of the thread.
    firsts: Vec<(usize, usize)>,
}

/// The ticks of a thread.
#[derive(Debug, Clone)]
pub struct ThreadTicks {
    /// The operating system's id of the thread.
    pub tid: u64,
    /// Runs in time order.
    pub runs: Vec<TickRun>,
    /// Time of the last tick, in ticks of the target's clock.
    pub last: u64,
    /// Number of name changes at the start of the first run.
    first_epoch: u32,
    /// Number of name changes at the start of the last run.
    epoch: u32,
}

/// One or more consecutive ticks that found a thread with the same stack and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickRun {
    /// Time of the first tick, in ticks of the target's clock.
    pub time: u64,
    /// Caller-defined number of the stack.
    pub stack: u32,
    kind_and_ticks: u32,
}

impl TickRun {
    /// Returns the state of the thread.
    pub fn kind(self) -> SampleKind {
        samples::kind_of(self.kind_and_ticks)
    }

    /// Returns the number of ticks, at least 1.
    pub fn ticks(self) -> u32 {
        self.kind_and_ticks & samples::TICKS
    }

    /// Returns whether `next` can be merged into this run.
    #[inline]
    fn continues_in(self, next: Self) -> bool {
        let kind_bits = !samples::TICKS;
        self.stack == next.stack
            && self.kind_and_ticks & kind_bits == next.kind_and_ticks & kind_bits
            && self.ticks() + next.ticks() <= samples::TICKS
    }

    /// Converts the run for a trace, with the time in nanoseconds and a stack with names.
    #[inline]
    pub fn named(self, time_ns: u64, stack: Option<StackHandle>) -> Run {
        Run::of_ticks(time_ns, stack, self.kind_and_ticks)
    }
}

impl Default for Ticks {
    fn default() -> Self {
        Self::of_threads(MAX_THREADS)
    }
}

impl Ticks {
    /// Creates an empty collection with a maximum number of threads.
    fn of_threads(most_threads: usize) -> Self {
        Self {
            threads: Vec::new(),
            most_threads,
            left_out: 0,
            by_tid: HashMap::default(),
            expected: 0,
            period: Period::default(),
            count: 0,
            out_of_order: 0,
            epoch: 0,
            firsts: Vec::new(),
        }
    }

    /// Adds a tick. The ticks of a thread must be in time order; one that is earlier than its predecessor gets the
    /// predecessor's time and is counted in [`Self::out_of_order`]. Ticks of threads beyond [`MAX_THREADS`] are counted
    /// in [`Self::left_out`].
    #[inline]
    pub fn add(&mut self, tid: u64, time: u64, kind: SampleKind, stack: u32) {
        let Some(index) = self.index(tid) else {
            self.left_out += 1;
            return;
        };
        let thread = &mut self.threads[index];
        self.count += 1;
        let mut time = time;
        let one = samples::one_tick(kind);
        if let Some(run) = thread.runs.last_mut() {
            if time < thread.last {
                self.out_of_order += 1;
                time = thread.last;
            }
            self.period.record(time - thread.last);
            thread.last = time;
            if thread.epoch == self.epoch && run.continues_in(TickRun { time, stack, kind_and_ticks: one }) {
                run.kind_and_ticks += 1;
                return;
            }
        }
        (thread.last, thread.epoch) = (time, self.epoch);
        thread.runs.push(TickRun { time, stack, kind_and_ticks: one });
    }

    /// Returns the time of the first tick of any thread. `None` if there are no ticks.
    pub fn first(&self) -> Option<u64> {
        self.threads.iter().filter_map(|thread| thread.runs.first()).map(|run| run.time).min()
    }

    /// Records a change of names: following ticks are not merged into existing runs, even if they look equal.
    pub fn split(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Appends the ticks of the next part of the stream, as if they had been [added](Self::add) one by one. `stacks`
    /// maps the stack numbers of that part to those of this collection.
    ///
    /// Returns false and does nothing if the first tick of a thread is earlier than its last one here, or if there are
    /// threads beyond [`MAX_THREADS`], because the result then depends on the order of single ticks. Use [`Self::add`]
    /// in these cases.
    #[must_use]
    pub fn join(&mut self, next: Self, stacks: &[u32]) -> bool {
        let places: Vec<Option<usize>> =
            next.threads.iter().map(|thread| self.by_tid.get(&thread.tid).copied()).collect();
        let is_late = |(place, thread): (&Option<usize>, &ThreadTicks)| {
            let first = thread.runs.first().map_or(u64::MAX, |run| run.time);
            place.is_some_and(|place| first < self.threads[place].last)
        };
        let new = places.iter().filter(|place| place.is_none()).count();
        let fits = next.left_out == 0 && self.threads.len() + new <= self.most_threads;
        if !fits || places.iter().zip(&next.threads).any(is_late) {
            return false;
        }
        self.join_distances(&next, &places);
        for (place, mut thread) in places.into_iter().zip(next.threads) {
            for run in &mut thread.runs {
                run.stack = stacks.get(run.stack as usize).copied().unwrap_or(run.stack);
            }
            let (first, last) =
                (self.epoch.wrapping_add(thread.first_epoch), self.epoch.wrapping_add(thread.epoch));
            let Some(known) = place.map(|place| &mut self.threads[place]) else {
                self.by_tid.insert(thread.tid, self.threads.len());
                self.threads.push(ThreadTicks { first_epoch: first, epoch: last, ..thread });
                continue;
            };
            let mut runs = thread.runs.into_iter().peekable();
            if let Some(run) = known.runs.last_mut()
                && known.epoch == first
                && let Some(more) = runs.next_if(|next| run.continues_in(*next))
            {
                run.kind_and_ticks += more.ticks();
            }
            known.runs.extend(runs);
            (known.last, known.epoch) = (thread.last, last);
        }
        self.count += next.count;
        self.out_of_order += next.out_of_order;
        self.epoch = self.epoch.wrapping_add(next.epoch);
        self.expected = 0;
        true
    }

    /// Appends the intervals of the next part, inserting those between its first ticks and the last ticks here.
    fn join_distances(&mut self, next: &Self, places: &[Option<usize>]) {
        let mut firsts = next.firsts.iter().peekable();
        let mut new = self.threads.len();
        for known in 0..=next.period.len() {
            while let Some((_, index)) = firsts.next_if(|(before, _)| *before <= known) {
                let first = next.threads[*index].runs.first();
                if let (Some(place), Some(run)) = (places[*index], first) {
                    self.period.record(run.time - self.threads[place].last);
                } else {
                    self.firsts.push((self.period.len(), new));
                    new += 1;
                }
            }
            if let Some(distance) = next.period.intervals().get(known) {
                self.period.record(*distance);
            }
            if self.period.is_full() {
                break;
            }
        }
    }

    #[inline]
    fn index(&mut self, tid: u64) -> Option<usize> {
        let found = if self.threads.get(self.expected).is_some_and(|thread| thread.tid == tid) {
            self.expected
        } else {
            self.index_slow(tid)?
        };
        self.expected = if found + 1 < self.threads.len() { found + 1 } else { 0 };
        Some(found)
    }

    #[inline(never)]
    fn index_slow(&mut self, tid: u64) -> Option<usize> {
        if let Some(index) = self.by_tid.get(&tid) {
            return Some(*index);
        }
        let index = self.threads.len();
        if index >= self.most_threads {
            return None;
        }
        self.by_tid.insert(tid, index);
        self.firsts.push((self.period.len(), index));
        let epoch = self.epoch;
        self.threads.push(ThreadTicks { tid, runs: Vec::new(), last: 0, first_epoch: epoch, epoch });
        Some(index)
    }

    /// Returns the number of ticks.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no ticks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of ticks that were dropped because their threads exceeded [`MAX_THREADS`].
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the number of ticks that were earlier than the previous tick of their thread.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Returns the typical interval between two ticks of a thread, in ticks of the target's clock. `None` if no thread
    /// has two ticks.
    pub fn period(&self) -> Option<u64> {
        self.period.clone().known_median()
    }

    /// The period if it cannot be determined, in nanoseconds.
    pub const DEFAULT_PERIOD_NS: u64 = DEFAULT_NS;

    /// Returns the ticks of each thread, in the order of first use.
    pub fn into_threads(self) -> impl Iterator<Item = ThreadTicks> {
        self.threads.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_in_a_row_are_one_run_of_16_bytes() {
        let mut ticks = Ticks::default();
        let [runs, waits] = [SampleKind::MANAGED, SampleKind::EXTERNAL];
        for (tid, time, kind, stack) in [
            (7, 10, waits, 0),
            (9, 10, runs, 1),
            (7, 20, waits, 0),
            (9, 20, runs, 2),
            (7, 30, runs, 0),
            (9, 19, runs, 2),
            (8, 30, waits, 5),
        ] {
            ticks.add(tid, time, kind, stack);
        }
        assert_eq!((ticks.len(), ticks.out_of_order(), ticks.period()), (7, 1, Some(10)));
        let of = |thread: ThreadTicks| {
            let runs: Vec<_> = thread.runs.iter().map(|r| (r.time, r.stack, r.kind(), r.ticks())).collect();
            (thread.tid, thread.last, runs)
        };
        assert_eq!(
            ticks.into_threads().map(of).collect::<Vec<_>>(),
            [
                (7, 30, vec![(10, 0, waits, 2), (30, 0, runs, 1)]),
                (9, 20, vec![(10, 1, runs, 1), (20, 2, runs, 2)]),
                (8, 30, vec![(30, 5, waits, 1)]),
            ]
        );
        assert_eq!(size_of::<TickRun>(), 16);
    }

    /// A tick, or a change of names.
    fn tick() -> impl Strategy<Value = Option<(u64, u64, SampleKind, u32)>> {
        let kind = prop_oneof![Just(SampleKind::MANAGED), Just(SampleKind::EXTERNAL)];
        prop_oneof![8 => (0..4u64, 0..3u64, kind, 0..3u32).prop_map(Some), 1 => Just(None)]
    }

    fn add(ticks: &mut Ticks, what: Option<(u64, u64, SampleKind, u32)>) {
        match what {
            Some((tid, time, kind, stack)) => ticks.add(tid, time, kind, stack),
            None => ticks.split(),
        }
    }

    fn parts(ticks: Ticks) -> (String, Vec<(u64, u64, Vec<TickRun>)>) {
        let left_out = ticks.left_out();
        let head =
            format!("{} {} {left_out} {:?}", ticks.len(), ticks.out_of_order(), ticks.period.intervals());
        let threads = ticks.into_threads().map(|thread| (thread.tid, thread.last, thread.runs)).collect();
        (head, threads)
    }

    proptest! {
            /// Joining parts gives the same result as adding all ticks one by one, whatever the order of joining. Parts
            /// that cannot be joined, because times go back or there are too many threads, are added tick by tick.
            #[test]
            fn parts_join(
                all in prop::collection::vec(prop::collection::vec(tick(), 0..12), 1..6),
                pairs: bool,
                most in 2..6_usize,
            ) {
                let (mut whole, mut joined, mut now) = (Ticks::of_threads(most), Ticks::of_threads(most), 0);
                let mut pending: Option<(Ticks, Vec<Option<_>>)> = None;
                for (n, part) in all.iter().enumerate() {
                    let part: Vec<_> = part.iter().map(|what| what.map(|(tid, step, kind, stack)| {
                        now += 2 * step;
                        (tid, now - 2 * u64::from(step == 1 && stack == 2), kind, stack)
                    })).collect();
                    let mut apart = Ticks::of_threads(most);
                    for what in &part {
                        add(&mut whole, *what);
                        add(&mut apart, *what);
                    }
                    let (apart, part) = match pending.take() {
                        Some((mut before, mut ticks)) => {
                            if !before.join(apart, &[0, 1, 2]) {
                                for what in &part {
     add(&mut before, *what);
    }
                            }
                            ticks.extend(part);
                            (before, ticks)
                        }
                        None => (apart, part),
                    };
                    if pairs && n % 2 == 0 && n + 1 < all.len() {
                        pending = Some((apart, part));
                    } else if !joined.join(apart, &[0, 1, 2]) {
                        for what in &part {
     add(&mut joined, *what);
    }
                    }
                }
                prop_assert_eq!(parts(joined), parts(whole));
            }
        }

    #[test]
    fn threads_beyond_the_limit_are_counted() {
        let mut ticks = Ticks::default();
        for tid in 0..2 * MAX_THREADS as u64 {
            ticks.add(tid, tid, SampleKind::MANAGED, 0);
        }
        ticks.add(7, u64::MAX, SampleKind::MANAGED, 0);
        assert_eq!((ticks.len(), ticks.left_out()), (MAX_THREADS + 1, MAX_THREADS as u64));
        assert_eq!(ticks.into_threads().count(), MAX_THREADS);
    }

    #[test]
    fn joined_stacks_get_the_numbers_of_the_collection() {
        let (mut whole, mut part) = (Ticks::default(), Ticks::default());
        whole.add(7, 1, SampleKind::MANAGED, 5);
        part.add(7, 2, SampleKind::MANAGED, 1);
        part.add(8, 3, SampleKind::MANAGED, 0);
        assert!(whole.join(part, &[9, 5]));
        let (_, threads) = parts(whole);
        let stacks: Vec<_> =
            threads.iter().map(|(tid, _, runs)| (*tid, runs[0].stack, runs[0].ticks())).collect();
        assert_eq!(stacks, [(7, 5, 2), (8, 9, 1)]);
    }

    #[test]
    fn a_change_of_names_ends_all_runs() {
        let mut ticks = Ticks::default();
        for time in 0..6 {
            ticks.add(7, time, SampleKind::MANAGED, 1);
            if time == 1 {
                ticks.split();
                ticks.split();
            }
        }
        let threads: Vec<_> = ticks.into_threads().collect();
        let runs: Vec<_> = threads[0].runs.iter().map(|run| (run.time, run.ticks())).collect();
        assert_eq!(runs, [(0, 2), (2, 4)]);
    }
}
