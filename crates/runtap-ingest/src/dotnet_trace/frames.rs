//! Stacks as dotnet-trace writes them, and what the frames of the task library are for.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{FrameHandle, StackHandle, TraceBuilder};
use runtap_nettrace::TraceHeader;

use super::collect::{IO_POOL, Raw, Role, What, Work};
use super::modules::Modules;
use crate::code_map::MethodId;
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

    fn of(module: Option<&str>, name: &str) -> Self {
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
        ]) {
            Self::TELLS
        } else if starts(&["System.Threading.Tasks.Task.ScheduleAndStart"])
            || (starts(&["System.Runtime.CompilerServices.AsyncTaskMethodBuilder"])
                && name.contains(".AwaitUnsafeOnCompleted"))
            || (starts(&["System.Runtime.CompilerServices"])
                && name.contains("TaskAwaiter")
                && (name.contains("OnCompleted") || name.contains("OutputWaitEtwEvents")))
        {
            Self::HELPS_TO_TELL
        } else {
            Self::default()
        }
    }
}

/// A frame of a stack: how it is written, and what its method is for, if that is known.
pub(super) type Framed = (FrameHandle, Option<Part>);

pub(super) struct Frames<'a> {
    names: &'a Names,
    modules: &'a Modules,
    stacks: &'a Stacks,
    builder: TraceBuilder,
    methods: HashMap<MethodId, Framed, RandomState>,
    unknown: FrameHandle,
    starting: FrameHandle,
    /// Process, `(Non-Activities)`, `Threads`.
    root: Option<StackHandle>,
    threads: HashMap<u64, StackHandle, RandomState>,
    roles: HashMap<u64, Role, RandomState>,
}

impl<'a> Frames<'a> {
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
        let root = [process.as_str(), "(Non-Activities)", "Threads"].map(|text| builder.label(text));
        Self {
            names,
            modules,
            stacks,
            methods: HashMap::default(),
            unknown: builder.frame(None, "?"),
            starting: builder.label("STARTING TASK"),
            root: builder.stack_of(root),
            threads: HashMap::default(),
            roles: roles(raw),
            builder,
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
    pub(super) fn start_task(&mut self, caller: StackHandle) -> StackHandle {
        self.push(caller, self.starting)
    }

    /// The stack of a thread without any code.
    pub(super) fn thread(&mut self, thread: u64) -> StackHandle {
        if let Some(known) = self.threads.get(&thread) {
            return *known;
        }
        let text = match self.roles.get(&thread) {
            Some(role) => format!("Thread ({thread}) ({role})"),
            None => format!("Thread ({thread})"),
        };
        let frame = self.builder.label(&text);
        let stack = self.builder.stack(self.root, frame);
        self.threads.insert(thread, stack);
        stack
    }

    /// The frames of a stack of the stream, leaf first.
    pub(super) fn of_stream(&mut self, index: u32, time: u64) -> Vec<Framed> {
        let ips = self.stacks.get(usize::try_from(index).unwrap_or(usize::MAX));
        ips.iter().map(|ip| self.frame(*ip, time)).collect()
    }

    fn frame(&mut self, ip: u64, time: u64) -> Framed {
        // Its callers' addresses are taken as they are: the byte behind the call.
        let has_name =
            |method: &MethodId| self.names.code().method(*method).is_some_and(|method| method.has_name);
        let Some(method) = self.names.method(ip, true, time).0.filter(has_name) else {
            return (self.unknown, None);
        };
        let Self { names, modules, builder, .. } = self;
        *self.methods.entry(method).or_insert_with(|| {
            let (module, name) = names.texts(method);
            let id = names.code().method(method).map_or(0, |method| method.module);
            let frame = builder.frame(Some(&modules.name(id, module)), name);
            (frame, Some(Part::of(module, name)))
        })
    }

    /// Puts frames, leaf first, onto a stack.
    pub(super) fn put(&mut self, mut onto: StackHandle, frames: &[Framed]) -> StackHandle {
        for (frame, _) in frames.iter().rev() {
            onto = self.push(onto, *frame);
        }
        onto
    }

    /// Whether a stack ends in a task that has just these frames, leaf first.
    pub(super) fn ends_in_task(&self, stack: StackHandle, frames: &[Framed]) -> bool {
        let mut at = Some(stack);
        for (frame, _) in frames {
            let Some(here) = at.map(|at| self.builder.callee(at)) else { return false };
            if here.frame != *frame {
                return false;
            }
            at = here.parent;
        }
        at.is_some_and(|at| self.builder.callee(at).frame == self.starting)
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
