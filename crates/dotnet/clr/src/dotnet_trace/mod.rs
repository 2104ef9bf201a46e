//! Creates the profile that `dotnet-trace convert` creates from a recording, for comparison with its files.
//!
//! It differs from [`ProfileBuilder`](crate::ProfileBuilder) on purpose:
//!
//! | here | there |
//! |---|---|
//! | roots: process, `(Non-Activities)`, `Threads`, thread; leaf: `CPU_TIME` or `UNMANAGED_CODE_TIME` | code only |
//! | a sample lasts until the next event of its thread: a sample, an allocation or a task | until the next sample |
//! | the last interval of a thread is lost | it is kept |
//! | the frames of a task are on the stack and thread of the code that started it | on its own stack |
//! | an unknown address is `?!?` | its number is shown |
//! | work for a request or another activity is below it at the root | the view `request` |
//!
//! Timers are not supported, as in dotnet-trace.

mod activity;
mod collect;
mod frames;
mod ids;
mod modules;
mod overlaps;
mod part;
mod paths;
mod requests;
mod spans;
mod state;
mod view;

use runtap_model::{FrameHandle, Process, SampleKind, StackHandle, Trace, TraceBuilder, order};
use runtap_nettrace::{Observe, StreamItem, TraceHeader};

use self::activity::{Activities, Awaited};
use self::collect::{Collector, Raw, RawKind};
use self::frames::Frames;
use self::modules::Modules;
use self::requests::Requests;
use self::state::{Emit, Purpose, ThreadState};
use crate::names::Names;
use crate::profile::{ProfileOptions, program_name, since_start};
use crate::stacks::Stacks;

/// Collects a stream and creates the profile at its end.
#[derive(Debug, Clone, Default)]
pub struct DotnetTraceBuilder {
    header: Option<TraceHeader>,
    names: Names,
    stacks: Stacks,
    collector: Collector,
    modules: Modules,
    /// The time of the last event or sequence point before which all events are known.
    complete_until: u64,
}

/// A sample in the profile.
struct Sample {
    thread: u64,
    from: u64,
    to: u64,
    kind: SampleKind,
    stack: StackHandle,
    purpose: Purpose,
}

impl DotnetTraceBuilder {
    /// Creates an empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a builder for the view `request`, which needs the same events.
    pub(crate) fn of_requests() -> Self {
        let mut new = Self::default();
        new.collector.requests = true;
        new
    }

    /// Returns the number of events of a known kind whose payload could not be read.
    pub fn malformed(&self) -> u64 {
        self.names.malformed()
    }

    /// Drops the last events of a stream without an end, as dotnet-trace does: their order is uncertain.
    pub fn cut_off(&mut self) {
        let until = self.complete_until;
        self.collector.raw.retain(|raw| raw.timestamp <= until);
    }

