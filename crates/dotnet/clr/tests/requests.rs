//! The view `request` on synthetic streams: code after an await, and concurrent requests.

use std::collections::BTreeMap;

use runtap_clr::clr::{SAMPLE_PROFILER, TPL};
use runtap_clr::{ProfileBuilder, ProfileOptions};
use runtap_model::{Trace, View};
use runtap_nettrace::{EventToWrite, Field, FieldType, Metadata, Observe, Reader, TraceHeader, Uuid, Writer};
use runtap_wire::Writer as Bytes;

/// An id as the runtime assigns it: the numbers of a path, each less than 11.
fn activity(path: &[u8]) -> Option<Uuid> {
    if path.is_empty() {
        return None;
    }
    let mut id = [0; 16];
    for (n, number) in path.iter().enumerate() {
        id[n / 2] |= if n % 2 == 0 { number << 4 } else { *number };
    }
    let words = id[..12].chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let sum = words.fold(0x599D_99ADu32, u32::wrapping_add);
    id[12..].copy_from_slice(&sum.to_le_bytes());
    Some(Uuid::from_bytes_le(id))
}

/// A stream builder with times in milliseconds. Each event has a thread and an activity.
struct Stream {
    writer: Writer,
    start: u32,
    stop: u32,
    sample: u32,
    /// The metadata ids.
    tasks: BTreeMap<u32, u32>,
}

impl Stream {
    fn new() -> Self {
        let mut writer = Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000));
        let hosting = |id, name: &str, fields: &[&str]| {
            let mut metadata = Metadata::new("Microsoft.AspNetCore.Hosting", id, name);
            metadata.fields = fields.iter().map(|name| Field::new(*name, FieldType::String)).collect();
            metadata
        };
        let start = writer.define_event(&hosting(3, "RequestStart", &["method", "path"])).unwrap();
        let stop = writer.define_event(&hosting(4, "RequestStop", &[])).unwrap();
        let sample = writer.define_event(&Metadata::new(SAMPLE_PROFILER, 0, "")).unwrap();
        let tasks = [10, 14, 15, 17, 18]
            .into_iter()
            .map(|id| (id, writer.define_event(&Metadata::new(TPL, id, "")).unwrap()))
            .collect();
        Self { writer, start, stop, sample, tasks }
    }

    fn event(&mut self, kind: u32, (thread, ms): (u64, u64), path: &[u8], stack: &[u64], payload: &[u8]) {
        let related = path.split_last().map_or(&[][..], |(_, outer)| outer);
        let event = EventToWrite {
            metadata_id: kind,
            thread_id: thread,
            capture_thread_id: thread,
            timestamp: ms,
            stack,
            payload,
            activity_id: activity(path),
            related_activity_id: activity(related),
            ..Default::default()
        };
        self.writer.event(&event).unwrap();
    }

    fn start(&mut self, at: (u64, u64), path: &[u8], name: &str) {
        let mut payload = Bytes::new();
        payload.utf16z("GET").utf16z(name);
        self.event(self.start, at, path, &[], payload.as_bytes());
    }

    fn stop(&mut self, at: (u64, u64), path: &[u8]) {
        self.event(self.stop, at, path, &[], &[]);
    }

    /// The operation `by` awaits a task, on this stack.
    fn awaits(&mut self, at: (u64, u64), path: &[u8], (by, task): (i32, i32), ip: u64) {
        let mut payload = Bytes::new();
        payload.i32(1).i32(0).i32(task).i32(2).i32(by);
        self.event(self.tasks[&10], at, path, &[ip], payload.as_bytes());
    }

    /// An event of an operation: 14 start, 15 end, 17 resumed by a thread, 18 suspended.
    fn operation(&mut self, id: u32, at: (u64, u64), path: &[u8], number: i32) {
        let mut payload = Bytes::new();
        payload.i32(number).i32(2).u16(0).i64(0);
        let stack: &[u64] = if id == 14 { &[0xf] } else { &[] };
        self.event(self.tasks[&id], at, path, stack, payload.as_bytes());
    }

    /// A sample of a thread in managed code, or waiting for work.
    fn sample(&mut self, at: (u64, u64), ip: Option<u64>) {
        let kind: i32 = if ip.is_some() { 2 } else { 1 };
        self.event(self.sample, at, &[], ip.as_slice(), &kind.to_le_bytes());
    }

    fn trace(self) -> Trace {
        let mut builder = ProfileBuilder::of(View::Request);
        let mut reader = Reader::new();
        reader.feed(&self.writer.finish());
        reader.finish();
        while let Some(item) = reader.next().unwrap() {
            builder.item(&item);
        }
        builder.finish(&ProfileOptions::default())
    }
}

