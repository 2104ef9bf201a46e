//! Collections: why, how long, and what they left.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use serde::Serialize;

use super::collector::{Clock, Collector, Found, Kept, small};
use super::{Collect, Durations, Item, Observe, Payload, Report};
use crate::suspensions::{Suspension, Suspensions, Why};
use crate::{clr, gc};

/// What a recording says about collections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// How many began.
    pub collections_count: u64,
    /// The same as `GC.CollectionCount` counts: a collection counts in its generation and in all below.
    pub collections_by_generation: [u64; 3],
    /// How many the program asked for.
    pub induced_count: u64,
    /// The times during which all threads stood still for a collection.
    pub pauses: Durations,
    /// The times during which they did for the collector, but for no collection of the recording: the server's collector
    /// changes the number of its heaps, or the recording began inside a background collection.
    pub other_suspensions: Durations,
    /// The heap after the last collection.
    pub heap_after_last: Option<HeapSizes>,
    /// In the order of their beginnings.
    pub collections: Vec<Collection>,
}

/// Sizes of the heap's parts after a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HeapSizes {
    /// Generations 0 to 2.
    pub generations_bytes: [u64; 3],
    /// Large objects.
    pub large_bytes: u64,
    /// Pinned objects.
    pub pinned_bytes: u64,
    /// All of them.
    pub total_bytes: u64,
    /// What was alive of the generations that were collected.
    pub promoted_bytes: u64,
}

/// A collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collection {
    /// Its number since the process began.
    pub number: u32,
    /// The oldest generation that was collected.
    pub generation: u32,
    /// Why.
    pub reason: &'static str,
    /// `blocking`, `background` or `foreground`.
    pub kind: &'static str,
    /// When it began.
    pub start_ns: i64,
    /// From its beginning to its end, if that was recorded.
    pub duration_ns: Option<u64>,
    /// How long threads stood still for it. What a background collection and the one at its start have in common is
    /// counted as `PerfView` does: the time to stop the threads is that of the first, all from the beginning of the second
    /// on that of the second.
    pub pause_ns: u64,
    /// The heap after it.
    pub heap_after: Option<HeapSizes>,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Start { number: u32, generation: u32, reason: u32, kind: u32 },
    End { number: u32 },
    Heap(HeapSizes),
    Suspend(Why),
    Stopped,
    Resume,
}

/// The type of a background collection.
const BACKGROUND: u32 = 1;

/// Makes a [`GcReport`].
#[derive(Debug)]
pub struct Gc(Collector<What>);

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

fn report((kept, clock): Found<What>) -> GcReport {
    let mut report = GcReport::default();
    let (mut pauses, mut others) = (Vec::new(), Vec::new());
    let mut suspensions = Suspensions::default();
    let mut running = Running::default();
    // The collections that began in the suspension that goes on, and when.
    let mut begun: Vec<(usize, u64)> = Vec::new();
    for Kept { timestamp, thread, what } in kept {
        match what {
            What::Suspend(why) => {
                suspensions.begin(thread, timestamp, why);
                if why != Why::Other {
                    begun.clear();
                }
            }
            What::Stopped => suspensions.stopped(thread, timestamp),
            What::Resume => {
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
    fn item(&mut self, item: &Item<'_>) {
        self.0.item(item, |metadata, _, payload| what(metadata.event_id, payload));
    }
}

/// Which collections go on, and which one ended last, by their indexes.
#[derive(Debug, Default)]
struct Running {
    by_number: HashMap<u32, Vec<usize>, RandomState>,
    /// Some may have ended.
    background: Vec<usize>,
    /// When it ended, and which one it is.
    last: Option<(i64, usize)>,
}

impl Running {
    /// The background collection that is still running.
    fn background(&mut self, collections: &[Collection]) -> Option<usize> {
        let has_ended = |it: &usize| collections.get(*it).is_none_or(|it| it.duration_ns.is_some());
        while self.background.pop_if(|it| has_ended(it)).is_some() {}
        self.background.last().copied()
    }
}

impl GcReport {
    /// Gives a suspension that ended `at` a time to the collections that it was for; false if there is none.
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
            // The later pauses of a background collection begin none.
            [] => match background {
                Some(it) => add(it, of.start, at),
                None => return false,
            },
            [(it, _)] => add(it, of.start, at),
            // A background collection that has another one done first.
            [(first, begin), .., (last, from)] => {
                add(first, of.start, of.stopped.unwrap_or(begin));
                add(last, from, at);
            }
        }
        true
    }

    /// The index of a collection that begins.
    fn take(&mut self, timestamp: u64, what: What, running: &mut Running, clock: &Clock) -> Option<usize> {
        match what {
            What::Start { number, generation, reason, kind } => {
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
            What::End { number } => {
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
            What::Heap(sizes) => {
                // It comes right behind the end of its collection.
                if let Some(it) = running.last.and_then(|(_, index)| self.collections.get_mut(index)) {
                    it.heap_after = Some(sizes);
                }
            }
            What::Suspend(_) | What::Stopped | What::Resume => {}
        }
        None
    }
}

fn what(id: u32, payload: Payload<'_>) -> Option<What> {
    Some(match id {
        1 => What::Start {
            number: small(payload, "Count")?,
            generation: small(payload, "Depth")?,
            reason: small(payload, "Reason")?,
            kind: small(payload, "Type").unwrap_or(u32::MAX),
        },
        2 => What::End { number: small(payload, "Count")? },
        3 => What::Resume,
        4 => What::Heap(sizes(payload)?),
        8 => What::Stopped,
        9 => What::Suspend(Why::of(payload.u64("Reason")?)),
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
