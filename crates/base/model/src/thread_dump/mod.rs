//! The threads of a program at one moment, with their stacks, the locks between them and their deadlocks.
//!
//! These types describe both .NET and Java programs. A value that a runtime does not report is `None`, never 0.

mod async_chains;
mod deadlocks;
mod merge;

pub use async_chains::{AsyncChain, AsyncChains, AsyncFrame, Awaited, AwaitedKind};
pub use merge::StackGroup;

/// The threads of a program at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadDump {
    /// The threads, in the order in which they are shown.
    pub threads: Vec<DumpedThread>,
    /// The objects that threads wait for or hold.
    pub locks: Vec<DumpedLock>,
    /// The deadlocks, as positions in `threads`: each thread waits for a lock of the next one, and the last one for a lock of the
    /// first.
    pub deadlocks: Vec<Vec<usize>>,
    /// The number of threads and frames that were omitted because of limits.
    pub omitted: u64,
    /// The async methods that wait. `None` if they were not requested.
    pub async_chains: Option<AsyncChains>,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpedThread {
    /// What runs on the thread.
    pub kind: ThreadKind,
    /// The id of the thread in the kernel, in the PID namespace of the program. `None` if unknown, and for virtual threads.
    pub tid: Option<u64>,
    /// The id that the runtime assigned (Java: `Thread.threadId()`). `None` if unknown.
    pub id: Option<u64>,
    /// The name. `None` if unknown, or if the thread has no name.
    pub name: Option<String>,
    /// What the thread does. `None` if unknown.
    pub state: Option<ThreadState>,
    /// Whether the program can exit while the thread runs. `None` if unknown.
    pub is_daemon: Option<bool>,
    /// The priority that the program assigned. `None` if unknown.
    pub priority: Option<i32>,
    /// The processor time of the thread, in nanoseconds. `None` if unknown.
    pub cpu_ns: Option<u64>,
    /// The time since the start of the thread, in nanoseconds. `None` if unknown.
    pub elapsed_ns: Option<u64>,
    /// The virtual thread that runs on this thread, by its [`id`](Self::id).
    pub carries: Option<u64>,
    /// The stack, with the innermost frame first.
    pub frames: Vec<DumpedFrame>,
    /// What the thread waits for. `None` if it does not wait, or if that is unknown.
    pub wait: Option<ThreadWait>,
    /// The locks that the thread holds, as positions in [`ThreadDump::locks`].
    pub holds: Vec<usize>,
}

/// What runs on a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThreadKind {
    /// Code of a .NET program.
    #[default]
    Managed,
    /// Code of a Java program, on a thread of the operating system.
    Platform,
    /// Code of a Java program, on a thread that the runtime schedules.
    Virtual,
    /// The runtime itself.
    Runtime,
}

impl ThreadKind {
    /// Returns `managed`, `platform`, `virtual` or `runtime`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Platform => "platform",
            Self::Virtual => "virtual",
            Self::Runtime => "runtime",
        }
    }
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// The thread has not started.
    New,
    /// The thread runs, waits for a processor, or waits in native code.
    Runnable,
    /// The thread waits for a monitor.
    Blocked,
    /// The thread waits for another thread.
    Waiting,
    /// The thread waits for another thread or for a time.
    TimedWaiting,
    /// The thread has ended.
    Terminated,
    /// The thread runs managed code (.NET).
    Managed,
    /// The thread runs or waits in native code (.NET).
    Native,
}

impl ThreadState {
    /// Returns the name in documents, such as `timed_waiting`.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Runnable => "runnable",
            Self::Blocked => "blocked",
            Self::Waiting => "waiting",
            Self::TimedWaiting => "timed_waiting",
            Self::Terminated => "terminated",
            Self::Managed => "managed",
            Self::Native => "native",
        }
    }

    /// Returns the state that Java names so, such as `TIMED_WAITING`. `None` if there is none.
    pub fn of_java(name: &str) -> Option<Self> {
        Some(match name {
            "NEW" => Self::New,
            "RUNNABLE" => Self::Runnable,
            "BLOCKED" => Self::Blocked,
            "WAITING" => Self::Waiting,
            "TIMED_WAITING" => Self::TimedWaiting,
            "TERMINATED" => Self::Terminated,
            _ => return None,
        })
    }
}

/// A frame of a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DumpedFrame {
    /// The method with its type, or an address if its name is unknown.
    pub name: String,
    /// The assembly or the Java module. `None` if unknown, and for classes outside of modules.
    pub module: Option<String>,
    /// The position in the method's IL or bytecode, in bytes. `None` if unknown.
    pub il_offset: Option<u32>,
    /// The position in the method's machine code, in bytes. `None` if unknown.
    pub native_offset: Option<u64>,
    /// The source file. `None` if unknown.
    pub file: Option<String>,
    /// The line in the source file. `None` if unknown.
    pub line: Option<u32>,
    /// Whether the method is implemented in native code. `None` if unknown.
    pub is_native: Option<bool>,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadWait {
    /// The kind of wait.
    pub kind: WaitKind,
    /// The object, as a position in [`ThreadDump::locks`]. `None` if unknown.
    pub lock: Option<usize>,
}

impl ThreadWait {
    /// Creates a wait for an unknown object.
    pub fn new(kind: WaitKind) -> Self {
        Self { kind, lock: None }
    }
}

/// A kind of wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// A lock that another thread holds.
    Lock,
    /// A notification of a condition.
    Condition,
    /// An event, a latch or another wait handle.
    Event,
    /// A semaphore.
    Semaphore,
    /// The result of a task.
    Task,
    /// The end of a thread.
    Thread,
    /// The end of a time.
    Sleep,
    /// To be unparked by another thread.
    Park,
    /// Input or output.
    Io,
    /// Work for a thread of a pool.
    Work,
    /// The initialization of a class by another thread.
    ClassInit,
    /// Something in native code, which may be a lock: the runtime does not show which.
    Native,
}

impl WaitKind {
    /// Returns the name in documents, such as `class_init`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Condition => "condition",
            Self::Event => "event",
            Self::Semaphore => "semaphore",
            Self::Task => "task",
            Self::Thread => "thread",
            Self::Sleep => "sleep",
            Self::Park => "park",
            Self::Io => "io",
            Self::Work => "work",
            Self::ClassInit => "class_init",
            Self::Native => "native",
        }
    }
}

/// An object that threads wait for or hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpedLock {
    /// The identity of the object while the threads were stopped: its address, for example.
    pub id: String,
    /// The type of the object. `None` if unknown.
    pub class: Option<String>,
    /// The position in [`ThreadDump::threads`] of the thread that holds the object. `None` if unknown, or if no thread does.
    pub owner: Option<usize>,
}

impl ThreadDump {
    /// Returns the thread that holds the lock for which a thread waits, as a position. `None` if unknown.
    pub fn blocker(&self, thread: usize) -> Option<usize> {
        let wait = self.threads.get(thread)?.wait?;
        self.locks.get(wait.lock?)?.owner.filter(|_| wait.kind != WaitKind::Condition)
    }

    /// Returns the threads that wait for a lock, as positions.
    pub fn waiters(&self, lock: usize) -> impl Iterator<Item = usize> {
        let waits = move |thread: &DumpedThread| thread.wait.is_some_and(|wait| wait.lock == Some(lock));
        self.threads.iter().enumerate().filter(move |(_, thread)| waits(thread)).map(|(index, _)| index)
    }
}
