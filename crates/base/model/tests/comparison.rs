//! Comparisons of traces small enough to be verified by hand.

use runtap_model::{Comparison, Frame, FrameHandle, SampleKind, Trace, TraceBuilder, View};

/// A trace of one thread with a tick per nanosecond. Each entry is a stack from the root, and its number of ticks.
fn trace(tid: u64, ticks: &[(&str, u64)]) -> Trace {
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(tid);
    let mut now = 0;
    for (names, times) in ticks {
        let frame = |name| {
            let frame = Frame::new(Some("app"), name);
            if name.strip_prefix("0x").is_some_and(|digits| u64::from_str_radix(digits, 16).is_ok()) {
                frame.address()
            } else {
                frame
            }
        };
        let frames: Vec<_> = names.split_whitespace().map(|name| builder.add_frame(&frame(name))).collect();
        let stack = builder.stack_of(frames);
        for _ in 0..*times {
            builder.add_sample(thread, now, SampleKind::MANAGED, stack);
            now += 1;
        }
    }
    builder.finish()
}

fn frame(comparison: &Comparison, name: &str) -> FrameHandle {
    comparison.tables().all_frames().find(|(_, f)| f.name == name).expect("the frame is there").0
}

#[test]
fn equal_frames_match_whatever_their_order() {
    let before = trace(1, &[("main work", 60), ("main wait", 30), ("gone", 10)]);
    let after = trace(2, &[("new", 20), ("main wait", 60), ("main work", 100), ("", 20)]);
    let comparison = Comparison::new(&before, &after, View::Cpu);
    let [work, main, gone, new] = ["work", "main", "gone", "new"].map(|name| frame(&comparison, name));
    let of = |f| {
        let sides = [comparison.before(), comparison.after()];
        sides.map(|s| (s.frames().self_weight(f), s.frames().total_weight(f), s.frames().total_ticks(f)))
    };
    assert_eq!(of(work), [(60, 60, 60), (100, 100, 100)]);
    assert_eq!(of(main), [(0, 90, 90), (0, 160, 160)]);
    assert_eq!(of(gone), [(10, 10, 10), (0, 0, 0)]);
    assert_eq!(of(new), [(0, 0, 0), (20, 20, 20)]);
    assert_eq!(comparison.after().stacks().no_stack_weight(), 20);
    assert_eq!(comparison.before().stacks().ticks() + comparison.after().stacks().ticks(), 300);
    assert_eq!(stacks(&comparison).len(), 4, "equal stacks are one");
    let change = comparison.total_change(main);
    assert!((change.before - 0.9).abs() < 1e-9 && (change.after - 0.8).abs() < 1e-9);
    assert!((change.change() + 0.1).abs() < 1e-9);
}

#[test]
fn chance_is_distinguished_from_change() {
    let few = Comparison::new(&trace(1, &[("a", 5), ("b", 5)]), &trace(1, &[("a", 7), ("b", 3)]), View::Cpu);
    let change = few.self_change(frame(&few, "a"));
    assert!(!change.is_significant(), "2 of 10 samples are chance: {change:?}");
    let many = [("a", 5000), ("b", 5000)];
    let many = Comparison::new(&trace(1, &many), &trace(1, &[("a", 7000), ("b", 3000)]), View::Cpu);
    let change = many.self_change(frame(&many, "a"));
    assert!(change.is_significant(), "2000 of 10000 are not: {change:?}");
    // By hand: 1.96 * sqrt(0.25 / 10002 + 0.21 / 10002).
    assert!((change.margin.expect("sampled") - 0.01329).abs() < 1e-4, "{change:?}");
}

/// For shares of 0 or 1 the usual margin would be 0.
#[test]
fn a_frame_without_samples_has_a_margin_too() {
    let comparison = Comparison::new(&trace(1, &[("a", 10)]), &trace(1, &[("a", 9), ("b", 1)]), View::Cpu);
    let change = comparison.self_change(frame(&comparison, "b"));
    assert!((change.change() - 0.1).abs() < 1e-9);
    assert!(!change.is_significant(), "one sample is no proof: {change:?}");
}

