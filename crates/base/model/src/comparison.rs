//! Comparison of two traces: equal frames and stacks share one entry in a common table, with the weights of both.
//!
//! Frames are equal if module and name are equal, stacks if all their frames are. Threads are ignored, because their
//! ids differ between runs. So recordings of different processes can be compared, but a renamed method appears as two.
//!
//! Addresses without a name mean nothing in another process, so all of a module are one frame. Runtime versions differ
//! in internal frames, so stacks are [aligned](align()) by the frames that both traces have.

use crate::alignment::align;
use crate::builder::TraceBuilder;
use crate::frames::FrameHandle;
use crate::nameless::{merge_frames, merge_stacks};
use crate::stacks::StackHandle;
use crate::totals::{FrameTotals, StackWeights};
use crate::trace::Trace;
use crate::view::View;

/// Two traces with common tables.
#[derive(Debug, Clone)]
pub struct Comparison {
    tables: Trace,
    view: View,
    before: ComparisonSide,
    after: ComparisonSide,
}

/// One of the two compared traces.
#[derive(Debug, Clone)]
pub struct ComparisonSide {
    stacks: StackWeights,
    frames: FrameTotals,
    threads: usize,
    duration_ns: u64,
}

impl Comparison {
    /// Compares the samples that `view` selects from two traces.
    pub fn new(before: &Trace, after: &Trace, view: View) -> Self {
        let mut builder = TraceBuilder::new();
        let frames = [before, after].map(|trace| merge_frames(trace, &mut builder));
        let sides = [(before, &frames[0][..]), (after, &frames[1][..])];
        let whole = sides.map(|(trace, frames)| merge_stacks(trace, frames, &mut builder));
        let aligned = align(sides, &mut builder);
        let tables = builder.finish();
        let side = |trace, at: usize| ComparisonSide::new(trace, &whole[at], &aligned[at], &tables, view);
        let (before, after) = (side(before, 0), side(after, 1));
        Self { tables, view, before, after }
    }

    /// Returns the frames and stacks of both, as a trace without threads.
    pub fn tables(&self) -> &Trace {
        &self.tables
    }

    /// Returns the compared view.
    pub fn view(&self) -> View {
        self.view
    }

    /// Returns the first trace.
    pub fn before(&self) -> &ComparisonSide {
        &self.before
    }

    /// Returns the second trace.
    pub fn after(&self) -> &ComparisonSide {
        &self.after
    }

    /// Returns the change of a frame's self share with its margin of error.
    pub fn self_change(&self, frame: FrameHandle) -> ShareChange {
        let part = |side: &ComparisonSide| (side.frames.self_weight(frame), side.frames.self_ticks(frame));
        self.change(part(&self.before), part(&self.after))
    }

    /// Returns the change of a frame's inclusive share with its margin of error.
    pub fn total_change(&self, frame: FrameHandle) -> ShareChange {
        let part = |side: &ComparisonSide| (side.frames.total_weight(frame), side.frames.total_ticks(frame));
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

/// The change of a frame's share from one trace to the other. Shares are between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareChange {
    /// Share in the first trace.
    pub before: f64,
    /// Share in the second trace.
    pub after: f64,
    /// The 95% margin of error of the difference, assuming independent samples. Samples are not fully independent, so
    /// it is a lower bound. `None` for views that are not sampled, which have no error.
    ///
    /// Computed from the numbers of samples by the method of Agresti and Caffo (2000), which also holds for few
    /// samples.
    pub margin: Option<f64>,
}

impl ShareChange {
    /// Returns the difference of the shares.
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// Returns whether the difference exceeds the margin of error.
    pub fn is_significant(&self) -> bool {
        self.change().abs() > self.margin.unwrap_or(0.0)
    }
}

/// Number of standard deviations that contain 95% of a normal distribution.
const DEVIATIONS: f64 = 1.96;

/// Returns the variance of a share after adding one success and one failure.
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

impl ComparisonSide {
    fn new(
        trace: &Trace,
        whole: &[StackHandle],
        aligned: &[StackHandle],
        tables: &Trace,
        view: View,
    ) -> Self {
        let moved = |places| StackWeights::new(trace, view, None).moved(places, tables.stacks().len());
        // The total of a frame includes stacks in which alignment skips it.
        let frames = FrameTotals::of(tables, &moved(whole));
        let stacks = moved(aligned);
        let threads = trace.threads().filter(|(_, thread)| thread.samples(view).next().is_some()).count();
        Self { stacks, frames, threads, duration_ns: trace.duration_ns() }
    }

    /// Returns the weight of each stack of the common table, after alignment.
    pub fn stacks(&self) -> &StackWeights {
        &self.stacks
    }

    /// Returns the weight of each frame of the common table.
    pub fn frames(&self) -> &FrameTotals {
        &self.frames
    }

    /// Returns the number of threads that have samples in the view.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the duration of the recording in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }
}
