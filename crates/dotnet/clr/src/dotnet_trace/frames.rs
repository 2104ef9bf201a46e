//! Writes stacks as dotnet-trace does, and classifies the frames of the task library.

use std::rc::Rc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{FrameHandle, StackHandle, TraceBuilder, order};
use runtap_nettrace::TraceHeader;

use super::activity::{Rooted, own_frames, without_telling};
use super::collect::{IO_POOL, Raw, RawKind, ThreadRole, Work};
use super::modules::Modules;
use super::part::MethodRole;
use super::paths::{Path, PathFrame, Paths};
use super::requests::{Request, Requests};
use crate::code_map::MethodId;
use crate::frame;
use crate::names::Names;
use crate::stacks::Stacks;

/// A frame of a stack: its place, its text, and the role of its method if known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Framed {
    pub(super) place: PathFrame,
    pub(super) part: Option<MethodRole>,
}

/// A stack of the stream.
#[derive(Debug)]
pub(super) struct FullStack {
    /// The frames, leaf first.
    frames: Vec<Framed>,
    /// Its index in the stream, if its names do not depend on the time.
    index: Option<u32>,
    /// The number of frames that only write the event.
    telling: usize,
    /// The number of frames that belong to the task, if a method on the stack runs tasks; and likewise without the frames that only
    /// write the event.
    own: [Option<usize>; 2],
    waits_for_task: bool,
    is_idle: bool,
}

impl FullStack {
    pub(super) fn new(frames: Vec<Framed>, index: Option<u32>) -> Self {
        let without = without_telling(&frames);
        let telling = frames.len() - without.len();
        let of_task = own_frames(without).map(|own| telling + own.len());
        let own = [own_frames(&frames).map(<[_]>::len), of_task];
        let has = |part| frames.iter().any(|framed| framed.part == Some(part));
        let (waits_for_task, is_idle) = (has(MethodRole::WAITS_FOR_TASK), has(MethodRole::IDLE));
        Self { frames, index, telling, own, waits_for_task, is_idle }
    }

    pub(super) fn all(&self) -> StackRange {
        StackRange { from: 0, to: self.frames.len() }
    }

    /// Returns the stack without the frames that only write the event.
    pub(super) fn without_telling(&self) -> StackRange {
        StackRange { from: self.telling, to: self.frames.len() }
    }

    /// Returns the part of a piece that belongs to the task. `None` if no method on the stack runs tasks.
    pub(super) fn own(&self, StackRange { from, .. }: StackRange) -> Option<StackRange> {
        let [all, without_telling] = self.own;
        let to = if from == 0 { all } else { without_telling };
        to.map(|to| StackRange { from, to })
    }

    fn get(&self, StackRange { from, to }: StackRange) -> &[Framed] {
        self.frames.get(from..to).unwrap_or_default()
    }
}

/// The frames of a stack between two depths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StackRange {
    from: usize,
    to: usize,
}

impl StackRange {
    pub(super) fn is_empty(self) -> bool {
        self.from == self.to
    }
}

pub(super) struct Frames<'a> {
    names: &'a Names,
    modules: &'a Modules,
    stacks: &'a Stacks,
    builder: TraceBuilder,
    methods: HashMap<MethodId, (FrameHandle, MethodRole), RandomState>,
    paths: Paths,
    /// Stacks whose names do not depend on the time, by their index.
    whole: HashMap<u32, Rc<FullStack>, RandomState>,
    /// The path for a piece of such a stack on another path, and whether a path ends in a task with exactly these frames.
    put: HashMap<(Path, u32, StackRange), Path, RandomState>,
    ends_in: HashMap<(Path, u32, StackRange), bool, RandomState>,
    unknown: FrameHandle,
    starting: FrameHandle,
    /// The frame of the process.
    root: Option<StackHandle>,
    /// The root of the stacks of each thread and request.
    threads: HashMap<(Option<Request>, u64), StackHandle, RandomState>,
    /// The stack for each path on a root.
    written: HashMap<(StackHandle, Path), StackHandle, RandomState>,
    roles: HashMap<u64, ThreadRole, RandomState>,
    /// Whether frames are those of this program's own profiles, for the view `request`.
    plain: bool,
}

impl<'a> Frames<'a> {
    /// Switches to the view `request`: stacks start with the request, and names are as in other views.
    pub(super) fn plain(mut self) -> Self {
        self.plain = true;
        self
    }

