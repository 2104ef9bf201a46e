//! Self and inclusive weights per frame and per stack.

use runtap_model::{FrameHandle, FrameTotals, SampleKind, StackWeights, Trace, TraceBuilder, View};

/// A trace of threads with a tick per nanosecond. Each entry is a tick: its stack from the root, and its kind.
fn trace(threads: &[&[(&str, SampleKind)]]) -> Trace {
    let mut builder = TraceBuilder::new();
    for (tid, ticks) in (1..).zip(threads) {
        let thread = builder.thread(tid);
        for (time, (names, kind)) in (0..).zip(*ticks) {
            let frames: Vec<_> = names.split_whitespace().map(|n| builder.frame(Some("app"), n)).collect();
            let stack = builder.stack_of(frames);
            builder.add_sample(thread, time, *kind, stack);
        }
    }
    builder.finish()
}

fn frame(trace: &Trace, name: &str) -> FrameHandle {
    trace.all_frames().find(|(_, f)| f.name == name).expect("the frame is there").0
}

const RUNS: SampleKind = SampleKind::MANAGED;
const WAITS: SampleKind = SampleKind::EXTERNAL;

#[test]
fn recursion_counts_once_in_inclusive_time() {
    let trace = trace(&[&[
        ("main walk walk walk", RUNS),
        ("main walk walk", RUNS),
        ("main walk leaf", RUNS),
        ("main", RUNS),
    ]]);
    let totals = FrameTotals::new(&trace, View::Cpu, None);
    let of = |name| (totals.self_weight(frame(&trace, name)), totals.total_weight(frame(&trace, name)));
    assert_eq!(of("main"), (1, 4));
    assert_eq!(of("walk"), (2, 3));
    assert_eq!(of("leaf"), (1, 1));
    assert_eq!((totals.sum(), totals.ticks(), totals.no_stack_weight()), (4, 4, 0));
}

#[test]
fn the_view_and_the_thread_choose_the_samples() {
    let trace = trace(&[
        &[("main work", RUNS), ("main wait", WAITS), ("", WAITS), ("main work", RUNS)],
        &[("main work", RUNS), ("main work", RUNS), ("main work", RUNS), ("", RUNS)],
    ]);
    let first = trace.threads().next().map(|(h, _)| h);
    let sums = |view, thread| {
        let totals = FrameTotals::new(&trace, view, thread);
        let work = totals.total_weight(frame(&trace, "work"));
        (work, totals.total_weight(frame(&trace, "wait")), totals.no_stack_weight(), totals.sum())
    };
    assert_eq!(sums(View::ThreadTime, None), (5, 1, 2, 8));
    assert_eq!(sums(View::ThreadTime, first), (2, 1, 1, 4));
    assert_eq!(sums(View::Cpu, None), (5, 0, 1, 6));
    assert_eq!(sums(View::Cpu, first), (2, 0, 0, 2));
}

#[test]
fn stack_weights_are_those_of_the_innermost_frame() {
    let trace = trace(&[&[("main", RUNS), ("main work", RUNS), ("main work", RUNS), ("", RUNS)]]);
    let weights = StackWeights::new(&trace, View::Cpu, None);
    let all: Vec<_> = trace.stacks().iter().map(|(h, _)| weights.self_weight(h)).collect();
    assert_eq!(all, [1, 2]);
    assert_eq!((weights.no_stack_weight(), weights.total_weight(), weights.ticks()), (1, 4, 4));
}
