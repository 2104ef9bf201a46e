//! Fills a trace and, at the end, gives every sample its weight.
//!
//! Whoever decodes a recording calls this with times only; the weights follow from them by the rule in
//! [`TraceBuilder::finish`] and nowhere else.

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

/// A trace that is being filled.
#[derive(Debug, Clone, Default)]
pub struct TraceBuilder {
    trace: Trace,
    threads_by_tid: HashMap<u64, ThreadHandle, RandomState>,
    period: Period,
    /// The period, if somebody knows it already.
    known_period_ns: Option<u64>,
    room: Room,
}

impl TraceBuilder {
    /// An empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how much room there is for samples: see [`Self::has_room`].
    pub fn set_room(&mut self, room: Room) {
        self.room = room;
    }

    /// Says which program this is.
    pub fn set_process(&mut self, process: Process) {
        self.trace.process = process;
    }

    /// Says that [`Trace::lacks_resumptions`].
    pub fn set_lacks_resumptions(&mut self) {
        self.trace.lacks_resumptions = true;
    }

    /// Says when the session started, in nanoseconds since 1970-01-01 UTC.
    pub fn set_start_unix_ns(&mut self, start: i64) {
        self.trace.start_unix_ns = Some(start);
    }

    /// Says how many times a second the target's clock ticks.
    pub fn set_ticks_per_s(&mut self, ticks: u64) {
        self.trace.ticks_per_s = Some(ticks);
    }

    /// Says how long was recorded, in nanoseconds since the start of the session.
    pub fn set_duration_ns(&mut self, duration_ns: u64) {
        self.trace.duration_ns = duration_ns;
    }

    /// The handle of a text.
    pub fn string(&mut self, text: &str) -> StringHandle {
        self.trace.strings.intern(text)
    }

    /// The handle of a frame.
    pub fn add_frame(&mut self, frame: &Frame<'_>) -> FrameHandle {
        self.trace.frames.intern(frame, &mut self.trace.strings)
    }

    /// The handle of a [frame of which no more is said](Frame::new): `Namespace.Type.Method(args)` in a module (or in none
    /// that is known).
    pub fn frame(&mut self, module: Option<&str>, name: &str) -> FrameHandle {
        self.add_frame(&Frame::new(module, name))
    }

    /// A kind of samples that the source has beside [those of the CLR](SampleKind). `None`: its class has
    /// [`MAX_KINDS`](crate::MAX_KINDS) others.
    pub fn kind(&mut self, info: KindInfo) -> Option<SampleKind> {
        self.trace.kinds.add(info)
    }

    /// The handle of the stack that ends in `frame`, called from `parent`.
    pub fn stack(&mut self, parent: Option<StackHandle>, frame: FrameHandle) -> StackHandle {
        self.trace.stacks.intern(parent, frame)
    }

    /// The last frame of a stack, and its caller's stack.
    ///
    /// # Panics
    /// If the handle is not of this builder.
    pub fn callee(&self, stack: StackHandle) -> Stack {
        self.trace.stacks.get(stack)
    }

    /// The handle of a whole stack, from the root to the innermost frame; `None` if there is no frame.
    pub fn stack_of(&mut self, root_first: impl IntoIterator<Item = FrameHandle>) -> Option<StackHandle> {
        root_first.into_iter().fold(None, |parent, frame| Some(self.stack(parent, frame)))
    }

    /// The thread with the operating system's number `tid`, which is added if it is new.
    pub fn thread(&mut self, tid: u64) -> ThreadHandle {
        let threads = &mut self.trace.threads;
        *self.threads_by_tid.entry(tid).or_insert_with(|| {
            let new = ThreadHandle(next_index(threads.len()));
            threads.push(Thread::new(tid));
            new
        })
    }

    /// The same for one more sample, if that has a place: `None`, and the sample is counted as [left out](Trace::left_out),
    /// for a new thread where there are [`MAX_THREADS`], and where there is no room in memory. To be asked before its stack is
    /// named, which takes memory too.
    pub fn thread_for_sample(&mut self, tid: u64) -> Option<ThreadHandle> {
        if self.trace.threads.len() >= MAX_THREADS && !self.threads_by_tid.contains_key(&tid) {
            self.leave_out(1);
            return None;
        }
        self.has_room(1).then(|| self.thread(tid))
    }

    /// Whether there is room in memory for some more samples of one thread, which are counted as
    /// [left out](Trace::left_out) if not.
    pub fn has_room(&mut self, samples: u64) -> bool {
        let has_room = self.room.has_one();
        if !has_room {
            self.leave_out(samples);
        }
        has_room
    }

