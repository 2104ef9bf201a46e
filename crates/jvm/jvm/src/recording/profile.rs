//! The conversion of traces to profiles, which the sinks write.
//!
//! For formats with a time axis, a [`profile`] is a timeline: consecutive pieces of time of a thread with the calls
//! that were open in them. A call that takes less than a step of the clock (a millisecond in versions 1 to 4) has
//! no width and is invisible, and so is the boundary between two equal calls in one step. Exact numbers of calls
//! and total times are in the call tree, from which the other profiles are made.

use runtap_bytefrog::{Change, Model, Report, StackChange, TreeRow, readable};
use runtap_model::{
    Frame, FrameHandle, KindInfo, Origin, Process, SampleClass, SampleKind, StackHandle, ThreadHandle, Trace,
    TraceBuilder, Unit, View,
};

use crate::recording::error::Error;
use crate::recording::find::RecordedAgent;
use crate::recording::replay::{Options, ReplayedAgent, replay_with};

/// The time in methods without their callees, which adds up to all of the time in traced calls.
pub const SELF_TIME: KindInfo = KindInfo {
    class: SampleClass::Weighted,
    name: "time",
    about: "Time in Java methods",
    unit: Unit::Nanoseconds,
};
/// The number of calls that have begun.
pub const CALLS: KindInfo = KindInfo {
    class: SampleClass::Weighted,
    name: "calls",
    about: "Calls of Java methods: for folded, flamegraph, pprof and speedscope",
    unit: Unit::Count,
};

/// Adds the kinds of samples of Java traces. A builder has capacity for them, because they are its first ones.
fn add_kinds(builder: &mut TraceBuilder) -> [SampleKind; 2] {
    [SELF_TIME, CALLS].map(|info| builder.kind(info).unwrap_or(SampleKind::EVENT))
}

/// Returns the views of Java traces: [`SELF_TIME`] and [`CALLS`].
pub fn views() -> [View; 2] {
    let [time, calls] = add_kinds(&mut TraceBuilder::new());
    [View::Kind(time, SELF_TIME), View::Kind(calls, CALLS)]
}

/// The number that is added up for each path of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeMeasure {
    /// [`SELF_TIME`].
    Time,
    /// [`CALLS`].
    Calls,
}

/// The kind of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileKind {
    /// The totals of the call trees.
    Tree(TreeMeasure),
    /// A timeline. The recording is read again, for at most this number of pieces of time, 24 bytes each; further
    /// ones are counted as [left out](Trace::left_out).
    Timeline(u64),
}

/// Creates a profile of a recording that was replayed with these options.
///
/// # Errors
/// Fails if the recording cannot be read again.
pub fn profile(
    recorded: &RecordedAgent,
    replayed: &ReplayedAgent,
    options: &Options,
    kind: ProfileKind,
) -> Result<Trace, Error> {
    let report = replayed.model.report();
    let mut profile = ProfileBuilder::new(replayed, &report);
    drop(report);
    match kind {
        ProfileKind::Tree(measure) => profile.tree(&replayed.model, measure),
        ProfileKind::Timeline(max_pieces) => {
            profile.remaining = max_pieces;
            replay_with(recorded, options, &mut |_, change| profile.change(change))?;
            profile.end();
        }
    }
    Ok(profile.builder.finish())
}

struct ProfileBuilder<'a> {
    builder: TraceBuilder,
    model: &'a Model,
    threads: Vec<ThreadHandle>,
    kinds: [SampleKind; 2],
    /// The frames of methods, by their indices in the model.
    frames: Vec<Option<FrameHandle>>,
    /// The open calls of each thread.
    stacks: Vec<Vec<StackHandle>>,
    /// The time up to which each thread is drawn.
    drawn: Vec<i64>,
    /// The remaining number of pieces of time.
    remaining: u64,
}

impl<'a> ProfileBuilder<'a> {
    fn new(replayed: &'a ReplayedAgent, report: &Report) -> Self {
        let mut builder = TraceBuilder::new();
        let process = replayed.process.as_ref();
        builder.set_process(Process {
            pid: process.map(|process| process.pid),
            name: Some(process.map_or_else(|| replayed.agent.clone(), |process| process.main.to_string())),
            command_line: None,
        });
        if let Some(start) = process.and_then(|process| i64::try_from(process.wall).ok()) {
            builder.set_start_unix_ns(start);
        }
        let threads: Vec<ThreadHandle> = report
            .threads
            .iter()
            .map(|thread| {
                let handle = builder.thread(thread.id.into());
                if let Some(name) = &thread.name {
                    builder.set_thread_name(handle, name);
                }
                handle
            })
            .collect();
        let kinds = add_kinds(&mut builder);
        let count = threads.len();
        Self {
            builder,
            model: &replayed.model,
            threads,
            kinds,
            frames: Vec::new(),
            stacks: vec![Vec::new(); count],
            drawn: vec![0; count],
            remaining: u64::MAX,
        }
    }

