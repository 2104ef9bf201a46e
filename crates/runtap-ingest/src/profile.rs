//! From a stream to a profile: samples, stacks, method names, threads.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use runtap_model::{FrameHandle, Process, SampleKind, StackHandle, Trace, TraceBuilder};
use runtap_nettrace::{Event, Item, Metadata, Stack, TraceHeader};

use crate::clr::{self, MethodEvent, MethodEventKind, ModuleEvent, ProcessInfoEvent};
use crate::code_map::{Address, CodeMap, MethodId};

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
    code: CodeMap,
    stacks: Stacks,
    samples: Vec<Sample>,
    command_line: Option<String>,
    /// Events of a known kind whose payload could not be read.
    malformed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Action {
    /// Not seen yet.
    #[default]
    Unknown,
    Ignore,
    Sample,
    Describe,
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
        self.malformed
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
            Action::Describe => {
                if let Some(metadata) = event.metadata
                    && self.describe(metadata, event).is_err()
                {
                    self.malformed += 1;
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

    fn describe(&mut self, metadata: &Metadata, event: &Event<'_>) -> Result<(), runtap_wire::DecodeError> {
        let (provider, id) = (metadata.provider.as_str(), metadata.event_id);
        if let Some(method) = MethodEvent::decode(provider, id, event.payload)? {
            let (id, module, start, size) = (method.method_id, method.module_id, method.start, method.size);
            let name = || method.full_name();
            match method.kind {
                MethodEventKind::Load => self.code.load(id, module, start, size, Some(event.timestamp), name),
                MethodEventKind::Exists => self.code.load(id, module, start, size, None, name),
                MethodEventKind::Unload => {
                    self.code.unload(id, module, start, size, event.timestamp, name);
                }
            }
        } else if let Some(module) = ModuleEvent::decode(provider, id, event.payload)? {
            if let Some(name) = module.short_name() {
                let live = metadata.provider == clr::RUNTIME;
                self.code.module(module.module_id, live.then_some(event.timestamp), name);
            }
        } else if let Some(process) = ProcessInfoEvent::decode(provider, id, event.payload)? {
            self.command_line = Some(process.command_line.to_string());
        }
        Ok(())
    }

    /// Names everything and returns the profile. A stream without a header gives an empty one.
    pub fn finish(mut self, options: &ProfileOptions) -> Trace {
        let mut builder = TraceBuilder::new();
        let Some(header) = self.header.take() else { return builder.finish() };
        self.code.seal();
        let name = options.process_name.clone();
        builder.set_process(Process {
            pid: Some(header.process_id),
            name: name.or_else(|| self.command_line.as_deref().and_then(program_name)),
            command_line: self.command_line.take(),
        });
        if let Some(start) = header.sync_time {
            builder.set_start_unix_ns(start);
        }

        let mut namer = Namer {
            code: &self.code,
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
        (clr::RUNTIME, 143 | 144 | 151 | 152)
        | (clr::RUNDOWN, 143 | 144 | 151..=154)
        | (clr::EVENT_PIPE, 1) => Action::Describe,
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
    code: &'a CodeMap,
    builder: TraceBuilder,
    /// Addresses whose meaning does not depend on the time.
    always: HashMap<u64, FrameHandle, RandomState>,
    frames: HashMap<MethodId, FrameHandle, RandomState>,
    unknown: HashMap<u64, FrameHandle, RandomState>,
}

impl Namer<'_> {
    /// The named stack, and whether it is the same at any time.
    fn stack(&mut self, leaf_first: &[u64], timestamp: u64) -> (Option<StackHandle>, bool) {
        let mut always = true;
        let mut stack = None;
        for (depth, ip) in leaf_first.iter().enumerate().rev() {
            // Above the leaf stand return addresses: the call is before them, and at the end of a method the next one
            // begins right there.
            let address = if depth == 0 { *ip } else { ip.saturating_sub(1) };
            let frame = match self.always.get(&address) {
                Some(frame) => *frame,
                None => match self.code.lookup(address) {
                    Address::Always(method) => {
                        let frame = self.method(method);
                        self.always.insert(address, frame);
                        frame
                    }
                    Address::Depends => {
                        always = false;
                        match self.code.at(address, timestamp) {
                            Some(method) => self.method(method),
                            None => self.unknown(*ip),
                        }
                    }
                    Address::Unknown => self.unknown(*ip),
                },
            };
            stack = Some(self.builder.stack(stack, frame));
        }
        (stack, always)
    }

    fn method(&mut self, id: MethodId) -> FrameHandle {
        if let Some(frame) = self.frames.get(&id) {
            return *frame;
        }
        let (module, name) = match self.code.method(id) {
            Some(method) => (self.code.module_name(method.module, method.loaded), method.name.as_str()),
            None => (None, "?"),
        };
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

/// Distinct stacks of addresses, leaf first.
#[derive(Debug, Default)]
struct Stacks {
    list: Vec<Box<[u64]>>,
    /// Indexes into `list`, by the hash of the addresses.
    by_addresses: HashTable<u32>,
    hasher: RandomState,
    /// Index by the stream's stack id, which means something up to the next sequence point.
    by_id: Vec<Option<u32>>,
    scratch: Vec<u64>,
}

impl Stacks {
    fn index(&mut self, event: &Event<'_>) -> u32 {
        let id = usize::try_from(event.stack_id).unwrap_or(usize::MAX);
        if let Some(Some(index)) = self.by_id.get(id) {
            return *index;
        }
        let index = self.intern(event.stack);
        if id < 1 << 20 {
            if self.by_id.len() <= id {
                self.by_id.resize(id + 1, None);
            }
            if let Some(slot) = self.by_id.get_mut(id) {
                *slot = Some(index);
            }
        }
        index
    }

    /// At a sequence point ids start anew.
    fn forget_ids(&mut self) {
        self.by_id.clear();
    }

    fn intern(&mut self, stack: Stack<'_>) -> u32 {
        self.scratch.clear();
        self.scratch.extend(stack.ips());
        let Self { list, by_addresses, hasher, scratch, .. } = self;
        let at = |index: &u32| {
            usize::try_from(*index).ok().and_then(|i| list.get(i)).map_or(&[][..], |stack| stack)
        };
        let hash = hasher.hash_one(scratch.as_slice());
        if let Some(index) = by_addresses.find(hash, |index| at(index) == scratch.as_slice()) {
            return *index;
        }
        let index = u32::try_from(list.len()).unwrap_or(u32::MAX);
        by_addresses.insert_unique(hash, index, |index| hasher.hash_one(at(index)));
        list.push(scratch.as_slice().into());
        index
    }

    fn get(&self, index: usize) -> &[u64] {
        self.list.get(index).map_or(&[], |stack| stack)
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
