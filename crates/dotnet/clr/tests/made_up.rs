//! Synthetic streams, for cases that are rare in real recordings.

use runtap_clr::clr::{RUNDOWN, RUNTIME, SAMPLE_PROFILER};
use runtap_clr::{EventCounts, ProfileBuilder, ProfileOptions};
use runtap_model::{Trace, View};
use runtap_nettrace::{EventToWrite, Join, Metadata, Observe, Reader, StreamItem, TraceHeader, Writer};

const MS: u64 = 1_000_000;

/// A stream builder with one sampler thread and times in milliseconds.
struct Stream {
    writer: Writer,
    load: u32,
    unload: u32,
    exists: u32,
    module: u32,
    sample: u32,
}

impl Stream {
    fn new() -> Self {
        Self::started_at(0)
    }

    fn started_at(ms: i64) -> Self {
        let start = ms * 1_000_000;
        let mut writer =
            Writer::new(&TraceHeader::new(1_700_000_000_000_000_000 + start.max(0), start, 1_000_000_000));
        let mut define = |provider: &str, id| writer.define_event(&Metadata::new(provider, id, "")).unwrap();
        let (load, unload) = (define(RUNTIME, 143), define(RUNTIME, 144));
        let (exists, module) = (define(RUNDOWN, 144), define(RUNDOWN, 154));
        let sample = define(SAMPLE_PROFILER, 0);
        Self { writer, load, unload, exists, module, sample }
    }

    fn event(&mut self, metadata_id: u32, thread_id: u64, ms: u64, stack: &[u64], payload: &[u8]) {
        let event = EventToWrite {
            metadata_id,
            thread_id,
            capture_thread_id: 1,
            timestamp: ms * MS,
            stack,
            payload,
            ..Default::default()
        };
        self.writer.event(&event).unwrap();
    }

    fn method(&mut self, metadata_id: u32, ms: u64, start: u64, name: &str) {
        let mut w = runtap_wire::Writer::new();
        w.u64(start)
            .u64(7)
            .u64(start)
            .u32(16)
            .u32(0)
            .u32(0)
            .utf16z("N")
            .utf16z(name)
            .utf16z("void ()")
            .u16(0);
        self.event(metadata_id, 1, ms, &[], w.as_bytes());
    }

    fn sample(&mut self, thread: u64, ms: u64, kind: i32, stack: &[u64]) {
        self.event(self.sample, thread, ms, stack, &kind.to_le_bytes());
    }

    fn profile(self, names: &[(u64, &str)]) -> Trace {
        let mut builder = ProfileBuilder::new();
        read(&self.writer.finish(), |item| builder.item(item));
        assert_eq!(builder.malformed(), 0);
        let thread_names = names.iter().map(|(tid, name)| (*tid, (*name).to_owned())).collect();
        builder.finish(&ProfileOptions { thread_names, ..ProfileOptions::default() })
    }
}

fn read(bytes: &[u8], mut visit: impl FnMut(&StreamItem<'_>)) {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    while let Some(item) = reader.next().unwrap() {
        visit(&item);
    }
}

/// Formats every sample of a thread as `frame;frame weight-in-ms`, root first.
fn lines(trace: &Trace, tid: u64) -> Vec<String> {
    let (_, thread) = trace.threads().find(|(_, thread)| thread.tid() == tid).unwrap();
    let line = |sample: runtap_model::Sample| {
        let mut frames: Vec<String> = sample.stack.map_or_else(Vec::new, |stack| {
            trace.stacks().frames(stack).map(|f| trace.frame(f).to_string()).collect()
        });
        frames.reverse();
        format!("{} {}", frames.join(";"), sample.weight / MS)
    };
    thread.samples(View::ThreadTime).map(line).collect()
}

#[test]
fn reused_code_memory_is_named_by_time() {
    let mut stream = Stream::new();
    stream.method(stream.load, 1, 0x1000, "first");
    stream.sample(5, 2, 2, &[0x1004, 0x2008]);
    stream.method(stream.unload, 3, 0x1000, "first");
    stream.method(stream.load, 4, 0x1000, "second");
    stream.sample(5, 5, 2, &[0x1004, 0x2008]);
    stream.sample(5, 6, 2, &[0x3000, 0x2008]);
    stream.method(stream.exists, 7, 0x2000, "caller");
    let trace = stream.profile(&[]);
    assert_eq!(
        lines(&trace, 5),
        ["?!N.caller();?!N.first() 3", "?!N.caller();?!N.second() 1", "?!N.caller();?!0x3000 3"]
    );
}

/// The clock in a header may be wrong, but intervals are right.
#[test]
fn events_before_the_start_keep_their_times() {
    let of = |start| {
        let mut stream = Stream::started_at(start);
        for (thread, ms) in [(1, 5), (1, 6), (1, 7), (2, 8), (1, 9)] {
            stream.sample(thread, ms, 2, &[0x1008]);
        }
        stream.profile(&[])
    };
    let (sound, late) = (of(0), of(4000));
    // In milliseconds: 292 years, the maximum of 64 bits of nanoseconds.
    let far = of(i64::MIN / 1_000_000);
    for wrong in [&late, &far] {
        assert_eq!((lines(wrong, 1), lines(wrong, 2)), (lines(&sound, 1), lines(&sound, 2)));
    }
    assert_eq!(far.start_unix_ns(), None, "unknown");
    // The profile starts at the first sample.
    assert_eq!(late.start_unix_ns(), sound.start_unix_ns().map(|start| start + 5_000_000));
}

