//! Builds a trace and computes the weights of its samples.
//!
//! Decoders of recordings provide only times. Weights are computed from them by the rule in [`TraceBuilder::finish`].

use crate::frames::{Frame, FrameHandle};
use crate::kinds::{KindInfo, SampleKind};
use crate::period::Period;
use crate::samples::{Run, Thread, ThreadHandle};
use crate::stacks::{Stack, StackHandle};
use crate::strings::{StringHandle, next_index};
use crate::threads::{MAX_THREADS, Room};
use crate::trace::{Process, Trace};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::sync::Arc;

/// A builder of a [`Trace`].
#[derive(Debug, Clone, Default)]
pub struct TraceBuilder {
    trace: Trace,
    threads_by_tid: HashMap<u64, ThreadHandle, RandomState>,
    period: Period,
    /// The period, if set by the caller.
    known_period_ns: Option<u64>,
    room: Room,
}

impl TraceBuilder {
    /// Creates a builder of an empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the memory limit for samples; see [`Self::has_room`].
    pub fn set_room(&mut self, room: Room) {
        self.room = room;
    }

    /// Sets the recorded process.
    pub fn set_process(&mut self, process: Process) {
        self.trace.process = process;
    }

    /// Sets [`Trace::lacks_resumptions`].
    pub fn set_lacks_resumptions(&mut self) {
        self.trace.lacks_resumptions = true;
    }

    /// Sets the start of the session, in nanoseconds since 1970-01-01 UTC.
    pub fn set_start_unix_ns(&mut self, start: i64) {
        self.trace.start_unix_ns = Some(start);
    }

    /// Sets the frequency of the target's clock, in ticks per second.
    pub fn set_ticks_per_s(&mut self, ticks: u64) {
        self.trace.ticks_per_s = Some(ticks);
    }

    /// Sets the duration of the recording, in nanoseconds since the start of the session.
    pub fn set_duration_ns(&mut self, duration_ns: u64) {
        self.trace.duration_ns = duration_ns;
    }

    /// Interns a string.
    pub fn string(&mut self, text: &str) -> StringHandle {
        self.trace.strings.intern(text)
    }

    /// Interns a frame.
    pub fn add_frame(&mut self, frame: &Frame<'_>) -> FrameHandle {
        self.trace.frames.intern(frame, &mut self.trace.strings)
    }

    /// Interns a frame with [default properties](Frame::new), named `Namespace.Type.Method(args)`. `module` is `None`
    /// if unknown.
    pub fn frame(&mut self, module: Option<&str>, name: &str) -> FrameHandle {
        self.add_frame(&Frame::new(module, name))
    }

    /// Adds a kind of samples beyond [those of the CLR](SampleKind). `None` if its class already has
    /// [`MAX_KINDS`](crate::MAX_KINDS) kinds.
    pub fn kind(&mut self, info: KindInfo) -> Option<SampleKind> {
        self.trace.kinds.add(info)
    }

    /// Interns a stack whose innermost frame is `frame`, called from `parent`.
    pub fn stack(&mut self, parent: Option<StackHandle>, frame: FrameHandle) -> StackHandle {
        self.trace.stacks.intern(parent, frame)
    }

    /// Returns the innermost frame of a stack and the stack of its caller.
    ///
    /// # Panics
    /// If the handle does not belong to this builder.
    pub fn callee(&self, stack: StackHandle) -> Stack {
        self.trace.stacks.get(stack)
    }

    /// Interns a stack from its frames, starting with the root. `None` if there are no frames.
    pub fn stack_of(&mut self, root_first: impl IntoIterator<Item = FrameHandle>) -> Option<StackHandle> {
        root_first.into_iter().fold(None, |parent, frame| Some(self.stack(parent, frame)))
    }

    /// Returns the thread with the operating system's id `tid`, adding it if necessary.
    pub fn thread(&mut self, tid: u64) -> ThreadHandle {
        let threads = &mut self.trace.threads;
        *self.threads_by_tid.entry(tid).or_insert_with(|| {
            let new = ThreadHandle(next_index(threads.len()));
            threads.push(Thread::new(tid));
            new
        })
    }

    /// Like [`thread`](Self::thread), for a sample that may not fit. `None` for a new thread if there are
    /// [`MAX_THREADS`], or if memory is exhausted; the sample is then counted as [left out](Trace::left_out). Call this
    /// before interning the sample's stack, which takes memory too.
    pub fn thread_for_sample(&mut self, tid: u64) -> Option<ThreadHandle> {
        if self.trace.threads.len() >= MAX_THREADS && !self.threads_by_tid.contains_key(&tid) {
            self.leave_out(1);
            return None;
        }
        self.has_room(1).then(|| self.thread(tid))
    }

    /// Returns whether there is memory for more samples of a thread. If not, counts `samples` as [left
    /// out](Trace::left_out).
    pub fn has_room(&mut self, samples: u64) -> bool {
        let has_room = self.room.has_one();
        if !has_room {
            self.leave_out(samples);
        }
        has_room
    }

    /// Records the cost of adding a stack, besides its sample: new frames, and steps ([`MAX_STEPS`](crate::MAX_STEPS)).
    /// After too much of either, [`has_room`](Self::has_room) returns false.
    pub fn took(&mut self, frames: usize, steps: usize) {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        self.room.took(count(frames), count(steps));
    }

    /// Declares that the source reliably distinguishes running from waiting, so that no sample is
    /// [doubtful](Trace::doubtful_ticks).
    pub fn set_exact_states(&mut self) {
        self.trace.has_exact_states = true;
    }

