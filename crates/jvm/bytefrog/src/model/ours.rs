//! What only F1 has: batches, drops, counts.
//!
//! Owns: the part of [`Core`] in which each thread numbers its own events, so that no window is needed.

use runtap_bytefrog_proto::f1::{Batch, BatchKind, Count, CountRows, Drop, DropReason};
use runtap_bytefrog_proto::{Rule, Stamp};

use super::apply::{Core, signed};
use super::event::Event;

/// F1: calls of a method as the agent has counted them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    /// Of the time before the last reset.
    before: Numbers,
    now: Numbers,
    /// The reset that `now` is counted from.
    reset: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Numbers {
    pub(crate) calls: u64,
    pub(crate) thrown: u64,
    pub(crate) nanoseconds: u64,
}

impl Numbers {
    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            thrown: self.thrown.saturating_add(other.thrown),
            nanoseconds: self.nanoseconds.saturating_add(other.nanoseconds),
        }
    }
}

impl Counted {
    /// All of it.
    pub(crate) fn total(&self) -> Numbers {
        self.before.plus(self.now)
    }

    /// Sets what was counted since a reset.
    fn set(&mut self, now: Numbers, reset: u64) {
        if self.reset != reset {
            *self = Self { before: self.total(), now: Numbers::default(), reset };
        }
        self.now = now;
    }
}

impl Core {
    /// Entries and exits of one thread.
    #[inline]
    pub(super) fn batch(&mut self, batch: &Batch<'_>) {
        let Some(thread) = self.begin(batch.thread, batch.sequence, batch.rows.len() as u64) else {
            return self.count_batch(batch);
        };
        // Events that came before are not used again.
        let skip = usize::try_from(self.skipped).unwrap_or(usize::MAX);
        self.calls.touch(thread);
        let base = batch.base;
        for event in batch.events().skip(skip) {
            let flight = self.calls.at(thread, signed(base.saturating_add(event.delta.into())));
            match event.kind {
                BatchKind::Entry => self.enter(thread, event.method, flight),
                BatchKind::Exit => self.exit(thread, event.method, flight),
                BatchKind::Reserved(kind) => {
                    self.findings.add(Rule::Reserved, || format!("kind {kind} of method {}", event.method));
                }
            }
        }
    }

    /// The events of a thread that has no room.
    #[cold]
    fn count_batch(&mut self, batch: &Batch<'_>) {
        for event in batch.events() {
            match event.kind {
                BatchKind::Entry => self.counters.entries += 1,
                BatchKind::Exit => self.counters.exits += 1,
                BatchKind::Reserved(_) => {}
            }
        }
    }

    /// Events of a thread are missing.
    pub(super) fn dropped(&mut self, drop: &Drop) {
        let Some(thread) = self.begin(drop.thread, drop.sequence, 0) else { return };
        if drop.reason == DropReason::SUSPENDED {
            // Somebody wanted it so: nothing is lost.
            self.counters.suspensions += 1;
            let count = if drop.count == Drop::UNKNOWN { 0 } else { drop.count };
            self.counters.suspended = self.counters.suspended.saturating_add(count);
            self.calls.clear(thread);
            return;
        }
        if drop.reason == DropReason::DEGRADED {
            // The calls are in the counts from here on.
            self.counters.degraded += 1;
            if drop.count == Drop::UNKNOWN {
                self.calls.clear(thread);
                return;
            }
        }
        self.counters.drops += 1;
        if drop.count == Drop::UNKNOWN {
            self.counters.drops_unknown += 1;
        } else {
            self.counters.dropped = self.counters.dropped.saturating_add(drop.count);
        }
        self.calls.clear(thread);
    }

    /// F1: the thread of what comes now, whose number should be the next one of the thread. `count` numbers are used.
    pub(super) fn begin(&mut self, id: u32, sequence: u64, count: u64) -> Option<usize> {
        let thread = self.calls.thread(id)?;
        let state = self.calls.threads.get_mut(thread)?;
        let expected = state.next;
        state.next = expected.max(sequence.saturating_add(count));
        if std::mem::take(&mut state.ended) {
            self.findings.add(Rule::ThreadReused, || format!("thread {id}"));
        }
        if sequence > expected {
            let missing = sequence - expected;
            self.counters.gaps += 1;
            self.counters.missing = self.counters.missing.saturating_add(missing);
            self.findings.add_many(Rule::SequenceGap, missing, || format!("{missing} events of thread {id}"));
            self.calls.clear(thread);
        } else if sequence < expected && count > 0 {
            let again = count.min(expected - sequence);
            self.counters.repeated = self.counters.repeated.saturating_add(again);
            self.findings
                .add_many(Rule::SequenceRepeated, again, || format!("sequence {sequence} of thread {id}"));
        }
        self.skipped = expected.saturating_sub(sequence);
        Some(thread)
    }

