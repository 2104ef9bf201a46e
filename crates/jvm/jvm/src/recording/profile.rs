//! Traces as profiles, which the sinks write.
//!
//! Owns: [`profile`]. For formats with a time axis it is a timeline: each piece of time of a thread with the calls that were
//! open in it. A call that takes less than a step of the clock (a millisecond in versions 1 to 4) has no width and is not seen,
//! nor is where one call ends and the same begins again in one step: what has to be exact, calls and sums, is in the call
//! tree, of which the others are made.

use runtap_bytefrog::{Change, Model, Report, StackChange, TreeRow, readable};
use runtap_model::{
    Frame, FrameHandle, KindInfo, Origin, Process, SampleClass, SampleKind, StackHandle, ThreadHandle, Trace,
    TraceBuilder, Unit,
};

use crate::recording::error::Error;
use crate::recording::find::Recorded;
use crate::recording::replay::{Options, Replayed, replay_with};

/// Time in methods without their callees: all of the time in traced calls.
pub const SELF_TIME: KindInfo =
    KindInfo { class: SampleClass::Weighted, name: "time", unit: Unit::Nanoseconds };
/// Calls that have begun.
pub const CALLS: KindInfo = KindInfo { class: SampleClass::Weighted, name: "calls", unit: Unit::Count };

/// What is added up for each path of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sums {
    /// [`SELF_TIME`].
    Time,
    /// [`CALLS`].
    Calls,
}

/// What a profile has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Sums of the call trees.
    Tree(Sums),
    /// Time in its course: the recording is read once more, for at most so many pieces of time, 24 bytes each; further ones
    /// are counted as [left out](Trace::left_out).
    Timeline(u64),
}

/// Makes a profile of a recording that was replayed with these options.
///
/// # Errors
/// The recording can't be read once more.
pub fn profile(recorded: &Recorded, replayed: &Replayed, options: &Options, of: Of) -> Result<Trace, Error> {
    let report = replayed.model.report();
    let mut draft = Draft::new(replayed, &report);
    drop(report);
    match of {
        Of::Tree(sums) => draft.tree(&replayed.model, sums),
        Of::Timeline(most) => {
            draft.room = most;
            replay_with(recorded, options, &mut |_, change| draft.change(change))?;
            draft.end();
        }
    }
    Ok(draft.builder.finish())
}

struct Draft<'a> {
    builder: TraceBuilder,
    model: &'a Model,
    threads: Vec<ThreadHandle>,
    kinds: [SampleKind; 2],
    /// Frames of methods by their indices in the model.
    frames: Vec<Option<FrameHandle>>,
    /// The calls that are open in each thread.
    stacks: Vec<Vec<StackHandle>>,
    /// The time up to which each thread is drawn.
    drawn: Vec<i64>,
    room: u64,
}

impl<'a> Draft<'a> {
    fn new(replayed: &'a Replayed, report: &Report) -> Self {
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
        // Each class has room for seven, and these are the first.
        let kinds = [SELF_TIME, CALLS].map(|info| builder.kind(info).unwrap_or(SampleKind::EVENT));
        let count = threads.len();
        Self {
            builder,
            model: &replayed.model,
            threads,
            kinds,
            frames: Vec::new(),
            stacks: vec![Vec::new(); count],
            drawn: vec![0; count],
            room: u64::MAX,
        }
    }

    /// Sums of each path of each thread. Their time is 0: nobody knows any.
    fn tree(&mut self, model: &Model, of: Sums) {
        let [time, calls] = self.kinds;
        let mut path: Vec<StackHandle> = Vec::new();
        // By signature: a name may be long, and in each of a million rows.
        let mut frames: Vec<Option<FrameHandle>> = Vec::new();
        let Self { builder, threads, .. } = self;
        model.each_call_tree(|thread, signatures, rows| {
            let Some(thread) = threads.get(thread).copied() else { return };
            // There can be as many as the trace has places.
            let own = |row: &TreeRow| row.own.saturating_add(row.own_so_far);
            let count = match of {
                Sums::Time => rows.iter().filter(|row| own(row) > 0).count(),
                Sums::Calls => rows.len(),
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
                // As in a timeline, where what has no end lasts until that is clear.
                match of {
                    Sums::Time if own(row) == 0 => {}
                    Sums::Time => builder.add_weighted(thread, 0, own(row), time, Some(stack)),
                    Sums::Calls => builder.add_weighted(thread, 0, row.calls, calls, Some(stack)),
                }
            }
        });
    }

    fn change(&mut self, change: Change) {
        self.draw(change.thread, change.time);
        match change.what {
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

    /// The piece of time before this.
    fn draw(&mut self, thread: usize, time: i64) {
        let (Some(drawn), Some(stack)) = (self.drawn.get_mut(thread), self.stacks.get(thread)) else {
            return;
        };
        // A clock that was set back begins below 0, where no viewer looks.
        let from = std::mem::replace(drawn, time.max(*drawn));
        let (Some(stack), true) = (stack.last().copied(), time > from) else { return };
        if self.room == 0 {
            self.builder.leave_out(1);
            return;
        }
        self.room -= 1;
        let (Some(handle), [kind, _]) = (self.threads.get(thread).copied(), self.kinds) else { return };
        let (begin, length) = (from.unsigned_abs(), time.abs_diff(from));
        self.builder.add_weighted(handle, begin, length, kind, Some(stack));
    }

    /// Calls that are open at the end last until then.
    fn end(&mut self) {
        let end = self.drawn.iter().copied().max().unwrap_or(0);
        for thread in 0..self.threads.len() {
            self.draw(thread, end);
        }
    }

    fn frame(&mut self, method: u32) -> FrameHandle {
        let place = method as usize;
        if self.frames.len() <= place {
            self.frames.resize(place + 1, None);
        }
        if let Some(frame) = self.frames.get(place).copied().flatten() {
            return frame;
        }
        let frame = method_frame(&mut self.builder, &self.model.method(method));
        if let Some(slot) = self.frames.get_mut(place) {
            *slot = Some(frame);
        }
        frame
    }
}

/// Packages of the class library.
const LIBRARY: [&str; 5] = ["java/", "javax/", "jdk/", "sun/", "com/sun/"];

/// The frame of a method. Java has no modules that every class is in, so it shows as its name alone.
fn method_frame(builder: &mut TraceBuilder, signature: &str) -> FrameHandle {
    let is_library = LIBRARY.iter().any(|package| signature.starts_with(package));
    let origin = if is_library { Origin::Runtime } else { Origin::Own };
    builder.add_frame(&Frame::label(&readable(signature)).of(origin))
}
