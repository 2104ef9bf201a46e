//! Threads and their samples, stored as runs of equal ticks.
//!
//! Most threads of a real program wait most of the time, so the sampler finds the same stack for thousands of ticks.
//! Such ticks are stored as one sample with a count and the sum of their weights.

use std::sync::Arc;

use crate::kinds::{self, SampleClass, SampleKind};
use crate::stacks::StackHandle;
use crate::trace::Process;
use crate::view::View;

/// An event, or one or more consecutive ticks that found a thread with the same stack and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time of the first tick, in nanoseconds since the start of the session.
    pub time_ns: u64,
    /// Weight in the [unit](crate::View::unit) of the view. For ticks, the time until the next one (see
    /// [`TraceBuilder::finish`](crate::TraceBuilder::finish)).
    pub weight: u64,
    /// Number of ticks, at least 1.
    pub ticks: u32,
    /// State of the thread, or kind of event.
    pub kind: SampleKind,
    /// Stack of the thread; `None` if the runtime sent none.
    pub stack: Option<StackHandle>,
}

/// A handle to a thread of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadHandle(pub(crate) u32);

impl ThreadHandle {
    /// Returns the index in the list of threads. Indexes are dense, in the order of first use.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A thread with its samples.
#[derive(Debug, Clone)]
pub struct Thread {
    tid: u64,
    name: Option<String>,
    /// The process in a trace of several processes.
    process: Option<Arc<Process>>,
    runs: Vec<Run>,
    /// The weight of each run, if there are samples with weights of their own. The weights of ticks are computed from
    /// their times.
    weights: Vec<u64>,
    /// End of the last run of ticks.
    end_ns: u64,
    /// Time of the last tick, which is after the start of the last run if that has several.
    last_ns: u64,
    /// Whether there is any tick.
    ticked: bool,
    /// Weight and ticks by the kinds of [`SUMMED_KINDS`], once all samples have been added.
    sums: [(u64, u64); SUMMED_KINDS.len()],
}

/// A stored sample. 108 million of them (one hour at 1 kHz with 30 threads and no equal ticks) take 1.7 GB; consecutive
/// equal ticks share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    time_ns: u64,
    stack: Option<StackHandle>,
    /// The kind in the upper bits, the number of ticks in the lower bits.
    kind_and_ticks: u32,
}

/// Mask of the number of ticks.
pub(crate) const TICKS: u32 = u32::MAX >> kinds::BITS;

/// Encodes one tick of a kind.
#[inline]
pub(crate) fn one_tick(kind: SampleKind) -> u32 {
    kind.to_bits() << (u32::BITS - kinds::BITS) | 1
}

/// Returns the encoded kind.
#[inline]
pub(crate) fn kind_of(kind_and_ticks: u32) -> SampleKind {
    SampleKind::from_bits(kind_and_ticks >> (u32::BITS - kinds::BITS))
}

/// The kinds for which sums are stored. All predefined views consist of ticks of these classes, or of events.
const SUMMED_KINDS: [SampleKind; 4] =
    [SampleKind::MANAGED, SampleKind::EXTERNAL, SampleKind::OTHER, SampleKind::EVENT];

/// Returns the index of the sum that a sample is added to. `None` if it is added to no sum.
fn sum_of(kind: SampleKind) -> Option<usize> {
    match kind.class() {
        SampleClass::Running => Some(0),
        SampleClass::Waiting => Some(1),
        SampleClass::Unknown => Some(2),
        SampleClass::Weighted => (kind == SampleKind::EVENT).then_some(3),
    }
}

impl Run {
    fn new(time_ns: u64, kind: SampleKind, stack: Option<StackHandle>) -> Self {
        Self { time_ns, stack, kind_and_ticks: one_tick(kind) }
    }

    /// Creates a run of consecutive ticks encoded like [`one_tick`]. `time_ns` is the time of the first.
    #[inline]
    pub(crate) fn of_ticks(time_ns: u64, stack: Option<StackHandle>, kind_and_ticks: u32) -> Self {
        Self { time_ns, stack, kind_and_ticks }
    }

    fn kind(self) -> SampleKind {
        kind_of(self.kind_and_ticks)
    }

    fn ticks(self) -> u32 {
        self.kind_and_ticks & TICKS
    }

    /// Adds the ticks of `next` to this run if they are equal and fit. Returns whether they were added.
    fn absorb(&mut self, next: Self) -> bool {
        let same = self.stack == next.stack && self.kind() == next.kind();
        let fits = self.ticks() + next.ticks() <= TICKS;
        if same && fits {
            self.kind_and_ticks += next.ticks();
        }
        same && fits
    }
}

/// Adds a weight and a number of ticks.
fn add(sums: &mut (u64, u64), more: (u64, u64)) {
    *sums = (sums.0.saturating_add(more.0), sums.1.saturating_add(more.1));
}

impl Thread {
    pub(crate) fn new(tid: u64) -> Self {
        Self {
            tid,
            name: None,
            process: None,
            runs: Vec::new(),
            weights: Vec::new(),
            end_ns: 0,
            last_ns: 0,
            ticked: false,
            sums: [(0, 0); SUMMED_KINDS.len()],
        }
    }

