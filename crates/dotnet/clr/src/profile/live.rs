//! The profile of the last seconds of a live session, with the names that are known so far.
//!
//! Memory is bounded: samples beyond the limits are counted and left out.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{Process, SampleKind, Ticks, Trace, TraceBuilder, order};
use runtap_nettrace::{Event, IdTable, Metadata, StreamItem};

use super::namer::Namer;
use super::{ProfileOptions, program_name, sample_kind};
use crate::clr;
use crate::names::{Names, NamingEvent, names_something};
use crate::stacks::Stacks;

/// The limits of a [`LiveProfile`].
#[derive(Debug, Clone, Copy)]
pub struct LiveLimits {
    /// The maximum number of addresses in the distinct stacks.
    pub addresses: usize,
    /// The maximum number of different samples in the window.
    pub samples: usize,
    /// The maximum number of methods whose names are kept.
    pub methods: usize,
}

impl Default for LiveLimits {
    fn default() -> Self {
        Self { addresses: 2 << 20, samples: 200_000, methods: 500_000 }
    }
}

/// Counts equal samples within a moving window, which consists of slices.
#[derive(Debug)]
pub struct LiveProfile {
    limits: LiveLimits,
    /// The meaning of events, by metadata id.
    meanings: IdTable<Meaning>,
    names: Names,
    /// Whether there are names for which lookups are not prepared.
    has_new_names: bool,
    stacks: Stacks,
    /// The number of addresses in `stacks`.
    addresses: usize,
    /// The number of slices in the window, with the current one.
    length: usize,
    /// The complete slices, the oldest first.
    slices: VecDeque<Counts>,
    current: Counts,
    /// The sum of all slices.
    window: Counts,
    /// The time of the latest sample.
    end: u64,
    left_out: u64,
}

/// The meaning of an event.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Nothing,
    Sample,
    Name,
}

/// What distinguishes samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Sampled {
    thread: u64,
    stack: u32,
    is_managed: bool,
}

type Counts = HashMap<Sampled, u32, RandomState>;

impl LiveProfile {
    /// Creates an empty profile, whose window has `slices` slices.
    pub fn new(slices: usize, limits: LiveLimits) -> Self {
        Self {
            limits,
            meanings: IdTable::default(),
            names: Names::new(),
            has_new_names: false,
            stacks: Stacks::default(),
            addresses: 0,
            length: slices.max(1),
            slices: VecDeque::new(),
            current: Counts::default(),
            window: Counts::default(),
            end: 0,
            left_out: 0,
        }
    }

