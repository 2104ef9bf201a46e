//! From a stream to a profile: samples, stacks, method names, threads.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{FrameHandle, Process, SampleKind, StackHandle, Trace, TraceBuilder};
use runtap_nettrace::{Event, Item, Metadata, TraceHeader};

use crate::clr;
use crate::code_map::MethodId;
use crate::names::{Names, tells};
use crate::stacks::Stacks;

/// What a stream can't tell about its program.
#[derive(Debug, Clone, Default)]
pub struct ProfileOptions {
    /// Names of threads by the operating system's number.
    pub thread_names: Vec<(u64, String)>,
    /// Name of the program; by default the one that its command line gives.
    pub process_name: Option<String>,
}

/// Collects what a profile needs while a stream is read, and puts it together at the end, when all names are known.
///
/// Memory: 24 bytes a sample, and each distinct stack and each method once.
#[derive(Debug, Default)]
pub struct ProfileBuilder {
    header: Option<TraceHeader>,
    /// What to do with an event, by metadata id.
    actions: Vec<Action>,
    names: Names,
    stacks: Stacks,
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Action {
    /// Not seen yet.
    #[default]
    Unknown,
    Ignore,
    Sample,
    Learn,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    timestamp: u64,
    thread: u64,
    /// Index into [`Stacks`].
    stack: u32,
    kind: SampleKind,
}

impl ProfileBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many samples were seen.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// How many events of a known kind had a payload that can't be read.
    pub fn malformed(&self) -> u64 {
        self.names.malformed()
    }

    /// Takes the next item of the stream.
    pub fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Header(header) => self.header = Some((*header).clone()),
            Item::Metadata(metadata) => self.define(metadata),
            Item::Event(event) => self.event(event),
            Item::SequencePoint(_) => self.stacks.forget_ids(),
            _ => {}
        }
    }

    fn define(&mut self, metadata: &Metadata) {
        let id = usize::try_from(metadata.id).unwrap_or(usize::MAX);
        if id >= 1 << 20 {
            return;
        }
        if self.actions.len() <= id {
            self.actions.resize(id + 1, Action::Unknown);
        }
        if let Some(action) = self.actions.get_mut(id) {
            *action = action_of(metadata);
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let id = usize::try_from(event.metadata_id).unwrap_or(usize::MAX);
        let mut action = self.actions.get(id).copied().unwrap_or_default();
        if action == Action::Unknown {
            // A definition that came before we listened, or an id too large for the table.
            action = event.metadata.map_or(Action::Ignore, action_of);
        }
        match action {
            Action::Ignore | Action::Unknown => {}
            Action::Sample => self.sample(event),
            Action::Learn => {
                if let Some(metadata) = event.metadata {
                    self.names.learn(metadata, event);
                }
            }
        }
    }

    fn sample(&mut self, event: &Event<'_>) {
        let kind = match event.payload.first_chunk::<4>().map(|bytes| i32::from_le_bytes(*bytes)) {
            Some(1) => SampleKind::External,
            Some(2) => SampleKind::Managed,
            _ => SampleKind::Other,
        };
        let stack = self.stacks.index(event);
        self.samples.push(Sample { timestamp: event.timestamp, thread: event.thread_id, stack, kind });
    }

    /// Names everything and returns the profile. A stream without a header gives an empty one.
    pub fn finish(mut self, options: &ProfileOptions) -> Trace {
        let mut builder = TraceBuilder::new();
        let Some(header) = self.header.take() else { return builder.finish() };
        self.names.seal();
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

        let mut namer = Namer {
            names: &self.names,
            builder,
            always: HashMap::default(),
            frames: HashMap::default(),
            unknown: HashMap::default(),
        };
        let mut named: Vec<Option<Named>> = vec![None; self.stacks.list.len()];
        for sample in &self.samples {
            let index = usize::try_from(sample.stack).unwrap_or(usize::MAX);
            let stack = match named.get(index).copied().flatten() {
                Some(Named::Always(stack)) => stack,
                Some(Named::Depends) => namer.stack(self.stacks.get(index), sample.timestamp).0,
                None => {
                    let (stack, always) = namer.stack(self.stacks.get(index), sample.timestamp);
                    if let Some(slot) = named.get_mut(index) {
                        *slot = Some(if always { Named::Always(stack) } else { Named::Depends });
                    }
                    stack
                }
            };
            let thread = namer.builder.thread(sample.thread);
            let time = since_start(&header, sample.timestamp);
            namer.builder.add_sample(thread, time, sample.kind, stack);
        }
        let mut builder = namer.builder;
        let mut seen: Vec<u64> = self.samples.iter().map(|sample| sample.thread).collect();
        seen.sort_unstable();
        for (tid, name) in &options.thread_names {
            if seen.binary_search(tid).is_ok() {
                let thread = builder.thread(*tid);
                builder.set_thread_name(thread, name);
            }
        }
        builder.finish()
    }
}

