//! Reports events that the target dropped because its buffer was full or an event exceeded 64 KiB.

use std::collections::BTreeMap;

use runtap_model::order;
use serde::Serialize;

use super::{Observe, Report, StreamItem};

/// The events missing in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LossReport {
    /// The number of received events.
    pub received_count: u64,
    /// The minimum number of dropped events, as far as the stream shows it. A thread that never got a buffer does not appear.
    pub lost_count: u64,
    /// The number of dropped events that can't be attributed to a thread: before its first received event, or after its last.
    pub elsewhere_count: u64,
    /// The losses by thread, largest first.
    pub threads: Vec<ThreadLoss>,
}

/// The losses of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ThreadLoss {
    /// The thread that wrote the events.
    pub capture_thread: u64,
    /// The number of received events.
    pub received_count: u64,
    /// The number of events dropped between them.
    pub lost_count: u64,
}

/// Collects a [`LossReport`].
#[derive(Debug, Default)]
pub struct Loss {
    /// By thread, with the sequence number of its last event.
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
    /// Returns the report so far. `lost` is the number counted by the reader.
    pub fn report(&self, lost: u64) -> LossReport {
        let mut threads: Vec<ThreadLoss> = self.threads.values().map(|(_, thread)| *thread).collect();
        order::sort_by_key(&mut threads, |thread| {
            std::cmp::Reverse((thread.lost_count, thread.received_count))
        });
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
    fn item(&mut self, item: &StreamItem<'_>) {
        let StreamItem::Event(event) = item else { return };
        let capture_thread = event.capture_thread_id;
        let (last, thread) = self.threads.entry(capture_thread).or_insert_with(|| {
            (event.sequence.wrapping_sub(1), ThreadLoss { capture_thread, ..ThreadLoss::default() })
        });
        let gap = event.sequence.wrapping_sub(*last).wrapping_sub(1);
        // A decreasing number belongs to a new thread with a reused id. NetPerf has no such numbers.
        if event.sequence != 0 && gap < 1 << 31 {
            thread.lost_count += u64::from(gap);
        }
        thread.received_count += 1;
        *last = event.sequence;
    }
}