    /// Returns the operating system's id of the thread.
    pub fn tid(&self) -> u64 {
        self.tid
    }

    /// Returns the name that the program gave the thread.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the process of the thread in a trace of several processes. `None` if it is the [process of the
    /// trace](crate::Trace::process).
    pub fn process(&self) -> Option<&Process> {
        self.process.as_deref()
    }

    /// Returns the label in files: `Thread (TID) NAME`, or `Thread (TID)` without a name. In a trace of several
    /// processes it starts with the process: `app (4711) Thread (TID) NAME`.
    pub fn label(&self) -> String {
        let process =
            self.process.as_ref().map_or_else(String::new, |process| format!("{} ", process.label()));
        format!("{process}{}", self.own_label())
    }

    /// Returns the label without the process, for formats that store processes separately.
    pub fn own_label(&self) -> String {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        format!("Thread ({}){name}", self.tid)
    }

    pub(crate) fn set_process(&mut self, process: &Arc<Process>) {
        self.process = Some(Arc::clone(process));
    }

    /// Converts the thread for another trace: adds `later` to all times, and maps stacks and kinds to those of the
    /// other trace.
    pub(crate) fn moved(
        mut self,
        process: &Arc<Process>,
        later: u64,
        stacks: &[StackHandle],
        kinds: &[(SampleKind, SampleKind)],
    ) -> Self {
        // Threads of a machine-wide recording already have a process.
        self.process.get_or_insert_with(|| Arc::clone(process));
        self.last_ns = self.last_ns.saturating_add(later);
        self.end_ns = self.end_ns.saturating_add(later);
        for run in &mut self.runs {
            run.time_ns = run.time_ns.saturating_add(later);
            run.stack = run.stack.map(|stack| stacks[stack.index()]);
            if let Some((_, kind)) = kinds.iter().find(|(old, new)| *old == run.kind() && old != new) {
                run.kind_and_ticks = one_tick(*kind) - 1 + run.ticks();
            }
        }
        self
    }

