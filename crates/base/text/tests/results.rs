//! How differences, recordings, dumps and what is known of processes and programs look as text.

use std::path::Path;

use runtap_clr::report::{DiffReport, DiffSide, FrameChange, Shares, Weights};
use runtap_model::Message;
use runtap_model::{Unit, View};
use runtap_text::document::{
    DumpDocument, EnvironmentDocument, InfoDocument, LicensesDocument, OutputFile, Partial, ProfileRow,
    ProfilesDocument, ProviderRow, RouterDocument, TraceDocument, TracedProcess, Variable, VersionDocument,
};
use runtap_text::{DiffText, Print, TextOptions};

const PLAIN: TextOptions<'_> =
    TextOptions { width: None, styled: false, rows: None, more: None, advice: None };

fn text(it: &impl Print, options: &TextOptions<'_>) -> String {
    let mut text = Vec::new();
    it.print(&mut text, options).unwrap();
    String::from_utf8(text).unwrap()
}

fn difference(normalized: bool) -> DiffReport {
    let side = DiffSide { samples: 1_000, total: 1_000_000_000, threads: 1, duration_ns: 2_000_000_000 };
    let weights = |own| Weights { own, total: 900_000_000, self_samples: 0, total_samples: 0 };
    let shares = |change, significant| Shares {
        before: 0.25,
        after: 0.25 + change,
        change,
        margin: Some(0.025),
        significant,
    };
    let change = |name: &str, change, significant| FrameChange {
        name: name.to_owned(),
        module: None,
        before: weights(250_000_000),
        after: weights(100_000_000),
        self_share: shares(change, significant),
        total_share: shares(0.0, false),
        label: format!("app!{name}"),
    };
    DiffReport {
        view: View::Cpu,
        unit: Unit::Nanoseconds,
        normalized,
        before: side,
        after: side,
        frames: vec![
            change("Save()", 0.15, true),
            change("Render()", -0.012, false),
            change("Main()", 0.0, false),
        ],
        frames_count: 3,
        changed_count: 2,
    }
}

#[test]
fn differences() {
    let files = ["old.nettrace", "new.nettrace"].map(Path::new);
    let shown = |normalized, options| text(&DiffText { report: &difference(normalized), files }, options);
    insta::assert_snapshot!(shown(true, &PLAIN));
    insta::assert_snapshot!(shown(false, &TextOptions { rows: Some(1), ..PLAIN }));
    let report = DiffReport { changed_count: 0, ..difference(true) };
    let text = text(&DiffText { report: &report, files }, &PLAIN);
    assert!(text.ends_with("\n\nno frame changed\n"), "{text}");
}

#[test]
fn a_recording_that_was_made() {
    let mut trace = TraceDocument::default();
    for pid in [7, 8] {
        trace.add(TracedProcess {
            pid,
            name: "app".to_owned(),
            outputs: vec![OutputFile::new(Path::new("app.nettrace"), "nettrace", 1_500)],
            events: 600,
            lost: 1,
            bytes: 1_500,
            duration_ns: 2_500_000_000,
            partial: None,
            command: "CollectTracing4".to_owned(),
            downgrades: Vec::new(),
            notes: Vec::new(),
            is_readable: true,
        });
    }
    assert_eq!(trace.figures(), "2 processes, 1,200 events, at least 2 lost, 3.0 kB in 2.5 s");
    let file = "app.nettrace  nettrace  1.5 kB\n";
    assert_eq!(text(&trace, &PLAIN), [file, file].concat());

    assert_eq!(trace.messages().count(), 0);
    trace.processes[0].notes.push("nothing came".to_owned());
    trace.processes[1].partial = Some(Partial { offset: 7, reason: "it broke".to_owned() });
    let note = Message::Note("note of process 7: nothing came".to_owned());
    let why = "the recording of process 8 is partial: it broke; what was received is readable";
    assert_eq!(trace.messages().collect::<Vec<_>>(), [note, Message::Warning(why.to_owned())]);
}

