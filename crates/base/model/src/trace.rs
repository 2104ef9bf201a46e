//! The finished trace, which sinks and reports read.

use crate::frames::{Frame, FrameHandle, FrameTable};
use crate::kinds::KindTable;
use crate::samples::{Thread, ThreadHandle};
use crate::stacks::StackTable;
use crate::strings::{StringTable, next_index};
use crate::view::View;

/// What is known of the program that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// The number of the process, in its own pid namespace.
    pub pid: Option<u32>,
    /// Name of the entry assembly, else of the process.
    pub name: Option<String>,
    /// The command line in one text, as the runtime tells it.
    pub command_line: Option<String>,
}

impl Process {
    /// `NAME (PID)`, with what is known of it; `a process` if nothing is.
    pub fn label(&self) -> String {
        match (&self.name, self.pid) {
            (Some(name), Some(pid)) => format!("{name} ({pid})"),
            (Some(name), None) => name.clone(),
            (None, Some(pid)) => format!("process {pid}"),
            (None, None) => "a process".to_owned(),
        }
    }
}

/// A recording: what [`TraceBuilder::finish`](crate::TraceBuilder::finish) returns.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub(crate) strings: StringTable,
    pub(crate) frames: FrameTable,
    pub(crate) stacks: StackTable,
    pub(crate) kinds: KindTable,
    pub(crate) threads: Vec<Thread>,
    pub(crate) process: Process,
    pub(crate) start_unix_ns: Option<i64>,
    pub(crate) ticks_per_s: Option<u64>,
    pub(crate) duration_ns: u64,
    pub(crate) period_ns: u64,
    pub(crate) out_of_order: u64,
    pub(crate) left_out: u64,
    pub(crate) has_exact_states: bool,
    pub(crate) lacks_resumptions: bool,
}

impl Trace {
    /// The program that was recorded.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// When the session started, in nanoseconds since 1970-01-01 UTC, if known.
    pub fn start_unix_ns(&self) -> Option<i64> {
        self.start_unix_ns
    }

    /// How many times a second the target's clock ticks, if known: its times were rounded down to nanoseconds.
    pub fn ticks_per_s(&self) -> Option<u64> {
        self.ticks_per_s
    }

    /// How long was recorded, in nanoseconds: from the session's start to its end as the builder was told, or
    /// to the end of sampling if that is later.
    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }

    /// The typical distance between two ticks of a thread in nanoseconds; 1 ms if no thread was seen twice.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// How many ticks came with a time before their thread's previous tick, and were moved to it.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// How many samples are not here: their threads came when there were [`MAX_THREADS`](crate::MAX_THREADS), or there was
    /// no [`Room`](crate::Room) for them.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether the recording does not say where operations went on after an await: what they ran then may be shown as
    /// awaited in the view `request`.
    pub fn lacks_resumptions(&self) -> bool {
        self.lacks_resumptions
    }

    /// The strings.
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// The frames. [`Trace::frame`] gives one with its texts.
    pub fn frames(&self) -> &FrameTable {
        &self.frames
    }

    /// The kinds that samples can have.
    pub fn kinds(&self) -> &KindTable {
        &self.kinds
    }

    /// The stacks.
    pub fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// The texts of a frame.
    ///
    /// # Panics
    /// If the handle is not of this trace.
    pub fn frame(&self, handle: FrameHandle) -> Frame<'_> {
        self.frames.get(handle, &self.strings)
    }

    /// Every frame with its handle, in the order of first use.
    pub fn all_frames(&self) -> impl ExactSizeIterator<Item = (FrameHandle, Frame<'_>)> {
        (0..self.frames.len()).map(|i| {
            let handle = FrameHandle(next_index(i));
            (handle, self.frame(handle))
        })
    }

    /// The threads in the order of first use, those without a sample too.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = (ThreadHandle, &Thread)> {
        self.threads.iter().enumerate().map(|(i, t)| (ThreadHandle(next_index(i)), t))
    }

    /// One thread.
    ///
    /// # Panics
    /// If the handle is not of this trace.
    pub fn thread(&self, handle: ThreadHandle) -> &Thread {
        &self.threads[handle.index()]
    }

    /// The number of ticks of all threads in `view`.
    pub fn ticks(&self, view: View) -> u64 {
        self.threads.iter().map(|t| t.ticks(view)).sum()
    }

    /// Whether next to none of the samples, less than one of a hundred, are in `view`. Of [`Cpu`](View::Cpu) that need not
    /// mean that nothing ran: .NET 9, and .NET 10 at first, call nearly every sample of a running thread external
    /// (dotnet/runtime#123996).
    pub fn shows_little_in(&self, view: View) -> bool {
        self.ticks(view).saturating_mul(100) < self.ticks(View::ThreadTime)
    }
}