    /// Returns the samples of `view` in time order.
    #[inline]
    pub fn samples(&self, view: View) -> impl Iterator<Item = Sample> + '_ {
        self.all_samples().filter(move |s| view.selects(s.kind))
    }

    #[inline]
    fn all_samples(&self) -> impl Iterator<Item = Sample> + '_ {
        self.runs.iter().enumerate().map(|(i, run)| {
            let weight = self.weights.get(i).copied().unwrap_or_else(|| {
                let end_ns = self.runs.get(i + 1).map_or(self.end_ns, |next| next.time_ns);
                end_ns.saturating_sub(run.time_ns)
            });
            let Run { time_ns, stack, .. } = *run;
            Sample { time_ns, weight, ticks: run.ticks(), kind: run.kind(), stack }
        })
    }

    /// Returns the total weight of `view`, in its unit.
    pub fn weight(&self, view: View) -> u64 {
        self.sums(view).0
    }

    /// Returns the number of ticks in `view`.
    pub fn ticks(&self, view: View) -> u64 {
        self.sums(view).1
    }

    /// Returns the weight and the number of ticks of a view.
    fn sums(&self, view: View) -> (u64, u64) {
        let mut sums = (0, 0);
        if let View::Kind(..) = view {
            self.samples(view).for_each(|sample| add(&mut sums, (sample.weight, sample.ticks.into())));
        } else {
            let of_view = SUMMED_KINDS.iter().zip(&self.sums).filter(|(kind, _)| view.selects(**kind));
            of_view.for_each(|(_, sum)| add(&mut sums, *sum));
        }
        sums
    }

    /// Returns the stacks of all samples.
    pub(crate) fn stacks_mut(&mut self) -> impl Iterator<Item = &mut StackHandle> {
        self.runs.iter_mut().filter_map(|run| run.stack.as_mut())
    }

    /// Replaces the stack of each sample of a view by its entry in `places`.
    pub(crate) fn move_samples(&mut self, view: View, places: &[StackHandle]) {
        for run in self.runs.iter_mut().filter(|run| view.selects(run.kind())) {
            run.stack = run.stack.map(|stack| places[stack.index()]);
        }
    }

    /// Removes the samples from `time_ns` on. Earlier ones keep their weights.
    pub(crate) fn end_at(&mut self, time_ns: u64) {
        let kept = self.runs.partition_point(|run| run.time_ns < time_ns);
        let Some(first_left_out) = self.runs.get(kept) else { return };
        self.end_ns = first_left_out.time_ns;
        self.runs.truncate(kept);
        self.weights.truncate(kept);
        self.add_up();
    }

    pub(crate) fn set_name(&mut self, name: &str) {
        self.name = if name.is_empty() { None } else { Some(name.to_owned()) };
    }

    /// Returns the time of the last tick. `None` if there are no ticks.
    pub(crate) fn last_ns(&self) -> Option<u64> {
        self.ticked.then_some(self.last_ns)
    }

    /// Adds a tick, which must not be earlier than the last one.
    pub(crate) fn push(&mut self, time_ns: u64, kind: SampleKind, stack: Option<StackHandle>) {
        debug_assert!(time_ns >= self.last_ns, "ticks come in time order");
        (self.last_ns, self.ticked) = (time_ns, true);
        let run = Run::new(time_ns, kind, stack);
        if !self.runs.last_mut().is_some_and(|last| last.absorb(run)) {
            self.push_run(run, None);
        }
    }

    /// Adds ticks in time order. `last_ns` is the time of the last tick.
    pub(crate) fn push_runs(&mut self, mut runs: Vec<Run>, last_ns: u64) {
        runs.dedup_by(|next, run| run.absorb(*next));
        if self.runs.is_empty() {
            self.runs = runs;
        } else {
            for run in runs {
                if !self.runs.last_mut().is_some_and(|last| last.absorb(run)) {
                    self.push_run(run, None);
                }
            }
        }
        (self.last_ns, self.ticked) = (self.last_ns.max(last_ns), true);
    }

    /// Reserves memory for exactly `more` samples with weights.
    pub(crate) fn reserve_weighted(&mut self, more: usize) {
        self.runs.reserve_exact(more);
        self.weights.reserve_exact(self.runs.len().saturating_sub(self.weights.len()).saturating_add(more));
    }

    /// Adds a sample with a weight.
    pub(crate) fn push_weighted(
        &mut self,
        time_ns: u64,
        weight: u64,
        kind: SampleKind,
        stack: Option<StackHandle>,
    ) {
        self.push_run(Run::new(time_ns, kind, stack), Some(weight));
    }

    fn push_run(&mut self, run: Run, weight: Option<u64>) {
        if weight.is_some() || !self.weights.is_empty() {
            self.weights.resize(self.runs.len(), 0);
            self.weights.push(weight.unwrap_or_default());
        }
        self.runs.push(run);
    }

    /// Computes the weights of ticks: each lasts until the next one, and the last one until `end_ns`.
    pub(crate) fn weigh(&mut self, end_ns: u64) {
        self.end_ns = end_ns;
        let mut end_ns = end_ns;
        // `weights` is empty if there are only ticks, whose weights are computed on access.
        for (run, weight) in self.runs.iter().zip(&mut self.weights).rev() {
            if run.kind().is_tick() {
                *weight = end_ns.saturating_sub(run.time_ns);
                end_ns = run.time_ns;
            }
        }
    }

    /// Computes the sums after all samples have been added.
    pub(crate) fn add_up(&mut self) {
        self.runs.shrink_to_fit();
        let mut sums = [(0_u64, 0_u64); SUMMED_KINDS.len()];
        for sample in self.all_samples() {
            if let Some(sum) = sum_of(sample.kind) {
                add(&mut sums[sum], (sample.weight, sample.ticks.into()));
            }
        }
        self.sums = sums;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_sample_is_16_bytes() {
        assert_eq!(size_of::<Run>(), 16);
    }

    #[test]
    fn equal_ticks_in_a_row_are_one_sample() {
        let (here, there) = (Some(StackHandle::from_index(0)), Some(StackHandle::from_index(1)));
        let mut thread = Thread::new(7);
        thread.push(10, SampleKind::EXTERNAL, here);
        thread.push(20, SampleKind::EXTERNAL, here);
        thread.push(30, SampleKind::MANAGED, here);
        thread.push(40, SampleKind::MANAGED, there);
        thread.push(50, SampleKind::EXTERNAL, None);
        thread.weigh(60);
        thread.add_up();
        let got: Vec<_> = thread
            .samples(View::ThreadTime)
            .map(|s| (s.time_ns, s.weight, s.ticks, s.kind, s.stack))
            .collect();
        assert_eq!(
            got,
            [
                (10, 20, 2, SampleKind::EXTERNAL, here),
                (30, 10, 1, SampleKind::MANAGED, here),
                (40, 10, 1, SampleKind::MANAGED, there),
                (50, 10, 1, SampleKind::EXTERNAL, None),
            ]
        );
        assert_eq!((thread.weight(View::ThreadTime), thread.ticks(View::ThreadTime)), (50, 5));
        assert_eq!((thread.weight(View::Cpu), thread.ticks(View::Cpu)), (20, 2));
    }

    #[test]
    fn a_full_run_is_followed_by_another() {
        let mut thread = Thread::new(7);
        thread.push(1, SampleKind::OTHER, None);
        thread.runs[0].kind_and_ticks |= TICKS;
        thread.push(2, SampleKind::OTHER, None);
        let ticks: Vec<_> = thread.samples(View::ThreadTime).map(|s| (s.ticks, s.kind)).collect();
        assert_eq!(ticks, [(TICKS, SampleKind::OTHER), (1, SampleKind::OTHER)]);
    }

    #[test]
    fn an_empty_name_removes_the_name() {
        let mut thread = Thread::new(42);
        assert_eq!(thread.label(), "Thread (42)");
        thread.set_name("worker 1");
        assert_eq!(thread.label(), "Thread (42) worker 1");
        thread.set_name("");
        assert_eq!(thread.label(), "Thread (42)");
    }
}