    /// Processes an item of the session with the samples.
    pub fn item(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Event(event) => self.event(event),
            StreamItem::Metadata(metadata) => {
                self.meanings.insert(metadata.id, meaning(metadata));
            }
            // Metadata ids may be reused.
            StreamItem::SequencePoint(point) if point.flushes_metadata() => self.meanings.clear(),
            _ => {}
        }
    }

    /// Learns names from an item of another session of the same process.
    pub fn learn(&mut self, item: &StreamItem<'_>) {
        if let StreamItem::Event(event) = item
            && let Some(metadata) = event.metadata
            && names_something(metadata)
        {
            self.learn_event(metadata, event);
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let Some(metadata) = event.metadata else { return };
        let known = self.meanings.get(event.metadata_id).copied();
        match known.unwrap_or_else(|| meaning(metadata)) {
            Meaning::Nothing => {}
            Meaning::Sample => self.sample(event),
            Meaning::Name => self.learn_event(metadata, event),
        }
    }

    fn learn_event(&mut self, metadata: &Metadata, event: &Event<'_>) {
        if self.names.code().len() < self.limits.methods {
            self.names.learn(&NamingEvent::of(metadata, event));
            self.has_new_names = true;
        }
    }

    fn sample(&mut self, event: &Event<'_>) {
        self.end = self.end.max(event.timestamp);
        if self.addresses >= self.limits.addresses {
            self.left_out += 1;
            return;
        }
        let before = self.stacks.len();
        let stack = self.stacks.index(event.stack);
        if self.stacks.len() > before {
            self.addresses += self.stacks.get(before).len() + 1;
        }
        let is_managed = sample_kind(event.payload) == SampleKind::MANAGED;
        let sampled = Sampled { thread: event.thread_id, stack, is_managed };
        if self.window.len() >= self.limits.samples && !self.window.contains_key(&sampled) {
            self.left_out += 1;
            return;
        }
        *self.current.entry(sampled).or_default() += 1;
        *self.window.entry(sampled).or_default() += 1;
    }

    /// Starts the next slice. The oldest one leaves the window if the window is full.
    pub fn next_slice(&mut self) {
        self.slices.push_back(std::mem::take(&mut self.current));
        while self.slices.len() >= self.length {
            let Some(oldest) = self.slices.pop_front() else { break };
            for (sampled, count) in oldest {
                if let Some(sum) = self.window.get_mut(&sampled) {
                    *sum = sum.saturating_sub(count);
                    if *sum == 0 {
                        self.window.remove(&sampled);
                    }
                }
            }
        }
        if self.addresses >= self.limits.addresses / 2 {
            self.forget_stacks();
        }
    }

    /// Keeps only the stacks of the window.
    fn forget_stacks(&mut self) {
        let old = std::mem::take(&mut self.stacks);
        let mut moved: HashMap<u32, u32, RandomState> = HashMap::default();
        let mut used: Vec<u32> = self.window.keys().map(|sampled| sampled.stack).collect();
        used.sort_unstable();
        used.dedup();
        for index in used {
            let stack = old.get(usize::try_from(index).unwrap_or(usize::MAX));
            moved.insert(index, self.stacks.add(stack));
        }
        for counts in self.slices.iter_mut().chain([&mut self.current, &mut self.window]) {
            *counts = counts
                .drain()
                .filter_map(|(sampled, count)| {
                    Some((Sampled { stack: *moved.get(&sampled.stack)?, ..sampled }, count))
                })
                .collect();
        }
        self.addresses = (0..self.stacks.len()).map(|index| self.stacks.get(index).len() + 1).sum();
    }

    /// Returns the number of samples that were left out because a limit was reached.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the number of methods whose names are known.
    pub fn methods(&self) -> usize {
        self.names.code().len()
    }

    /// Whether the runtime is known to mark every sample correctly as running or waiting. .NET 8 and 9 do not.
    pub fn has_exact_states(&self) -> bool {
        self.names.has_exact_states()
    }

    /// Returns the profile of the window. Its samples have no times: the weight of each is the time for which it stands, and those of
    /// a thread with equal stacks are one.
    pub fn trace(&mut self, options: &ProfileOptions, pid: Option<u32>) -> Trace {
        if std::mem::take(&mut self.has_new_names) {
            self.names.seal();
        }
        let mut builder = TraceBuilder::new();
        let command_line = self.names.command_line();
        builder.set_process(Process {
            pid,
            name: options.process_name.clone().or_else(|| command_line.and_then(program_name)),
            command_line: command_line.map(str::to_owned),
        });
        if self.names.has_exact_states() {
            builder.set_exact_states();
        }
        let mut namer = Namer::new(&self.names, &self.stacks, builder);
        let mut samples: Vec<(&Sampled, &u32)> = self.window.iter().collect();
        order::sort(&mut samples);
        for (sampled, count) in samples {
            let thread = namer.builder.thread(sampled.thread);
            let stack = namer.stack(sampled.stack, self.end);
            let kind = if sampled.is_managed { SampleKind::MANAGED } else { SampleKind::EXTERNAL };
            let weight = u64::from(*count).saturating_mul(Ticks::DEFAULT_PERIOD_NS);
            namer.builder.add_weighted(thread, 0, weight, kind, stack);
        }
        let mut builder = namer.builder;
        for (tid, name) in &options.thread_names {
            builder.set_known_thread_name(*tid, name);
        }
        builder.finish()
    }
}

fn meaning(metadata: &Metadata) -> Meaning {
    if (metadata.provider.as_str(), metadata.event_id) == (clr::SAMPLE_PROFILER, 0) {
        Meaning::Sample
    } else if names_something(metadata) {
        Meaning::Name
    } else {
        Meaning::Nothing
    }
}

#[cfg(test)]
mod tests {
    use runtap_model::{FrameTotals, View};
    use runtap_nettrace::{EventToWrite, Reader, TraceHeader, Version, Writer};
    use runtap_wire::Writer as Bytes;

    use super::*;

    /// Returns the items of a stream with samples (thread, stack, whether managed).
    fn stream(samples: &[(u64, &[u64], bool)]) -> Vec<u8> {
        let mut writer = Writer::with_version(&TraceHeader::new(0, 0, 1), Version::Nettrace4);
        let metadata_id = writer.define_event(&Metadata::new(clr::SAMPLE_PROFILER, 0, "")).unwrap();
        for (index, (thread_id, stack, is_managed)) in samples.iter().enumerate() {
            let payload = [if *is_managed { 2 } else { 1 }, 0, 0, 0];
            let timestamp = index as u64 + 1;
            let event = EventToWrite {
                metadata_id,
                timestamp,
                thread_id: *thread_id,
                stack,
                payload: &payload,
                ..Default::default()
            };
            writer.event(&event).unwrap();
        }
        writer.finish()
    }

    /// Returns a stream that names methods of 16 bytes at these addresses.
    fn naming(methods: &[(&str, u64)]) -> Vec<u8> {
        let mut writer = Writer::with_version(&TraceHeader::new(0, 0, 1), Version::Nettrace4);
        let metadata_id = writer.define_event(&Metadata::new(clr::RUNDOWN, 144, "")).unwrap();
        for (name, start) in methods {
            let mut payload = Bytes::new();
            payload.u64(*start).u64(0x20).u64(*start).u32(16).u32(0).u32(8);
            payload.utf16z("").utf16z(name).utf16z("()").u16(0).u64(0);
            let payload = payload.into_bytes();
            writer
                .event(&EventToWrite { metadata_id, timestamp: 1, payload: &payload, ..Default::default() })
                .unwrap();
        }
        writer.finish()
    }

