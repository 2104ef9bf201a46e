//! What a small stream can have done at great length: each stack of a sample named anew, stacks copied, long names written for each
//! event. It is bounded, and what is left out is counted.

use std::sync::atomic::{AtomicU32, Ordering};

use runtap_clr::clr::{RUNTIME, SAMPLE_PROFILER, TPL};
use runtap_clr::lines::{Choice, Chooser, Lines, Style};
use runtap_clr::{DotnetTraceBuilder, ProfileBuilder, ProfileOptions};
use runtap_model::{Room, Trace, View};
use runtap_nettrace::{EventToWrite, Field, FieldType, Item, Metadata, Observe, Reader, TraceHeader, Writer};
use runtap_wire::Writer as Bytes;

/// The writer has at most 100 frames of a stack, as the runtime.
const DEPTH: usize = 98;
const SAMPLES: u64 = 2_000;

/// A stream of made-up events, a millisecond from each to the next.
struct Stream {
    writer: Writer,
    loads: u32,
    samples: u32,
    now: u64,
}

impl Stream {
    fn new() -> Self {
        let mut writer = Writer::new(&TraceHeader::new(0, 0, 1_000_000_000));
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

    /// A method is loaded that takes `size` bytes from `start` on.
    fn load(&mut self, id: u64, start: u64, size: u32) {
        let mut payload = Bytes::new();
        payload.u64(id).u64(1).u64(start).u32(size).u32(0x0600_0001).u32(8);
        payload.utf16z("").utf16z(&format!("m{id}")).utf16z("").u16(0).u64(0);
        self.event(self.loads, 1, &[], payload.as_bytes());
    }

    fn sample(&mut self, thread: u64, stack: &[u64]) {
        self.event(self.samples, thread, stack, &2u32.to_le_bytes());
    }

    fn read(self, mut visit: impl FnMut(&Item<'_>)) {
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

/// Room that ends after so many looks.
fn looks(often: u32) -> Room {
    let asked = AtomicU32::new(0);
    Room::while_there_is(move || asked.fetch_add(1, Ordering::Relaxed) < often)
}

/// The root of a deep stack is another method at each sample, so that no two samples share a frame.
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
fn memory_is_looked_at_for_frames_and_not_only_for_samples() {
    let all = other_roots().profile(ProfileBuilder::new(), Room::default());
    // So many methods are told apart at one address.
    assert_eq!((all.left_out(), all.stacks().len()), (0, 256 * (DEPTH + 1)));
    let some = other_roots().profile(ProfileBuilder::new(), looks(3));
    assert!(some.left_out() > 100, "{}", some.left_out());
    assert!(some.stacks().len() < 150 * DEPTH, "{}", some.stacks().len());
    let some = other_roots().of_dotnet_trace(looks(3));
    assert!(some.left_out() > 1_500, "{}", some.left_out());
}

#[test]
fn a_stack_that_may_mean_something_else_is_named_anew_only_if_it_does() {
    let stream = || {
        let mut stream = Stream::new();
        (1..=20).for_each(|id| stream.load(id, 0x1000, 0x10_0000));
        (0..SAMPLES).for_each(|n| stream.sample(1, &addresses(0x2000 + n % 2)));
        stream
    };
    let all = stream().profile(ProfileBuilder::new(), Room::default());
    assert_eq!((all.left_out(), all.stacks().len()), (0, DEPTH));
    // Whether it still means the same takes a step for each method that was there: 2,000 samples of 98 frames.
    let some = stream().profile(ProfileBuilder::new(), Room::default().with_steps(1_000_000));
    assert!((500..2_000).contains(&some.left_out()), "{}", some.left_out());
    let some = stream().of_dotnet_trace(Room::default().with_steps(1_000_000));
    assert!((500..2_000).contains(&some.left_out()), "{}", some.left_out());
}

#[test]
fn operations_that_begin_at_one_place_share_its_stack() {
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
    // Each of them has a name of its own, and is looked for on the stack.
    let some = stream().profile(ProfileBuilder::of(View::Async), Room::default().with_steps(10_000));
    assert!(some.left_out() > 900, "{}", some.left_out());
}

#[test]
fn samples_of_one_stack_are_put_together_once() {
    let mut stream = Stream::new();
    stream.load(1, 0x1000, 0x10_0000);
    (0..1_000).for_each(|n| stream.sample(1 + n % 2, &addresses(0x2000)));
    // Two threads; each has the stack below its own root.
    let all = stream.of_dotnet_trace(Room::default().with_steps(1_000));
    assert_eq!(all.left_out(), 0);
    assert!((2 * DEPTH..2 * DEPTH + 20).contains(&all.stacks().len()), "{}", all.stacks().len());
}

#[test]
fn a_line_has_the_beginning_of_a_long_name() {
    for style in Style::ALL {
        let mut stream = Stream::new();
        let mut long = Metadata::new("P".repeat(9_000), 7, "N".repeat(9_000));
        long.fields = vec![Field::new("\u{e9}".repeat(9_000), FieldType::U8)];
        let long = stream.writer.define_event(&long).unwrap();
        stream.event(long, 1, &[], &[5]);
        let mut written = Vec::new();
        let mut lines = Lines::new(Chooser::new(Choice::default(), None), style, false, &mut written);
        stream.read(|item| lines.item(item).unwrap());
        drop(lines);
        let text = String::from_utf8(written).unwrap();
        assert!(text.len() < 1_500, "{style:?}: {}", text.len());
        assert!(text.contains("PPP…") && text.contains("NNN…") && text.contains("é…"), "{text}");
    }
}
