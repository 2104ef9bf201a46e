//! Reports garbage collections, pauses and heap sizes.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use serde::Serialize;

use super::collector::{Clock, Collected, CollectedEvent, Collector, small};
use super::{Collect, Durations, Observe, Payload, Report, StreamItem};
use crate::suspensions::{Suspension, Suspensions, Why};
use crate::{clr, gc};

/// The garbage collections in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// The number of collections that began.
    pub collections_count: u64,
    /// The numbers that `GC.CollectionCount` reports: a collection counts for its generation and all younger ones.
    pub collections_by_generation: [u64; 3],
    /// The number of collections that the program requested.
    pub induced_count: u64,
    /// The pauses of all threads for collections.
    pub pauses: Durations,
    /// The pauses of all threads for the collector without a recorded collection: the server collector changes the number of its
    /// heaps, or the recording began during a background collection.
    pub other_suspensions: Durations,
    /// The heap after the last collection.
    pub heap_after_last: Option<HeapSizes>,
    /// The collections in order of their start.
    pub collections: Vec<Collection>,
}

/// The sizes of the parts of the heap after a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HeapSizes {
    /// The sizes of generations 0 to 2 in bytes.
    pub generations_bytes: [u64; 3],
    /// The size of the large object heap in bytes.
    pub large_bytes: u64,
    /// The size of the pinned object heap in bytes.
    pub pinned_bytes: u64,
    /// The total size in bytes.
    pub total_bytes: u64,
    /// The bytes that survived in the collected generations.
    pub promoted_bytes: u64,
}

/// A collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collection {
    /// The number of the collection since the process started.
    pub number: u32,
    /// The oldest generation that was collected.
    pub generation: u32,
    /// The reason for the collection.
    pub reason: &'static str,
    /// `blocking`, `background` or `foreground`.
    pub kind: &'static str,
    /// The start in nanoseconds since the start of the session.
    pub start_ns: i64,
    /// The duration in nanoseconds. `None` if the end was not recorded.
    pub duration_ns: Option<u64>,
    /// The pause in nanoseconds. A pause shared by a background collection and the one at its start is divided as in `PerfView`: the
    /// time to stop the threads belongs to the first, everything after the start of the second belongs to the second.
    pub pause_ns: u64,
    /// The heap after the collection.
    pub heap_after: Option<HeapSizes>,
}

#[derive(Debug, Clone, Copy)]
enum EventData {
    Start { number: u32, generation: u32, reason: u32, kind: u32 },
    End { number: u32 },
    Heap(HeapSizes),
    Suspend(Why),
    Stopped,
    Resume,
}

/// The type of a background collection.
const BACKGROUND: u32 = 1;

/// Collects a [`GcReport`].
#[derive(Debug)]
pub struct Gc(Collector<EventData>);

impl Default for Gc {
    fn default() -> Self {
        Self(Collector::new(|metadata| {
            metadata.provider == clr::RUNTIME && matches!(metadata.event_id, 1..=4 | 8 | 9)
        }))
    }
}

impl Report for GcReport {
    fn limit(&mut self, n: usize) {
        self.collections.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.collections_count == 0
    }
}

impl Collect for Gc {
    type Report = GcReport;

    fn finish(self) -> GcReport {
        report(self.0.finish())
    }

    fn snapshot(&self) -> GcReport {
        report(self.0.so_far())
    }
}

fn report((kept, clock): Collected<EventData>) -> GcReport {
    let mut report = GcReport::default();
    let (mut pauses, mut others) = (Vec::new(), Vec::new());
    let mut suspensions = Suspensions::default();
    let mut running = Running::default();
    // The collections that began in the current suspension, with their start.
    let mut begun: Vec<(usize, u64)> = Vec::new();
    for CollectedEvent { timestamp, thread, what } in kept {
        match what {
            EventData::Suspend(why) => {
                suspensions.begin(thread, timestamp, why);
                if why != Why::Other {
                    begun.clear();
                }
            }
            EventData::Stopped => suspensions.stopped(thread, timestamp),
            EventData::Resume => {
                let Some(suspension) = suspensions.end(thread) else { continue };
                let background = running.background(&report.collections);
                let belongs = report.pause(suspension, timestamp, &begun, background, &clock);
                let all = if belongs { &mut pauses } else { &mut others };
                all.push(clock.ns(suspension.start, timestamp));
                begun.clear();
            }
            _ => {
                if let Some(started) = report.take(timestamp, what, &mut running, &clock) {
                    begun.push((started, timestamp));
                }
            }
        }
    }
    (report.pauses, report.other_suspensions) = (Durations::of(pauses), Durations::of(others));
    report.heap_after_last = report.collections.iter().rev().find_map(|collection| collection.heap_after);
    report
}

impl Observe for Gc {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.0.item(item, |metadata, _, payload| decode_event(metadata.event_id, payload));
    }
}