    /// Tells what adding a stack has taken, beside its sample: frames that were added, and steps
    /// ([`MAX_STEPS`](crate::MAX_STEPS)). What comes after too much of either [has no room](Self::has_room).
    pub fn took(&mut self, frames: usize, steps: usize) {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        self.room.took(count(frames), count(steps));
    }

    /// Says that the source marks samples as running or waiting without error: none is [in doubt](Trace::doubtful_ticks).
    pub fn set_exact_states(&mut self) {
        self.trace.has_exact_states = true;
    }

    /// Counts samples that are left out.
    pub fn leave_out(&mut self, samples: u64) {
        self.trace.left_out = self.trace.left_out.saturating_add(samples);
    }

    /// Names a thread. The last name wins; an empty one takes the name away.
    ///
    /// # Panics
    /// If the handle is not of this builder.
    pub fn set_thread_name(&mut self, thread: ThreadHandle, name: &str) {
        self.trace.threads[thread.index()].set_name(name);
    }

    /// Says which process a thread is of, in a trace of several processes. All threads of a process share one value.
    ///
    /// # Panics
    /// If the handle is not of this builder.
    pub fn set_thread_process(&mut self, thread: ThreadHandle, process: &Arc<Process>) {
        self.trace.threads[thread.index()].set_process(process);
    }

    /// Names the thread with the number `tid`, if there is one.
    pub fn set_known_thread_name(&mut self, tid: u64, name: &str) {
        if let Some(thread) = self.threads_by_tid.get(&tid).copied() {
            self.set_thread_name(thread, name);
        }
    }

    /// Adds a tick of the sampler: `thread` was found in `stack` at `time_ns` since the start of the session.
    ///
    /// The ticks of a thread come in time order; one that is earlier than its predecessor is kept, at the time
    /// of that, and counted in [`Trace::out_of_order`]. Threads may come in any order.
    ///
    /// # Panics
    /// If the handle is not of this builder.
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

    /// Adds ticks in the order of time, of which the last was at `last_ns`: what [`Ticks`](crate::Ticks) has gathered,
    /// [named](crate::TickRun::named).
    ///
    /// # Panics
    /// If the handle is not of this builder.
    pub fn add_runs(&mut self, thread: ThreadHandle, runs: Vec<Run>, last_ns: u64) {
        self.trace.threads[thread.index()].push_runs(runs, last_ns);
    }

    /// Says what the typical distance between two ticks is, for ticks that were added as runs, and how many of them came
    /// too early.
    pub fn set_sampling(&mut self, period_ns: u64, out_of_order: u64) {
        self.known_period_ns = Some(period_ns);
        self.trace.out_of_order += out_of_order;
    }

    /// Adds an event of a view that is made of events: `weight` in the unit of that view.
    ///
    /// The events of a thread come in the order of time.
    ///
    /// # Panics
    /// If the handle is not of this builder.
    pub fn add_event(&mut self, thread: ThreadHandle, time_ns: u64, weight: u64, stack: Option<StackHandle>) {
        self.add_weighed(thread, time_ns, weight, SampleKind::EVENT, stack);
    }

    /// Adds a sample that has its weight already. A thread has either such samples or ticks.
    ///
    /// Its samples come in the order of time.
    ///
    /// # Panics
    /// If the handle is not of this builder.
    pub fn add_weighed(
        &mut self,
        thread: ThreadHandle,
        time_ns: u64,
        weight: u64,
        kind: SampleKind,
        stack: Option<StackHandle>,
    ) {
        self.trace.threads[thread.index()].push_weighed(time_ns, weight, kind, stack);
        self.trace.duration_ns = self.trace.duration_ns.max(time_ns);
    }

    /// Makes room for exactly so many samples of [`Self::add_weighed`], 24 bytes each: for who knows how many come.
    pub fn reserve_weighed(&mut self, thread: ThreadHandle, more: usize) {
        self.trace.threads[thread.index()].reserve_weighed(more);
    }

    /// The handle of a frame that is no code: the type of an object, the reason of a pause. It shows as `text` alone.
    pub fn label(&mut self, text: &str) -> FrameHandle {
        self.add_frame(&Frame::label(text))
    }

    /// Weighs the ticks and ends the filling. Events have weights already.
    ///
    /// A sample lasts to the thread's next sample, of whatever kind. The period is the median distance between
    /// two ticks of a thread (1 ms if no thread was seen twice), the end of sampling the last tick of any thread. A thread whose last tick is at
    /// most two periods before the end of sampling was still there: its last sample lasts to the end of
    /// sampling and one period more. Any other thread was gone: its last sample lasts one period. So the samples of a
    /// thread that lives through the recording add up to the time that was sampled, and no gap is left out.
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
