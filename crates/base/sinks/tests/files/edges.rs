//! The cases at the edge: nothing to write, a writer that fails, names that begin alike, a wide trace.

use crate::read::{firefox, perfetto, pprof};
use runtap_model::{SampleKind, Trace, TraceBuilder, Unit, View};
use runtap_sinks::{Error, Format, Options};
use std::io;

/// A trace of one thread from lines of folded stacks, without the thread.
fn trace(lines: &[(&str, u64)]) -> Trace {
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(1);
    let mut now = 0;
    for (stack, weight) in lines {
        let frames: Vec<_> = stack.split(';').map(|name| builder.frame(Some("m"), name)).collect();
        let stack = builder.stack_of(frames);
        builder.add_sample(thread, now, SampleKind::MANAGED, stack);
        now += weight;
    }
    builder.finish()
}

fn written(format: Format, trace: &Trace) -> String {
    String::from_utf8(bytes(format, trace)).expect("the format is UTF-8")
}

fn bytes(format: Format, trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.write(trace, &mut bytes, &Options::new(View::Cpu)).expect("a Vec takes all");
    bytes
}

#[test]
fn a_view_without_samples_is_an_error_that_says_so() {
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(1);
    builder.add_sample(thread, 1, SampleKind::EXTERNAL, None);
    builder.add_sample(thread, 2, SampleKind::EXTERNAL, None);
    let waiting = builder.finish();
    for format in Format::ALL {
        let failed = |trace: &Trace| {
            let mut bytes = Vec::new();
            let e = format.write(trace, &mut bytes, &Options::new(View::Cpu)).expect_err("nothing to write");
            assert!(bytes.is_empty());
            e.to_string()
        };
        assert_eq!(
            failed(&waiting),
            "there are no samples in the view `cpu`; the recording has 2, in the view `thread-time`"
        );
        assert_eq!(
            failed(&TraceBuilder::new().finish()),
            "there are no samples in the view `cpu`: the recording has no CPU samples"
        );
        let mut builder = TraceBuilder::new();
        builder.leave_out(3);
        assert_eq!(
            failed(&builder.finish()),
            "there are no samples in the view `cpu`; 3 of the recording were omitted because they need too much memory"
        );
    }
}

/// Takes some bytes, then fails as a full disk does.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_fails_is_reported_wherever_it_fails() {
    let trace = trace(&[("a;b", 5), ("a;c", 5), ("a", 5)]);
    for format in Format::ALL {
        let whole = bytes(format, &trace).len();
        for room in [0, 1, whole / 2, whole - 1] {
            let e = format.write(&trace, Full(room), &Options::new(View::Cpu)).expect_err("the disk is full");
            assert!(
                matches!(&e, Error::Io(e) if e.kind() == io::ErrorKind::StorageFull),
                "{format:?}: {e:?}"
            );
        }
        assert!(format.write(&trace, Full(whole), &Options::new(View::Cpu)).is_ok());
    }
}

#[test]
fn a_name_that_begins_like_its_sibling_tears_no_box_apart() {
    // In the order of the bytes, `a b` stands between `a` and `a;x`, and `a 4x` before `a`.
    let trace = trace(&[("a", 10), ("a b;y", 10), ("a;x", 10), ("a 4x", 10), ("a;x", 10)]);
    let mut boxes: Vec<String> = written(Format::Flamegraph, &trace)
        .split("<title>m!")
        .skip(1)
        .map(|s| s.split(" (0 ms").next().unwrap_or_default().to_owned())
        .collect();
    boxes.sort();
    assert_eq!(boxes, ["a", "a 4x", "a b", "x", "y"], "each box once");
    assert_eq!(
        written(Format::Folded, &trace),
        "Thread (1);m!a 10\nThread (1);m!a;m!x 20\nThread (1);m!a 4x 10\nThread (1);m!a b;m!y 10\n"
    );
}

