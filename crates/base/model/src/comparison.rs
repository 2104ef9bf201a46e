//! Two traces side by side: the same frames and stacks in one table, each with the weights of both.
//!
//! Frames are the same if module and name are the same, stacks if all their frames are; threads play no part, since
//! their numbers mean nothing from one run to the next. Which is why this works for two recordings of different
//! processes, and not for a method that was renamed.
//!
//! What has no name has only an address, which means nothing in another process: all of it is one frame per module. And
//! one version of the runtime may call through a frame that another does not have: stacks are [aligned](align()) on the
//! frames that both have, so that what they have in common meets.

use crate::alignment::align;
use crate::builder::TraceBuilder;
use crate::frames::FrameHandle;
use crate::nameless::{merge_frames, merge_stacks};
use crate::stacks::StackHandle;
use crate::totals::{FrameTotals, StackWeights};
use crate::trace::Trace;
use crate::view::View;

/// Two traces in one set of tables.
#[derive(Debug, Clone)]
pub struct Comparison {
    tables: Trace,
    view: View,
    before: Side,
    after: Side,
}

/// One of the two traces.
#[derive(Debug, Clone)]
pub struct Side {
    stacks: StackWeights,
    frames: FrameTotals,
    threads: usize,
    duration_ns: u64,
}

impl Comparison {
    /// Compares what `view` selects of two traces.
    pub fn new(before: &Trace, after: &Trace, view: View) -> Self {
        let mut builder = TraceBuilder::new();
        let frames = [before, after].map(|trace| merge_frames(trace, &mut builder));
        let sides = [(before, &frames[0][..]), (after, &frames[1][..])];
        let whole = sides.map(|(trace, frames)| merge_stacks(trace, frames, &mut builder));
        let aligned = align(sides, &mut builder);
        let tables = builder.finish();
        let side = |trace, at: usize| Side::new(trace, &whole[at], &aligned[at], &tables, view);
        let (before, after) = (side(before, 0), side(after, 1));
        Self { tables, view, before, after }
    }

    /// The frames and stacks of both, as a trace without threads.
    pub fn tables(&self) -> &Trace {
        &self.tables
    }

    /// What is compared.
    pub fn view(&self) -> View {
        self.view
    }

    /// The first trace.
    pub fn before(&self) -> &Side {
        &self.before
    }

    /// The second trace.
    pub fn after(&self) -> &Side {
        &self.after
    }

    /// The change of the share that a frame has itself, with a sign, and how far off that may be.
    pub fn self_change(&self, frame: FrameHandle) -> ShareChange {
        let part = |side: &Side| (side.frames.self_weight(frame), side.frames.self_ticks(frame));
        self.change(part(&self.before), part(&self.after))
    }

    /// The same for the share of a frame and of what it called.
    pub fn total_change(&self, frame: FrameHandle) -> ShareChange {
        let part = |side: &Side| (side.frames.total_weight(frame), side.frames.total_ticks(frame));
        self.change(part(&self.before), part(&self.after))
    }

    fn change(&self, before: (u64, u64), after: (u64, u64)) -> ShareChange {
        let (of_before, of_after) = (self.before.frames.sum(), self.after.frames.sum());
        let margin = self.view.is_sampled().then(|| {
            let before = variance(before.1, self.before.frames.ticks());
            let after = variance(after.1, self.after.frames.ticks());
            DEVIATIONS * (before + after).sqrt()
        });
        let (before, after) = (share(before.0, of_before), share(after.0, of_after));
        ShareChange { before, after, margin }
    }
}

/// How the share of a frame changed from one trace to the other. Shares are between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareChange {
    /// Share of the first trace.
    pub before: f64,
    /// Share of the second trace.
    pub after: f64,
    /// How far the difference may be off, 19 times out of 20, if the samples were taken independently of each other.
    /// They are not quite, so it is a lower bound. `None` for views that are not sampled: nothing was left to chance.
    ///
    /// From the numbers of samples by the method of Agresti and Caffo (2000), which holds for few samples too.
    pub margin: Option<f64>,
}

impl ShareChange {
    /// The difference.
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// Whether the difference is more than the margin: more than chance would make, were the samples independent.
    pub fn is_significant(&self) -> bool {
        self.change().abs() > self.margin.unwrap_or(0.0)
    }
}

/// 95 % of a normal distribution are within so many standard deviations.
const DEVIATIONS: f64 = 1.96;

/// The variance of a share, after one success and one failure more.
fn variance(ticks: u64, of: u64) -> f64 {
    let number = float(of) + 2.0;
    let share = (float(ticks) + 1.0) / number;
    share * (1.0 - share) / number
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { float(part) / float(of) }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 15 digits")]
fn float(number: u64) -> f64 {
    number as f64
}

impl Side {
    fn new(
        trace: &Trace,
        whole: &[StackHandle],
        aligned: &[StackHandle],
        tables: &Trace,
        view: View,
    ) -> Self {
        let moved = |places| StackWeights::new(trace, view, None).moved(places, tables.stacks().len());
        // What a frame takes counts also where it stands below all that both have.
        let frames = FrameTotals::of(tables, &moved(whole));
        let stacks = moved(aligned);
        let threads = trace.threads().filter(|(_, thread)| thread.samples(view).next().is_some()).count();
        Self { stacks, frames, threads, duration_ns: trace.duration_ns() }
    }

    /// The weight of each stack of the common table, led past frames that the other trace does not have.
    pub fn stacks(&self) -> &StackWeights {
        &self.stacks
    }

    /// The weight of each frame of the common table.
    pub fn frames(&self) -> &FrameTotals {
        &self.frames
    }

    /// How many threads have samples in the view.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// How long was recorded, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }
}