    pub(super) fn new(
        names: &'a Names,
        modules: &'a Modules,
        stacks: &'a Stacks,
        mut builder: TraceBuilder,
        header: &TraceHeader,
        raw: &[Raw],
    ) -> Self {
        let pid = header.process_id;
        let command_line = names.command_line().unwrap_or_default().trim();
        let (program, arguments) = command_line.split_once(' ').unwrap_or((command_line, ""));
        let name = match crate::clr::file_stem(program, &["exe", "dll"]) {
            Some(name) => name.to_owned(),
            None => format!("Process({pid})"),
        };
        let bits = header.pointer_size.saturating_mul(8);
        let process = format!("Process{bits} {name} ({pid}) Args: {arguments}");
        let process = builder.label(&process);
        Self {
            names,
            modules,
            stacks,
            methods: HashMap::default(),
            unknown: builder.frame(None, "?"),
            starting: builder.label("STARTING TASK"),
            root: builder.stack_of([process]),
            threads: HashMap::default(),
            paths: Paths::default(),
            whole: HashMap::default(),
            put: HashMap::default(),
            ends_in: HashMap::default(),
            written: HashMap::default(),
            roles: roles(raw),
            builder,
            plain: false,
        }
    }

    pub(super) fn builder(&mut self) -> &mut TraceBuilder {
        &mut self.builder
    }

    pub(super) fn into_builder(self) -> TraceBuilder {
        self.builder
    }

    /// Returns the roles of threads, sorted by thread.
    pub(super) fn roles(&self) -> Vec<(u64, ThreadRole)> {
        let mut roles: Vec<_> = self.roles.iter().map(|(thread, role)| (*thread, *role)).collect();
        order::sort_by_number(&mut roles, |(thread, _)| *thread);
        roles
    }

    pub(super) fn label(&mut self, text: &str) -> FrameHandle {
        self.builder.label(text)
    }

    /// Whether there is room for one more event. If not, a sample is counted as left out.
    pub(super) fn has_room(&mut self, is_sample: bool) -> bool {
        self.builder.has_room(is_sample.into())
    }

    /// Returns the stack that ends in `frame`, called by `caller`.
    pub(super) fn push(&mut self, caller: StackHandle, frame: FrameHandle) -> StackHandle {
        self.builder.stack(Some(caller), frame)
    }

    /// Returns a path at whose end a task starts.
    pub(super) fn start_task(&mut self, caller: Path) -> Path {
        self.paths.push(caller, PathFrame { ip: None, frame: self.starting })
    }

    /// Returns the stack of a path, with its thread and its activities.
    pub(super) fn written(
        &mut self,
        (thread, path): Rooted,
        request: Option<Request>,
        requests: &Requests,
    ) -> StackHandle {
        let root = self.thread(thread, request, requests);
        let mut frames = Vec::new();
        let mut at = path;
        let mut onto = root;
        while let Some((below, place)) = self.paths.last(at) {
            if let Some(known) = self.written.get(&(root, at)) {
                onto = *known;
                break;
            }
            if !(self.plain && place.frame == self.starting) {
                frames.push((at, place.frame));
            }
            at = below;
        }
        self.builder.took(frames.len(), 0);
        for (path, frame) in frames.into_iter().rev() {
            onto = self.push(onto, frame);
            self.written.insert((root, path), onto);
        }
        onto
    }

    /// Returns the root of a thread's stacks.
    fn thread(&mut self, thread: u64, request: Option<Request>, requests: &Requests) -> StackHandle {
        if let Some(known) = self.threads.get(&(request, thread)) {
            return *known;
        }
        let text = match self.roles.get(&thread) {
            Some(role) => format!("Thread ({thread}) ({role})"),
            None => format!("Thread ({thread})"),
        };
        let first = if request.is_some() { "(Activities)" } else { "(Non-Activities)" };
        let activities = request.map(|request| requests.labels(request)).unwrap_or_default();
        let labels =
            if self.plain { activities } else { [&[first], &activities[..], &["Threads", &text]].concat() };
        let mut stack = if self.plain { None } else { self.root };
        // The label of each request includes those of all outer ones.
        self.builder.took(labels.len(), labels.len().saturating_mul(LABEL));
        for label in labels {
            let frame = self.builder.label(label);
            stack = Some(self.builder.stack(stack, frame));
        }
        let stack = stack.unwrap_or_else(|| {
            // Code without a known request is not shown.
            let frame = self.unknown;
            self.builder.stack(None, frame)
        });
        self.threads.insert((request, thread), stack);
        stack
    }

