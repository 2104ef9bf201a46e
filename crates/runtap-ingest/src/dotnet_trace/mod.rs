//! The profile that `dotnet-trace convert` makes of a recording, for those who compare with its files.
//!
//! It differs from [`ProfileBuilder`](crate::ProfileBuilder)'s on purpose:
//!
//! | here | there |
//! |---|---|
//! | roots: process, `(Non-Activities)`, `Threads`, thread; leaf: `CPU_TIME` or `UNMANAGED_CODE_TIME` | code alone |
//! | a sample lasts to the next thing told of its thread, be it a sample, an allocation or a task | to the next sample |
//! | the last interval of a thread is lost | it is kept |
//! | what a task does stands on the stack of the code that started it, on the thread of that code | on its own stack |
//! | an address that is not known is `?!?` | it bears its number |
//!
//! Refuses to: know timers, whose identity needs the garbage collector's moves, and activities of event sources,
//! which group requests at the root of the stack.

mod activity;
mod collect;
mod frames;
mod modules;
mod state;

use runtap_model::{Process, SampleKind, StackHandle, Trace, TraceBuilder};
use runtap_nettrace::{Item, TraceHeader};

use self::activity::{Activities, Awaited};
use self::collect::{Collector, Raw, What};
use self::frames::Frames;
use self::modules::Modules;
use self::state::{Emit, ThreadState};
use crate::names::Names;
use crate::profile::{ProfileOptions, program_name, since_start};
use crate::stacks::Stacks;

/// Collects a stream and makes the profile at its end.
#[derive(Debug, Default)]
pub struct DotnetTraceBuilder {
    header: Option<TraceHeader>,
    names: Names,
    stacks: Stacks,
    collector: Collector,
    modules: Modules,
    /// The time of the last event, or sequence point, that says that all before it was told.
    complete_until: u64,
}

/// A sample as it will be written.
struct Sample {
    thread: u64,
    from: u64,
    to: u64,
    kind: SampleKind,
    stack: StackHandle,
}

impl DotnetTraceBuilder {
    /// Nothing collected yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many events of a known kind had a payload that can't be read.
    pub fn malformed(&self) -> u64 {
        self.names.malformed()
    }

    /// Takes the next item of the stream.
    pub fn item(&mut self, item: &Item<'_>) {
        self.names.item(item);
        match item {
            Item::Header(header) => self.header = Some((*header).clone()),
            Item::Event(event) => {
                self.modules.event(event);
                if event.sorted {
                    self.complete_until = event.timestamp;
                }
                if let Some(what) = self.collector.what(event) {
                    let stack = self.stacks.index(event.stack);
                    self.collector.raw.push(Raw {
                        timestamp: event.timestamp,
                        thread: event.thread_id,
                        stack,
                        what,
                    });
                }
            }
            Item::SequencePoint(point) => self.complete_until = point.timestamp,
            _ => {}
        }
    }

    /// The stream has no end: dotnet-trace does without the events then that it can't put in order.
    pub fn cut_off(&mut self) {
        let until = self.complete_until;
        self.collector.raw.retain(|raw| raw.timestamp <= until);
    }

    /// Names everything and returns the profile. A stream without a header gives an empty one.
    pub fn finish(mut self, options: &ProfileOptions) -> Trace {
        let mut builder = TraceBuilder::new();
        let Some(header) = self.header.take() else { return builder.finish() };
        self.names.seal();
        let command_line = self.names.command_line();
        builder.set_process(Process {
            pid: Some(header.process_id),
            name: options.process_name.clone().or_else(|| command_line.and_then(program_name)),
            command_line: command_line.map(str::to_owned),
        });
        if let Some(start) = header.sync_time {
            builder.set_start_unix_ns(start);
        }
        builder.set_ticks_per_s(u64::try_from(header.qpc_frequency).unwrap_or(0));
        let mut raw = std::mem::take(&mut self.collector.raw);
        raw.sort_by_key(|raw| raw.timestamp);

        let mut frames = Frames::new(&self.names, &self.modules, &self.stacks, builder, &header, &raw);
        let mut samples = samples(&raw, &header, &mut frames);
        samples.sort_by_key(|sample| (sample.from, sample.to));
        let roles = frames.roles();
        let mut builder = frames.into_builder();
        for Sample { thread, from, to, kind, stack } in samples {
            let thread = builder.thread(thread);
            builder.add_weighed(thread, from, to.saturating_sub(from), kind, Some(stack));
        }
        for (thread, role) in roles {
            builder.set_known_thread_name(thread, &format!("({role})"));
        }
        builder.finish()
    }
}

/// Goes through what was collected, in the order of time.
fn samples(raw: &[Raw], header: &TraceHeader, frames: &mut Frames<'_>) -> Vec<Sample> {
    let (cpu, unmanaged) = (frames.label("CPU_TIME"), frames.label("UNMANAGED_CODE_TIME"));
    let awaiting = frames.label("AWAIT_TIME");
    let mut samples = Vec::new();
    let mut activities = Activities::default();
    let mut states: hashbrown::HashMap<u64, ThreadState, foldhash::fast::RandomState> =
        hashbrown::HashMap::default();
    for raw in raw {
        let now = since_start(header, raw.timestamp);
        if let Some(awaited) = activities.take(raw, now, frames) {
            let stack = frames.push(awaited.stack, awaiting);
            let Awaited { thread, since, .. } = awaited;
            samples.push(Sample { thread, from: since, to: now, kind: SampleKind::Other, stack });
        }
        let stack = match raw.what {
            What::Ended(_) | What::Queued(_) | What::Dequeued(_) | What::Parks | What::Is(_) => continue,
            What::AwaitEnds(_) => activities.stack_without_event(raw, frames),
            _ => activities.stack(raw, frames),
        };
        let on_cpu = raw.what != What::Unmanaged;
        let emitted = states.entry(raw.thread).or_default().log(now, stack, on_cpu);
        if let Some(Emit { from, stack: (thread, stack), on_cpu }) = emitted {
            let (leaf, kind) =
                if on_cpu { (cpu, SampleKind::Managed) } else { (unmanaged, SampleKind::External) };
            let stack = frames.push(stack, leaf);
            samples.push(Sample { thread, from, to: now, kind, stack });
        }
    }
    samples
}