    /// F1: an event that is a message of its own. Whether it was used.
    pub(super) fn single(&mut self, at: &Stamp, event: Event) -> bool {
        let used = self.begin(at.thread, at.sequence, 1).is_some() && self.skipped == 0;
        if used {
            self.clock = self.clock.max(signed(at.time));
            self.happen(event, signed(at.time));
        }
        used
    }

    pub(super) fn thread_end(&mut self, thread: u32, time: u64) {
        let Some(thread) = self.calls.thread(thread) else { return };
        self.calls.at(thread, signed(time));
        self.calls.clear(thread);
        if let Some(thread) = self.calls.threads.get_mut(thread) {
            thread.ended = true;
        }
    }

    /// F1: counts of the agent. They are absolute since the last reset.
    pub(super) fn count(&mut self, rows: &CountRows<'_>) {
        self.reset |= rows.reset;
        for Count { method, calls, thrown, nanoseconds } in rows.counts() {
            let Some(method) = self.calls.method(method) else { continue };
            let counted = self.counted.entry(method).or_default();
            let before = counted.total().calls;
            counted.set(Numbers { calls, thrown, nanoseconds }, self.resets);
            // Of an agent that counts backwards it is less then.
            self.counted_calls += u128::from(counted.total().calls);
            self.counted_calls -= u128::from(before);
        }
        self.counters.counted = u64::try_from(self.counted_calls).unwrap_or(u64::MAX);
        if rows.last && std::mem::take(&mut self.reset) {
            // Each method moves its numbers when its next row comes: a message without rows may reset as well.
            self.resets += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use runtap_bytefrog_proto::Dialect;
    use runtap_bytefrog_proto::f1::Rows;

    use super::*;
    use crate::Limits;

    /// A message of 18 bytes without rows resets the counters of all methods.
    #[test]
    fn a_reset_changes_a_method_with_its_next_row() {
        let mut core = Core::new(Dialect::F1, &Limits::default(), 1);
        let row = |method, calls| Count { method, calls, thrown: 0, nanoseconds: 1 }.to_bytes();
        let take = |core: &mut Core, rows: &[[u8; 28]], reset| {
            core.count(&CountRows { snapshot: 0, time: 0, reset, last: true, rows: Rows::new(rows) });
        };
        take(&mut core, &[row(0, 5), row(1, 7)], false);
        for _ in 0..1000 {
            take(&mut core, &[], true);
        }
        let first = core.counted[&0];
        assert_eq!((first.reset, core.resets), (0, 1000), "no method was changed");
        take(&mut core, &[row(0, 2)], false);
        assert_eq!((core.counted[&0].reset, core.counted[&0].total().calls), (1000, 7));
        take(&mut core, &[row(0, 3)], true);
        take(&mut core, &[row(0, 1)], false);
        assert_eq!((core.counted[&0].total().calls, core.counted[&1].total().calls), (9, 7));
        assert_eq!(core.counters.counted, 16);
    }

    #[test]
    fn calls_of_all_methods_are_the_sum_of_those_of_each() {
        let mut core = Core::new(Dialect::F1, &Limits::default(), 1);
        for (counts, sum) in [
            ([u64::MAX, 3], u64::MAX),
            ([u64::MAX, u64::MAX], u64::MAX),
            ([5, u64::MAX], u64::MAX),
            ([5, 1], 6),
            ([u64::MAX - 1, 1], u64::MAX),
        ] {
            let rows = [(0, counts[0]), (1, counts[1])]
                .map(|(method, calls)| Count { method, calls, thrown: 0, nanoseconds: 0 }.to_bytes());
            core.count(&CountRows { snapshot: 0, time: 0, reset: false, last: true, rows: Rows::new(&rows) });
            let each = [0, 1].map(|method| core.counted[&method].total().calls);
            assert_eq!((core.counters.counted, each), (sum, counts));
        }
    }
}
