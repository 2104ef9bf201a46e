//! Stacks as dotnet-trace writes them, and what the frames of the task library are for.

use std::rc::Rc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{FrameHandle, StackHandle, TraceBuilder};
use runtap_nettrace::TraceHeader;

use super::activity::{Rooted, own_frames, without_telling};
use super::collect::{IO_POOL, Raw, Role, What, Work};
use super::modules::Modules;
use super::part::Part;
use super::paths::{Path, Paths, Place};
use super::requests::{Request, Requests};
use crate::code_map::MethodId;
use crate::frame;
use crate::names::Names;
use crate::stacks::Stacks;

/// A frame of a stack: where, how it is written, and what its method is for, if that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Framed {
    pub(super) place: Place,
    pub(super) part: Option<Part>,
}

/// A stack of the stream.
#[derive(Debug)]
pub(super) struct Whole {
    /// Leaf first.
    frames: Vec<Framed>,
    /// Its index, if it means the same at any time.
    index: Option<u32>,
    /// How many frames only tell the event.
    telling: usize,
    /// Up to which frame it is the task's, if a method on it runs tasks; and the same without the frames that tell.
    own: [Option<usize>; 2],
    waits_for_task: bool,
    is_idle: bool,
}

impl Whole {
    pub(super) fn new(frames: Vec<Framed>, index: Option<u32>) -> Self {
        let without = without_telling(&frames);
        let telling = frames.len() - without.len();
        let of_task = own_frames(without).map(|own| telling + own.len());
        let own = [own_frames(&frames).map(<[_]>::len), of_task];
        let has = |part| frames.iter().any(|framed| framed.part == Some(part));
        let (waits_for_task, is_idle) = (has(Part::WAITS_FOR_TASK), has(Part::IDLE));
        Self { frames, index, telling, own, waits_for_task, is_idle }
    }

    pub(super) fn all(&self) -> Piece {
        Piece { from: 0, to: self.frames.len() }
    }

    /// Without the frames that only tell the event.
    pub(super) fn without_telling(&self) -> Piece {
        Piece { from: self.telling, to: self.frames.len() }
    }

    /// What of a piece is the task's. `None` if no method on it runs tasks.
    pub(super) fn own(&self, Piece { from, .. }: Piece) -> Option<Piece> {
        let [all, without_telling] = self.own;
        let to = if from == 0 { all } else { without_telling };
        to.map(|to| Piece { from, to })
    }

    fn get(&self, Piece { from, to }: Piece) -> &[Framed] {
        self.frames.get(from..to).unwrap_or_default()
    }
}

/// Frames of a stack from one depth to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    from: usize,
    to: usize,
}

impl Piece {
    pub(super) fn is_empty(self) -> bool {
        self.from == self.to
    }
}

pub(super) struct Frames<'a> {
    names: &'a Names,
    modules: &'a Modules,
    stacks: &'a Stacks,
    builder: TraceBuilder,
    methods: HashMap<MethodId, (FrameHandle, Part), RandomState>,
    paths: Paths,
    /// Stacks that mean the same at any time, by their index.
    whole: HashMap<u32, Rc<Whole>, RandomState>,
    /// What a piece of such a stack is on a path, and whether the path ends in a task that has just its frames.
    put: HashMap<(Path, u32, Piece), Path, RandomState>,
    ends_in: HashMap<(Path, u32, Piece), bool, RandomState>,
    unknown: FrameHandle,
    starting: FrameHandle,
    /// The process.
    root: Option<StackHandle>,
    /// Where the stacks of a thread begin that works for an activity, or for none.
    threads: HashMap<(Option<Request>, u64), StackHandle, RandomState>,
    /// What a path is on a beginning.
    written: HashMap<(StackHandle, Path), StackHandle, RandomState>,
    roles: HashMap<u64, Role, RandomState>,
    /// Frames are those of this program's own profiles, for the view `request`.
    plain: bool,
}

impl<'a> Frames<'a> {
    /// For the view `request`: stacks begin with it, and names are as in other views.
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

    /// What threads are for, by their number.
    pub(super) fn roles(&self) -> Vec<(u64, Role)> {
        let mut roles: Vec<_> = self.roles.iter().map(|(thread, role)| (*thread, *role)).collect();
        roles.sort_unstable();
        roles
    }

