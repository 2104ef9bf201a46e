//! Creates profiles from streams: samples or the events of a view, with stacks, method names and threads.

mod collect;
mod live;
mod namer;
mod parts;
mod tasks;
mod universal;
mod views;

use std::num::NonZero;

use runtap_model::{Process, Room, Run, SampleKind, ThreadTicks, Ticks, Trace, TraceBuilder, View};
use runtap_nettrace::{Event, IdTable, Metadata, Observe, Stack, StreamItem, TraceHeader};

use self::collect::Collector;
pub use self::live::{LiveLimits, LiveProfile};
use self::namer::Namer;
use self::parts::Part;
use self::universal::Universal;
use crate::clr;
use crate::dotnet_trace::DotnetTraceBuilder;
use crate::names::{Names, NamingEvent, names_something};
use crate::stacks::Stacks;

/// Information about the program that is not in the stream.
#[derive(Debug, Clone, Default)]
pub struct ProfileOptions {
    /// The names of threads, by the operating system's thread id.
    pub thread_names: Vec<(u64, String)>,
    /// The name of the program. By default derived from the command line.
    pub process_name: Option<String>,
    /// The limits of the profile. Samples beyond them are [left out](Trace::left_out).
    pub room: Room,
}

/// Collects what a profile needs while a stream is read, and creates the profile at the end, when all names are known.
///
/// Memory: 16 bytes per run of equal samples, 56 per event of the view, and each distinct stack and method once.
#[derive(Debug, Clone)]
pub struct ProfileBuilder {
    header: Option<TraceHeader>,
    /// The actions for events, by metadata id.
    actions: IdTable<Action>,
    names: Names,
    stacks: Stacks,
    ticks: Ticks,
    /// The collector for a view that consists of events.
    events: Option<(View, Collector)>,
    /// The builder for the view of requests, which processes all items.
    requests: Option<Box<DotnetTraceBuilder>>,
    /// The data of recordings of a whole machine.
    universal: Universal,
    /// The time of the last event of any kind.
    end: u64,
    /// What is kept for later if this is a part of a stream.
    part: Option<Part>,
}

impl Default for ProfileBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// The actions for an event, as bits.
#[derive(Debug, Clone, Copy)]
struct Action(NonZero<u8>);

impl Action {
    /// No action. Always set.
    const SEEN: NonZero<u8> = NonZero::<u8>::MIN;
    const SAMPLE: u8 = 2;
    const LEARN: u8 = 4;
    const COLLECT: u8 = 8;
    const UNIVERSAL: u8 = 16;
    /// Pass the event to the view of requests. Excludes all others.
    const REQUEST: u8 = 32;
}

impl ProfileBuilder {
    /// Creates a builder for the views of sampler ticks.
    pub fn new() -> Self {
        Self {
            header: None,
            actions: IdTable::default(),
            names: Names::new(),
            stacks: Stacks::default(),
            ticks: Ticks::default(),
            events: None,
            requests: None,
            universal: Universal::default(),
            end: 0,
            part: None,
        }
    }

    /// Creates a builder for a view.
    pub fn of(view: View) -> Self {
        let requests = (view == View::Request).then(|| Box::new(DotnetTraceBuilder::of_requests()));
        let events = (!view.is_sampled()).then(|| (view, Collector::new(view)));
        Self { events, requests, ..Self::new() }
    }

    /// Returns the number of samples.
    pub fn samples(&self) -> usize {
        self.ticks.len() + self.universal.len()
    }

    /// Returns the number of events of a known kind whose payload could not be read.
    pub fn malformed(&self) -> u64 {
        self.names.malformed()
            + self.universal.malformed
            + self.requests.as_ref().map_or(0, |requests| requests.malformed())
            + self.events.as_ref().map_or(0, |(_, events)| events.malformed)
    }

    #[inline(never)]
    fn no_event(&mut self, item: &StreamItem<'_>) {
        if let Some(requests) = &mut self.requests {
            requests.item(item);
        }
        match item {
            StreamItem::Header(header) => self.header = Some((*header).clone()),
            StreamItem::Metadata(metadata) => {
                self.define(metadata);
                if let Some(part) = &mut self.part {
                    part.define(metadata);
                }
            }
            // Metadata ids may be reused.
            StreamItem::SequencePoint(point) if point.flushes_metadata() => self.actions.clear(),
            _ => {}
        }
        match &mut self.events {
            Some((_, events)) => events.item(item),
            None => self.universal.item(item),
        }
    }

    fn define(&mut self, metadata: &Metadata) {
        self.actions.insert(metadata.id, self.action_of(metadata));
    }

