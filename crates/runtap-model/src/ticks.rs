//! The sampler's ticks as a stream brings them: in ticks of the target's clock, on stacks that have no names yet.
//!
//! Names come last in a stream, and a long one has hundreds of millions of ticks. Most of them find a thread where the
//! tick before found it; such ticks are one run from the start, in 16 bytes.

use crate::period::{DEFAULT_NS, Period};
use crate::samples::{self, SampleKind};
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Ticks by thread.
#[derive(Debug, Clone, Default)]
pub struct Ticks {
    threads: Vec<ThreadTicks>,
    by_tid: HashMap<u64, usize, RandomState>,
    /// The thread that is expected: the sampler looks at them in the same order each time.
    expected: usize,
    period: Period,
    count: usize,
    out_of_order: u64,
    /// How often names have changed.
    epoch: u32,
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
    /// When the last run began.
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
}

impl Ticks {
    /// Adds a tick. Those of a thread come in time order; one that is earlier than its predecessor is kept, at the time of
    /// that, and counted in [`Self::out_of_order`].
    pub fn add(&mut self, tid: u64, time: u64, kind: SampleKind, stack: u32) {
        let index = self.index(tid);
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
            let kind_bits = !samples::TICKS;
            if thread.epoch == self.epoch
                && run.stack == stack
                && run.kind_and_ticks & kind_bits == one & kind_bits
                && run.ticks() < samples::TICKS
            {
                run.kind_and_ticks += 1;
                return;
            }
        }
        (thread.last, thread.epoch) = (time, self.epoch);
        thread.runs.push(TickRun { time, stack, kind_and_ticks: one });
    }

    /// Says that names have changed: what follows is no part of the runs before it, even if it looks the same.
    pub fn split(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    fn index(&mut self, tid: u64) -> usize {
        let found = if self.threads.get(self.expected).is_some_and(|thread| thread.tid == tid) {
            self.expected
        } else {
            let threads = &mut self.threads;
            *self.by_tid.entry(tid).or_insert_with(|| {
                threads.push(ThreadTicks { tid, runs: Vec::new(), last: 0, epoch: 0 });
                threads.len() - 1
            })
        };
        self.expected = if found + 1 < self.threads.len() { found + 1 } else { 0 };
        found
    }

    /// Number of ticks.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no tick yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
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
    use super::*;

    #[test]
    fn ticks_in_a_row_are_one_run_of_16_bytes() {
        let mut ticks = Ticks::default();
        let [runs, waits] = [SampleKind::Managed, SampleKind::External];
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

    #[test]
    fn a_change_of_names_ends_all_runs() {
        let mut ticks = Ticks::default();
        for time in 0..6 {
            ticks.add(7, time, SampleKind::Managed, 1);
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
