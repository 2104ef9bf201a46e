//! The rule for weights, on recordings small enough to be verified by hand and as a property of arbitrary ones.

use proptest::prelude::*;
use runtap_model::{SampleKind, Trace, TraceBuilder, View};

const MS: u64 = 1_000_000;

/// A trace with one thread for each list of tick times, in milliseconds.
fn ticks(threads: &[&[u64]]) -> Trace {
    let mut builder = TraceBuilder::new();
    for (tid, times) in (1..).zip(threads) {
        let thread = builder.thread(tid);
        for (i, time) in times.iter().enumerate() {
            // Different frames, so that ticks are not merged.
            let frame = builder.frame(Some("app"), &format!("Tick{i}()"));
            let stack = builder.stack(None, frame);
            builder.add_sample(thread, time * MS, SampleKind::MANAGED, Some(stack));
        }
    }
    builder.finish()
}

fn weights_ms(trace: &Trace) -> Vec<Vec<u64>> {
    let of = |s: runtap_model::Sample| s.weight / MS;
    trace.threads().map(|(_, t)| t.samples(View::ThreadTime).map(of).collect()).collect()
}

#[test]
fn a_sample_lasts_to_the_next_one_and_the_last_one_a_period() {
    let trace = ticks(&[&[10, 11, 12, 15, 16]]);
    assert_eq!(weights_ms(&trace), [[1, 1, 3, 1, 1]]);
    assert_eq!((trace.period_ns(), trace.duration_ns()), (MS, 17 * MS));
}

#[test]
fn a_thread_of_the_last_ticks_lasts_to_the_end_of_sampling_and_a_period() {
    // The second thread lacks the last two ticks, but has one two periods before the end.
    let trace = ticks(&[&[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4]]);
    assert_eq!(weights_ms(&trace), [vec![1, 1, 1, 1, 1, 1], vec![1, 1, 1, 3]]);
}

#[test]
fn a_thread_that_ended_early_lasts_one_period_more() {
    let trace = ticks(&[&[1, 2, 3, 4, 5, 6], &[1, 2, 3]]);
    assert_eq!(weights_ms(&trace), [vec![1, 1, 1, 1, 1, 1], vec![1, 1, 1]]);
}

#[test]
fn a_thread_seen_once_gets_the_period_of_the_others() {
    let trace = ticks(&[&[0, 2, 4, 6, 8, 10, 12], &[3]]);
    assert_eq!(weights_ms(&trace), [vec![2; 7], vec![2]]);
}

#[test]
fn a_single_tick_lasts_the_runtimes_default_period() {
    let trace = ticks(&[&[5]]);
    assert_eq!(weights_ms(&trace), [[1]]);
    assert_eq!((trace.ticks(View::ThreadTime), trace.duration_ns()), (1, 6 * MS));
}

#[test]
fn a_recording_longer_than_its_samples_keeps_its_duration() {
    let mut builder = TraceBuilder::new();
    builder.set_duration_ns(100);
    let thread = builder.thread(1);
    builder.add_sample(thread, 10, SampleKind::EXTERNAL, None);
    builder.add_sample(thread, 20, SampleKind::EXTERNAL, None);
    let trace = builder.finish();
    assert_eq!(trace.duration_ns(), 100);
    assert_eq!(trace.thread(thread).weight(View::ThreadTime), 20);
}

#[test]
fn an_empty_recording_is_valid() {
    let trace = TraceBuilder::new().finish();
    assert_eq!((trace.threads().len(), trace.duration_ns()), (0, 0));
}

#[test]
fn a_tick_that_is_too_early_is_moved_and_counted() {
    let trace = ticks(&[&[10, 9, 11, 12]]);
    assert_eq!(weights_ms(&trace), [[0, 1, 1, 1]]);
    assert_eq!(trace.out_of_order(), 1);
}

#[test]
fn a_thread_keeps_its_handle_and_takes_its_last_name() {
    let mut builder = TraceBuilder::new();
    let (first, second) = (builder.thread(500), builder.thread(7));
    builder.set_thread_name(first, "early");
    let again = builder.thread(500);
    builder.set_thread_name(again, "late");
    assert_eq!(again, first);
    let trace = builder.finish();
    let labels: Vec<_> = trace.threads().map(|(h, t)| (h, t.label())).collect();
    assert_eq!(labels, [(first, "Thread (500) late".to_owned()), (second, "Thread (7)".to_owned())]);
}