#[test]
fn events_are_counted_and_not_sampled() {
    let of = |weight| {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        let frame = builder.frame(None, "alloc");
        let stack = builder.stack(None, frame);
        builder.add_event(thread, 1, weight, Some(stack));
        builder.finish()
    };
    let comparison = Comparison::new(&of(100), &of(300), View::Alloc);
    let change = comparison.self_change(frame(&comparison, "alloc"));
    assert_eq!((change.margin, change.change(), change.is_significant()), (None, 0.0, false));
    let frame = frame(&comparison, "alloc");
    assert_eq!(comparison.after().frames().self_weight(frame), 300);
}

#[test]
fn comparing_with_an_empty_trace_does_not_divide_by_zero() {
    let comparison = Comparison::new(&TraceBuilder::new().finish(), &trace(1, &[("a", 3)]), View::Cpu);
    let change = comparison.self_change(frame(&comparison, "a"));
    assert!((change.before.abs(), change.after) < (1e-9, 1.1));
    assert_eq!(comparison.before().threads() + comparison.after().threads(), 1);
}

/// Returns the weights of each stack of the common table, by its frames from the root.
fn stacks(comparison: &Comparison) -> Vec<(String, u64, u64)> {
    let tables = comparison.tables();
    let [before, after] = [comparison.before(), comparison.after()].map(runtap_model::ComparisonSide::stacks);
    let mut all = Vec::new();
    for (handle, _) in tables.stacks().iter() {
        let mut names: Vec<String> =
            tables.stacks().frames(handle).map(|frame| tables.frame(frame).to_string()).collect();
        names.reverse();
        let (before, after) = (before.self_weight(handle), after.self_weight(handle));
        if before + after > 0 {
            all.push((names.join(" "), before, after));
        }
    }
    all.sort();
    all
}

#[test]
fn addresses_of_two_processes_are_not_names() {
    let before = trace(1, &[("main 0x7f001000 0x7f002000 work", 5), ("0x7f003000", 2)]);
    let after = trace(1, &[("main 0x5500aa00 work", 8), ("0x5500bb00", 1), ("0xnone", 1)]);
    let comparison = Comparison::new(&before, &after, View::Cpu);
    let wanted = [("app!0xnone", 0, 1), ("app!?", 2, 1), ("app!main app!? app!work", 5, 8)];
    assert_eq!(stacks(&comparison), wanted.map(|(stack, a, b)| (stack.to_owned(), a, b)));
    let unnamed = frame(&comparison, "?");
    assert!(comparison.total_change(unnamed).change().abs() < 0.11);
}

#[test]
fn stacks_match_from_the_outermost_common_frame() {
    let before = trace(1, &[("main work", 6), ("gone", 2)]);
    let after = trace(1, &[("entry main work", 9), ("entry main new", 1)]);
    let comparison = Comparison::new(&before, &after, View::Cpu);
    let wanted = [("app!gone", 2, 0), ("app!main app!new", 0, 1), ("app!main app!work", 6, 9)];
    assert_eq!(stacks(&comparison), wanted.map(|(stack, a, b)| (stack.to_owned(), a, b)));
    // The totals still contain the skipped frame.
    let entry = frame(&comparison, "entry");
    assert_eq!(comparison.after().frames().total_weight(entry), 10);
}

/// Two versions of .NET, the later of which calls the thread's method through an internal frame.
#[test]
fn stacks_match_again_after_a_frame_that_only_one_has() {
    let before = trace(1, &[("run main work", 6), ("run main", 1), ("main run", 1), ("run old end", 2)]);
    let after = trace(
        1,
        &[("run callback main work", 9), ("run callback", 2), ("run callback work", 1), ("run new end", 3)],
    );
    let comparison = Comparison::new(&before, &after, View::Cpu);
    let wanted = [
        ("app!main app!run", 1, 0),
        // A skipped frame must not be the innermost, and the frames around it must follow each other in the other
        // trace.
        ("app!run app!callback", 0, 2),
        ("app!run app!callback app!work", 0, 1),
        ("app!run app!end", 2, 3),
        ("app!run app!main", 1, 0),
        ("app!run app!main app!work", 6, 9),
    ];
    assert_eq!(stacks(&comparison), wanted.map(|(stack, a, b)| (stack.to_owned(), a, b)));
    for name in ["callback", "new", "old"] {
        let frame = frame(&comparison, name);
        let total = [comparison.before(), comparison.after()].map(|side| side.frames().total_weight(frame));
        assert!(total.iter().sum::<u64>() > 0, "the table has {name}");
    }
}
