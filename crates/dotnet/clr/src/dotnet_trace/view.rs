//! The view `request`: the duration of each request, and what it executed or waited for.
//!
//! The time of a request is the wall-clock time from its start to its end, however many threads and tasks worked for it. Each moment
//! counts once, in this order of precedence: code that ran; a thread that waited; the await that ends first, which is the innermost;
//! otherwise unknown. A request inside another one is shown below it, unless that has several at once: then each is shown at the
//! top.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use runtap_model::{FrameHandle, Process, SampleKind, StackHandle, Trace, TraceBuilder, order};

use super::Sample;
use super::requests::Requests;
use super::state::Purpose;

/// Frames that stand for time without code.
pub(super) const WAITS: &str = "[waiting]";
pub(super) const AWAITS: &str = "[awaiting]";
const UNKNOWN: &str = "[unknown]";

/// Assembles the pieces of each request. `end` is the time of the last event.
pub(super) fn finish(
    requests: &Requests,
    samples: Vec<Sample>,
    end: u64,
    mut builder: TraceBuilder,
    process: Process,
) -> Trace {
    builder.set_process(process);
    builder.set_duration_ns(end);
    let mut by_outermost: Vec<Vec<Sample>> = Vec::new();
    by_outermost.resize_with(requests.len(), Vec::new);
    for mut sample in samples {
        // What a request awaited may continue for others, for example a connection.
        if sample.kind == SampleKind::OTHER
            && let Some(over) = sample.purpose.request.and_then(|request| requests.end_of(request))
        {
            sample.to = sample.to.min(over);
        }
        let outermost = sample.purpose.request.map(|request| requests.outermost(request));
        if let Some(list) = outermost.and_then(|request| by_outermost.get_mut(request)) {
            list.push(sample);
        }
    }
    let unknown = builder.label(UNKNOWN);
    // A request inside another one counts at least as that request's time.
    for request in 0..requests.len() {
        let outermost = requests.outermost(request);
        let Some((thread, from, to)) = requests.span(request, end).filter(|_| outermost != request) else {
            continue;
        };
        let stack = stack_of(requests, request, unknown, &mut builder);
        if let (Some(stack), Some(list)) = (stack, by_outermost.get_mut(outermost)) {
            let purpose = Purpose { request: Some(request), waits_for_task: false };
            list.push(Sample { thread, from, to, kind: SampleKind::OTHER, stack, purpose });
        }
    }
    for (request, samples) in by_outermost.iter().enumerate() {
        if requests.outermost(request) != request {
            continue;
        }
        let Some((thread, from, to)) = requests.span(request, end) else { continue };
        let nothing = stack_of(requests, request, unknown, &mut builder);
        let Some(thread) = builder.thread_for_sample(thread) else { continue };
        for (from, to, stack) in moments(samples, from, to) {
            builder.add_event(thread, from, to - from, stack.or(nothing));
        }
    }
    builder.finish()
}

/// Returns the stack of a request that ends in a frame.
fn stack_of(
    requests: &Requests,
    request: usize,
    leaf: FrameHandle,
    builder: &mut TraceBuilder,
) -> Option<StackHandle> {
    let labels: Vec<_> = requests.labels(request).into_iter().map(|label| builder.label(label)).collect();
    builder.took(labels.len(), 0);
    builder.stack_of(labels.into_iter().chain([leaf]))
}

/// Splits a time span into moments, each with the stack that counts.
fn moments(samples: &[Sample], from: u64, to: u64) -> Vec<(u64, u64, Option<StackHandle>)> {
    let mut edges: Vec<u64> = vec![from, to];
    edges.extend(
        samples.iter().flat_map(|sample| [sample.from, sample.to]).filter(|at| (from..to).contains(at)),
    );
    edges.sort_unstable();
    edges.dedup();
    let mut by_start: Vec<&Sample> =
        samples.iter().filter(|sample| sample.to > from && sample.from < to).collect();
    order::sort_by_number(&mut by_start, |sample| sample.from);
    let mut waiting = by_start.into_iter().enumerate().peekable();
    // The greatest element is on top; those below it may have ended.
    let mut active = BinaryHeap::new();
    let mut moments: Vec<(u64, u64, Option<StackHandle>)> = Vec::new();
    for pair in edges.windows(2) {
        let [start, end] = *pair else { continue };
        while let Some((n, sample)) = waiting.next_if(|(_, sample)| sample.from <= start) {
            let order = (rank(sample), Reverse((sample.to, sample.from, sample.thread)), n);
            active.push((order, sample.to, sample.stack));
        }
        while active.peek().is_some_and(|(_, to, _)| *to <= start) {
            active.pop();
        }
        let stack = active.peek().map(|(.., stack)| *stack);
        match moments.last_mut() {
            Some((_, last, known)) if *known == stack && *last == start => *last = end,
            _ => moments.push((start, end, stack)),
        }
    }
    moments
}

/// Returns the precedence of a sample.
fn rank(sample: &Sample) -> u8 {
    match sample.kind {
        SampleKind::MANAGED => 3,
        SampleKind::EXTERNAL if !sample.purpose.waits_for_task => 2,
        SampleKind::EXTERNAL => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_moment_counts_once() {
        let mut builder = TraceBuilder::new();
        let mut stack = |name| {
            let frame = builder.label(name);
            builder.stack(None, frame)
        };
        let (runs, waits, awaits, inner) = (stack("runs"), stack("waits"), stack("awaits"), stack("inner"));
        let sample =
            |from, to, kind, stack| Sample { purpose: Purpose::default(), thread: 1, from, to, kind, stack };
        let samples = [
            sample(0, 20, SampleKind::MANAGED, runs),
            sample(20, 30, SampleKind::EXTERNAL, waits),
            sample(25, 80, SampleKind::OTHER, awaits),
            sample(40, 60, SampleKind::OTHER, inner),
        ];
        assert_eq!(
            moments(&samples, 10, 100),
            [
                (10, 20, Some(runs)),
                (20, 30, Some(waits)),
                (30, 40, Some(awaits)),
                (40, 60, Some(inner)),
                (60, 80, Some(awaits)),
                (80, 100, None)
            ]
        );
    }

    proptest! {
        /// Compares with an exhaustive search at each moment.
        #[test]
        fn the_sample_with_the_highest_precedence_counts(
            made in prop::collection::vec((0u64..30, 0u64..30, 0u64..3, 0usize..3), 0..20),
        ) {
            let mut builder = TraceBuilder::new();
            let mut samples = Vec::new();
            for (n, (from, length, thread, kind)) in made.into_iter().enumerate() {
                let frame = builder.label(&n.to_string());
                let stack = builder.stack(None, frame);
                let kind = [SampleKind::MANAGED, SampleKind::EXTERNAL, SampleKind::OTHER][kind];
                samples.push(Sample { purpose: Purpose::default(), thread, from, to: from + length, kind, stack });
            }
            let of_all = |at: u64| {
                let active = samples.iter().filter(|sample| sample.from <= at && at < sample.to);
                let order = |sample: &&Sample| (rank(sample), Reverse((sample.to, sample.from, sample.thread)));
                active.max_by_key(order).map(|sample| sample.stack)
            };
            let mut expected = 5;
            for (from, to, stack) in moments(&samples, 5, 40) {
                prop_assert_eq!(from, expected);
                expected = to;
                for at in from..to {
                    prop_assert_eq!(stack, of_all(at), "at {}", at);
                }
            }
            prop_assert_eq!(expected, 40);
        }
    }
}