/// Sums `request;frame milliseconds` by stack.
fn lines(trace: &Trace) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (_, thread) in trace.threads() {
        for sample in thread.samples(View::Request) {
            let mut frames: Vec<String> = sample.stack.map_or_else(Vec::new, |stack| {
                trace.stacks().frames(stack).map(|frame| trace.frame(frame).to_string()).collect()
            });
            frames.reverse();
            *sums.entry(frames.join(";")).or_default() += sample.weight / 1_000_000;
        }
    }
    sums.into_iter().map(|(stack, ms)| format!("{stack} {ms}")).collect()
}

/// Two requests await something on one thread. A timer or a thread of the program ends the awaits and then runs their code itself,
/// the second during the first.
fn inline_continuations(has_resumptions: bool) -> Trace {
    let (a, b): (&[u8], &[u8]) = (&[1, 1], &[1, 2]);
    let mut stream = Stream::new();
    for (n, path, name) in [(1, a, "/a"), (2, b, "/b")] {
        let at = |ms| (1, 10 * n + ms);
        stream.start(at(0), path, name);
        let number = i32::try_from(n).unwrap();
        stream.operation(14, at(1), path, number);
        stream.awaits(at(2), path, (number, 10 + number), 0x10 * n);
        // Back in the code that called both.
        stream.operation(14, at(3), &[], 20 + number);
    }
    stream.sample((1, 30), None);
    let resumptions = [(17, 100, 1), (17, 150, 2), (18, 200, 0), (18, 250, 0)];
    for ms in (100..270).step_by(10) {
        for (id, _, number) in resumptions.iter().filter(|(_, at, _)| has_resumptions && *at == ms) {
            stream.operation(*id, (7, ms), &[], *number);
        }
        let ip = match ms {
            150..200 => 0xb,
            250.. => 0x7,
            _ => 0xa,
        };
        stream.sample((7, ms), Some(ip));
    }
    stream.stop((7, 300), a);
    stream.stop((7, 300), b);
    stream.trace()
}

#[test]
fn code_run_by_a_timer_after_an_await_belongs_to_its_request() {
    let trace = inline_continuations(true);
    assert_eq!(
        lines(&trace),
        [
            "GET /a;?!0x10 1",
            "GET /a;?!0x10;[awaiting] 187",
            "GET /a;?!0xa 100",
            "GET /a;?!0xf 1",
            "GET /a;[unknown] 1",
            "GET /b;?!0x20 1",
            "GET /b;?!0x20;[awaiting] 227",
            "GET /b;?!0xb 50",
            "GET /b;?!0xf 1",
            "GET /b;[unknown] 1",
        ]
    );
    assert!(!trace.lacks_resumptions());
}

#[test]
fn streams_without_resumptions_are_marked() {
    let trace = inline_continuations(false);
    assert!(trace.lacks_resumptions());
    assert!(lines(&trace).iter().all(|line| !line.contains("0xa")), "{:?}", lines(&trace));
}

/// `start` and `stop` events of paths, in order of time.
fn requests(events: &[(u64, &[u8])]) -> Vec<String> {
    let mut stream = Stream::new();
    let mut begun: Vec<&[u8]> = Vec::new();
    for (ms, path) in events {
        if begun.contains(path) {
            stream.stop((1, *ms), path);
        } else {
            stream.start((1, *ms), path, &format!("/{}", path.last().unwrap()));
            begun.push(path);
        }
    }
    stream.sample((1, 1000), None);
    lines(&stream.trace())
}

#[test]
fn concurrent_requests_have_their_own_time() {
    let (a, b, c): (&[u8], &[u8], &[u8]) = (&[1, 1], &[1, 2], &[1, 3]);
    assert_eq!(
        requests(&[(10, a), (11, b), (12, c), (110, a), (312, c), (511, b)]),
        ["GET /1;[unknown] 100", "GET /2;[unknown] 500", "GET /3;[unknown] 300"]
    );
}

#[test]
fn inner_requests_are_below_the_outer_one_if_their_time_fits() {
    let outer: &[u8] = &[1, 1];
    let (a, b, c): (&[u8], &[u8], &[u8]) = (&[1, 1, 2], &[1, 1, 3], &[1, 1, 4]);
    // One after the other.
    assert_eq!(
        requests(&[(10, outer), (20, a), (50, a), (60, b), (70, b), (100, outer)]),
        ["GET /1;GET /2;[unknown] 30", "GET /1;GET /3;[unknown] 10", "GET /1;[unknown] 50"]
    );
    // The first two concurrently, the last alone.
    assert_eq!(
        requests(&[(10, outer), (20, a), (30, b), (50, a), (60, b), (70, c), (75, c), (100, outer)]),
        ["GET /1;GET /4;[unknown] 5", "GET /1;[unknown] 85", "GET /2;[unknown] 30", "GET /3;[unknown] 30"]
    );
    // One that ends after the outer one.
    assert_eq!(
        requests(&[(10, outer), (20, a), (30, outer), (90, a)]),
        ["GET /1;[unknown] 20", "GET /2;[unknown] 70"]
    );
}
