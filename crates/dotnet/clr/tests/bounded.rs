//! The amount of work that a small stream can cause: naming each stack of a sample again, copying stacks, writing long names for
//! each event, reading fields without bytes for each event. It is bounded, and what is left out is counted.

use std::sync::atomic::{AtomicU32, Ordering};

use runtap_clr::clr::{RUNTIME, SAMPLE_PROFILER, TPL};
use runtap_clr::lines::{Choice, Chooser, Lines, Style};
use runtap_clr::payload::Decoder;
use runtap_clr::{DotnetTraceBuilder, ProfileBuilder, ProfileOptions};
use runtap_model::{Room, Trace, View};
use runtap_nettrace::{
    EventToWrite, Field, FieldType, Metadata, Observe, Reader, StreamItem, TraceHeader, Version, Writer,
};
use runtap_wire::Writer as Bytes;

/// The writer supports at most 100 frames per stack, like the runtime.
const DEPTH: usize = 98;
const SAMPLES: u64 = 2_000;

/// A synthetic stream with one event per millisecond.
struct Stream {
    writer: Writer,
    loads: u32,
    samples: u32,
    now: u64,
}

impl Stream {
    fn new() -> Self {
        Self::of(Version::Nettrace4)
    }

    fn of(version: Version) -> Self {
        let mut writer = Writer::with_version(&TraceHeader::new(0, 0, 1_000_000_000), version);
        let loads = writer.define_event(&Metadata::new(RUNTIME, 143, "")).unwrap();
        let samples = writer.define_event(&Metadata::new(SAMPLE_PROFILER, 0, "")).unwrap();
        Self { writer, loads, samples, now: 0 }
    }

    fn event(&mut self, metadata_id: u32, thread_id: u64, stack: &[u64], payload: &[u8]) {
        self.now += 1_000_000;
        let timestamp = self.now;
        let event = EventToWrite {
            metadata_id,
            thread_id,
            capture_thread_id: 1,
            timestamp,
            stack,
            payload,
            ..EventToWrite::default()
        };
        self.writer.event(&event).unwrap();
    }

    /// Writes the load of a method of `size` bytes at `start`.
    fn load(&mut self, id: u64, start: u64, size: u32) {
        let mut payload = Bytes::new();
        payload.u64(id).u64(1).u64(start).u32(size).u32(0x0600_0001).u32(8);
        payload.utf16z("").utf16z(&format!("m{id}")).utf16z("").u16(0).u64(0);
        self.event(self.loads, 1, &[], payload.as_bytes());
    }

    fn sample(&mut self, thread: u64, stack: &[u64]) {
        self.event(self.samples, thread, stack, &2u32.to_le_bytes());
    }