    fn action_of(&self, metadata: &Metadata) -> Action {
        if self.requests.is_some() {
            return Action(Action::SEEN | Action::REQUEST);
        }
        let mut action = Action::SEEN;
        match &self.events {
            Some((_, events)) if events.wants(metadata) => action |= Action::COLLECT,
            Some(_) => {}
            None if (metadata.provider.as_str(), metadata.event_id) == (clr::SAMPLE_PROFILER, 0) => {
                action |= Action::SAMPLE;
            }
            None if universal::wants(metadata) => action |= Action::UNIVERSAL,
            None => {}
        }
        if names_something(metadata) {
            action |= Action::LEARN;
        }
        Action(action)
    }

    /// Passes values by copy to functions that are not inlined, so that ignored events need not be stored in memory.
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        self.end = self.end.max(event.timestamp);
        match self.actions.get_dense(event.metadata_id) {
            Some(Action(Action::SEEN)) => {}
            Some(Action(action)) if *action == Action::SEEN | Action::SAMPLE => {
                self.sample(event.thread_id, event.timestamp, event.stack, event.payload);
            }
            Some(action) => self.act(*action, &{ *event }),
            None => self.rare(&{ *event }),
        }
    }

    #[inline(never)]
    fn rare(&mut self, event: &Event<'_>) {
        if let Some(action) = self.actions.get(event.metadata_id) {
            self.act(*action, event);
            return;
        }
        // The definition came before this builder was used.
        let Some(metadata) = event.metadata else { return };
        self.define(metadata);
        self.act(self.action_of(metadata), event);
    }

    #[inline(never)]
    fn act(&mut self, Action(action): Action, event: &Event<'_>) {
        let action = action.get();
        if let Some(requests) = &mut self.requests {
            requests.item(&StreamItem::Event(*event));
            return;
        }
        if action & Action::SAMPLE != 0 {
            self.sample(event.thread_id, event.timestamp, event.stack, event.payload);
        }
        let Some(metadata) = event.metadata else { return };
        if action & Action::LEARN != 0 {
            let event = NamingEvent::of(metadata, event);
            match &mut self.part {
                Some(part) => part.naming.take(&event),
                None => self.names.learn(&event),
            }
            // From here on, an address may belong to another method.
            self.ticks.split();
        }
        if action & (Action::UNIVERSAL | Action::COLLECT) == 0 {
            return;
        }
        if let Some(part) = &mut self.part {
            part.refuses = true;
        } else if action & Action::UNIVERSAL != 0 {
            self.universal.event(metadata, event, &mut self.stacks);
        } else if let Some((_, events)) = &mut self.events {
            events.event(metadata, event, self.stacks.index(event.stack));
        }
    }

    #[inline(never)]
    fn sample(&mut self, thread: u64, timestamp: u64, stack: Stack<'_>, payload: &[u8]) {
        let stack = self.stacks.index(stack);
        self.ticks.add(thread, timestamp, sample_kind(payload), stack);
    }

    /// Returns the profile so far, as if the stream ended here. Temporarily needs memory for a copy.
    pub fn snapshot(&self, options: &ProfileOptions) -> Trace {
        self.clone().finish(options)
    }

    /// Creates the profile. Empty for a stream without a header.
    pub fn finish(mut self, options: &ProfileOptions) -> Trace {
        if let Some(requests) = self.requests {
            return requests.finish(options);
        }
        let mut builder = TraceBuilder::new();
        let Some(header) = self.header.take() else { return builder.finish() };
        // Otherwise everything before the start in the header would have the same time.
        let header = header.started_by(self.first());
        builder.set_room(options.room.clone());
        self.names.seal();
        if self.ticks.is_empty() && !self.universal.is_empty() {
            return self.of_machine(&header, builder, options);
        }
        let name = options.process_name.clone();
        let command_line = self.names.command_line();
        builder.set_process(Process {
            pid: Some(header.process_id),
            name: name.or_else(|| command_line.and_then(program_name)),
            command_line: command_line.map(str::to_owned),
        });
        if let Some(start) = header.sync_time {
            builder.set_start_unix_ns(start);
        }
        if self.names.has_exact_states() {
            builder.set_exact_states();
        }

        let mut namer = Namer::new(&self.names, &self.stacks, builder);
        if !self.ticks.is_empty() {
            let period_ns = self.ticks.period().map(|period| header.ticks_to_ns(period.into()));
            let period_ns = period_ns.and_then(|ns| u64::try_from(ns).ok());
            namer
                .builder
                .set_sampling(period_ns.unwrap_or(Ticks::DEFAULT_PERIOD_NS), self.ticks.out_of_order());
        }
        namer.builder.leave_out(self.ticks.left_out());
        for ThreadTicks { tid, runs, last, .. } in self.ticks.into_threads() {
            // A named run replaces the original one in place.
            let named = runs.into_iter().filter_map(|run| {
                let has_room = namer.builder.has_room(run.ticks().into());
                has_room.then(|| run.named(since_start(&header, run.time), namer.stack(run.stack, run.time)))
            });
            let named: Vec<Run> = named.collect();
            if named.is_empty() {
                continue;
            }
            let thread = namer.builder.thread(tid);
            namer.builder.add_runs(thread, named, since_start(&header, last));
        }
        if let Some((view, events)) = self.events.take() {
            namer.builder.set_duration_ns(since_start(&header, self.end));
            views::add(view, events, &header, self.end, &self.names, &mut namer);
        }
        let mut builder = namer.builder;
        for (tid, name) in &options.thread_names {
            builder.set_known_thread_name(*tid, name);
        }
        builder.finish()
    }
}

