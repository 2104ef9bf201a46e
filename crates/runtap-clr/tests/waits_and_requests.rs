//! Reports on made-up streams: what the recordings of the shared folder have none of.

use runtap_clr::clr::RUNTIME;
use runtap_clr::report::{Collect, Http, Locks, Logs, ThreadPool};
use runtap_nettrace::{EventToWrite, Field, FieldType, Item, Metadata, Observe, Reader, TraceHeader, Writer};
use runtap_wire::Writer as Bytes;

const MS: u64 = 1_000_000;

struct Stream(Writer);

impl Stream {
    fn new() -> Self {
        Self(Writer::new(&TraceHeader::new(0, 0, 1_000_000_000)))
    }

    fn define(&mut self, provider: &str, id: u32, name: &str, fields: &[(&str, FieldType)]) -> u32 {
        let mut metadata = Metadata::new(provider, id, name);
        metadata.fields = fields.iter().map(|(name, of)| Field::new(*name, of.clone())).collect();
        self.0.define_event(&metadata).unwrap()
    }

    fn event(&mut self, metadata_id: u32, thread_id: u64, ms: u64, payload: &Bytes) {
        let event = EventToWrite {
            metadata_id,
            thread_id,
            capture_thread_id: thread_id,
            timestamp: ms * MS,
            payload: payload.as_bytes(),
            ..Default::default()
        };
        self.0.event(&event).unwrap();
    }

    fn read(self, mut visit: impl FnMut(&Item<'_>)) {
        let bytes = self.0.finish();
        let mut reader = Reader::new();
        reader.feed(&bytes);
        reader.finish();
        while let Some(item) = reader.next().unwrap() {
            visit(&item);
        }
    }
}

fn bytes(write: impl FnOnce(&mut Bytes)) -> Bytes {
    let mut bytes = Bytes::new();
    write(&mut bytes);
    bytes
}

#[test]
fn waits_for_handles_are_told_beside_those_for_locks() {
    let mut stream = Stream::new();
    let (start, stop) = (stream.define(RUNTIME, 301, "", &[]), stream.define(RUNTIME, 302, "", &[]));
    let wait = |source: u8, object: u64| bytes(|w| _ = w.u8(source).u64(object).u16(0));
    let end = bytes(|w| _ = w.u16(0));
    stream.event(start, 1, 10, &wait(1, 0x1234));
    // What the wait runs waits too.
    stream.event(start, 1, 20, &wait(0, 0));
    stream.event(start, 2, 25, &wait(0, 0));
    stream.event(stop, 1, 30, &end);
    stream.event(stop, 1, 100, &end);
    let mut locks = Locks::default();
    stream.read(|item| locks.item(item));
    let report = locks.finish();
    assert_eq!((report.contentions_count, report.handle_waits_count), (0, 3));
    assert_eq!((report.handle_waits_unfinished_count, report.handle_wait_times.total_ns), (1, 100 * MS));
    let waits: Vec<_> =
        report.handle_waits.iter().map(|it| (it.source.as_str(), it.object.as_deref(), it.wait_ns)).collect();
    assert_eq!(
        waits,
        [
            ("MonitorWait", Some("0x1234"), Some(90 * MS)),
            ("Unknown", None, Some(10 * MS)),
            ("Unknown", None, None)
        ]
    );
}

/// Those of managed code come from a provider of their own.
#[test]
fn work_items_are_counted_whoever_tells_of_them() {
    let framework = "System.Diagnostics.Eventing.FrameworkEventSource";
    let count = |events: &[(&str, u32)]| {
        let mut stream = Stream::new();
        for (n, (provider, id)) in (0u64..).zip(events) {
            let event = stream.define(provider, *id, "", &[("workID", FieldType::U64)]);
            stream.event(event, 1, n, &bytes(|w| _ = w.u64(7).u16(0)));
        }
        let mut pool = ThreadPool::default();
        stream.read(|item| pool.item(item));
        let report = pool.finish();
        (report.enqueued_count, report.dequeued_count)
    };
    assert_eq!(count(&[]), (None, None));
    assert_eq!(count(&[(framework, 30), (framework, 30), (framework, 31)]), (Some(2), Some(1)));
    // The runtime's own count of the same items, and its completions of I/O.
    let runtime = [(framework, 30), (RUNTIME, 61), (RUNTIME, 62), (RUNTIME, 63), (RUNTIME, 64)];
    assert_eq!(count(&runtime), (Some(2), Some(2)));
}

#[test]
fn a_client_s_failures_and_statuses() {
    let text = FieldType::String;
    let target = [("scheme", text.clone()), ("host", text.clone()), ("port", FieldType::I32)];
    let target = [&target[..], &[("pathAndQuery", text.clone())]].concat();
    let mut stream = Stream::new();
    let client = "System.Net.Http";
    let start = stream.define(client, 1, "RequestStart", &target);
    let stop = stream.define(client, 2, "RequestStop", &[("statusCode", FieldType::I32)]);
    let failed = stream.define(client, 3, "RequestFailed", &[("exceptionMessage", text)]);
    let begin = bytes(|w| _ = w.utf16z("http").utf16z("h").u32(80).utf16z("/a?b"));
    let answers = [Some(200), Some(404), Some(-1), Some(503), None];
    for (n, status) in (0u64..).zip(answers) {
        stream.event(start, 1, 10 * n, &begin);
        if status == Some(-1) {
            stream.event(failed, 1, 10 * n + 1, &bytes(|w| _ = w.utf16z("refused")));
        }
        match status {
            Some(status) => stream.event(stop, 1, 10 * n + 2, &bytes(|w| _ = w.i32(status))),
            // Nothing tells its end but the failure.
            None => stream.event(failed, 1, 10 * n + 2, &bytes(|w| _ = w.utf16z("cancelled"))),
        }
    }
    let mut http = Http::default();
    stream.read(|item| http.item(item));
    let report = http.finish();
    assert_eq!((report.client_requests_count, report.client_failures_count), (5, 2));
    assert_eq!(report.client_error_statuses_count, 2);
    let [endpoint] = &report.endpoints[..] else { panic!("{report:?}") };
    assert_eq!((endpoint.path.as_str(), endpoint.unfinished_count), ("http://h:80/a", 1));
    assert_eq!(endpoint.statuses, [(200, 1), (404, 1), (503, 1)].into());
}

#[test]
fn texts_of_messages_do_not_tell_exceptions() {
    let fields = [("Level", FieldType::I32), ("LoggerName", FieldType::String)];
    for (name, known) in [("FormattedMessage", None), ("MessageJson", Some(0))] {
        let mut stream = Stream::new();
        let message = stream.define("Microsoft-Extensions-Logging", 1, name, &fields);
        let scope = stream.define("Microsoft-Extensions-Logging", 3, "ActivityStart", &[]);
        stream.event(message, 1, 1, &bytes(|w| _ = w.i32(2).utf16z("App")));
        // Scopes come with texts, too.
        stream.event(scope, 1, 2, &bytes(|_| {}));
        let mut logs = Logs::default();
        stream.read(|item| logs.item(item));
        let report = logs.finish();
        let counts = (report.messages_count, report.exceptions_count, report.scopes_count);
        assert_eq!(counts, (1, known, Some(1)));
    }
}