    /// Returns a stack of the stream.
    pub(super) fn of_stream(&mut self, index: u32, time: u64) -> Rc<FullStack> {
        if let Some(known) = self.whole.get(&index) {
            return Rc::clone(known);
        }
        let stacks = self.stacks;
        let ips = stacks.get(usize::try_from(index).unwrap_or(usize::MAX));
        let (mut is_always, mut steps) = (true, ips.len());
        let mut frames = Vec::with_capacity(ips.len());
        for (depth, ip) in ips.iter().enumerate() {
            // dotnet-trace does not adjust return addresses.
            let found = self.names.look_up(*ip, depth == 0 || !self.plain, time);
            is_always &= found.is_always;
            steps += found.steps;
            frames.push(self.frame(*ip, found.method));
        }
        let whole = Rc::new(FullStack::new(frames, is_always.then_some(index)));
        if is_always {
            self.whole.insert(index, Rc::clone(&whole));
        } else {
            self.builder.took(0, steps);
        }
        whole
    }

    fn frame(&mut self, ip: u64, method: Option<MethodId>) -> Framed {
        let has_name =
            |method: &MethodId| self.names.code().method(*method).is_some_and(|method| method.has_name);
        let Some(method) = method.filter(has_name) else {
            let frame = if self.plain {
                self.builder.add_frame(&frame::clr(None, &format!("{ip:#x}")))
            } else {
                self.unknown
            };
            return Framed { place: PathFrame { ip: Some(ip), frame }, part: None };
        };
        let plain = self.plain;
        let Self { names, modules, builder, .. } = self;
        let (frame, part) = *self.methods.entry(method).or_insert_with(|| {
            let (module, name) = names.texts(method);
            let written = names.code().method(method).map_or("ManagedModule", |method| modules.name(method));
            let frame = builder.add_frame(&frame::clr(if plain { module } else { Some(written) }, name));
            (frame, MethodRole::of(module, name, plain))
        });
        Framed { place: PathFrame { ip: Some(ip), frame }, part: Some(part) }
    }

    /// Whether the thread of a stack is blocked until a task ends.
    pub(super) fn waits_for_task(&mut self, index: u32, time: u64) -> bool {
        self.plain && self.of_stream(index, time).waits_for_task
    }

    /// Whether the thread of a stack is idle. Threads of a native pool have no frames then.
    pub(super) fn is_idle(&mut self, index: u32, time: u64) -> bool {
        if !self.plain {
            return false;
        }
        let whole = self.of_stream(index, time);
        whole.frames.is_empty() || whole.is_idle
    }

    /// Puts frames onto a path.
    pub(super) fn put(&mut self, onto: Path, whole: &FullStack, piece: StackRange) -> Path {
        let key = whole.index.map(|index| (onto, index, piece));
        if let Some(known) = key.and_then(|key| self.put.get(&key)) {
            return *known;
        }
        let frames = whole.get(piece).iter().rev();
        let put = frames.fold(onto, |onto, framed| self.paths.push(onto, framed.place));
        self.builder.took(whole.get(piece).len(), 0);
        self.put.extend(key.map(|key| (key, put)));
        put
    }

    /// Whether a path ends in a task with exactly these frames.
    pub(super) fn ends_in_task(&mut self, path: Path, whole: &FullStack, piece: StackRange) -> bool {
        let key = whole.index.map(|index| (path, index, piece));
        if let Some(known) = key.and_then(|key| self.ends_in.get(&key)) {
            return *known;
        }
        let below = whole.get(piece).iter().try_fold(path, |at, framed| {
            self.paths.last(at).filter(|(_, place)| *place == framed.place).map(|(below, _)| below)
        });
        let starting = self.starting;
        let ends = below.and_then(|at| self.paths.last(at)).is_some_and(|(_, place)| place.frame == starting);
        self.ends_in.extend(key.map(|key| (key, ends)));
        ends
    }
}

/// The number of steps that a label at the root of a stack counts.
const LABEL: usize = 32;

/// Returns the roles of threads. A thread that takes work of the I/O pool belongs to that; otherwise the first role counts.
fn roles(raw: &[Raw]) -> HashMap<u64, ThreadRole, RandomState> {
    let mut roles = HashMap::default();
    for raw in raw {
        match raw.kind {
            RawKind::Is(role) => {
                roles.entry(raw.thread).or_insert(role);
            }
            RawKind::Dequeued(Work::Io(_)) => {
                roles.insert(raw.thread, IO_POOL);
            }
            _ => {}
        }
    }
    roles
}