/// A tick: thread, interval since the previous tick, kind, stack.
type Tick = (u64, u64, u8, Option<u8>);

fn any_ticks() -> impl Strategy<Value = Vec<Tick>> {
    let tick = (0..4u64, prop_oneof![Just(1000u64), 0..5000u64], 0..3u8, proptest::option::of(0..3u8));
    proptest::collection::vec(tick, 0..200)
}

proptest! {
    /// The weights of a thread add up to the time from its first tick to its end, and merging equal ticks changes
    /// neither their sum nor their number.
    #[test]
    fn weights_add_up_to_the_time_between_first_tick_and_end(ticks in any_ticks()) {
        let mut builder = TraceBuilder::new();
        let mut now = 0;
        let mut seen: Vec<(u64, u64, u64, u64)> = Vec::new(); // tid, first, last, ticks
        for (tid, after, kind, stack) in ticks {
            now += after;
            let thread = builder.thread(tid);
            let kind = [SampleKind::MANAGED, SampleKind::EXTERNAL, SampleKind::OTHER][usize::from(kind)];
            let stack = stack.map(|s| {
                let frame = builder.frame(None, &s.to_string());
                builder.stack(None, frame)
            });
            builder.add_sample(thread, now, kind, stack);
            match seen.iter_mut().find(|s| s.0 == tid) {
                Some(s) => { s.2 = now; s.3 += 1; }
                None => seen.push((tid, now, now, 1)),
            }
        }
        let trace = builder.finish();
        let period = trace.period_ns();
        for ((_, thread), (tid, first, last, count)) in trace.threads().zip(seen) {
            prop_assert_eq!(thread.tid(), tid);
            prop_assert_eq!(thread.ticks(View::ThreadTime), count);
            let end = if now - last <= 2 * period { now + period } else { last + period };
            prop_assert_eq!(thread.weight(View::ThreadTime), end - first);
            let kinds: u64 = [SampleKind::MANAGED, SampleKind::EXTERNAL, SampleKind::OTHER].iter()
                .map(|k| thread.samples(View::ThreadTime).filter(|s| s.kind == *k).map(|s| s.weight).sum::<u64>())
                .sum();
            prop_assert_eq!(kinds, end - first);
        }
    }
}

#[test]
fn events_keep_their_weights() {
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(7);
    let label = builder.label("System.String");
    let stack = builder.stack_of([label]);
    builder.add_event(thread, 10, 500, stack);
    builder.add_event(thread, 20, 300, stack);
    builder.add_event(thread, 20, 0, None);
    let trace = builder.finish();
    let samples: Vec<_> =
        trace.thread(thread).samples(View::Alloc).map(|s| (s.time_ns, s.weight, s.stack, s.kind)).collect();
    let event = SampleKind::EVENT;
    assert_eq!(samples, [(10, 500, stack, event), (20, 300, stack, event), (20, 0, None, event)]);
    assert_eq!(trace.ticks(View::ThreadTime) + trace.ticks(View::Cpu), 0);
    assert_eq!((trace.thread(thread).weight(View::Alloc), trace.duration_ns()), (800, 20));
}

/// In a thread that has both, weights are only computed for the ticks.
#[test]
fn events_among_ticks_do_not_count_as_time() {
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(7);
    for ms in 0..3 {
        builder.add_sample(thread, ms * MS, SampleKind::MANAGED, None);
        builder.add_event(thread, ms * MS, 9, None);
    }
    let trace = builder.finish();
    assert_eq!(trace.thread(thread).weight(View::Cpu), 3 * MS);
    assert_eq!(trace.thread(thread).weight(View::Alloc), 27);
}

#[test]
fn one_sample_of_a_hundred_is_not_too_little() {
    let shows_little = |managed: u64, external: u64| {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        for time in 0..managed + external {
            let kind = if time < managed { SampleKind::MANAGED } else { SampleKind::EXTERNAL };
            builder.add_sample(thread, time * MS, kind, None);
        }
        builder.finish().shows_little_in(View::Cpu)
    };
    assert!(!shows_little(0, 0) && !shows_little(1, 99) && !shows_little(50, 0));
    assert!(shows_little(1, 100) && shows_little(0, 1));
}
