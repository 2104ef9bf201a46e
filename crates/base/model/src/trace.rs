//! A complete trace, which sinks and reports read.

use crate::frames::{Frame, FrameHandle, FrameTable};
use crate::kinds::KindTable;
use crate::samples::{Thread, ThreadHandle};
use crate::stacks::StackTable;
use crate::strings::{StringTable, next_index};
use crate::view::View;

/// The process that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id in its own pid namespace; `None` if unknown.
    pub pid: Option<u32>,
    /// Name of the entry assembly or of the process; `None` if unknown.
    pub name: Option<String>,
    /// Command line as reported by the runtime; `None` if unknown.
    pub command_line: Option<String>,
}

impl Process {
    /// Returns `NAME (PID)` as far as known, or `a process`.
    pub fn label(&self) -> String {
        match (&self.name, self.pid) {
            (Some(name), Some(pid)) => format!("{name} ({pid})"),
            (Some(name), None) => name.clone(),
            (None, Some(pid)) => format!("process {pid}"),
            (None, None) => "a process".to_owned(),
        }
    }
}

/// A recording; the result of [`TraceBuilder::finish`](crate::TraceBuilder::finish).
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
    /// Returns the process that was recorded.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the start of the session in nanoseconds since 1970-01-01 UTC. `None` if unknown.
    pub fn start_unix_ns(&self) -> Option<i64> {
        self.start_unix_ns
    }

    /// Returns the frequency of the target's clock in ticks per second; times were rounded down to nanoseconds. `None`
    /// if unknown.
    pub fn ticks_per_s(&self) -> Option<u64> {
        self.ticks_per_s
    }

    /// Returns the duration of the recording in nanoseconds: that of the session, or until the end of sampling if that
    /// is later.
    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }

    /// Returns the typical interval between two ticks of a thread in nanoseconds; 1 ms if no thread has two ticks.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Returns the number of ticks that were earlier than the previous tick of their thread and got its time.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Returns the number of samples that are not in the trace because their threads exceeded
    /// [`MAX_THREADS`](crate::MAX_THREADS) or the [memory limit](crate::Room) was exhausted.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns whether the recording does not contain where operations resumed after an await. The view `request` may
    /// then show running operations as awaited.
    pub fn lacks_resumptions(&self) -> bool {
        self.lacks_resumptions
    }

    /// Returns the strings.
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// Returns the frame table. Use [`Trace::frame`] for a frame with its texts.
    pub fn frames(&self) -> &FrameTable {
        &self.frames
    }

    /// Returns the kinds of samples.
    pub fn kinds(&self) -> &KindTable {
        &self.kinds
    }

    /// Returns the stacks.
    pub fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// Returns a frame with its texts.
    ///
    /// # Panics
    /// If the handle does not belong to this trace.
    pub fn frame(&self, handle: FrameHandle) -> Frame<'_> {
        self.frames.get(handle, &self.strings)
    }

    /// Returns all frames with their handles, in the order of first use.
    pub fn all_frames(&self) -> impl ExactSizeIterator<Item = (FrameHandle, Frame<'_>)> {
        (0..self.frames.len()).map(|i| {
            let handle = FrameHandle(next_index(i));
            (handle, self.frame(handle))
        })
    }

    /// Returns all threads in the order of first use, including those without samples.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = (ThreadHandle, &Thread)> {
        self.threads.iter().enumerate().map(|(i, t)| (ThreadHandle(next_index(i)), t))
    }

    /// Returns a thread.
    ///
    /// # Panics
    /// If the handle does not belong to this trace.
    pub fn thread(&self, handle: ThreadHandle) -> &Thread {
        &self.threads[handle.index()]
    }

    /// Returns the number of ticks of all threads in `view`.
    pub fn ticks(&self, view: View) -> u64 {
        self.threads.iter().map(|t| t.ticks(view)).sum()
    }

    /// Returns whether `view` contains less than one percent of the samples. For [`Cpu`](View::Cpu), this does not
    /// imply that nothing ran: .NET 9, and early versions of .NET 10, mark nearly every sample of a running thread as
    /// external (dotnet/runtime#123996).
    pub fn shows_little_in(&self, view: View) -> bool {
        self.ticks(view).saturating_mul(100) < self.ticks(View::ThreadTime)
    }
}
