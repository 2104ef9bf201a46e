//! What the target dropped, because its buffer was full or because an event was above 64 KiB.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Item, Observe, Report};

/// What a recording says about events that are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LossReport {
    /// How many events are in it.
    pub received_count: u64,
    /// How many were dropped, at least: all that the stream shows. A thread that never got a buffer leaves no trace in it.
    pub lost_count: u64,
    /// How many of them are in no thread's number: before the first event of a thread that was received, or behind its last.
    pub elsewhere_count: u64,
    /// By the thread that wrote them, those with the most losses first.
    pub threads: Vec<ThreadLoss>,
}

/// Losses of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ThreadLoss {
    /// The thread that wrote the events.
    pub capture_thread: u64,
    /// How many of its events were received.
    pub received_count: u64,
    /// How many were dropped between them.
    pub lost_count: u64,
}

/// Makes a [`LossReport`].
#[derive(Debug, Default)]
pub struct Loss {
    /// By thread, with the number of its last event.
    threads: BTreeMap<u64, (u32, ThreadLoss)>,
}

impl Report for LossReport {
    fn limit(&mut self, n: usize) {
        self.threads.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.received_count + self.lost_count == 0
    }
}

impl Loss {
    /// The report, or what is to be said so far; `lost` is what the reader counted.
    pub fn report(&self, lost: u64) -> LossReport {
        let mut threads: Vec<ThreadLoss> = self.threads.values().map(|(_, thread)| *thread).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse((thread.lost_count, thread.received_count)));
        let received_count = threads.iter().map(|thread| thread.received_count).sum();
        let between: u64 = threads.iter().map(|thread| thread.lost_count).sum();
        LossReport {
            received_count,
            lost_count: lost,
            elsewhere_count: lost.saturating_sub(between),
            threads,
        }
    }
}

impl Observe for Loss {
    fn item(&mut self, item: &Item<'_>) {
        let Item::Event(event) = item else { return };
        let capture_thread = event.capture_thread_id;
        let (last, thread) = self.threads.entry(capture_thread).or_insert_with(|| {
            (event.sequence.wrapping_sub(1), ThreadLoss { capture_thread, ..ThreadLoss::default() })
        });
        let gap = event.sequence.wrapping_sub(*last).wrapping_sub(1);
        // A number that goes back is that of a new thread with an old id; NetPerf has none.
        if event.sequence != 0 && gap < 1 << 31 {
            thread.lost_count += u64::from(gap);
        }
        thread.received_count += 1;
        *last = event.sequence;
    }
}
