//! Recordings of any kind, and what must be true of their files.

use proptest::prelude::*;
use runtap_model::text::Clean;
use runtap_model::{FrameTotals, NO_STACK, Process, SampleKind, Trace, TraceBuilder, View};
use runtap_sinks::{Error, Format, Options};
use std::collections::BTreeMap;

/// Names as hostile as a program can have them.
pub(crate) fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,3}",
        "[a-c]( [0-9.]{1,3})?",
        "[;!\"\\\\<>&' \t\r\n\u{0}\u{1}\u{7f}\u{85}\u{a0}\u{2028}\u{fffe}\u{ffff}😀é]{0,6}",
        any::<String>(),
    ]
}

/// Thread, time since the tick before, kind, frames from the root.
pub(crate) type Tick = (usize, u64, u8, Vec<usize>);

/// A recording of a few threads and a few names in any order. The stack of a tick is a list of frames.
pub(crate) fn any_trace() -> impl Strategy<Value = Trace> {
    let names = proptest::collection::vec((proptest::option::of(any_name()), any_name()), 6);
    let thread_names = proptest::collection::vec(any_name(), 3);
    let tick = (0..3usize, 0..4000u64, 0..3u8, proptest::collection::vec(0..6usize, 0..6));
    let ticks = proptest::collection::vec(tick, 0..60);
    (names, thread_names, any_name(), ticks)
        .prop_map(|(names, threads, process, ticks)| build(&names, &threads, process, &ticks))
}

pub(crate) fn build(
    names: &[(Option<String>, String)],
    threads: &[String],
    process: String,
    ticks: &[Tick],
) -> Trace {
    let mut builder = TraceBuilder::new();
    builder.set_process(Process { pid: Some(1), name: Some(process), command_line: None });
    let mut now = 0;
    for (thread, after, kind, stack) in ticks {
        now += after;
        let handle = builder.thread(*thread as u64 + 10);
        builder.set_thread_name(handle, &threads[*thread]);
        let frames: Vec<_> =
            stack.iter().map(|i| builder.frame(names[*i].0.as_deref(), &names[*i].1)).collect();
        let stack = builder.stack_of(frames);
        let kind = [SampleKind::MANAGED, SampleKind::EXTERNAL, SampleKind::OTHER][usize::from(*kind)];
        builder.add_sample(handle, now, kind, stack);
    }
    builder.finish()
}

/// A recording of events that may overlap: thread, time since the event before, duration, frames.
pub(crate) fn any_events() -> impl Strategy<Value = Trace> {
    let event = (0..3u64, 0..50u64, 0..200u64, proptest::collection::vec(0..4u8, 0..4));
    proptest::collection::vec(event, 0..60).prop_map(|events| {
        let mut builder = TraceBuilder::new();
        builder.set_process(Process { pid: Some(1), name: None, command_line: None });
        let mut now = 0;
        for (tid, after, weight, stack) in events {
            now += after;
            let thread = builder.thread(tid);
            let frames: Vec<_> = stack.iter().map(|i| builder.frame(Some("m"), &i.to_string())).collect();
            let stack = builder.stack_of(frames);
            builder.add_event(thread, now, weight, stack);
        }
        builder.finish()
    })
}

/// The file, or `None` if there is nothing to show.
pub(crate) fn bytes(format: Format, trace: &Trace, options: &Options) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match format.write(trace, &mut bytes, options) {
        Ok(()) => Some(bytes),
        Err(Error::NoSamples { .. }) => {
            assert!(bytes.is_empty(), "nothing is written before the error");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// Returns the output of a text format, or `None` if [`bytes`] returns `None`.
pub(crate) fn written(format: Format, trace: &Trace, options: &Options) -> Option<String> {
    bytes(format, trace, options).map(|bytes| String::from_utf8(bytes).expect("the format is UTF-8"))
}

/// A name, and how long it was on top of the stack in each thread.
pub(crate) type SelfTimes = BTreeMap<(String, String), u64>;

/// The self time of each frame in each thread, by their names.
pub(crate) fn self_times(trace: &Trace, view: View) -> SelfTimes {
    let mut times = SelfTimes::new();
    for (handle, thread) in trace.threads() {
        let totals = FrameTotals::new(trace, view, Some(handle));
        let frames = trace.all_frames().map(|(frame, f)| (f.to_string(), totals.self_weight(frame)));
        for (name, ns) in frames.chain([(NO_STACK.to_owned(), totals.no_stack_weight())]) {
            if ns > 0 {
                *times.entry((thread.label(), name)).or_default() += ns;
            }
        }
    }
    times
}

/// Self times by their names as files for programs that print them as they are have them: nothing in a name acts.
pub(crate) fn shown(times: SelfTimes) -> SelfTimes {
    let mut shown = SelfTimes::new();
    for ((thread, name), ns) in times {
        *shown.entry((Clean(&thread).to_string(), Clean(&name).to_string())).or_default() += ns;
    }
    shown
}

/// What each thread weighs in `view`, by its label.
pub(crate) fn weights(trace: &Trace, view: View) -> BTreeMap<String, u64> {
    let threads = trace.threads().map(|(_, t)| (t.label(), t.weight(view)));
    threads.filter(|(_, ns)| *ns > 0).collect()
}
