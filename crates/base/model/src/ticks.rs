//! The sampler's ticks as a stream brings them: in ticks of the target's clock, on stacks that have no names yet.
//!
//! Names come last in a stream, and a long one has hundreds of millions of ticks. Most of them find a thread where the
//! tick before found it; such ticks are one run from the start, in 16 bytes. A thread takes ten times that before its first
//! tick, so a stream of nothing but new threads would take more memory than bytes: there is a [limit](MAX_THREADS).

use crate::kinds::SampleKind;
use crate::period::{DEFAULT_NS, Period};
use crate::samples::{self, Run};
use crate::stacks::StackHandle;
use crate::threads::MAX_THREADS;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Ticks by thread.
#[derive(Debug, Clone)]
pub struct Ticks {
    threads: Vec<ThreadTicks>,
    /// How many threads there may be.
    most_threads: usize,
    /// Ticks of the threads that came when there were so many.
    left_out: u64,
    by_tid: HashMap<u64, usize, RandomState>,
    /// The thread that is expected: the sampler looks at them in the same order each time.
    expected: usize,
    period: Period,
    count: usize,
    out_of_order: u64,
    /// How often names have changed.
    epoch: u32,
    /// The first tick of each thread, which is so far from no other: by how many distances were known then, and by the
    /// thread's index.
    firsts: Vec<(usize, usize)>,
}

/// The ticks of one thread.
#[derive(Debug, Clone)]
pub struct ThreadTicks {
    /// The operating system's number of the thread.
    pub tid: u64,
    /// In the order of time.
    pub runs: Vec<TickRun>,
    /// Time of the last tick.
    pub last: u64,
    /// How often names had changed when the first run began.
    first_epoch: u32,
    /// And when the last one did.
    epoch: u32,
}

/// One or more ticks in a row that found a thread on the same stack and doing the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickRun {
    /// Time of the first tick, in ticks of the target's clock.
    pub time: u64,
    /// The stack, by a number of the caller's.
    pub stack: u32,
    kind_and_ticks: u32,
}

impl TickRun {
    /// What the thread was doing.
    pub fn kind(self) -> SampleKind {
        samples::kind_of(self.kind_and_ticks)
    }

    /// Number of ticks, at least 1.
    pub fn ticks(self) -> u32 {
        self.kind_and_ticks & samples::TICKS
    }

    /// Whether a run that comes next is the same ticks, and there is room for them.
    #[inline]
    fn continues_in(self, next: Self) -> bool {
        let kind_bits = !samples::TICKS;
        self.stack == next.stack
            && self.kind_and_ticks & kind_bits == next.kind_and_ticks & kind_bits
            && self.ticks() + next.ticks() <= samples::TICKS
    }

    /// The run as a trace has it: with the time in nanoseconds and a stack that has names.
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
    /// Ticks of so many threads at most.
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

    /// Adds a tick. Those of a thread come in time order; one that is earlier than its predecessor is kept, at the time of
    /// that, and counted in [`Self::out_of_order`]. One of a thread beyond [`MAX_THREADS`] is counted in [`Self::left_out`].
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

    /// Time of the first tick of any thread.
    pub fn first(&self) -> Option<u64> {
        self.threads.iter().filter_map(|thread| thread.runs.first()).map(|run| run.time).min()
    }

    /// Says that names have changed: what follows is no part of the runs before it, even if it looks the same.
    pub fn split(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Takes in the ticks of the next part of the stream, as if they had been [added](Self::add) here; `stacks` has the
    /// numbers that their stacks have here.
    ///
    /// `false`, and nothing done, if a thread's first tick is earlier than its last one here: then more of them may be,
    /// and only [`Self::add`] can tell. So it is with threads beyond [`MAX_THREADS`]: which those are is told by the order.
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

    /// The distances of the next part, with those between its first ticks and the last ones here in their places.
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

    /// Number of ticks.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no tick yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many ticks are not kept, because their threads came when there were [`MAX_THREADS`].
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How many ticks came with a time before their thread's previous tick.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// The typical distance between two ticks of a thread, in ticks of the target's clock; `None` if no thread was
    /// seen twice.
    pub fn period(&self) -> Option<u64> {
        self.period.clone().known_median()
    }

    /// What stands for the period where none is known, in nanoseconds.
    pub const DEFAULT_PERIOD_NS: u64 = DEFAULT_NS;

    /// The ticks of each thread, in the order of first use.
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
            /// Parts that are gathered apart and joined are what the whole is, however they are joined. Times go back now
            /// and then; what can't be joined for that is added again. So is what has too many threads.
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
    fn stacks_get_the_numbers_of_the_whole() {
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