    fn read(self, mut visit: impl FnMut(&StreamItem<'_>)) {
        let mut reader = Reader::new();
        reader.feed(&self.writer.finish());
        reader.finish();
        while let Some(item) = reader.next().unwrap() {
            visit(&item);
        }
    }

    fn profile(self, mut builder: ProfileBuilder, room: Room) -> Trace {
        self.read(|item| builder.item(item));
        builder.finish(&ProfileOptions { room, ..ProfileOptions::default() })
    }

    fn of_dotnet_trace(self, room: Room) -> Trace {
        let mut builder = DotnetTraceBuilder::new();
        self.read(|item| builder.item(item));
        builder.finish(&ProfileOptions { room, ..ProfileOptions::default() })
    }
}

fn addresses(from: u64) -> Vec<u64> {
    (from..).take(DEPTH).collect()
}

/// A room that is full after this number of steps.
fn looks(often: u32) -> Room {
    let asked = AtomicU32::new(0);
    Room::while_there_is(move || asked.fetch_add(1, Ordering::Relaxed) < often)
}

/// The root of a deep stack is another method in each sample, so that samples share no frames.
fn other_roots() -> Stream {
    let mut stream = Stream::new();
    let stack = [&addresses(0x50_0000)[..], &[0x1008]].concat();
    for id in 1..=SAMPLES {
        stream.load(id, 0x1000, 16);
        stream.sample(1, &stack);
    }
    stream
}

#[test]
fn frames_count_towards_the_memory_limit() {
    let all = other_roots().profile(ProfileBuilder::new(), Room::default());
    // The number of methods that are distinguished at one address.
    assert_eq!((all.left_out(), all.stacks().len()), (0, 256 * (DEPTH + 1)));
    let some = other_roots().profile(ProfileBuilder::new(), looks(3));
    assert!(some.left_out() > 100, "{}", some.left_out());
    assert!(some.stacks().len() < 150 * DEPTH, "{}", some.stacks().len());
    let some = other_roots().of_dotnet_trace(looks(3));
    assert!(some.left_out() > 1_500, "{}", some.left_out());
}

#[test]
fn a_time_dependent_stack_is_named_again_only_if_it_changed() {
    let stream = || {
        let mut stream = Stream::new();
        (1..=20).for_each(|id| stream.load(id, 0x1000, 0x10_0000));
        (0..SAMPLES).for_each(|n| stream.sample(1, &addresses(0x2000 + n % 2)));
        stream
    };
    let all = stream().profile(ProfileBuilder::new(), Room::default());
    assert_eq!((all.left_out(), all.stacks().len()), (0, DEPTH));
    // Checking whether it changed takes a step per method: 2,000 samples of 98 frames.
    let some = stream().profile(ProfileBuilder::new(), Room::default().with_steps(1_000_000));
    assert!((500..2_000).contains(&some.left_out()), "{}", some.left_out());
    let some = stream().of_dotnet_trace(Room::default().with_steps(1_000_000));
    assert!((500..2_000).contains(&some.left_out()), "{}", some.left_out());
}

#[test]
fn operations_that_start_at_one_place_share_its_stack() {
    let stream = || {
        let mut stream = Stream::new();
        let mut begin = Metadata::new(TPL, 14, "TraceOperationBegin");
        begin.fields = [
            ("TaskID", FieldType::I32),
            ("OperationName", FieldType::String),
            ("RelatedContext", FieldType::I64),
        ]
        .map(|(name, of)| Field::new(name, of))
        .into();
        let begin = stream.writer.define_event(&begin).unwrap();
        stream.load(1, 0x1000, 0x10_0000);
        for n in 1..=1_000 {
            let mut payload = Bytes::new();
            payload.i32(n).utf16z(&format!("operation {n}")).i64(0);
            stream.event(begin, 1, &addresses(0x2000), payload.as_bytes());
        }
        stream.load(2, 0x200, 1);
        stream
    };
    let all = stream().profile(ProfileBuilder::of(View::Async), Room::default());
    assert_eq!((all.left_out(), all.stacks().len()), (0, DEPTH + 1_000));
    // Each has its own name, which is searched on the stack.
    let some = stream().profile(ProfileBuilder::of(View::Async), Room::default().with_steps(10_000));
    assert!(some.left_out() > 900, "{}", some.left_out());
}

#[test]
fn samples_with_one_stack_are_built_once() {
    let mut stream = Stream::new();
    stream.load(1, 0x1000, 0x10_0000);
    (0..1_000).for_each(|n| stream.sample(1 + n % 2, &addresses(0x2000)));
    // Two threads, each with the stack below its own root.
    let all = stream.of_dotnet_trace(Room::default().with_steps(1_000));
    assert_eq!(all.left_out(), 0);
    assert!((2 * DEPTH..2 * DEPTH + 20).contains(&all.stacks().len()), "{}", all.stacks().len());
}

/// Returns the events of a stream as lines.
fn lines(stream: Stream, style: Style) -> String {
    let mut written = Vec::new();
    let mut lines = Lines::new(Chooser::new(Choice::default(), None), style, false, &mut written);
    stream.read(|item| lines.item(item).unwrap());
    drop(lines);
    String::from_utf8(written).unwrap()
}

#[test]
fn a_long_name_is_truncated_in_lines() {
    // The payload of the second one is too short, which is an error with the field's name in it.
    for (style, payload) in Style::ALL.into_iter().flat_map(|style| [(style, &[5][..]), (style, &[])]) {
        let mut stream = Stream::new();
        let mut long = Metadata::new("P".repeat(9_000), 7, "N".repeat(9_000));
        long.fields = vec![Field::new("\u{e9}".repeat(9_000), FieldType::U8)];
        let long = stream.writer.define_event(&long).unwrap();
        stream.event(long, 1, &[], payload);
        let text = lines(stream, style);
        assert!(text.len() < 1_500, "{style:?}: {}", text.len());
        assert!(text.contains("PPP…") && text.contains("NNN…") && text.contains("é…"), "{text}");
    }
}

fn without_bytes(n: usize) -> Vec<Field> {
    (0..n).map(|n| Field::new(format!("{n}{}", "x".repeat(20)), FieldType::Object(Vec::new()))).collect()
}

/// A definition with many fields without bytes is treated as unknown, but its events are still shown.
#[test]
fn the_cost_of_an_event_is_bounded_by_its_size() {
    let array = || Field::new("array", FieldType::Array(Box::new(FieldType::U8)));
    for (version, more) in [
        (Version::NetPerf3, None),
        (Version::Nettrace4, None),
        // Version 5 of the field layout.
        (Version::Nettrace4, Some(array())),
        (Version::Nettrace6, None),
        (Version::Nettrace6, Some(Field::new("fixed", FieldType::FixedArray(Box::new(FieldType::U8), 0)))),
    ] {
        let stream = |fields: usize| {
            let mut stream = Stream::of(version);
            let mut empty = Metadata::new("P", 7, "N");
            empty.fields = without_bytes(fields).into_iter().chain(more.clone()).collect();
            let empty = stream.writer.define_event(&empty).unwrap();
            (0..100).for_each(|_| stream.event(empty, 1, &[], &[0, 0]));
            stream
        };
        let fields = |n: usize| {
            let mut decoder = Decoder::new();
            let mut counts = Vec::new();
            stream(n).read(|item| match item {
                StreamItem::Event(event) => counts.push(decoder.payload(event).fields().count()),
                item => decoder.item(item),
            });
            assert_eq!(counts.len(), 100);
            counts[0]
        };
        let others = usize::from(more.is_some());
        assert_eq!((fields(8), fields(1_000)), (8 + others, 0), "{version:?}");
        for style in Style::ALL {
            let text = lines(stream(1_000), style);
            let events = text.lines().filter(|line| line.contains('N')).count();
            assert_eq!(events, 100, "{style:?}: {text}");
            assert!(text.len() < 100 * 500, "{style:?}: {}", text.len());
        }
        let json = lines(stream(1_000), Style::Json);
        assert_eq!(json.matches(r#""payload":null,"payload_hex":"0000""#).count(), 100, "{json}");
    }
}
