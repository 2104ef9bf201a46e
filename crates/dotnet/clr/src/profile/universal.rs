//! Profiles of whole machines, from the providers `Universal.Events` and `Universal.System` in Nettrace 6: samples of running
//! threads, the times in which threads waited, and the mappings of each process.
//!
//! Events are identified by name, because their ids are chosen by the writer. An address has a different meaning in each process, so
//! stacks are named per process.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{self as model, FrameHandle, SampleKind, StackHandle, TraceBuilder, order};
use runtap_nettrace::{Event, Metadata, Observe, StreamItem, TraceHeader};

use crate::frame;
use crate::names::LOOK_UP;
use crate::payload::{Decoder, Payload};
use crate::stacks::Stacks;

/// The default period of the sampler, if it can't be derived from the samples.
const PERIOD_NS: u64 = 1_000_000;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Ran,
    Waited,
    Process,
    Mapping,
    Symbol,
}

fn kind(metadata: &Metadata) -> Option<EventKind> {
    Some(match (metadata.provider.as_str(), metadata.name.as_str()) {
        ("Universal.Events", "cpu") => EventKind::Ran,
        ("Universal.Events", "cswitch") => EventKind::Waited,
        ("Universal.System", "ProcessCreate" | "ExistingProcess") => EventKind::Process,
        ("Universal.System", "ProcessMapping") => EventKind::Mapping,
        ("Universal.System", "ProcessSymbol") => EventKind::Symbol,
        _ => return None,
    })
}

/// Whether an event belongs to these providers and is known.
pub(super) fn wants(metadata: &Metadata) -> bool {
    metadata.provider.starts_with("Universal.") && kind(metadata).is_some()
}

/// A range of addresses (inclusive), and what is there.
#[derive(Debug, Clone)]
struct Range {
    start: u64,
    last: u64,
    /// The latest of several ranges wins.
    since: u64,
    text: Box<str>,
}

/// Ranges sorted by start.
#[derive(Debug, Clone, Default)]
struct Ranges {
    list: Vec<Range>,
    /// The largest end up to each range.
    reach: Vec<u64>,
}

/// The number of ranges that are examined for one address. A crafted stream may contain any number of overlaps.
const MAX_STEPS: usize = 256;

impl Ranges {
    fn add(&mut self, start: u64, last: u64, since: u64, text: String) {
        // The kernel shows its addresses as 0 to unprivileged users.
        if start != 0 && last >= start {
            self.list.push(Range { start, last, since, text: text.into() });
        }
    }

    fn seal(&mut self) {
        order::sort_by_key(&mut self.list, |range| (range.start, range.since));
        let ends = self.list.iter().scan(0, |most, range| {
            *most = range.last.max(*most);
            Some(*most)
        });
        self.reach = ends.collect();
    }

    /// Returns the range at an address: the one with the largest start, and of those the latest.
    fn get(&self, address: u64) -> Option<&Range> {
        let behind = self.list.partition_point(|range| range.start <= address);
        let found = self.list.get(..behind)?.iter().zip(self.reach.get(..behind)?).rev();
        found
            .take(MAX_STEPS)
            .take_while(|(_, reach)| **reach >= address)
            .map(|(range, _)| range)
            .find(|range| range.last >= address)
    }
}

#[derive(Debug, Clone, Default)]
struct Process {
    name: Option<String>,
    mappings: Ranges,
    symbols: Ranges,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    timestamp: u64,
    process: u64,
    thread: u64,
    stack: u32,
    processor: u32,
    /// The ticks that the thread waited. `None` if it ran.
    waited: Option<u64>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Universal {
    decoder: Decoder,
    samples: Vec<Sample>,
    processes: BTreeMap<u64, Process>,
    threads: HashMap<u64, String, RandomState>,
    pub(super) malformed: u64,
}

impl Universal {
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns the time of the first sample.
    pub(super) fn first(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.timestamp).min()
    }

