//! Converts samples of a thread to spans: frames that open and close over time.
//!
//! A frame that is in the same position on the stacks of consecutive samples is one span. Formats with begin and end
//! events need this. Only the changes of one step are in memory, and the cost of a step depends on the number of
//! changes, not on the depth of the stack.
//!
//! Ticks of a thread do not overlap, but events may, which spans on one track cannot. Overlapping events are
//! distributed to several [lanes](lanes). Samples without duration are omitted.

use runtap_model::{FrameHandle, Sample, StackHandle, Thread, Trace, View, order};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// Samples of a thread that do not overlap.
pub(crate) struct Lane<'a> {
    thread: &'a Thread,
    view: View,
    /// The events of this lane; `None` for all samples of the thread.
    events: Option<Vec<Sample>>,
}

/// Distributes the events of `view` to as few lanes as possible. Ticks always form one lane.
pub(crate) fn lanes(thread: &Thread, view: View) -> Vec<Lane<'_>> {
    let lane = |events| Lane { thread, view, events };
    if view.is_sampled() {
        return vec![lane(None)];
    }
    let mut events: Vec<Sample> = thread.samples(view).filter(|event| event.weight > 0).collect();
    order::sort_by_number(&mut events, |event| event.time_ns);
    let mut lanes: Vec<Vec<Sample>> = Vec::new();
    let mut free = BinaryHeap::new();
    let mut busy = BinaryHeap::new();
    for event in events {
        while let Some(Reverse((_, number))) =
            busy.peek().copied().filter(|Reverse((end, _))| *end <= event.time_ns)
        {
            busy.pop();
            free.push(Reverse(number));
        }
        let number = free.pop().map_or(lanes.len(), |Reverse(number)| number);
        if number == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[number].push(event);
        busy.push(Reverse((event.time_ns.saturating_add(event.weight), number)));
    }
    lanes.into_iter().map(|events| lane(Some(events))).collect()
}

impl Lane<'_> {
    /// Returns the samples in time order.
    pub(crate) fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let sampled = self.events.is_none().then(|| self.thread.samples(self.view));
        self.events.iter().flatten().copied().chain(sampled.into_iter().flatten())
    }
}

/// A change of a thread's stack. `None` represents the stack of a sample without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A frame was called.
    Open(Option<FrameHandle>),
    /// The innermost frame returned.
    Close(Option<FrameHandle>),
}

/// Calls `visit` with each change and its time in nanoseconds, in time order. Every opened frame is closed, innermost
/// first. No frame is open where the view omits samples.
pub(crate) fn walk(
    trace: &Trace,
    lane: &Lane<'_>,
    mut visit: impl FnMut(u64, Change) -> io::Result<()>,
) -> io::Result<()> {
    let mut open: Option<Open> = None;
    let mut end_ns = 0;
    let mut called = Vec::new();
    for sample in lane.samples().filter(|s| s.weight > 0) {
        if open.is_some() && sample.time_ns > end_ns {
            step(trace, open.take(), None, &mut called, |change| visit(end_ns, change))?;
        }
        let next = Some(sample.stack.map_or(Open::NoStack, Open::Stack));
        step(trace, open, next, &mut called, |change| visit(sample.time_ns, change))?;
        open = next;
        end_ns = sample.time_ns.saturating_add(sample.weight);
    }
    step(trace, open, None, &mut called, |change| visit(end_ns, change))
}

/// The frames that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    NoStack,
    Stack(StackHandle),
}

impl Open {
    fn stack(self) -> Option<StackHandle> {
        match self {
            Self::NoStack => None,
            Self::Stack(stack) => Some(stack),
        }
    }
}