    /// Creates the profile. Empty for a stream without a header.
    pub fn finish(mut self, options: &ProfileOptions) -> Trace {
        let mut builder = TraceBuilder::new();
        let Some(header) = self.header.take() else { return builder.finish() };
        let first = self.collector.raw.iter().map(|raw| raw.timestamp).min();
        let header = header.started_by(first.unwrap_or(u64::MAX));
        builder.set_room(options.room.clone());
        self.names.seal();
        let command_line = self.names.command_line();
        let process = Process {
            pid: Some(header.process_id),
            name: options.process_name.clone().or_else(|| command_line.and_then(program_name)),
            command_line: command_line.map(str::to_owned),
        };
        builder.set_process(process.clone());
        if let Some(start) = header.sync_time {
            builder.set_start_unix_ns(start);
        }
        builder.set_ticks_per_s(u64::try_from(header.qpc_frequency).unwrap_or(0));
        let mut raw = std::mem::take(&mut self.collector.raw);
        order::sort_by_number(&mut raw, |raw| raw.timestamp);

        let mut frames = Frames::new(&self.names, &self.modules, &self.stacks, builder, &header, &raw);
        if self.collector.requests {
            let mut frames = frames.plain();
            let mut requests = Requests::of_view(header.process_id);
            overlaps::detach(&raw, &mut self.collector.spans, &header);
            let pieces = samples(&raw, &self.collector, &header, &mut frames, &mut requests);
            let has = |is_kind: fn(&RawKind) -> bool| raw.iter().any(|raw| is_kind(&raw.kind));
            if has(|it| matches!(it, RawKind::Awaits { blocks: false, .. }))
                && !has(|it| matches!(it, RawKind::Suspends))
            {
                frames.builder().set_lacks_resumptions();
            }
            let end = raw.last().map_or(0, |raw| since_start(&header, raw.timestamp));
            return view::finish(&requests, pieces, end, frames.into_builder(), process);
        }
        let mut samples = samples(&raw, &self.collector, &header, &mut frames, &mut Requests::default());
        samples.sort_by_key(|sample| (sample.from, sample.to));
        let roles = frames.roles();
        let mut builder = frames.into_builder();
        for Sample { thread, from, to, kind, stack, .. } in samples {
            let Some(thread) = builder.thread_for_sample(thread) else { continue };
            builder.add_weighted(thread, from, to.saturating_sub(from), kind, Some(stack));
        }
        for (thread, role) in roles {
            builder.set_known_thread_name(thread, &format!("({role})"));
        }
        builder.finish()
    }
}

impl Observe for DotnetTraceBuilder {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.names.item(item);
        match item {
            StreamItem::Header(header) => self.header = Some((*header).clone()),
            StreamItem::Event(event) => {
                self.modules.event(event);
                if event.sorted {
                    self.complete_until = event.timestamp;
                }
                let (pid, pointer_size) =
                    self.header.as_ref().map_or((0, 8), |header| (header.process_id, header.pointer_size));
                if let Some(kind) = self.collector.kind_of(event, pid, pointer_size) {
                    let stack = self.stacks.index(event.stack);
                    let activity = self.collector.activity(event);
                    self.collector.raw.push(Raw {
                        timestamp: event.timestamp,
                        thread: event.thread_id,
                        stack,
                        activity,
                        kind,
                    });
                }
            }
            StreamItem::Metadata(metadata) => self.collector.redefined(metadata.id),
            StreamItem::SequencePoint(point) => {
                self.complete_until = point.timestamp;
                if point.flushes_metadata() {
                    self.collector.forget_kinds();
                }
            }
            _ => {}
        }
    }
}

