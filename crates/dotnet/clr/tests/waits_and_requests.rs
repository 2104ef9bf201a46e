//! Reports on synthetic streams, for cases that the recordings in the shared folder do not have.

use runtap_clr::clr::RUNTIME;
use runtap_clr::report::{Collect, Http, HttpReport, Locks, Logs, ThreadPool};
use runtap_nettrace::{
    EventToWrite, Field, FieldType, Metadata, Observe, Reader, StreamItem, TraceHeader, Writer,
};
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

    fn read(self, mut visit: impl FnMut(&StreamItem<'_>)) {
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
fn waits_for_handles_are_reported_separately() {
    let mut stream = Stream::new();
    let (start, stop) = (stream.define(RUNTIME, 301, "", &[]), stream.define(RUNTIME, 302, "", &[]));
    let wait = |source: u8, object: u64| bytes(|w| _ = w.u8(source).u64(object).u16(0));
    let end = bytes(|w| _ = w.u16(0));
    stream.event(start, 1, 10, &wait(1, 0x1234));
    // Code that runs during the wait waits too.
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

/// .NET 9 and later also report the wait for the handle behind a lock.
#[test]
fn a_wait_for_a_lock_is_not_a_wait_for_a_handle() {
    let mut stream = Stream::new();
    let [wanted, taken, start, stop] = [81, 91, 301, 302].map(|id| stream.define(RUNTIME, id, "", &[]));
    let (lock, nothing) = (bytes(|w| _ = w.u8(0).u16(0)), bytes(|w| _ = w.u16(0)));
    let handle = bytes(|w| _ = w.u8(0).u64(0).u16(0));
    // The first attempt fails.
    for (kind, ms, payload) in [
        (wanted, 10, &lock),
        (start, 11, &handle),
        (stop, 20, &nothing),
        (start, 21, &handle),
        (stop, 29, &nothing),
        (taken, 30, &lock),
        (start, 40, &handle),
        (stop, 45, &nothing),
        (wanted, 50, &lock),
        (start, 51, &handle),
    ] {
        stream.event(kind, 1, ms, payload);
    }
    stream.event(stop, 2, 100, &nothing);
    let mut locks = Locks::default();
    stream.read(|item| locks.item(item));
    let report = locks.finish();
    assert_eq!((report.contentions_count, report.unfinished_count), (2, 1));
    assert_eq!((report.waits.total_ns, report.unfinished_wait_ns), (20 * MS, 50 * MS));
    assert_eq!((report.handle_waits_count, report.handle_waits_unfinished_count), (1, 0));
    assert_eq!(report.handle_wait_times.total_ns, 5 * MS);
}

/// Work items of managed code are reported by a separate provider.
#[test]
fn work_items_are_counted_from_any_source() {
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
    let answers = [Some(200), Some(404), Some(-1), Some(503), None, Some(206)];
    for (n, status) in (0u64..).zip(answers) {
        stream.event(start, 1, 10 * n, &begin);
        // The body of the last one ends early.
        if let Some(-1 | 206) = status {
            stream.event(failed, 1, 10 * n + 1, &bytes(|w| _ = w.utf16z("refused")));
        }
        match status {
            Some(status) => stream.event(stop, 1, 10 * n + 2, &bytes(|w| _ = w.i32(status))),
            // Only the failure reports its end.
            None => stream.event(failed, 1, 10 * n + 2, &bytes(|w| _ = w.utf16z("cancelled"))),
        }
    }
    let mut http = Http::default();
    stream.read(|item| http.item(item));
    let report = http.finish();
    assert_eq!((report.client_requests_count, report.client_failures_count), (6, 3));
    assert_eq!(report.client_error_statuses_count, 2);
    let [endpoint] = &report.endpoints[..] else { panic!("{report:?}") };
    assert_eq!((endpoint.path.as_str(), endpoint.unfinished_count), ("http://h:80/a", Some(1)));
    assert_eq!(endpoint.statuses, [(200, 1), (206, 1), (404, 1), (503, 1)].into());
}

/// A client's requests without ids, each `+PATH` or `-STATUS`, one every 10 ms.
fn client_requests(events: &[&str]) -> HttpReport {
    let text = FieldType::String;
    let target = [("scheme", text.clone()), ("host", text.clone()), ("port", FieldType::I32)];
    let target = [&target[..], &[("pathAndQuery", text.clone())]].concat();
    let mut stream = Stream::new();
    let start = stream.define("System.Net.Http", 1, "RequestStart", &target);
    let stop = stream.define("System.Net.Http", 2, "RequestStop", &[("statusCode", FieldType::I32)]);
    let failed = stream.define("System.Net.Http", 3, "RequestFailed", &[("exceptionMessage", text)]);
    for (n, event) in (0u64..).zip(events) {
        let (kind, payload) = match event.split_at(1) {
            ("+", path) => (start, bytes(|w| _ = w.utf16z("http").utf16z("h").u32(80).utf16z(path))),
            (_, "failed") => (failed, bytes(|w| _ = w.utf16z("refused"))),
            (_, status) => (stop, bytes(|w| _ = w.i32(status.parse().unwrap()))),
        };
        stream.event(kind, n, 10 * n, &payload);
    }
    let mut http = Http::default();
    stream.read(|item| http.item(item));
    http.finish()
}

/// Formats each endpoint as `PATH: FAILED failed, UNFINISHED unfinished, {STATUSES}, UNKNOWN unknown, DURATION ms`.
fn endpoints(report: &HttpReport) -> Vec<String> {
    let known = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let mut lines: Vec<String> = report
        .endpoints
        .iter()
        .map(|it| {
            let path = it.path.rsplit('/').next().unwrap();
            let (failed, unfinished) = (known(it.failed_count), known(it.unfinished_count));
            let took = it.durations.total_ns / MS;
            let (statuses, unknown) = (&it.statuses, it.unknown_statuses_count);
            format!("{path}: {failed} {unfinished} {statuses:?} {unknown}, {took} ms")
        })
        .collect();
    lines.sort();
    lines
}

/// While two requests are open, it is unknown which end belongs to which.
#[test]
fn overlapping_requests_are_not_distinguished() {
    // The last one is as isolated as the first.
    let report = client_requests(&["+/a", "-200", "+/b", "+/c", "-404", "-200", "+/d", "-503"]);
    assert_eq!(
        endpoints(&report),
        ["a: 0 0 {200: 1} 0, 10 ms", "b: 0 0 {} 1, 0 ms", "c: 0 0 {} 1, 0 ms", "d: 0 0 {503: 1} 0, 10 ms"]
    );
    assert_eq!((report.overlapping_count, report.client_error_statuses_count), (2, 2));
    // One that begins during an overlap is affected too, although it is alone at its end.
    let report = client_requests(&["+/a", "+/b", "-200", "+/c", "-404", "-500"]);
    assert_eq!(endpoints(&report), ["a: 0 0 {} 1, 0 ms", "b: 0 0 {} 1, 0 ms", "c: 0 0 {} 1, 0 ms"]);
}

#[test]
fn properties_common_to_overlapping_requests_are_known() {
    // All have equal statuses, or equal paths.
    let report = client_requests(&["+/a", "+/b", "-200", "-200", "+/c", "+/c", "-404", "-failed", "--1"]);
    assert_eq!(
        endpoints(&report),
        ["a: 0 0 {200: 1} 0, 0 ms", "b: 0 0 {200: 1} 0, 0 ms", "c: 1 0 {404: 1} 0, 0 ms"]
    );
    assert_eq!((report.overlapping_count, report.client_failures_count), (4, 1));
    // One failed, but it is unknown which.
    let report = client_requests(&["+/a", "+/b", "-failed", "--1", "-200"]);
    assert_eq!(endpoints(&report), ["a: ? 0 {} 1, 0 ms", "b: ? 0 {} 1, 0 ms"]);
    assert_eq!(report.client_failures_count, 1);
    // One did not end, or neither did.
    let report = client_requests(&["+/a", "+/b", "-200"]);
    assert_eq!(endpoints(&report), ["a: 0 ? {} 1, 0 ms", "b: 0 ? {} 1, 0 ms"]);
    let report = client_requests(&["+/a", "+/b"]);
    assert_eq!(endpoints(&report), ["a: 0 1 {} 0, 0 ms", "b: 0 1 {} 0, 0 ms"]);
    assert_eq!(report.overlapping_count, 0, "nothing about them is unknown");
}

/// The end may have belonged to one of the requests before.
#[test]
fn the_end_of_a_request_from_before_the_recording_makes_others_uncertain() {
    let report = client_requests(&["+/a", "-200", "+/b", "-404", "-200", "+/c", "-200"]);
    assert_eq!(endpoints(&report), ["a: 0 0 {} 1, 0 ms", "b: 0 0 {} 1, 0 ms", "c: 0 0 {200: 1} 0, 10 ms"]);
}

#[test]
fn texts_of_messages_do_not_include_exceptions() {
    let fields = [("Level", FieldType::I32), ("LoggerName", FieldType::String)];
    for (name, known) in [("FormattedMessage", None), ("MessageJson", Some(0))] {
        let mut stream = Stream::new();
        let message = stream.define("Microsoft-Extensions-Logging", 1, name, &fields);
        let scope = stream.define("Microsoft-Extensions-Logging", 3, "ActivityStart", &[]);
        stream.event(message, 1, 1, &bytes(|w| _ = w.i32(2).utf16z("App")));
        // Scopes are reported with texts, too.
        stream.event(scope, 1, 2, &bytes(|_| {}));
        let mut logs = Logs::default();
        stream.read(|item| logs.item(item));
        let report = logs.finish();
        let counts = (report.messages_count, report.exceptions_count, report.scopes_count);
        assert_eq!(counts, (1, known, Some(1)));
    }
}

/// Searching all requests for each end would take minutes.
#[test]
fn any_number_of_requests_may_overlap() {
    const REQUESTS: usize = 50_000;

    let starts: Vec<String> = (0..REQUESTS).map(|number| format!("+/{number}")).collect();
    let ends = std::iter::repeat_n("-200", 2 * REQUESTS);
    let events: Vec<&str> = starts.iter().map(String::as_str).chain(ends).collect();
    let report = client_requests(&events);
    let requests = REQUESTS as u64;
    assert_eq!((report.client_requests_count, report.overlapping_count), (requests, requests));
    assert_eq!(report.endpoints.len(), REQUESTS);
    assert!(report.endpoints.iter().all(|endpoint| endpoint.statuses == [(200, 1)].into()));
}