    /// Adds the totals of each path of each thread. Their start is 0, because it is unknown.
    fn tree(&mut self, model: &Model, measure: TreeMeasure) {
        let [time, calls] = self.kinds;
        let mut path: Vec<StackHandle> = Vec::new();
        // The frames are cached by signature: a name may be long, and occur in each of a million rows.
        let mut frames: Vec<Option<FrameHandle>> = Vec::new();
        let Self { builder, threads, .. } = self;
        model.each_call_tree(|thread, signatures, rows| {
            let Some(thread) = threads.get(thread).copied() else { return };
            // There may be as many samples as the trace has nodes.
            let own = |row: &TreeRow| row.own.saturating_add(row.own_so_far);
            let count = match measure {
                TreeMeasure::Time => rows.iter().filter(|row| own(row) > 0).count(),
                TreeMeasure::Calls => rows.len(),
            };
            builder.reserve_weighted(thread, count);
            for row in rows {
                path.truncate(row.depth);
                frames.resize(signatures.len(), None);
                let Some((slot, name)) = frames.get_mut(row.signature).zip(signatures.get(row.signature))
                else {
                    continue;
                };
                let frame = *slot.get_or_insert_with(|| method_frame(builder, name));
                let stack = builder.stack(path.last().copied(), frame);
                path.push(stack);
                // As in a timeline, calls without an end last until their end is missed.
                match measure {
                    TreeMeasure::Time if own(row) == 0 => {}
                    TreeMeasure::Time => builder.add_weighted(thread, 0, own(row), time, Some(stack)),
                    TreeMeasure::Calls => builder.add_weighted(thread, 0, row.calls, calls, Some(stack)),
                }
            }
        });
    }

    fn change(&mut self, change: Change) {
        self.draw(change.thread, change.time);
        match change.kind {
            StackChange::Opened(method) => {
                let frame = self.frame(method);
                let Some(stack) = self.stacks.get_mut(change.thread) else { return };
                let handle = self.builder.stack(stack.last().copied(), frame);
                stack.push(handle);
            }
            StackChange::Closed => {
                self.stacks.get_mut(change.thread).and_then(Vec::pop);
            }
            StackChange::Cut(calls) => {
                let Some(stack) = self.stacks.get_mut(change.thread) else { return };
                stack.truncate(stack.len().saturating_sub(calls));
            }
        }
    }

    /// Adds the piece of time before a change.
    fn draw(&mut self, thread: usize, time: i64) {
        let (Some(drawn), Some(stack)) = (self.drawn.get_mut(thread), self.stacks.get(thread)) else {
            return;
        };
        // A clock that was set back has times below 0, which viewers do not show.
        let from = std::mem::replace(drawn, time.max(*drawn));
        let (Some(stack), true) = (stack.last().copied(), time > from) else { return };
        if self.remaining == 0 {
            self.builder.leave_out(1);
            return;
        }
        self.remaining -= 1;
        let (Some(handle), [kind, _]) = (self.threads.get(thread).copied(), self.kinds) else { return };
        let (begin, length) = (from.unsigned_abs(), time.abs_diff(from));
        self.builder.add_weighted(handle, begin, length, kind, Some(stack));
    }

    /// Draws calls that are open at the end until that time.
    fn end(&mut self) {
        let end = self.drawn.iter().copied().max().unwrap_or(0);
        for thread in 0..self.threads.len() {
            self.draw(thread, end);
        }
    }

    fn frame(&mut self, method: u32) -> FrameHandle {
        let index = method as usize;
        if self.frames.len() <= index {
            self.frames.resize(index + 1, None);
        }
        if let Some(frame) = self.frames.get(index).copied().flatten() {
            return frame;
        }
        let frame = method_frame(&mut self.builder, &self.model.method(method));
        if let Some(slot) = self.frames.get_mut(index) {
            *slot = Some(frame);
        }
        frame
    }
}

/// The packages of the class library.
const LIBRARY: [&str; 5] = ["java/", "javax/", "jdk/", "sun/", "com/sun/"];

/// Returns the frame of a method. It has no module, because not every Java class is in one.
fn method_frame(builder: &mut TraceBuilder, signature: &str) -> FrameHandle {
    let is_library = LIBRARY.iter().any(|package| signature.starts_with(package));
    let origin = if is_library { Origin::Runtime } else { Origin::Own };
    builder.add_frame(&Frame::label(&readable(signature)).of(origin))
}
