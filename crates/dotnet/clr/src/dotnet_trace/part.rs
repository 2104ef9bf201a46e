//! The roles of the methods of the task library.

/// The role of a method of the task library, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MethodRole(u8);

impl MethodRole {
    /// Runs a task: the frames below, towards the start of the thread, are not the task's.
    pub(super) const RUNS: Self = Self(1);
    /// Helps to run a task, above the method that runs it.
    pub(super) const HELPS_TO_RUN: Self = Self(2);
    /// Writes an event of a task.
    pub(super) const TELLS: Self = Self(4);
    /// Helps to write an event.
    pub(super) const HELPS_TO_TELL: Self = Self(8);
    /// Blocks its thread until a task ends.
    pub(super) const WAITS_FOR_TASK: Self = Self(16);
    /// Waits for work: the thread is idle.
    pub(super) const IDLE: Self = Self(32);

    /// Returns the role of a method. `plain` is as in [`Frames`](super::frames::Frames) and includes the methods of later runtimes.
    pub(super) fn of(module: Option<&str>, name: &str, plain: bool) -> Self {
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

/// Methods in which threads of the pool, of sockets and of timers wait for work.
const IDLE: [&str; 5] = [
    "System.Threading.LowLevelLifoSemaphore.Wait",
    "System.Threading.PortableThreadPool+IOCompletionPoller.Poll",
    "System.Threading.PortableThreadPool+GateThread.GateThreadStart",
    "System.Threading.TimerQueue.TimerThread",
    "Interop+Sys.WaitForSocketEvents",
];