/// A runtime records at most 100 frames, so the last of them need not be the start of the thread.
#[test]
fn stacks_of_maximum_depth_are_marked_as_truncated() {
    let mut stream = Stream::new();
    stream.method(stream.load, 1, 0x1000, "deep");
    stream.sample(5, 2, 2, &[0x1004; 100]);
    stream.sample(6, 2, 2, &[0x1004; 99]);
    let trace = stream.profile(&[]);
    let frames = |n: usize| vec!["?!N.deep()"; n].join(";");
    assert_eq!(lines(&trace, 5), [format!("[truncated at 100 frames];{} 1", frames(100))]);
    assert_eq!(lines(&trace, 6), [format!("{} 1", frames(99))]);
}

#[test]
fn a_return_address_belongs_to_the_code_before_it() {
    let mut stream = Stream::new();
    // If the last instruction of `a` is a call, it returns to the first byte of `b`.
    stream.sample(5, 1, 2, &[0x1010, 0x1010]);
    stream.method(stream.exists, 2, 0x1000, "a");
    stream.method(stream.exists, 2, 0x1010, "b");
    assert_eq!(lines(&stream.profile(&[]), 5), ["?!N.a();?!N.b() 1"]);
}

#[test]
fn stack_ids_are_reused_after_a_sequence_point() {
    let mut stream = Stream::new();
    stream.sample(5, 1, 1, &[0x1000]);
    stream.writer.sequence_point(MS);
    stream.sample(5, 2, 1, &[0x2000]);
    stream.sample(5, 3, 1, &[]);
    assert_eq!(lines(&stream.profile(&[]), 5), ["?!0x1000 1", "?!0x2000 1", " 1"]);
}

#[test]
fn modules_and_threads_are_named() {
    let mut stream = Stream::new();
    stream.sample(5, 1, 2, &[0x1000]);
    stream.sample(6, 1, 9, &[0x1000]);
    stream.method(stream.exists, 2, 0x1000, "m");
    let mut w = runtap_wire::Writer::new();
    w.u64(7).u64(0).u32(0).u32(0).utf16z("/srv/app.dll").utf16z("");
    stream.event(stream.module, 1, 3, &[], w.as_bytes());
    let trace = stream.profile(&[(5, "worker"), (99, "never sampled")]);
    assert_eq!(lines(&trace, 6), ["app!N.m() 1"]);
    let labels: Vec<String> = trace.threads().map(|(_, thread)| thread.label()).collect();
    assert_eq!(labels, ["Thread (5) worker", "Thread (6)"]);
    assert_eq!(trace.ticks(View::Cpu), 1, "a sample of an unknown kind is not a managed sample");
}

#[test]
fn a_truncated_payload_loses_only_its_event() {
    let mut stream = Stream::new();
    stream.sample(5, 1, 2, &[0x1000]);
    stream.event(stream.exists, 1, 2, &[], &[1, 2, 3]);
    stream.method(stream.exists, 3, 0x1000, "m");
    let mut builder = ProfileBuilder::new();
    read(&stream.writer.finish(), |item| builder.item(item));
    assert_eq!((builder.malformed(), builder.samples()), (1, 1));
    assert_eq!(lines(&builder.finish(&ProfileOptions::default()), 5), ["?!N.m() 1"]);
}

#[test]
fn counts_of_equal_definitions_are_merged() {
    let mut writer = Writer::new(&TraceHeader::new(0, 0, 1));
    let first = writer.define_event(&Metadata::new("B", 2, "x")).unwrap();
    let again = writer.define_event(&Metadata::new("B", 2, "x")).unwrap();
    let other = writer.define_event(&Metadata::new("A", 9, "")).unwrap();
    for metadata_id in [first, again, other, first] {
        writer.event(&EventToWrite { metadata_id, ..Default::default() }).unwrap();
    }
    let bytes = writer.finish();
    let mut counts = EventCounts::new();
    read(&bytes, |item| match item {
        StreamItem::Event(event) => counts.add(event),
        StreamItem::Metadata(metadata) => counts.redefined(metadata.id),
        _ => {}
    });
    let rows = |counts: &EventCounts| -> Vec<String> {
        let rows = counts.rows();
        rows.iter().map(|row| format!("{} {} {} {}", row.provider, row.id, row.name, row.n)).collect()
    };
    assert_eq!(rows(&counts), ["A 9  1", "B 2 x 3"]);
    assert_eq!(counts.total(), 4);

    let mut twice = EventCounts::new();
    read(&bytes, |item| {
        if let StreamItem::Event(event) = item {
            twice.add(event);
        }
    });
    assert!(twice.join(counts));
    assert_eq!(rows(&twice), ["A 9  2", "B 2 x 6"]);
    assert_eq!(twice.total(), 8);
}