#[test]
fn branches_too_narrow_to_see_keep_their_time() {
    let mut lines = vec![("main;work".to_owned(), 1_000_000_000u64)];
    lines.extend((0..1000).map(|i| (format!("main;rare{i}"), 1000)));
    let lines: Vec<_> = lines.iter().map(|(s, w)| (s.as_str(), *w)).collect();
    let trace = trace(&lines);
    let svg = written(Format::Flamegraph, &trace);
    assert!(!svg.contains("rare"));
    assert!(svg.contains("<title>m!main (1,001 ms, 100.00%)"));
    assert_eq!(written(Format::Folded, &trace).lines().count(), 1001);
}

#[test]
fn damaged_times_are_an_error_of_the_aggregates() {
    let mut builder = TraceBuilder::new();
    for tid in 0..3 {
        let thread = builder.thread(tid);
        builder.add_sample(thread, 0, SampleKind::MANAGED, None);
        builder.add_sample(thread, u64::MAX, SampleKind::MANAGED, None);
    }
    let trace = builder.finish();
    for format in [Format::Folded, Format::Flamegraph, Format::Pprof] {
        let e = format.write(&trace, io::sink(), &Options::new(View::Cpu));
        assert!(matches!(e, Err(Error::TooLarge(_))), "{e:?}");
    }
    assert!(written(Format::Speedscope, &trace).contains("18446744073709551615"));
}

#[test]
fn sums_that_are_too_large_are_told_in_the_unit_of_the_view() {
    let error = |unit| Error::TooLarge(unit).to_string();
    assert!(error(Unit::Nanoseconds).contains("2^63 nanoseconds"));
    assert!(error(Unit::Count).contains("2^63 events"));
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(1);
    builder.add_event(thread, 0, u64::MAX, None);
    builder.add_event(thread, 1, 1, None);
    let trace = builder.finish();
    let said = Format::Folded.write(&trace, io::sink(), &Options::new(View::Alloc)).unwrap_err().to_string();
    assert_eq!(said, "the samples add up to more than 2^63 bytes: the recording is damaged");
}

#[test]
fn a_deep_recursion_needs_no_deep_call() {
    let deep = vec!["f"; 100_000].join(";");
    let trace = trace(&[(&deep, 5), (&deep, 5)]);
    assert_eq!(written(Format::Folded, &trace).matches("m!f").count(), 100_000);
    assert_eq!(written(Format::Speedscope, &trace).matches(",0").count(), 99_999);
    assert_eq!(written(Format::Chrome, &trace).matches("m!f").count(), 200_000);
    let spans = perfetto::read(&bytes(Format::Perfetto, &trace)).events;
    assert_eq!(spans.iter().filter(|event| event.begin.is_some()).count(), 100_000);
    assert_eq!(pprof::read(&bytes(Format::Pprof, &trace)).samples[0].stack.len(), 100_000);
    let rows = firefox::read(&bytes(Format::Firefox, &trace)).remove(0).rows;
    assert_eq!(rows[0].stack.as_ref().map(Vec::len), Some(100_000));
}

/// More text of stacks than is kept at a time.
#[test]
fn many_long_stacks_are_written_as_one_by_one() {
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(1);
    let root = builder.frame(None, "root");
    let deep = (0..2000).fold(None, |stack, _| Some(builder.stack(stack, root)));
    let leaves: Vec<_> = (0..5000).map(|i| builder.frame(None, &i.to_string())).collect();
    for time in 0..10_000u64 {
        let leaf = leaves[usize::try_from(time * 7 % 5000).expect("small")];
        let stack = builder.stack(deep, leaf);
        builder.add_sample(thread, time, SampleKind::MANAGED, Some(stack));
    }
    let text = written(Format::Speedscope, &builder.finish());
    let roots = "0,".repeat(2000);
    let (_, samples) = text.split_once(r#""samples":"#).expect("a profile");
    let mut rest = samples;
    for time in 0..10_000u64 {
        let before = if time == 0 { "[[" } else { ",[" };
        let sample = rest.strip_prefix(before).and_then(|r| r.strip_prefix(&roots)).expect("the roots");
        let (leaf, behind) = sample.split_once(']').expect("the end");
        // Frames are numbered by their first use, and the root is the first.
        assert_eq!(leaf.parse(), Ok(time * 7 % 5000 + 1));
        rest = behind;
    }
}
