//! Stacks as dotnet-trace writes them, and what the frames of the task library are for.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{FrameHandle, StackHandle, TraceBuilder};
use runtap_nettrace::TraceHeader;

use super::activity::Rooted;
use super::collect::{IO_POOL, Raw, Role, What, Work};
use super::modules::Modules;
use super::paths::{Path, Paths, Place};
use super::requests::{Request, Requests};
use crate::code_map::MethodId;
use crate::frame;
use crate::names::Names;
use crate::stacks::Stacks;

/// What a method of the task library does; bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Part(u8);

impl Part {
    /// Runs a task: what is below it, towards the start of the thread, is not the task's.
    pub(super) const RUNS: Self = Self(1);
    /// Helps with that, above the one that runs it.
    pub(super) const HELPS_TO_RUN: Self = Self(2);
    /// Tells the event of a task.
    pub(super) const TELLS: Self = Self(4);
    /// Helps with that.
    pub(super) const HELPS_TO_TELL: Self = Self(8);
    /// Blocks its thread until a task has ended.
    const WAITS_FOR_TASK: Self = Self(16);
    /// Waits for something to do: the thread works for nobody.
    const IDLE: Self = Self(32);

    /// `plain` as in [`Frames`]: there also what later runtimes tell with is known.
    fn of(module: Option<&str>, name: &str, plain: bool) -> Self {
        if plain && IDLE.iter().any(|idle| name.starts_with(idle)) {
            return Self::IDLE;
        }
        let module = module.unwrap_or_default().to_ascii_lowercase();
        if !module.starts_with("mscorlib") && !module.contains("system.private.corelib") {
            return Self::default();
        }
        let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        if starts(&[
            "System.Threading.ExecutionContext.Run",
            "System.Threading.Tasks.AwaitTaskContinuation.Run",
            "System.Threading.Tasks.Task.Execute",
        ]) {
            Self::RUNS
        } else if name.contains("System.Threading.Tasks.Task") && name.contains(".InnerInvoke") {
            Self::HELPS_TO_RUN
        } else if starts(&[
            "System.Threading.Tasks.TplEtwProvider.TaskScheduled",
            "System.Threading.Tasks.TplEtwProvider.TaskWaitBegin(",
            "System.Threading.Tasks.TplEtwProvider.TaskWaitEnd",
        ]) || plain && starts(&["System.Threading.Tasks.TplEventSource."])
        {
            Self::TELLS
        } else if starts(&["System.Threading.Tasks.Task.ScheduleAndStart"])
            || (starts(&["System.Runtime.CompilerServices.AsyncTaskMethodBuilder"])
                && name.contains(".AwaitUnsafeOnCompleted"))
            || (starts(&["System.Runtime.CompilerServices"])
                && name.contains("TaskAwaiter")
                && (name.contains("OnCompleted") || name.contains("OutputWaitEtwEvents")))
        {
            Self::HELPS_TO_TELL
        } else if plain
            && starts(&["System.Threading.Tasks.Task.InternalWait", "System.Threading.Tasks.Task.Wait"])
        {
            Self::WAITS_FOR_TASK
        } else {
            Self::default()
        }
    }
}

/// Methods in which threads of the pool, of sockets and of timers wait for something to do.
const IDLE: [&str; 5] = [
    "System.Threading.LowLevelLifoSemaphore.Wait",
    "System.Threading.PortableThreadPool+IOCompletionPoller.Poll",
    "System.Threading.PortableThreadPool+GateThread.GateThreadStart",
    "System.Threading.TimerQueue.TimerThread",
    "Interop+Sys.WaitForSocketEvents",
];

/// A frame of a stack: where, how it is written, and what its method is for, if that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Framed {
    pub(super) place: Place,
    pub(super) part: Option<Part>,
}

pub(super) struct Frames<'a> {
    names: &'a Names,
    modules: &'a Modules,
    stacks: &'a Stacks,
    builder: TraceBuilder,
    methods: HashMap<MethodId, (FrameHandle, Part), RandomState>,
    paths: Paths,
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
            written: HashMap::default(),
            roles: roles(raw),
            builder,
            plain: false,
        }
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

    /// The frames of a stack of the stream, leaf first.
    pub(super) fn of_stream(&mut self, index: u32, time: u64) -> Vec<Framed> {
        let ips = self.stacks.get(usize::try_from(index).unwrap_or(usize::MAX));
        ips.iter().enumerate().map(|(depth, ip)| self.frame(*ip, depth == 0, time)).collect()
    }

    fn frame(&mut self, ip: u64, is_leaf: bool, time: u64) -> Framed {
        // There the addresses of callers are taken as they are: the byte behind the call.
        let is_leaf = is_leaf || !self.plain;
        let has_name =
            |method: &MethodId| self.names.code().method(*method).is_some_and(|method| method.has_name);
        let Some(method) = self.names.method(ip, is_leaf, time).0.filter(has_name) else {
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
        self.plain
            && self.of_stream(index, time).iter().any(|framed| framed.part == Some(Part::WAITS_FOR_TASK))
    }

    /// Whether a stack of the stream is that of a thread that has nothing to do. Threads of a native pool have no frames then.
    pub(super) fn is_idle(&mut self, index: u32, time: u64) -> bool {
        if !self.plain {
            return false;
        }
        let frames = self.of_stream(index, time);
        frames.is_empty() || frames.iter().any(|framed| framed.part == Some(Part::IDLE))
    }

    /// Puts frames, leaf first, onto a stack.
    pub(super) fn put(&mut self, mut onto: Path, frames: &[Framed]) -> Path {
        for framed in frames.iter().rev() {
            onto = self.paths.push(onto, framed.place);
        }
        onto
    }

    /// Whether a stack ends in a task that has just these frames, leaf first.
    pub(super) fn ends_in_task(&self, path: Path, frames: &[Framed]) -> bool {
        let mut at = path;
        for framed in frames {
            match self.paths.last(at) {
                Some((below, place)) if place == framed.place => at = below,
                _ => return false,
            }
        }
        self.paths.last(at).is_some_and(|(_, place)| place.frame == self.starting)
    }
}

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
