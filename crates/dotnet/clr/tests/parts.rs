//! Profiles of streams that are read in parts equal those of the whole, wherever the parts start.

use proptest::prelude::*;
use runtap_clr::clr::{RUNDOWN, RUNTIME, SAMPLE_PROFILER};
use runtap_clr::{ProfileBuilder, ProfileOptions};
use runtap_model::{Trace, View};
use runtap_nettrace::{EventToWrite, Join, Metadata, Observe, Reader, Scan, StreamItem, TraceHeader, Writer};
use runtap_testkit::{recordings, require};

fn read(reader: &mut Reader, bytes: &[u8], visit: &mut impl FnMut(&StreamItem<'_>)) {
    // Damage is tested elsewhere.
    let mut items = reader.items(bytes);
    while items.for_each(|item| visit(&item)).is_err() {}
}

fn whole(bytes: &[u8]) -> ProfileBuilder {
    let mut builder = ProfileBuilder::new();
    let mut reader = Reader::new();
    read(&mut reader, bytes, &mut |item| builder.item(item));
    reader.finish();
    read(&mut reader, &[], &mut |item| builder.item(item));
    builder
}

/// Reads parts of about `size` bytes. Returns the number of those that had to be read again.
fn in_parts(bytes: &[u8], size: u64) -> (ProfileBuilder, usize, usize) {
    let mut builder = ProfileBuilder::new();
    let new = builder.parts().unwrap();
    let parts = Scan::of(bytes, size);
    let mut again = 0;
    for part in &parts {
        let show = |visit: &mut dyn FnMut(&StreamItem<'_>)| {
            let mut reader = part.reader();
            for range in part.feed_ranges() {
                reader.seek(range.start);
                let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
                read(&mut reader, &bytes[range], &mut |item| visit(item));
            }
            reader.finish();
            read(&mut reader, &[], &mut |item| visit(item));
        };
        let mut gathered = new();
        show(&mut |item| gathered.item(item));
        if !builder.join(gathered) {
            again += 1;
            show(&mut |item| builder.item(item));
        }
    }
    (builder, parts.len(), again)
}

/// Returns everything that a sink could see.
fn dump(builder: ProfileBuilder) -> Vec<String> {
    let mut lines = vec![format!("{} {}", builder.malformed(), builder.samples())];
    let trace: Trace = builder.finish(&ProfileOptions::default());
    let head = (trace.process(), trace.start_unix_ns(), trace.duration_ns(), trace.period_ns());
    lines.push(format!("{head:?} {}", trace.out_of_order()));
    lines.extend(trace.all_frames().map(|(_, frame)| frame.to_string()));
    for (_, thread) in trace.threads() {
        lines.push(thread.label());
        lines.extend(thread.samples(View::ThreadTime).map(|sample| format!("{sample:?}")));
    }
    lines.extend(trace.stacks().iter().map(|stack| format!("{stack:?}")));
    lines
}

#[test]
fn every_recording_gives_equal_results_in_parts() {
    let mut seen = 0;
    for recording in require!(recordings()) {
        let (name, bytes) = (recording.path.display(), &recording.bytes);
        let expected = dump(whole(bytes));
        for size in [1, 30_000, 300_000] {
            let (builder, parts, _) = in_parts(bytes, size);
            assert_eq!(dump(builder), expected, "{name} in {parts} parts");
            seen += parts;
        }
    }
    assert!(seen > 500, "{seen} parts");
}

/// An element of a stream.
#[derive(Debug, Clone)]
enum Step {
    /// A sample: thread, time difference (in one case negative), stack.
    Sample(u64, u64, u64),
    /// An event about code: kind, method, size.
    Code(usize, u64, u32),
    /// A payload that can't be read.
    Damaged,
    /// A sequence point.
    Point,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3_u64, 0..4_u64, 0..4_u64).prop_map(|(thread, later, stack)| Step::Sample(thread, later, stack)),
        3 => (0..3_usize, 0..3_u64, 1..3_u32).prop_map(|(kind, method, size)| Step::Code(kind, method, 16 * size)),
        1 => Just(Step::Damaged),
        4 => Just(Step::Point),
    ]
}

fn stream(steps: &[Step]) -> Vec<u8> {
    let mut writer = Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000_000_000));
    let mut define = |provider: &str, id| writer.define_event(&Metadata::new(provider, id, "")).unwrap();
    let sample = define(SAMPLE_PROFILER, 0);
    let code = [define(RUNTIME, 143), define(RUNTIME, 144), define(RUNDOWN, 144)];
    // Another thread writes events that are as late as the format allows: not older than the run of events before them.
    let (mut now, mut oldest) = (100, 100);
    let mut writing = 0;
    for step in steps {
        let mut event = EventToWrite { capture_thread_id: 1, ..EventToWrite::default() };
        let mut w = runtap_wire::Writer::new();
        let stack;
        match step {
            Step::Sample(thread, later, n) => {
                now += later;
                stack = [0x1000 + n * 8, 0x1010];
                w.u32(2);
                let (capture_thread_id, timestamp) = if *later == 3 { (2, oldest) } else { (1, now) };
                let thread_id = 10 + thread;
                event = EventToWrite {
                    metadata_id: sample,
                    thread_id,
                    capture_thread_id,
                    timestamp,
                    stack: &stack,
                    ..event
                };
            }
            Step::Code(kind, method, size) => {
                let start = 0x1000 + method * 16;
                w.u64(*method).u64(7).u64(start).u32(*size).u32(0).u32(0);
                w.utf16z("N").utf16z(&format!("m{kind}{method}{size}")).utf16z("void ()").u16(0);
                event = EventToWrite { metadata_id: code[*kind], timestamp: now, ..event };
            }
            Step::Damaged => event = EventToWrite { metadata_id: code[2], timestamp: now, ..event },
            Step::Point => {
                writer.sequence_point(now);
                (oldest, writing) = (now, 0);
                continue;
            }
        }
        if event.capture_thread_id != writing {
            (writing, oldest) = (event.capture_thread_id, event.timestamp);
        }
        writer.event(&EventToWrite { payload: w.as_bytes(), ..event }).unwrap();
    }
    writer.finish()
}

proptest! {
    #[test]
    fn any_stream_gives_equal_results_in_parts(steps in prop::collection::vec(step(), 0..80), size in 1..600_u64) {
        let bytes = stream(&steps);
        let (builder, ..) = in_parts(&bytes, size);
        prop_assert_eq!(dump(builder), dump(whole(&bytes)));
    }
}

#[test]
fn most_parts_are_read_once() {
    let steps: Vec<Step> = (0..600)
        .map(|n| match n % 6 {
            5 => Step::Point,
            4 => Step::Code(2, n % 3, 16),
            _ => Step::Sample(n % 3, 1, n % 4),
        })
        .collect();
    let (_, parts, again) = in_parts(&stream(&steps), 1);
    assert!(parts > 100 && again == 0, "{again} of {parts}");
}