    pub(super) fn label(&mut self, text: &str) -> FrameHandle {
        self.builder.label(text)
    }

    /// Whether there is room for one more event; if not, a sample is counted as left out.
    pub(super) fn has_room(&mut self, is_sample: bool) -> bool {
        self.builder.has_room(is_sample.into())
    }

    /// The stack that ends in `frame`, called from `caller`.
    pub(super) fn push(&mut self, caller: StackHandle, frame: FrameHandle) -> StackHandle {
        self.builder.stack(Some(caller), frame)
    }

    /// A stack on which a task begins.
    pub(super) fn start_task(&mut self, caller: Path) -> Path {
        self.paths.push(caller, Place { ip: None, frame: self.starting })
    }

    /// A stack as it is written: with its thread, and with the activities that are worked for.
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

    /// The stack of a thread without any code.
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
        // Each request names all those in which it lies.
        self.builder.took(labels.len(), labels.len().saturating_mul(LABEL));
        for label in labels {
            let frame = self.builder.label(label);
            stack = Some(self.builder.stack(stack, frame));
        }
        let stack = stack.unwrap_or_else(|| {
            // Code that no request is known for is not shown.
            let frame = self.unknown;
            self.builder.stack(None, frame)
        });
        self.threads.insert((request, thread), stack);
        stack
    }

    /// A stack of the stream.
    pub(super) fn of_stream(&mut self, index: u32, time: u64) -> Rc<Whole> {
        if let Some(known) = self.whole.get(&index) {
            return Rc::clone(known);
        }
        let stacks = self.stacks;
        let ips = stacks.get(usize::try_from(index).unwrap_or(usize::MAX));
        let (mut is_always, mut steps) = (true, ips.len());
        let mut frames = Vec::with_capacity(ips.len());
        for (depth, ip) in ips.iter().enumerate() {
            // There the addresses of callers are taken as they are: the byte behind the call.
            let found = self.names.look_up(*ip, depth == 0 || !self.plain, time);
            is_always &= found.is_always;
            steps += found.steps;
            frames.push(self.frame(*ip, found.method));
        }
        let whole = Rc::new(Whole::new(frames, is_always.then_some(index)));
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
            return Framed { place: Place { ip: Some(ip), frame }, part: None };
        };
        let plain = self.plain;
        let Self { names, modules, builder, .. } = self;
        let (frame, part) = *self.methods.entry(method).or_insert_with(|| {
            let (module, name) = names.texts(method);
            let written = names.code().method(method).map_or("ManagedModule", |method| modules.name(method));
            let frame = builder.add_frame(&frame::clr(if plain { module } else { Some(written) }, name));
            (frame, Part::of(module, name, plain))
        });
        Framed { place: Place { ip: Some(ip), frame }, part: Some(part) }
    }

    /// Whether a stack of the stream is that of a thread that waits for a task.
    pub(super) fn waits_for_task(&mut self, index: u32, time: u64) -> bool {
        self.plain && self.of_stream(index, time).waits_for_task
    }

    /// Whether a stack of the stream is that of a thread that has nothing to do. Threads of a native pool have no frames then.
    pub(super) fn is_idle(&mut self, index: u32, time: u64) -> bool {
        if !self.plain {
            return false;
        }
        let whole = self.of_stream(index, time);
        whole.frames.is_empty() || whole.is_idle
    }

    /// Puts frames onto a stack.
    pub(super) fn put(&mut self, onto: Path, whole: &Whole, piece: Piece) -> Path {
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

    /// Whether a stack ends in a task that has just these frames.
    pub(super) fn ends_in_task(&mut self, path: Path, whole: &Whole, piece: Piece) -> bool {
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

/// Steps that a label at the root of a stack takes.
const LABEL: usize = 32;

/// A thread that takes work of the I/O pool is for that; else the first thing that it is known for counts.
fn roles(raw: &[Raw]) -> HashMap<u64, Role, RandomState> {
    let mut roles = HashMap::default();
    for raw in raw {
        match raw.what {
            What::Is(role) => {
                roles.entry(raw.thread).or_insert(role);
            }
            What::Dequeued(Work::Io(_)) => {
                roles.insert(raw.thread, IO_POOL);
            }
            _ => {}
        }
    }
    roles
}