    /// Processes an item that is not an event, if it belongs to these providers.
    pub(super) fn item(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Header(_) => self.decoder.item(item),
            StreamItem::Metadata(metadata) if wants(metadata) => self.decoder.item(item),
            _ => {}
        }
    }

    /// Processes an event for which [`wants`] is true.
    pub(super) fn event(&mut self, metadata: &Metadata, event: &Event<'_>, stacks: &mut Stacks) {
        let payload = self.decoder.payload(event);
        let Some(kind) = kind(metadata) else { return };
        let process = event.process_id.unwrap_or(0);
        if matches!(kind, EventKind::Ran | EventKind::Waited) {
            let waited = payload.u64("Value");
            if waited.is_none() && kind == EventKind::Waited {
                self.malformed += 1;
                return;
            }
            if let Some(name) = event.thread.and_then(|thread| thread.name.as_ref())
                && !self.threads.contains_key(&event.thread_id)
            {
                self.threads.insert(event.thread_id, name.clone());
            }
            self.samples.push(Sample {
                timestamp: event.timestamp,
                process,
                thread: event.thread_id,
                stack: stacks.index(event.stack),
                processor: event.processor,
                waited: waited.filter(|_| kind == EventKind::Waited),
            });
            return;
        }
        if apply_process_event(kind, self.processes.entry(process).or_default(), payload, event.timestamp)
            .is_none()
        {
            self.malformed += 1;
        }
    }

    /// Adds everything to a trace. Returns the ids and names of the processes that have samples.
    pub(super) fn add(
        mut self,
        header: &TraceHeader,
        stacks: &Stacks,
        builder: &mut TraceBuilder,
    ) -> Vec<(u64, Option<String>)> {
        for process in self.processes.values_mut() {
            process.mappings.seal();
            process.symbols.seal();
        }
        order::sort_by_number(&mut self.samples, |sample| sample.timestamp);
        let period = self.period_ns(header);
        let mut namer = Namer {
            processes: &self.processes,
            stacks,
            frames: HashMap::default(),
            named: HashMap::default(),
        };
        let mut seen: Vec<(u64, Option<String>)> = Vec::new();
        let mut known: HashMap<u64, Arc<model::Process>, RandomState> = HashMap::default();
        for Sample { process, .. } in &self.samples {
            known.entry(*process).or_insert_with(|| {
                let name = self.processes.get(process).and_then(|process| process.name.clone());
                seen.push((*process, name.clone()));
                Arc::new(model::Process { pid: u32::try_from(*process).ok(), name, command_line: None })
            });
        }
        for Sample { timestamp, process, thread, stack, waited, .. } in &self.samples {
            let Some(handle) = builder.thread_for_sample(*thread) else { continue };
            let stack = namer.stack(*process, *stack, builder);
            if seen.len() > 1
                && let Some(process) = known.get(process)
            {
                builder.set_thread_process(handle, process);
            }
            let (kind, weight) = match waited {
                Some(ticks) => (SampleKind::EXTERNAL, ns(header, *ticks)),
                None => (SampleKind::MANAGED, period),
            };
            builder.add_weighted(handle, super::since_start(header, *timestamp), weight, kind, stack);
        }
        for (thread, name) in &self.threads {
            builder.set_known_thread_name(*thread, name);
        }
        seen
    }

    /// Returns the period of the sampler: the median time between two samples on a processor.
    fn period_ns(&self, header: &TraceHeader) -> u64 {
        let mut last: HashMap<u32, u64, RandomState> = HashMap::default();
        let mut gaps = Vec::new();
        for sample in self.samples.iter().filter(|sample| sample.waited.is_none()) {
            if let Some(before) = last.insert(sample.processor, sample.timestamp)
                && before < sample.timestamp
            {
                gaps.push(sample.timestamp - before);
            }
        }
        if gaps.is_empty() {
            return PERIOD_NS;
        }
        let middle = gaps.len() / 2;
        let (_, gap, _) = gaps.select_nth_unstable(middle);
        ns(header, *gap)
    }
}

