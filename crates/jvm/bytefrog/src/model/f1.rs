//! The messages that only F1 has: batches, drops, counts.
//!
//! In this part of [`TraceState`], each thread numbers its own events, so that no window is needed.

use runtap_bytefrog_proto::f1::{Batch, BatchKind, Count, CountRows, Drop, DropReason};
use runtap_bytefrog_proto::{Rule, Stamp};

use super::apply::{TraceState, signed};
use super::event::Event;

/// F1: the calls of a method as the agent counted them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AgentCounts {
    /// The counts before the last reset.
    before: MethodCounts,
    /// The counts since the last reset.
    now: MethodCounts,
    /// The number of the reset that `now` is relative to.
    reset: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MethodCounts {
    pub(crate) calls: u64,
    pub(crate) thrown: u64,
    pub(crate) nanoseconds: u64,
}

impl MethodCounts {
    fn saturating_add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            thrown: self.thrown.saturating_add(other.thrown),
            nanoseconds: self.nanoseconds.saturating_add(other.nanoseconds),
        }
    }
}

impl AgentCounts {
    /// Returns the counts before and since the last reset together.
    pub(crate) fn total(&self) -> MethodCounts {
        self.before.saturating_add(self.now)
    }

    /// Sets the counts since a reset.
    fn set(&mut self, now: MethodCounts, reset: u64) {
        if self.reset != reset {
            *self = Self { before: self.total(), now: MethodCounts::default(), reset };
        }
        self.now = now;
    }
}

impl TraceState {
    /// Applies the entries and exits of one thread.
    #[inline]
    pub(super) fn batch(&mut self, batch: &Batch<'_>) {
        let Some(thread) = self.advance(batch.thread, batch.sequence, batch.rows.len() as u64) else {
            return self.count_batch(batch);
        };
        // Events that have already arrived are skipped.
        let skip = usize::try_from(self.skipped).unwrap_or(usize::MAX);
        self.calls.touch(thread);
        let base = batch.base;
        for event in batch.events().skip(skip) {
            let in_flight = self.calls.at(thread, signed(base.saturating_add(event.delta.into())));
            match event.kind {
                BatchKind::Entry => self.enter(thread, event.method, in_flight),
                BatchKind::Exit => self.exit(thread, event.method, in_flight),
                BatchKind::Reserved(kind) => {
                    self.findings.add(Rule::Reserved, || format!("kind {kind} of method {}", event.method));
                }
            }
        }
    }

    /// Counts the events of a thread that exceeds the limit of threads.
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

    /// Applies a drop message.
    pub(super) fn dropped(&mut self, drop: &Drop) {
        let Some(thread) = self.advance(drop.thread, drop.sequence, 0) else { return };
        if drop.reason == DropReason::SUSPENDED {
            // The suspension was requested, so nothing is lost.
            self.counters.suspensions += 1;
            let count = if drop.count == Drop::UNKNOWN { 0 } else { drop.count };
            self.counters.suspended = self.counters.suspended.saturating_add(count);
            self.calls.clear(thread);
            return;
        }
        if drop.reason == DropReason::DEGRADED {
            // From here on, the calls are in the agent's counts.
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

    /// F1: returns the thread of a message, and advances its sequence by `count` from `sequence`, which should be
    /// the next number.
    pub(super) fn advance(&mut self, id: u32, sequence: u64, count: u64) -> Option<usize> {
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

    /// F1: applies an event that has its own message. Returns whether it was used.
    pub(super) fn single(&mut self, at: &Stamp, event: Event) -> bool {
        let used = self.advance(at.thread, at.sequence, 1).is_some() && self.skipped == 0;
        if used {
            self.clock = self.clock.max(signed(at.time));
            self.apply_event(event, signed(at.time));
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

    /// F1: applies the agent's counts, which are absolute since the last reset.
    pub(super) fn count(&mut self, rows: &CountRows<'_>) {
        self.reset |= rows.reset;
        for Count { method, calls, thrown, nanoseconds } in rows.counts() {
            let Some(method) = self.calls.method(method) else { continue };
            let counted = self.counted.entry(method).or_default();
            let before = counted.total().calls;
            counted.set(MethodCounts { calls, thrown, nanoseconds }, self.resets);
            // Added before subtracting: the counts of a faulty agent may decrease.
            self.counted_calls += u128::from(counted.total().calls);
            self.counted_calls -= u128::from(before);
        }
        self.counters.counted = u64::try_from(self.counted_calls).unwrap_or(u64::MAX);
        if rows.last && std::mem::take(&mut self.reset) {
            // Each method takes over the reset with its next row, because messages without rows may reset too.
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

    /// A message of 18 bytes without rows resets the counts of all methods.
    #[test]
    fn a_reset_is_applied_to_a_method_with_its_next_row() {
        let mut state = TraceState::new(Dialect::F1, &Limits::default(), 1);
        let row = |method, calls| Count { method, calls, thrown: 0, nanoseconds: 1 }.to_bytes();
        let take = |state: &mut TraceState, rows: &[[u8; 28]], reset| {
            state.count(&CountRows { snapshot: 0, time: 0, reset, last: true, rows: Rows::new(rows) });
        };
        take(&mut state, &[row(0, 5), row(1, 7)], false);
        for _ in 0..1000 {
            take(&mut state, &[], true);
        }
        let first = state.counted[&0];
        assert_eq!((first.reset, state.resets), (0, 1000), "no method was changed");
        take(&mut state, &[row(0, 2)], false);
        assert_eq!((state.counted[&0].reset, state.counted[&0].total().calls), (1000, 7));
        take(&mut state, &[row(0, 3)], true);
        take(&mut state, &[row(0, 1)], false);
        assert_eq!((state.counted[&0].total().calls, state.counted[&1].total().calls), (9, 7));
        assert_eq!(state.counters.counted, 16);
    }

    #[test]
    fn the_total_of_calls_is_the_sum_over_all_methods() {
        let mut state = TraceState::new(Dialect::F1, &Limits::default(), 1);
        for (counts, sum) in [
            ([u64::MAX, 3], u64::MAX),
            ([u64::MAX, u64::MAX], u64::MAX),
            ([5, u64::MAX], u64::MAX),
            ([5, 1], 6),
            ([u64::MAX - 1, 1], u64::MAX),
        ] {
            let rows = [(0, counts[0]), (1, counts[1])]
                .map(|(method, calls)| Count { method, calls, thrown: 0, nanoseconds: 0 }.to_bytes());
            state.count(&CountRows {
                snapshot: 0,
                time: 0,
                reset: false,
                last: true,
                rows: Rows::new(&rows),
            });
            let each = [0, 1].map(|method| state.counted[&method].total().calls);
            assert_eq!((state.counters.counted, each), (sum, counts));
        }
    }
}