#[test]
fn what_a_runtime_says_of_itself() {
    let mut info = InfoDocument::new(7, "dotnet", "dotnet \u{1b}x");
    info.runtime_cookie = Some("cookie".to_owned());
    (info.os, info.arch) = (Some("Linux"), Some("x64"));
    (info.runtime_version, info.suspended) = (Some("10.0.1"), Some(true));
    insta::assert_snapshot!(text(&info, &PLAIN), @r"
    process id      7
    entry assembly  unknown
    command line    dotnet \u{1b}x
    runtime         10.0.1
    platform        unknown
    system          Linux x64
    runtime cookie  cookie
    suspended       yes, at startup
    ");
    let variable = |name: &str, value: &str| Variable { name: name.to_owned(), value: value.to_owned() };
    let environment = EnvironmentDocument::new(None, vec![variable("B", ""), variable("A", "x=\t")]);
    assert_eq!(environment.lines().collect::<Vec<_>>(), ["A=x=\t", "B="]);
}

#[test]
fn what_a_router_has_carried() {
    let mut router = RouterDocument::new();
    assert_eq!(
        text(&router, &PLAIN),
        "0 connections, 0 requests forwarded (0 B to clients, 0 B to runtimes)\n"
    );
    (router.connections, router.forwarded, router.bytes_to_clients) = (12, 9, 2_500_000);
    (router.refused, router.silent, router.not_reached, router.most_waiting) = (1, 2, 3, 1);
    router.without_place = 1;
    insta::assert_snapshot!(text(&router, &PLAIN), @r"
    12 connections, 9 requests forwarded (2.5 MB to clients, 0 B to runtimes)
    1 request rejected by the router (malformed or unsupported)
    3 requests for which no runtime was reached
    2 clients without a request
    1 connection of runtimes rejected because of too many runtimes
    at most 1 client waiting at the same time
    ");
    let mut json = Vec::new();
    runtap_text::json::write_document(&mut json, &router).unwrap();
    insta::assert_snapshot!(String::from_utf8(json).unwrap(), @r#"
    {
      "schema": "runtap.router/1",
      "connections": 12,
      "forwarded": 9,
      "refused": 1,
      "silent": 2,
      "not_reached": 3,
      "runtimes": 0,
      "without_place": 1,
      "most_waiting": 1,
      "bytes_to_runtimes": 0,
      "bytes_to_clients": 2500000
    }
    "#);
}

#[test]
fn what_a_program_says_of_itself() {
    let version = VersionDocument::new("1.2.3", Some("abc"), "x86_64-unknown-linux-musl");
    assert_eq!(text(&version, &PLAIN), "runtap 1.2.3 (abc) x86_64-unknown-linux-musl\n");
    let list = "one\t1.0\thttps://one\tMIT\t1 2\ntwo\t\t\tZlib\t2\n%%%% 1\nMay.\n\n%%%% 2\nMust.\n";
    insta::assert_snapshot!(text(&LicensesDocument::read(list), &PLAIN), @r"
    runtap contains the software listed below; the numbers refer to the license texts after the list.

    one 1.0: MIT [1] [2]
        https://one
    two: Zlib [2]

    [1]

    May.

    [2]

    Must.
    ");
    let provider = |arguments| ProviderRow::new("A".to_owned(), 255, 4, arguments);
    let providers = vec![provider(None), provider(Some("x=1".to_owned()))];
    let profiles = ProfilesDocument::new(vec![ProfileRow { name: "gc", about: "collections", providers }]);
    assert_eq!(text(&profiles, &PLAIN), "gc  collections\n    A:0xff:4\n    A:0xff:4:…\n");
}

#[test]
fn a_dump() {
    let mut dump = DumpDocument::new(7, "heap", "core_1", 12_000_000);
    assert_eq!(text(&dump, &PLAIN), "core_1  12.0 MB  heap dump in 0.0 s\n");
    (dump.program, dump.threads, dump.crash_report) = (Some("app"), Some(1), Some("core_1.crashreport.json"));
    assert_eq!(
        text(&dump, &PLAIN),
        "core_1  12.0 MB  heap dump in 0.0 s  app, 1 thread\ncore_1.crashreport.json\n"
    );
}