impl ProfileBuilder {
    /// Returns the time of the first sample or event. `u64::MAX` without samples and events.
    fn first(&self) -> u64 {
        let events = self.events.iter().flat_map(|(_, events)| &events.raw).map(|raw| raw.timestamp);
        events.chain(self.ticks.first()).chain(self.universal.first()).min().unwrap_or(u64::MAX)
    }
}

impl Observe for ProfileBuilder {
    #[inline]
    fn item(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Event(event) => self.event(event),
            _ => self.no_event(item),
        }
    }
}

impl ProfileBuilder {
    /// Creates the profile of a recording of a whole machine or several processes.
    fn of_machine(self, header: &TraceHeader, mut builder: TraceBuilder, options: &ProfileOptions) -> Trace {
        if let Some(start) = header.sync_time {
            builder.set_start_unix_ns(start);
        }
        builder.set_duration_ns(since_start(header, self.end));
        let mut processes = self.universal.add(header, &self.stacks, &mut builder).into_iter();
        let first = processes.next();
        let others = processes.len();
        let (pid, name) = first.map_or((None, None), |(pid, name)| (u32::try_from(pid).ok(), name));
        let mut process = Process { pid, name, command_line: None };
        if others > 0 {
            let plural = if others == 1 { "process" } else { "processes" };
            process = Process {
                pid: None,
                name: Some(format!("{} and {others} other {plural}", process.label())),
                command_line: None,
            };
        }
        process.name = options.process_name.clone().or(process.name);
        builder.set_process(process);
        for (tid, name) in &options.thread_names {
            builder.set_known_thread_name(*tid, name);
        }
        builder.finish()
    }
}

/// Returns the state of the thread in a sample.
#[inline]
fn sample_kind(payload: &[u8]) -> SampleKind {
    match payload.first_chunk::<4>().map(|bytes| i32::from_le_bytes(*bytes)) {
        Some(1) => SampleKind::EXTERNAL,
        Some(2) => SampleKind::MANAGED,
        _ => SampleKind::OTHER,
    }
}

pub(crate) fn since_start(header: &TraceHeader, timestamp: u64) -> u64 {
    u64::try_from(header.relative_ns(timestamp)).unwrap_or(0)
}

/// Returns the name of the entry assembly (`app` for `/usr/bin/dotnet /srv/app.dll x`), or else of the executable.
pub(crate) fn program_name(command_line: &str) -> Option<String> {
    let stem = |path| clr::file_stem(path, &["dll", "exe"]);
    // Arguments are joined by spaces, so a path with a space looks like two arguments.
    let mut words = command_line.split_ascii_whitespace().map(|word| word.trim_matches('"'));
    let first = words.next()?;
    if stem(first).is_some_and(|name| name.eq_ignore_ascii_case("dotnet"))
        && let Some(assembly) = words.find(|word| word.to_ascii_lowercase().ends_with(".dll"))
    {
        return stem(assembly).map(str::to_owned);
    }
    stem(first).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_names() {
        for (line, name) in [
            ("/usr/share/dotnet/dotnet /srv/app/My.App.dll 1 2", Some("My.App")),
            ("dotnet exec --depsfile x.json App.DLL", Some("App")),
            ("/opt/tool/azmcp /opt/tool/azmcp.dll server", Some("azmcp")),
            ("C:\\x\\app.exe", Some("app")),
            ("", None),
        ] {
            assert_eq!(program_name(line).as_deref(), name, "{line}");
        }
    }
}
