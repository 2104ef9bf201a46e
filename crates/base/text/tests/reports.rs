//! How each report looks as text.

use std::collections::BTreeMap;

use runtap_clr::EventCounts;
use runtap_clr::report::{
    Adjustment, AllocReport, AllocSite, AllocatedType, Collection, CompiledMethod, ContentionReport,
    CounterKind, CounterSeries, CountersReport, CpuReport, Durations, Endpoint, EventRow, EventsReport,
    ExceptionType, ExceptionsReport, FrameRow, GcReport, HandleWait, HeapSizes, HttpReport, JitReport,
    LocksReport, LogLevelCount, LogMessage, LogsReport, LossReport, ProviderRow, Side, ThreadLoss,
    ThreadPoolReport, ThreadRow, Thrown, TierCount, Wait, WaitSite,
};
use runtap_model::{Unit, View};
use runtap_text::document::CountsDocument;
use runtap_text::{Missing, Print, TextOptions};

const PLAIN: TextOptions<'_> =
    TextOptions { width: None, styled: false, rows: None, more: None, advice: None };

fn text(it: &impl Print, options: &TextOptions<'_>) -> String {
    let mut text = Vec::new();
    it.print(&mut text, options).unwrap();
    String::from_utf8(text).unwrap()
}

fn advice(_: Missing) -> &'static str {
    "ask for it"
}

fn frame(name: &str, own: u64, total: u64) -> FrameRow {
    FrameRow { name: name.to_owned(), module: None, own, total, label: format!("app!{name}") }
}

fn cpu() -> CpuReport {
    let thread =
        ThreadRow { thread: 7, name: None, samples: 3, total: 3_000_000, label: "Thread (7)".into() };
    CpuReport {
        view: View::Cpu,
        samples: 3,
        unit: Unit::Nanoseconds,
        total: 3_000_000,
        threads_count: 1,
        frames: vec![
            frame("Work()", 2_000_000, 2_000_000),
            frame("Name\u{1b}[2J()", 1_000_000, 1_000_000),
            frame("Main()", 0, 3_000_000),
        ],
        threads: vec![thread],
    }
}

#[test]
fn time() {
    insta::assert_snapshot!(text(&cpu(), &PLAIN));
    insta::assert_snapshot!(text(
        &cpu(),
        &TextOptions { rows: Some(1), more: Some("-n shows more"), ..PLAIN }
    ));
    let narrow = text(&cpu(), &TextOptions { width: Some(30), ..PLAIN });
    assert!(narrow.lines().skip(1).all(|line| line.chars().count() <= 30), "{narrow}");
    assert!(!PLAIN.styled && !narrow.contains('\u{1b}'), "{narrow}");
    let styled = text(&cpu(), &TextOptions { styled: true, ..PLAIN });
    assert!(styled.contains("\u{1b}[1m") && !styled.contains("\u{1b}[2J"), "{styled}");
}