fn since_start(header: &TraceHeader, timestamp: u64) -> u64 {
    u64::try_from(header.relative_ns(timestamp)).unwrap_or(0)
}

fn action_of(metadata: &Metadata) -> Action {
    match (metadata.provider.as_str(), metadata.event_id) {
        (clr::SAMPLE_PROFILER, 0) => Action::Sample,
        _ if tells(metadata) => Action::Learn,
        _ => Action::Ignore,
    }
}

/// The entry assembly's name (`/usr/bin/dotnet /srv/app.dll x` is `app`), else the executable's.
fn program_name(command_line: &str) -> Option<String> {
    let stem = |path| clr::file_stem(path, &["dll", "exe"]);
    // Arguments are joined by blanks, so a path with a blank can't be told from two arguments.
    let mut words = command_line.split_ascii_whitespace().map(|word| word.trim_matches('"'));
    let first = words.next()?;
    if stem(first).is_some_and(|name| name.eq_ignore_ascii_case("dotnet"))
        && let Some(assembly) = words.find(|word| word.to_ascii_lowercase().ends_with(".dll"))
    {
        return stem(assembly).map(str::to_owned);
    }
    stem(first).map(str::to_owned)
}

#[derive(Debug, Clone, Copy)]
enum Named {
    /// Every address on it has one meaning.
    Always(Option<StackHandle>),
    /// Its memory was used for several methods: to be named for each sample.
    Depends,
}

/// Turns addresses into frames, each distinct one once.
struct Namer<'a> {
    names: &'a Names,
    builder: TraceBuilder,
    /// Addresses whose meaning does not depend on the time, as leaves and as callers.
    always: HashMap<(u64, bool), FrameHandle, RandomState>,
    frames: HashMap<MethodId, FrameHandle, RandomState>,
    unknown: HashMap<u64, FrameHandle, RandomState>,
}

impl Namer<'_> {
    /// The named stack, and whether it is the same at any time.
    fn stack(&mut self, leaf_first: &[u64], timestamp: u64) -> (Option<StackHandle>, bool) {
        let mut always = true;
        let mut stack = None;
        for (depth, ip) in leaf_first.iter().enumerate().rev() {
            let key = (*ip, depth == 0);
            let known = self.always.get(&key).copied();
            let frame = known.unwrap_or_else(|| {
                let (method, same) = self.names.method(*ip, depth == 0, timestamp);
                let frame = match method {
                    Some(method) => self.method(method),
                    None => self.unknown(*ip),
                };
                always &= same;
                if same {
                    self.always.insert(key, frame);
                }
                frame
            });
            stack = Some(self.builder.stack(stack, frame));
        }
        (stack, always)
    }

    fn method(&mut self, id: MethodId) -> FrameHandle {
        if let Some(frame) = self.frames.get(&id) {
            return *frame;
        }
        let (module, name) = self.names.texts(id);
        let frame = self.builder.frame(module, name);
        self.frames.insert(id, frame);
        frame
    }

    /// An address without a method bears its own number, not that of the call before it.
    fn unknown(&mut self, ip: u64) -> FrameHandle {
        let builder = &mut self.builder;
        *self.unknown.entry(ip).or_insert_with(|| builder.frame(None, &format!("{ip:#x}")))
    }
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