/// The indexes of collections in progress, and of the one that ended last.
#[derive(Debug, Default)]
struct Running {
    by_number: HashMap<u32, Vec<usize>, RandomState>,
    /// Some of them may have ended.
    background: Vec<usize>,
    /// The end and the index.
    last: Option<(i64, usize)>,
}

impl Running {
    /// The background collection in progress.
    fn background(&mut self, collections: &[Collection]) -> Option<usize> {
        let has_ended = |it: &usize| collections.get(*it).is_none_or(|it| it.duration_ns.is_some());
        while self.background.pop_if(|it| has_ended(it)).is_some() {}
        self.background.last().copied()
    }
}

impl GcReport {
    /// Attributes a suspension that ended `at` a time to its collections. Returns false if the suspension had no collection.
    fn pause(
        &mut self,
        of: Suspension,
        at: u64,
        begun: &[(usize, u64)],
        background: Option<usize>,
        clock: &Clock,
    ) -> bool {
        let mut add = |it: usize, from: u64, to: u64| {
            if let Some(collection) = self.collections.get_mut(it) {
                collection.pause_ns = collection.pause_ns.saturating_add(clock.ns(from, to));
            }
        };
        match *begun {
            // The later pauses of a background collection start no collection.
            [] => match background {
                Some(it) => add(it, of.start, at),
                None => return false,
            },
            [(it, _)] => add(it, of.start, at),
            // A background collection that runs another one first.
            [(first, begin), .., (last, from)] => {
                add(first, of.start, of.stopped.unwrap_or(begin));
                add(last, from, at);
            }
        }
        true
    }

    /// Adds a collection and returns its index.
    fn take(
        &mut self,
        timestamp: u64,
        what: EventData,
        running: &mut Running,
        clock: &Clock,
    ) -> Option<usize> {
        match what {
            EventData::Start { number, generation, reason, kind } => {
                self.collections_count += 1;
                let oldest = usize::try_from(generation).unwrap_or(usize::MAX);
                for count in self.collections_by_generation.iter_mut().take(oldest.saturating_add(1)) {
                    *count += 1;
                }
                let reason = gc::reason_name(reason);
                self.induced_count += u64::from(reason.starts_with("Induced"));
                self.collections.push(Collection {
                    number,
                    generation,
                    reason,
                    kind: gc::type_name(kind),
                    start_ns: clock.at(timestamp),
                    duration_ns: None,
                    pause_ns: 0,
                    heap_after: None,
                });
                let index = self.collections.len() - 1;
                running.by_number.entry(number).or_default().push(index);
                if kind == BACKGROUND {
                    running.background.push(index);
                }
                return Some(index);
            }
            EventData::End { number } => {
                let at = clock.at(timestamp);
                if let Some(list) = running.by_number.get_mut(&number)
                    && let Some(index) = list.pop()
                    && let Some(it) = self.collections.get_mut(index)
                {
                    it.duration_ns = u64::try_from(at.saturating_sub(it.start_ns)).ok();
                    if it.duration_ns.is_some() {
                        running.last = running.last.max(Some((at, index)));
                    } else {
                        list.push(index);
                    }
                }
            }
            EventData::Heap(sizes) => {
                // This event follows the end of its collection.
                if let Some(it) = running.last.and_then(|(_, index)| self.collections.get_mut(index)) {
                    it.heap_after = Some(sizes);
                }
            }
            EventData::Suspend(_) | EventData::Stopped | EventData::Resume => {}
        }
        None
    }
}

fn decode_event(id: u32, payload: Payload<'_>) -> Option<EventData> {
    Some(match id {
        1 => EventData::Start {
            number: small(payload, "Count")?,
            generation: small(payload, "Depth")?,
            reason: small(payload, "Reason")?,
            kind: small(payload, "Type").unwrap_or(u32::MAX),
        },
        2 => EventData::End { number: small(payload, "Count")? },
        3 => EventData::Resume,
        4 => EventData::Heap(sizes(payload)?),
        8 => EventData::Stopped,
        9 => EventData::Suspend(Why::of(payload.u64("Reason")?)),
        _ => return None,
    })
}

fn sizes(payload: Payload<'_>) -> Option<HeapSizes> {
    let size = |name: &str| payload.u64(name);
    let generations_bytes = [size("GenerationSize0")?, size("GenerationSize1")?, size("GenerationSize2")?];
    let large_bytes = size("GenerationSize3").unwrap_or(0);
    let pinned_bytes = size("GenerationSize4").unwrap_or(0);
    let sum = |all: &[u64]| all.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let promoted = ["0", "1", "2", "3", "4"].map(|n| size(&format!("TotalPromotedSize{n}")).unwrap_or(0));
    Some(HeapSizes {
        generations_bytes,
        large_bytes,
        pinned_bytes,
        total_bytes: sum(&generations_bytes).saturating_add(large_bytes).saturating_add(pinned_bytes),
        promoted_bytes: sum(&promoted),
    })
}