/// Processes the collected events in the order of time.
fn samples(
    raw: &[Raw],
    collector: &Collector,
    header: &TraceHeader,
    frames: &mut Frames<'_>,
    requests: &mut Requests,
) -> Vec<Sample> {
    let leaves = Leaves::new(frames, requests.plain);
    let mut samples = Vec::new();
    let mut activities = Activities::default();
    let mut states: hashbrown::HashMap<u64, ThreadState, foldhash::fast::RandomState> =
        hashbrown::HashMap::default();
    let mut awaits = Awaits::default();
    for raw in raw {
        if matches!(raw.kind, RawKind::Is(_)) {
            continue;
        }
        let is_sample = matches!(raw.kind, RawKind::Managed | RawKind::Unmanaged);
        if !frames.has_room(is_sample) {
            continue;
        }
        requests.settle();
        let now = since_start(header, raw.timestamp);
        if requests.plain {
            if let RawKind::Scheduled(_) | RawKind::Awaits { .. } | RawKind::OperationBegins(_) = raw.kind {
                requests.seen(collector.id(raw.activity), activities.doing(raw.thread));
            }
            match raw.kind {
                RawKind::Awaits { task, blocks: false, .. } => {
                    let (thread, path) = activities.stack_of_await(raw, frames);
                    let request = requests.of(activities.doing(raw.thread));
                    let stack = frames.written((thread, path), request, requests);
                    let stack = frames.push(stack, leaves.awaits);
                    let (kind, from, to) = (SampleKind::OTHER, now, u64::MAX);
                    let purpose = Purpose { request, ..Purpose::default() };
                    awaits.entry(task).or_default().push(Sample { thread, from, to, kind, stack, purpose });
                }
                RawKind::AwaitEnds(task) | RawKind::OperationEnds(task) => {
                    let ended = awaits.remove(&task).into_iter().flatten();
                    samples.extend(ended.map(|sample| Sample { to: now, ..sample }));
                }
                _ => {}
            }
        }
        if let RawKind::Begins(span) | RawKind::Stops(span) = raw.kind {
            let doing = activities.doing(raw.thread);
            match (raw.kind, collector.spans.get(span)) {
                (RawKind::Begins(_), Some(span)) => requests.begin(span, raw.thread, now, doing),
                (_, Some(span)) => requests.end(span, now, doing),
                _ => {}
            }
            continue;
        }
        if let Some(Awaited { since, stack, doing }) = activities.take(raw, now, frames, requests)
            && !requests.plain
        {
            let request = requests.of_await(doing, since);
            let written = frames.written(stack, request, requests);
            let (thread, kind) = (stack.0, SampleKind::OTHER);
            let stack = frames.push(written, leaves.awaits);
            let purpose = Purpose { request, ..Purpose::default() };
            samples.push(Sample { thread, from: since, to: now, kind, stack, purpose });
        }
        let stack = match raw.kind {
            RawKind::Ended(_)
            | RawKind::OperationEnds(_)
            | RawKind::Queued(_)
            | RawKind::Dequeued(_)
            | RawKind::Parks
            | RawKind::Resumes(_)
            | RawKind::Suspends => continue,
            RawKind::AwaitEnds(_) => activities.stack_without_event(raw, frames),
            _ => activities.stack(raw, frames),
        };
        let doing = activities.doing(raw.thread);
        let idle = is_sample && frames.is_idle(raw.stack, raw.timestamp);
        if idle {
            requests.leave(doing);
        }
        let request = requests.of(doing).filter(|_| !idle);
        let on_cpu = raw.kind != RawKind::Unmanaged;
        let waits_for_task = !on_cpu && frames.waits_for_task(raw.stack, raw.timestamp);
        let purpose = Purpose { request, waits_for_task };
        let stack = (stack.0, frames.written(stack, request, requests), purpose);
        let emitted = states.entry(raw.thread).or_default().log(now, stack, on_cpu);
        if let Some(Emit { from, stack: (thread, stack, purpose), on_cpu }) = emitted {
            let (leaf, kind) = if on_cpu {
                (leaves.runs, SampleKind::MANAGED)
            } else {
                (Some(leaves.waits), SampleKind::EXTERNAL)
            };
            let stack = leaf.map_or(stack, |leaf| frames.push(stack, leaf));
            samples.push(Sample { thread, from, to: now, kind, stack, purpose });
        }
    }
    // Awaits that did not end are clipped at the end of their request.
    samples.extend(awaits.into_values().flatten());
    samples
}

/// Pending awaits, by the awaited task.
type Awaits = hashbrown::HashMap<collect::Work, Vec<Sample>, foldhash::fast::RandomState>;

/// The leaf frames that show what a thread did.
struct Leaves {
    runs: Option<FrameHandle>,
    waits: FrameHandle,
    awaits: FrameHandle,
}

impl Leaves {
    fn new(frames: &mut Frames<'_>, plain: bool) -> Self {
        if plain {
            let (waits, awaits) = (frames.label(view::WAITS), frames.label(view::AWAITS));
            return Self { runs: None, waits, awaits };
        }
        let (runs, waits) = (frames.label("CPU_TIME"), frames.label("UNMANAGED_CODE_TIME"));
        Self { runs: Some(runs), waits, awaits: frames.label("AWAIT_TIME") }
    }
}