    /// Counts samples that are left out.
    pub fn leave_out(&mut self, samples: u64) {
        self.trace.left_out = self.trace.left_out.saturating_add(samples);
    }

    /// Sets the name of a thread. The last name is used; an empty one removes the name.
    ///
    /// # Panics
    /// If the handle does not belong to this builder.
    pub fn set_thread_name(&mut self, thread: ThreadHandle, name: &str) {
        self.trace.threads[thread.index()].set_name(name);
    }

    /// Sets the process of a thread in a trace of several processes. All threads of a process share one value.
    ///
    /// # Panics
    /// If the handle does not belong to this builder.
    pub fn set_thread_process(&mut self, thread: ThreadHandle, process: &Arc<Process>) {
        self.trace.threads[thread.index()].set_process(process);
    }

    /// Sets the name of the thread with id `tid`, if there is one.
    pub fn set_known_thread_name(&mut self, tid: u64, name: &str) {
        if let Some(thread) = self.threads_by_tid.get(&tid).copied() {
            self.set_thread_name(thread, name);
        }
    }

    /// Adds a tick of the sampler: `thread` was found in `stack` at `time_ns` since the start of the session.
    ///
    /// The ticks of a thread must be in time order. One that is earlier than its predecessor gets the predecessor's
    /// time and is counted in [`Trace::out_of_order`]. Threads may be in any order.
    ///
    /// # Panics
    /// If the handle does not belong to this builder.
    pub fn add_sample(
        &mut self,
        thread: ThreadHandle,
        time_ns: u64,
        kind: SampleKind,
        stack: Option<StackHandle>,
    ) {
        let thread = &mut self.trace.threads[thread.index()];
        let mut time_ns = time_ns;
        if let Some(last_ns) = thread.last_ns() {
            if time_ns < last_ns {
                self.trace.out_of_order += 1;
                time_ns = last_ns;
            }
            self.period.record(time_ns - last_ns);
        }
        thread.push(time_ns, kind, stack);
    }

    /// Adds ticks in time order, collected by [`Ticks`](crate::Ticks) and [converted](crate::TickRun::named). `last_ns`
    /// is the time of the last tick.
    ///
    /// # Panics
    /// If the handle does not belong to this builder.
    pub fn add_runs(&mut self, thread: ThreadHandle, runs: Vec<Run>, last_ns: u64) {
        self.trace.threads[thread.index()].push_runs(runs, last_ns);
    }

    /// Sets the typical interval between two ticks, for ticks that were added as runs, and the number of ticks that
    /// were out of order.
    pub fn set_sampling(&mut self, period_ns: u64, out_of_order: u64) {
        self.known_period_ns = Some(period_ns);
        self.trace.out_of_order += out_of_order;
    }

    /// Adds an event with a `weight` in the unit of the view.
    ///
    /// The events of a thread must be in time order.
    ///
    /// # Panics
    /// If the handle does not belong to this builder.
    pub fn add_event(&mut self, thread: ThreadHandle, time_ns: u64, weight: u64, stack: Option<StackHandle>) {
        self.add_weighted(thread, time_ns, weight, SampleKind::EVENT, stack);
    }

    /// Adds a sample with a known weight. A thread has either such samples or ticks.
    ///
    /// The samples of a thread must be in time order.
    ///
    /// # Panics
    /// If the handle does not belong to this builder.
    pub fn add_weighted(
        &mut self,
        thread: ThreadHandle,
        time_ns: u64,
        weight: u64,
        kind: SampleKind,
        stack: Option<StackHandle>,
    ) {
        self.trace.threads[thread.index()].push_weighted(time_ns, weight, kind, stack);
        self.trace.duration_ns = self.trace.duration_ns.max(time_ns);
    }

    /// Reserves memory for exactly `more` samples of [`Self::add_weighted`], 24 bytes each.
    pub fn reserve_weighted(&mut self, thread: ThreadHandle, more: usize) {
        self.trace.threads[thread.index()].reserve_weighted(more);
    }

    /// Interns a frame that is not code, such as the type of an object or the reason of a pause. It is displayed as
    /// `text`.
    pub fn label(&mut self, text: &str) -> FrameHandle {
        self.add_frame(&Frame::label(text))
    }

    /// Computes the weights of ticks and returns the trace. Events already have weights.
    ///
    /// A sample lasts until the next sample of its thread, whatever its kind. The period is the median interval between
    /// two ticks of a thread (1 ms if no thread has two), and the end of sampling is the last tick of any thread. If
    /// the last tick of a thread is at most two periods before the end of sampling, the thread was still running: its
    /// last sample lasts until one period after the end of sampling. Otherwise the thread had exited: its last sample
    /// lasts one period. So the samples of a thread that runs throughout the recording add up to the sampled time,
    /// without gaps.
    pub fn finish(self) -> Trace {
        let Self { mut trace, period, known_period_ns, .. } = self;
        let period_ns = known_period_ns.unwrap_or_else(|| period.median());
        if let Some(last_tick_ns) = trace.threads.iter().filter_map(Thread::last_ns).max() {
            let end_ns = last_tick_ns.saturating_add(period_ns);
            for thread in &mut trace.threads {
                let Some(last_ns) = thread.last_ns() else { continue };
                let alive = last_tick_ns - last_ns <= period_ns.saturating_mul(2);
                thread.weigh(if alive { end_ns } else { last_ns.saturating_add(period_ns) });
            }
            trace.duration_ns = trace.duration_ns.max(end_ns);
        }
        trace.threads.iter_mut().for_each(Thread::add_up);
        trace.period_ns = period_ns;
        trace
    }
}
