//! The view `async` on synthetic streams: operations that one thread starts during others.

use runtap_clr::clr::{RUNDOWN, TPL};
use runtap_clr::{ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::{EventToWrite, Field, FieldType, Metadata, Observe, Reader, TraceHeader, Writer};
use runtap_wire::Writer as Bytes;

/// The addresses of methods.
const METHODS: [(u64, &str, &str); 6] = [
    (0x10, "P", "Main"),
    (0x20, "P+<First>d__1", "MoveNext"),
    (0x30, "P+<Second>d__2", "MoveNext"),
    (0x40, "P+<Part>d__3", "MoveNext"),
    (0x50, "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[X]", "MoveNext"),
    (0x60, "P", "Part"),
];

/// A stream builder with times in milliseconds. Stacks are addresses of methods, leaf first.
struct Stream {
    writer: Writer,
    kinds: [u32; 4],
}

impl Stream {
    fn new() -> Self {
        let mut writer = Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000));
        let exists = writer.define_event(&Metadata::new(RUNDOWN, 144, "")).unwrap();
        let i32s = |names: &[&'static str]| -> Vec<(&'static str, FieldType)> {
            names.iter().map(|name| (*name, FieldType::I32)).collect()
        };
        let begin = [("TaskID", FieldType::I32), ("OperationName", FieldType::String)];
        let kinds = [
            (10, i32s(&["S", "O", "TaskID", "Behavior", "ContinueWithTaskID"])),
            (14, begin.to_vec()),
            (15, i32s(&["TaskID", "Status"])),
            (17, i32s(&["TaskID", "Work"])),
        ];
        let kinds = kinds.map(|(id, fields)| {
            let mut metadata = Metadata::new(TPL, id, "E");
            metadata.fields = fields.into_iter().map(|(name, of)| Field::new(name, of)).collect();
            writer.define_event(&metadata).unwrap()
        });
        let mut stream = Self { writer, kinds };
        for (ip, space, name) in METHODS {
            let mut w = Bytes::new();
            w.u64(ip)
                .u64(7)
                .u64(ip)
                .u32(16)
                .u32(0)
                .u32(0)
                .utf16z(space)
                .utf16z(name)
                .utf16z("void ()")
                .u16(0);
            stream.event(exists, 0, &[], &w);
        }
        stream
    }

    fn event(&mut self, metadata_id: u32, ms: u64, stack: &[u64], payload: &Bytes) {
        let (thread_id, payload) = (1, payload.as_bytes());
        let stack: Vec<u64> = stack.iter().map(|method| method + 4).collect();
        let capture_thread_id = thread_id;
        let event = EventToWrite {
            metadata_id,
            thread_id,
            capture_thread_id,
            timestamp: ms,
            stack: &stack,
            payload,
            ..Default::default()
        };
        self.writer.event(&event).unwrap();
    }

    fn begins(&mut self, ms: u64, stack: &[u64], task: i32, name: &str) {
        let mut payload = Bytes::new();
        payload.i32(task).utf16z(name);
        self.event(self.kinds[1], ms, stack, &payload);
    }

    fn awaits(&mut self, ms: u64, by: i32, task: i32) {
        let mut payload = Bytes::new();
        payload.i32(1).i32(0).i32(task).i32(2).i32(by);
        self.event(self.kinds[0], ms, &[], &payload);
    }

    fn ends(&mut self, ms: u64, task: i32) {
        let mut payload = Bytes::new();
        payload.i32(task).i32(1);
        self.event(self.kinds[2], ms, &[], &payload);
    }

    fn runs(&mut self, ms: u64, task: i32) {
        let mut payload = Bytes::new();
        payload.i32(task).i32(2);
        self.event(self.kinds[3], ms, &[], &payload);
    }

    /// Formats every event as `frame;frame milliseconds`.
    fn lines(self) -> Vec<String> {
        let mut builder = ProfileBuilder::of(View::Async);
        let mut reader = Reader::new();
        reader.feed(&self.writer.finish());
        reader.finish();
        while let Some(item) = reader.next().unwrap() {
            builder.item(&item);
        }
        let trace = builder.finish(&ProfileOptions::default());
        let mut lines = Vec::new();
        for (_, thread) in trace.threads() {
            for sample in thread.samples(View::Async) {
                let mut frames: Vec<String> = sample.stack.map_or_else(Vec::new, |stack| {
                    trace
                        .stacks()
                        .frames(stack)
                        .map(|f| trace.frame(f).to_string().replace("?!", ""))
                        .collect()
                });
                frames.reverse();
                lines.push(format!("{} {}", frames.join(";"), sample.weight / 1_000_000));
            }
        }
        lines.sort();
        lines
    }
}

/// The code that ends the first operation continues with the second one, which starts a part that is not awaited.
#[test]
fn an_operation_is_not_below_one_whose_end_resumed_its_starter() {
    let mut stream = Stream::new();
    stream.begins(10, &[0x20, 0x10], 1, "Async: <First>d__1");
    stream.begins(10, &[0x30, 0x10], 2, "Async: <Second>d__2");
    stream.awaits(10, 2, 1);
    stream.runs(100, 1);
    stream.ends(110, 1);
    stream.runs(110, 2);
    let stack = [0x40, 0x60, 0x30, 0x50, 0x20, 0x50, 0x70];
    stream.begins(120, &stack, 3, "Async: <Part>d__3");
    stream.begins(120, &stack[1..], 4, "Task.WhenAll");
    stream.awaits(120, 2, 4);
    stream.ends(200, 3);
    stream.ends(200, 4);
    stream.ends(210, 2);
    assert_eq!(
        stream.lines(),
        [
            "P.Main();P+<Second>d__2.MoveNext() 10",
            "P.Main();P+<Second>d__2.MoveNext() 10",
            "P.Main();P+<Second>d__2.MoveNext();P+<First>d__1.MoveNext() 100",
            "P.Main();P+<Second>d__2.MoveNext();Task.WhenAll 80",
            "P.Part();P+<Part>d__3.MoveNext() 80",
        ]
    );
}

/// As above, if the operations on the stack began before the recording.
#[test]
fn code_that_resumed_the_starter_is_not_its_caller() {
    let mut stream = Stream::new();
    stream.begins(120, &[0x40, 0x60, 0x30, 0x50, 0x20, 0x50, 0x70], 3, "Async: <Part>d__3");
    stream.ends(200, 3);
    assert_eq!(stream.lines(), ["P+<Second>d__2.MoveNext();P.Part();P+<Part>d__3.MoveNext() 80"]);
}

/// A timer reports its end after everything that it resumed.
#[test]
fn an_awaited_operation_is_over_when_its_awaiter_resumes() {
    let mut stream = Stream::new();
    stream.begins(10, &[0x20, 0x10], 5, "Task.Delay");
    stream.begins(10, &[0x20, 0x10], 1, "Async: <First>d__1");
    stream.awaits(10, 1, 5);
    stream.runs(110, 1);
    stream.ends(150, 1);
    stream.ends(400, 5);
    assert_eq!(
        stream.lines(),
        ["P.Main();P+<First>d__1.MoveNext() 40", "P.Main();P+<First>d__1.MoveNext();Task.Delay 100"]
    );
}