/// Changes from one stack to another through their common callers.
fn step(
    trace: &Trace,
    from: Option<Open>,
    to: Option<Open>,
    called: &mut Vec<FrameHandle>,
    mut visit: impl FnMut(Change) -> io::Result<()>,
) -> io::Result<()> {
    if from == to {
        return Ok(());
    }
    if from == Some(Open::NoStack) {
        visit(Change::Close(None))?;
    }
    let (mut old, mut new) = (from.and_then(Open::stack), to.and_then(Open::stack));
    called.clear();
    // Callers are older than their callees, so the younger of two different stacks cannot be a caller of the other.
    while old != new {
        if old > new {
            let Some(stack) = old.map(|handle| trace.stacks().get(handle)) else { break };
            visit(Change::Close(Some(stack.frame)))?;
            old = stack.parent;
        } else {
            let Some(stack) = new.map(|handle| trace.stacks().get(handle)) else { break };
            called.push(stack.frame);
            new = stack.parent;
        }
    }
    for frame in called.iter().rev() {
        visit(Change::Open(Some(*frame)))?;
    }
    if to == Some(Open::NoStack) {
        visit(Change::Open(None))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_model::{SampleKind, TraceBuilder};

    /// Returns the changes of a thread as text: time, `+` or `-`, frame. A tick is its time, its stack from the root,
    /// and whether the thread ran.
    fn changes(ticks: &[(u64, &str, bool)], view: View) -> Vec<String> {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        for (time, names, runs) in ticks {
            let frames: Vec<_> = names.split_whitespace().map(|n| builder.frame(None, n)).collect();
            let stack = builder.stack_of(frames);
            let kind = if *runs { SampleKind::MANAGED } else { SampleKind::EXTERNAL };
            builder.add_sample(thread, *time, kind, stack);
        }
        let trace = builder.finish();
        let mut got = Vec::new();
        let name = |frame: Option<FrameHandle>| frame.map_or("-", |f| trace.frame(f).name).to_owned();
        for lane in lanes(trace.thread(thread), view) {
            walk(&trace, &lane, |time, change| {
                got.push(match change {
                    Change::Open(frame) => format!("{time}+{}", name(frame)),
                    Change::Close(frame) => format!("{time}-{}", name(frame)),
                });
                Ok(())
            })
            .expect("nothing fails");
        }
        got
    }

    #[test]
    fn common_frames_stay_open() {
        let ticks =
            [(0, "a b c", true), (1, "a b d", true), (2, "a b", true), (3, "a", true), (4, "x b", true)];
        assert_eq!(
            changes(&ticks, View::ThreadTime),
            ["0+a", "0+b", "0+c", "1-c", "1+d", "2-d", "3-b", "4-a", "4+x", "4+b", "5-b", "5-x"]
        );
    }

    #[test]
    fn recursion_nests_spans() {
        let ticks = [(0, "a a", true), (1, "a a a", true), (2, "a", true)];
        assert_eq!(changes(&ticks, View::ThreadTime), ["0+a", "0+a", "1+a", "2-a", "2-a", "3-a"]);
    }

    #[test]
    fn nothing_is_open_where_the_view_has_no_sample() {
        let ticks = [(0, "a", true), (1, "a", false), (2, "a", false), (3, "a", true)];
        assert_eq!(changes(&ticks, View::Cpu), ["0+a", "1-a", "3+a", "4-a"]);
        assert_eq!(changes(&ticks, View::ThreadTime), ["0+a", "4-a"]);
    }

    #[test]
    fn a_missing_stack_is_one_frame() {
        let ticks = [(0, "a", true), (1, "", true), (2, "", true), (3, "a b", true)];
        assert_eq!(
            changes(&ticks, View::ThreadTime),
            ["0+a", "1-a", "1+-", "3--", "3+a", "3+b", "4-b", "4-a"]
        );
    }

    #[test]
    fn a_sample_without_duration_is_not_a_span() {
        let ticks = [(0, "a", true), (1, "b", true), (1, "c", true), (2, "c", true)];
        assert_eq!(changes(&ticks, View::ThreadTime), ["0+a", "1-a", "1+c", "3-c"]);
    }

    #[test]
    fn events_that_overlap_are_on_different_lanes() {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        for (time, weight) in [(0, 10), (2, 3), (4, 4), (5, 1), (10, 5), (11, 0), (20, 1)] {
            builder.add_event(thread, time, weight, None);
        }
        let trace = builder.finish();
        let lanes = lanes(trace.thread(thread), View::Contention);
        let times = |lane: &Lane<'_>| lane.samples().map(|s| s.time_ns).collect::<Vec<_>>();
        assert_eq!(lanes.iter().map(times).collect::<Vec<_>>(), [vec![0, 10, 20], vec![2, 5], vec![4]]);
    }
}