#[test]
fn allocations() {
    let name = || "System.Byte[]".to_owned();
    let report = AllocReport {
        allocated_bytes: 2_500_000,
        samples_count: 20,
        types: vec![AllocatedType { name: name(), allocated_bytes: 2_500_000, samples_count: 20 }],
        sites: vec![AllocSite {
            name: "Copy()".to_owned(),
            module: Some("app".to_owned()),
            allocated_bytes: 2_000_000,
            samples_count: 15,
            label: "app!Copy()".to_owned(),
        }],
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
}

#[test]
fn contention() {
    let locks = LocksReport {
        contentions_count: 2,
        unfinished_count: 1,
        unfinished_wait_ns: 2_000_000_000,
        waits: Durations { timed_count: 1, total_ns: 1_500_000, max_ns: 1_500_000, ..Durations::default() },
        contentions: vec![
            Wait {
                start_ns: 1_000_000,
                thread: 7,
                owner_thread: Some(8),
                lock: Some("0x7ee6".to_owned()),
                wait_ns: Some(1_500_000),
            },
            Wait { start_ns: 2_000_000, thread: 9, owner_thread: None, lock: None, wait_ns: None },
        ],
        ..LocksReport::default()
    };
    let sites = vec![WaitSite {
        name: "Take()".to_owned(),
        module: None,
        contentions_count: 2,
        wait_ns: 2_001_500_000,
        label: "app!Take()".to_owned(),
    }];
    let report = ContentionReport { locks, sites };
    insta::assert_snapshot!(text(&report, &TextOptions { advice: Some(advice), ..PLAIN }));
    let locks = LocksReport {
        handle_waits_count: 1,
        handle_wait_times: Durations { total_ns: 1_000, max_ns: 1_000, ..Durations::default() },
        handle_waits: vec![HandleWait {
            start_ns: 0,
            thread: 7,
            source: "MonitorWait".to_owned(),
            object: None,
            wait_ns: Some(1_000),
        }],
        ..LocksReport::default()
    };
    insta::assert_snapshot!(text(&ContentionReport { locks, sites: Vec::new() }, &PLAIN));
}

#[test]
fn collections() {
    let heap = HeapSizes { total_bytes: 4_000_000, promoted_bytes: 2_000_000, ..HeapSizes::default() };
    let collection = |number: u32, heap_after: Option<HeapSizes>| Collection {
        number,
        generation: number - 1,
        reason: "Induced",
        kind: "blocking",
        start_ns: i64::from(number) * 1_000_000_000,
        duration_ns: heap_after.map(|_| 900_000),
        pause_ns: 1_000_000,
        heap_after,
    };
    let report = GcReport {
        collections_count: 2,
        collections_by_generation: [2, 1, 0],
        induced_count: 2,
        pauses: Durations {
            timed_count: 2,
            total_ns: 2_000_000,
            max_ns: 1_000_000,
            p50_ns: 1_000_000,
            p95_ns: 1_000_000,
        },
        other_suspensions: Durations { timed_count: 1, total_ns: 500, ..Durations::default() },
        heap_after_last: Some(heap),
        collections: vec![collection(1, Some(heap)), collection(2, None)],
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
}

#[test]
fn exceptions() {
    let report = ExceptionsReport {
        thrown_count: 2,
        rethrown_count: Some(1),
        types: vec![ExceptionType {
            name: "System.Exception".to_owned(),
            thrown_count: 2,
            rethrown_count: Some(1),
            first_message: "no".to_owned(),
        }],
        exceptions: vec![Thrown {
            ts_ns: 1_234_567,
            thread: 7,
            name: "System.Exception".to_owned(),
            message: "two\nlines".to_owned(),
            hresult: 0,
            rethrown: true,
        }],
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
}

#[test]
fn compiled_methods() {
    let method = |name: &str, compile_ns| CompiledMethod {
        ts_ns: 1_000_000,
        thread: 7,
        name: name.to_owned(),
        tier: "QuickJitted",
        rejit_id: 0,
        dynamic: false,
        code_bytes: 382,
        compile_ns,
    };
    let mut report = JitReport {
        compiled_count: 2,
        precompiled_count: Some(1),
        code_bytes: 764,
        compile_times: Durations { total_ns: 3_000_000, ..Durations::default() },
        tiers: vec![TierCount { tier: "QuickJitted", methods_count: 2, code_bytes: 764 }],
        methods: vec![method("Fast()", Some(1_000_000)), method("Slow()", Some(2_000_000))],
        ..JitReport::default()
    };
    // The slowest, if not all are shown.
    insta::assert_snapshot!(text(&report, &TextOptions { rows: Some(1), ..PLAIN }));
    report.methods.clear();
    let text = text(&report, &TextOptions { advice: Some(advice), ..PLAIN });
    assert!(text.ends_with("\n\nno method was compiled during the recording: ask for it\n"), "{text}");
}

#[test]
fn thread_pool() {
    let adjustment =
        Adjustment { ts_ns: 5_000_000, workers_count: 3, reason: "starvation", throughput_per_s: 12.34 };
    let mut report = ThreadPoolReport {
        min_workers_count: Some(2),
        max_workers_count: Some(32_767),
        workers_peak_count: Some(6),
        workers_last_count: None,
        starvation_count: 1,
        adjustments: vec![adjustment],
        ..ThreadPoolReport::default()
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
    (report.min_workers_count, report.workers_peak_count) = (None, None);
    (report.enqueued_count, report.dequeued_count) = (Some(92), Some(1));
    let unknown = text(&report, &PLAIN);
    assert!(unknown.starts_with("Worker threads: number not recorded (min/max not recorded);"), "{unknown}");
    assert!(unknown.contains("92 work items queued, 1 taken"), "{unknown}");
    report.adjustments.clear();
    let text = text(&report, &PLAIN);
    assert!(text.ends_with("\n\nthe thread pool did not adjust its number of threads\n"), "{text}");
}

#[test]
fn http() {
    let endpoint = |side, method: Option<&str>, statuses, timed_count| Endpoint {
        side,
        method: method.map(str::to_owned),
        path: "/path".to_owned(),
        requests_count: 3,
        failed_count: Some(0),
        statuses,
        unknown_statuses_count: 0,
        unfinished_count: Some(0),
        durations: Durations {
            timed_count,
            total_ns: 6_000_000,
            max_ns: 3_000_000,
            p50_ns: 2_000_000,
            p95_ns: 3_000_000,
        },
    };
    let mut report = HttpReport {
        server_requests_count: 3,
        client_requests_count: 3,
        client_error_statuses_count: 1,
        endpoints: vec![
            endpoint(Side::Server, Some("GET"), BTreeMap::new(), 3),
            endpoint(Side::Client, None, BTreeMap::from([(200, 2), (500, 1)]), 0),
        ],
        ..HttpReport::default()
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
    report.overlapping_count = 3;
    report.endpoints.truncate(2);
    let overlapped = &mut report.endpoints[1];
    (overlapped.failed_count, overlapped.unknown_statuses_count) = (None, 3);
    overlapped.statuses.clear();
    let text = text(&report, &PLAIN);
    assert!(text.contains("\n3 requests overlapped: durations are unknown"), "{text}");
    assert!(text.contains(" 3       -       -       -       -  /path (unknown: 3)"), "{text}");
}

#[test]
fn counters() {
    let series = |name: &str, kind, value| CounterSeries {
        provider: "Demo".to_owned(),
        version: None,
        name: name.to_owned(),
        display_name: None,
        unit: "ms".to_owned(),
        tags: BTreeMap::new(),
        tags_text: "route=/a".to_owned(),
        instruments_count: None,
        kind,
        value,
        delta: Some(0.5),
        count: Some(1_200),
        sum: Some(60_600.0),
        quantiles: Some(BTreeMap::from([("0.5".to_owned(), 51.0)])),
        min: None,
        max: None,
        total: None,
        points_count: 4,
    };
    let report = CountersReport {
        series_count: 3,
        errors_count: 1,
        limits_reached_count: 0,
        series: vec![
            series("size", CounterKind::Gauge, Some(1.25)),
            series("latency", CounterKind::Histogram, None),
            CounterSeries {
                instruments_count: Some(2),
                total: Some(62.0),
                delta: None,
                ..series("orders", CounterKind::Rate, None)
            },
        ],
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
}

#[test]
fn logs() {
    let mut report = LogsReport {
        messages_count: 1,
        scopes_count: Some(2),
        exceptions_count: Some(0),
        by_level: vec![LogLevelCount {
            level: "Warning",
            category: "Demo.Orders".to_owned(),
            messages_count: 1,
        }],
        messages: vec![LogMessage {
            ts_ns: 1_000,
            thread: 7,
            level: "Warning",
            category: "Demo.Orders".to_owned(),
            event_id: 0,
            event_name: String::new(),
            message: "slow".to_owned(),
        }],
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
    report.exceptions_count = None;
    let text = text(&report, &TextOptions { advice: Some(advice), ..PLAIN });
    assert!(text.starts_with("1 message, 2 scopes; exceptions were not recorded: ask for it\n"), "{text}");
}

#[test]
fn events() {
    let report = EventsReport {
        events_count: 4,
        providers: vec![ProviderRow { provider: "Demo".to_owned(), events_count: 4 }],
        events: ["Tick", ""]
            .map(|name| EventRow {
                provider: "Demo".to_owned(),
                id: 1,
                version: 0,
                name: name.to_owned(),
                events_count: 2,
            })
            .into(),
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
    let none = CountsDocument::new("x.nettrace", None, &EventCounts::new(), 0, None);
    insta::assert_snapshot!(text(&none, &TextOptions { advice: Some(advice), ..PLAIN }));
}

#[test]
fn losses() {
    let report = LossReport {
        received_count: 990,
        lost_count: 10,
        elsewhere_count: 4,
        threads: vec![ThreadLoss { capture_thread: 7, received_count: 990, lost_count: 6 }],
    };
    insta::assert_snapshot!(text(&report, &PLAIN));
}