fn ns(header: &TraceHeader, ticks: u64) -> u64 {
    u64::try_from(header.ticks_to_ns(i128::from(ticks))).unwrap_or(0)
}

/// Processes an event about a process.
fn apply_process_event(
    kind: EventKind,
    process: &mut Process,
    payload: Payload<'_>,
    since: u64,
) -> Option<()> {
    match kind {
        EventKind::Process => process.name = Some(payload.text("Name")?).filter(|name| !name.is_empty()),
        EventKind::Mapping | EventKind::Symbol => {
            let (start, last) = (payload.u64("StartAddress")?, payload.u64("EndAddress")?);
            if kind == EventKind::Mapping {
                let path = payload.text("FileName")?;
                let file = crate::clr::file_stem(&path, &["dll", "exe"]).unwrap_or("?").to_owned();
                process.mappings.add(start, last, since, file);
            } else {
                process.symbols.add(start, last, since, payload.text("Name")?);
            }
        }
        EventKind::Ran | EventKind::Waited => {}
    }
    Some(())
}

struct Namer<'a> {
    processes: &'a BTreeMap<u64, Process>,
    stacks: &'a Stacks,
    frames: HashMap<(u64, u64, bool), FrameHandle, RandomState>,
    named: HashMap<(u64, u32), Option<StackHandle>, RandomState>,
}

impl Namer<'_> {
    fn stack(&mut self, process: u64, index: u32, builder: &mut TraceBuilder) -> Option<StackHandle> {
        if let Some(known) = self.named.get(&(process, index)) {
            return *known;
        }
        let ips = self.stacks.get(usize::try_from(index).unwrap_or(usize::MAX));
        let mut stack = None;
        for (depth, ip) in ips.iter().enumerate().rev() {
            let frame = self.frame(process, *ip, depth == 0, builder);
            stack = Some(builder.stack(stack, frame));
        }
        // Each process names a stack of the stream separately.
        builder.took(ips.len(), ips.len().saturating_mul(LOOK_UP));
        self.named.insert((process, index), stack);
        stack
    }

    fn frame(&mut self, process: u64, ip: u64, is_leaf: bool, builder: &mut TraceBuilder) -> FrameHandle {
        if let Some(known) = self.frames.get(&(process, ip, is_leaf)) {
            return *known;
        }
        // The call is before the return address.
        let address = if is_leaf { ip } else { ip.saturating_sub(1) };
        // The kernel is common to all processes and may be reported with process id 0.
        let both = [process, 0].map(|id| self.processes.get(&id));
        let mut both = both.into_iter().flatten();
        let module = both.clone().find_map(|process| process.mappings.get(address)).map(|range| &*range.text);
        let frame = match both.find_map(|process| process.symbols.get(address)) {
            Some(symbol) => builder.add_frame(&frame::clr(module, &symbol.text)),
            None => builder.add_frame(&frame::clr(module, &format!("{ip:#x}"))),
        };
        self.frames.insert((process, ip, is_leaf), frame);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_their_end_and_never_address_zero() {
        let mut ranges = Ranges::default();
        for (start, last, since, text) in [
            (0, 0, 0, "hidden"),
            (10, 100, 1, "large"),
            (20, 29, 1, "old"),
            (20, 29, 2, "new"),
            (5, 4, 0, "wrong"),
        ] {
            ranges.add(start, last, since, text.to_owned());
        }
        ranges.seal();
        let at = |address| ranges.get(address).map(|range| &*range.text);
        let found = [0, 9, 10, 20, 29, 30, 100, 101].map(at);
        let large = Some("large");
        assert_eq!(found, [None, None, large, Some("new"), Some("new"), large, large, None]);
    }
}