    fn each(bytes: &[u8], see: impl FnMut(StreamItem<'_>)) {
        Reader::new().items(bytes).for_each(see).unwrap();
    }

    fn limits() -> LiveLimits {
        LiveLimits::default()
    }

    /// Returns the frames with their own and total samples.
    fn totals(profile: &mut LiveProfile, view: View) -> Vec<(String, u64, u64)> {
        let trace = profile.trace(&ProfileOptions::default(), Some(1));
        let totals = FrameTotals::new(&trace, view, None);
        let samples = |weight: u64| weight / Ticks::DEFAULT_PERIOD_NS;
        let row = |(handle, frame): (_, runtap_model::Frame<'_>)| {
            (frame.name.to_owned(), samples(totals.self_weight(handle)), samples(totals.total_weight(handle)))
        };
        trace.all_frames().map(row).collect()
    }

    #[test]
    fn names_of_another_session_apply_to_earlier_samples() {
        let mut profile = LiveProfile::new(10, limits());
        let stack: &[u64] = &[0x1004, 0x2008];
        each(&stream(&[(1, stack, true), (1, stack, true), (2, &[0x2004], false)]), |item| {
            profile.item(&item);
        });
        let unknown = totals(&mut profile, View::ThreadTime);
        assert!(unknown.iter().all(|(name, ..)| name.starts_with("0x")), "{unknown:?}");
        each(&naming(&[("hot", 0x1000), ("main", 0x2000)]), |item| profile.learn(&item));
        assert_eq!(
            totals(&mut profile, View::Cpu),
            [("main()".to_owned(), 0, 2), ("hot()".to_owned(), 2, 2)]
        );
        let all = totals(&mut profile, View::ThreadTime);
        assert_eq!(all, [("main()".to_owned(), 1, 3), ("hot()".to_owned(), 2, 2)]);
        assert_eq!(profile.methods(), 2);
    }

    #[test]
    fn slices_leave_the_window() {
        let mut profile = LiveProfile::new(2, limits());
        each(&stream(&[(1, &[0x10], true)]), |item| profile.item(&item));
        profile.next_slice();
        each(&stream(&[(1, &[0x20], true), (1, &[0x10], true)]), |item| profile.item(&item));
        let counts = |profile: &mut LiveProfile| {
            totals(profile, View::Cpu).into_iter().map(|(_, own, _)| own).sum::<u64>()
        };
        assert_eq!(counts(&mut profile), 3);
        profile.next_slice();
        assert_eq!(counts(&mut profile), 2);
        profile.next_slice();
        assert_eq!(counts(&mut profile), 0);
    }

    #[test]
    fn stacks_that_left_the_window_are_forgotten() {
        let limits = LiveLimits { addresses: 100, ..limits() };
        let mut profile = LiveProfile::new(3, limits);
        for round in 0..50_u64 {
            let stacks: Vec<Vec<u64>> = (0..8).map(|index| vec![round * 100 + index, 7]).collect();
            let samples: Vec<_> = stacks.iter().map(|stack| (1, stack.as_slice(), true)).collect();
            each(&stream(&samples), |item| profile.item(&item));
            profile.next_slice();
            assert!(profile.addresses <= 100 && profile.stacks.len() <= 34, "{}", profile.stacks.len());
        }
        let totals = totals(&mut profile, View::Cpu);
        assert_eq!(totals.iter().map(|(_, own, _)| own).sum::<u64>(), 16);
        assert_eq!(totals.iter().find(|(name, ..)| name == "0x7").map(|(_, _, total)| *total), Some(16));
        assert_eq!(profile.left_out(), 0);
    }

    #[test]
    fn limits_hold() {
        let limits = LiveLimits { addresses: 20, samples: 4, methods: 3 };
        let mut profile = LiveProfile::new(3, limits);
        let stacks: Vec<[u64; 1]> = (0..100).map(|ip| [ip]).collect();
        let samples: Vec<_> = stacks.iter().map(|stack| (1, stack.as_slice(), true)).collect();
        each(&stream(&samples), |item| profile.item(&item));
        assert_eq!((profile.window.len(), profile.left_out()), (4, 96));
        assert!(profile.addresses <= 21);
        let names: Vec<String> = (0..10).map(|index| format!("m{index}")).collect();
        let methods: Vec<(&str, u64)> =
            names.iter().zip(1..).map(|(name, at)| (name.as_str(), at * 0x100)).collect();
        each(&naming(&methods), |item| profile.learn(&item));
        assert_eq!(profile.methods(), 3);
    }
}
