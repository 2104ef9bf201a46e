//! `report` on the recordings of the shared folder agrees with the recorded programs' own output.

use std::collections::BTreeMap;
use std::fs;

use runtap_testkit::{Recording, recordings, require, shared_data};
use serde_json::{Value, json};

use crate::common::{beside_others, folder, runtap};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// A recording in a file, for several reports.
struct RecordingFile<'a> {
    recording: &'a Recording,
    folder: tempfile::TempDir,
}

impl<'a> RecordingFile<'a> {
    fn new(recording: &'a Recording) -> Self {
        let folder = folder();
        fs::write(folder.path().join("input.nettrace"), &recording.bytes).unwrap();
        Self { recording, folder }
    }

    fn report(&self, kind: &str) -> Value {
        let file = self.folder.path().join("input.nettrace");
        let code = if self.recording.expected["end_marker"] == true { 0 } else { 5 };
        let done = runtap(["report", file.to_str().unwrap(), kind, "--format", "json"]);
        let report = done.expect_code(code).json();
        assert_eq!(report["schema"], format!("runtap.report.{kind}/1"), "{self}");
        report
    }

    fn truth(&self, name: &str) -> &Value {
        &self.recording.expected["truth"][name]
    }

    fn is(&self, name: &str) -> bool {
        self.recording.path.to_string_lossy().trim_end_matches(".zst").ends_with(name)
    }

    fn program(&self) -> &str {
        self.recording.expected["program"].as_str().unwrap_or_default()
    }

    /// Returns the number of events of a kind that an independent reader found.
    fn count(&self, provider: &str, id: u64) -> u64 {
        let rows = self.recording.expected["counts"].as_array().unwrap().iter();
        let rows = rows.filter(|row| row["provider"] == provider && row["id"] == id);
        rows.map(|row| row["n"].as_u64().unwrap()).sum()
    }
}

impl std::fmt::Display for RecordingFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.recording.path.display())
    }
}

/// Runs a test on every recording that `wants` accepts, which must be at least `at_least`.
fn each(at_least: usize, wants: impl Fn(&RecordingFile<'_>) -> bool, test: impl Fn(&RecordingFile<'_>)) {
    let _machine = beside_others();
    let mut tested = 0;
    for recording in require!(recordings()) {
        let input = RecordingFile { recording, folder: folder() };
        if wants(&input) {
            test(&RecordingFile::new(recording));
            tested += 1;
        }
    }
    assert!(tested >= at_least, "only {tested} recordings");
}

/// A table of zeros would claim that nothing happened, so the report explains how to record the events.
#[test]
fn a_sentence_replaces_the_report_of_missing_events() {
    // Event counters only.
    each(
        1,
        |input| input.is("console-net8.nettrace"),
        |input| {
            let file = input.folder.path().join("input.nettrace");
            let file = file.to_str().unwrap();
            for (kind, subject, advice) in [
                ("cpu", "No samples in view 'cpu'", "dotnet-sampled-thread-time"),
                ("gc", "No garbage collections", "--clrevents gc'"),
                ("alloc", "No allocations", "--profile gc-verbose"),
                ("exceptions", "No exceptions", "--clrevents exception"),
                ("contention", "No waits for locks", "--clrevents contention"),
                ("jit", "No compiled methods", "--clrevents jit"),
                ("threadpool", "No thread pool events", "--clrevents threading"),
                ("http", "No HTTP requests", "System.Net.Http"),
                ("logs", "No log messages", "Microsoft-Extensions-Logging"),
            ] {
                let said = runtap(["report", file, kind]);
                let text = said.expect_code(0).text();
                assert!(text.starts_with(subject) && text.contains(advice), "{said}");
                assert_eq!(text.lines().count(), 1, "{said}");
                let said = runtap(["report", file, kind, "--format", "json"]);
                said.expect_code(0).says(subject);
                assert_eq!(said.json()["schema"], format!("runtap.report.{kind}/1"));
            }
            let view = runtap(["report", file, "cpu", "--view", "alloc"]);
            assert!(view.expect_code(0).text().contains("--profile gc-verbose"), "{view}");
            for kind in ["counters", "events", "loss"] {
                assert!(runtap(["report", file, kind]).expect_code(0).text().lines().count() > 3, "{kind}");
            }
        },
    );
}

fn rows<'a>(report: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    report[list].as_array().unwrap_or_else(|| panic!("{list} is a list")).iter()
}

fn sum(report: &Value, list: &str, number: &str) -> u64 {
    rows(report, list).map(|row| row[number].as_u64().unwrap()).sum()
}

#[test]
fn collections() {
    each(
        2,
        |input| input.program() == "allocs" && input.count(RUNTIME, 1) > 0,
        |input| {
            let report = input.report("gc");
            let by_generation = &report["collections_by_generation"];
            assert_eq!(by_generation, input.truth("collections_by_generation"), "{input}");
            assert_eq!(report["collections_count"], by_generation[0], "{input}");
            let induced: u64 = ["induced_gen0", "induced_gen1", "induced_gen2"]
                .map(|name| input.truth(name).as_u64().unwrap())
                .iter()
                .sum();
            assert!(report["induced_count"].as_u64().unwrap() >= induced, "{input}");
            for collection in rows(&report, "collections") {
                assert!(collection["heap_after"]["total_bytes"].as_u64() > Some(0), "{input}: {collection}");
                let [pause, duration] = ["pause_ns", "duration_ns"].map(|name| collection[name].as_u64());
                assert!(
                    pause >= duration && duration > Some(0),
                    "{input}: the collection pauses the program: {collection}"
                );
            }
            assert_eq!(
                sum(&report, "collections", "pause_ns"),
                report["pauses"]["total_ns"].as_u64().unwrap()
            );
        },
    );
}

#[test]
fn exceptions() {
    each(
        3,
        |input| input.program() == "allocs" && input.count(RUNTIME, 80) > 0,
        |input| {
            let report = input.report("exceptions");
            assert_eq!(report["thrown_count"], *input.truth("exceptions_thrown"), "{input}");
            let of_type = |row: &Value| {
                let name = row["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
                (name, row["thrown_count"].clone())
            };
            for (name, n) in rows(&report, "types").map(of_type) {
                assert_eq!(n, *input.truth(&name), "{input}: {name}");
            }
            assert_eq!(rows(&report, "types").count(), 6, "{input}");
            // .NET 9 and later do not report rethrown exceptions.
            let is_reported = input.recording.expected["runtime"].as_str().unwrap().starts_with("8.");
            let rethrown = if is_reported { input.truth("rethrows").clone() } else { Value::Null };
            assert_eq!(report["rethrown_count"], rethrown, "{input}");
            assert_eq!(rows(&report, "exceptions").count() as u64, input.count(RUNTIME, 80), "{input}");
        },
    );
}

#[test]
fn allocations() {
    each(
        1,
        |input| input.program() == "allocs" && input.count(RUNTIME, 10) > 0,
        |input| {
            let report = input.report("alloc");
            let truth = input.truth("allocated_bytes").as_u64().unwrap();
            let estimate = report["allocated_bytes"].as_u64().unwrap();
            // The runtime's startup allocates too, and the last 100 kB of each heap are not reported.
            assert!(
                estimate * 10 > truth * 9 && estimate * 10 < truth * 12,
                "{input}: {estimate} of {truth}"
            );
            assert_eq!(report["samples_count"], input.count(RUNTIME, 10), "{input}");
            assert_eq!(sum(&report, "types", "allocated_bytes"), estimate, "{input}");
            let mut first: Vec<_> = rows(&report, "types").take(2).map(|row| row["type"].clone()).collect();
            first.sort_by_key(Value::to_string);
            assert_eq!(first, [json!("SmallObject"), json!("System.Byte[]")], "{input}");
        },
    );
}

#[test]
fn locks() {
    each(
        1,
        |input| input.program() == "allocs" && input.count(RUNTIME, 81) > 0,
        |input| {
            let report = input.report("contention");
            // The program's own locks; the runtime has a few more.
            let n = report["contentions_count"].as_u64().unwrap();
            assert!(n >= input.truth("lock_contention_count").as_u64().unwrap(), "{input}: {n}");
            assert_eq!(n, input.count(RUNTIME, 81), "{input}");
            assert_eq!(sum(&report, "sites", "contentions_count"), n, "{input}");
            let first = rows(&report, "sites").next().unwrap();
            assert_eq!(first["module"], "allocs", "{input}");
            assert!(
                first["contentions_count"].as_u64() >= input.truth("contention_rounds").as_u64(),
                "{input}"
            );
        },
    );
}

#[test]
fn the_thread_pool() {
    each(
        1,
        |input| input.program() == "allocs" && input.count(RUNTIME, 50) > 0 && input.count(RUNTIME, 59) > 0,
        |input| {
            let report = input.report("threadpool");
            assert_eq!(report["min_workers_count"], *input.truth("pool_min_threads"), "{input}");
            assert_eq!(report["workers_last_count"], *input.truth("pool_threads_after"), "{input}");
            // Blocked work items starve the pool until each has a thread.
            let short = input.truth("pool_blocked_items").as_u64().unwrap()
                - input.truth("pool_min_threads").as_u64().unwrap();
            assert_eq!(report["starvation_count"], short, "{input}");
        },
    );
}

/// The program prints for each series the number of its event, its values in the event's order, and its id.
#[test]
fn meters() {
    each(
        2,
        |input| input.recording.expected["last_values"].as_object().is_some_and(|all| !all.is_empty()),
        |input| {
            let report = input.report("counters");
            let mut ours = BTreeMap::new();
            for series in rows(&report, "series").filter(|series| series["display_name"].is_null()) {
                let text = |name: &str| series[name].as_str().unwrap_or_default();
                let key = format!(
                    "{}/{}/{}[{}]",
                    text("provider"),
                    text("version"),
                    text("name"),
                    text("tags_text")
                );
                ours.insert(key, series);
            }
            let theirs = input.recording.expected["last_values"].as_object().unwrap();
            let mut kinds = std::collections::BTreeSet::new();
            for (key, theirs) in theirs {
                let ours = ours.get(key).unwrap_or_else(|| panic!("{input}: {key} is missing"));
                let value = |index: usize| match &theirs[index] {
                    Value::String(text) => text.parse::<f64>().unwrap(),
                    number => number.as_f64().unwrap(),
                };
                let kind = match theirs[0].as_u64() {
                    Some(6) => {
                        // Every round has equal values, but the last interval may have none.
                        let route = if ours["tags"]["route"] == "/a" { "a" } else { "b" };
                        let quantiles = match route {
                            "a" => json!({"0.5": 51.0, "0.95": 96.0, "0.99": 100.0}),
                            _ => json!({"0.5": 7.0, "0.95": 7.0, "0.99": 7.0}),
                        };
                        assert_eq!(ours["quantiles"], quantiles, "{input}: {key}");
                        let sum = input.truth(&format!("latency_{route}_sum"));
                        assert_eq!(ours["sum"].as_f64(), sum.as_f64(), "{input}: {key}");
                        let count = match route {
                            "a" => input.truth("latency_a_count"),
                            _ => input.truth("rounds"),
                        };
                        assert_eq!(&ours["count"], count, "{input}: {key}");
                        assert!(ours["count"].as_f64() >= Some(value(2)), "{input}: {key}");
                        "histogram"
                    }
                    Some(5) => {
                        assert_eq!(ours["value"].as_f64(), Some(value(1)), "{input}: {key}");
                        "gauge"
                    }
                    id => {
                        assert_eq!(ours["delta"].as_f64(), Some(value(1)), "{input}: {key}");
                        if theirs[2].is_string() {
                            assert_eq!(ours["value"].as_f64(), Some(value(2)), "{input}: {key}");
                        }
                        if id == Some(4) { "rate" } else { "updown" }
                    }
                };
                assert_eq!(ours["kind"], kind, "{input}: {key}");
                kinds.insert(kind);
            }
            assert!(!kinds.is_empty(), "{input}");
        },
    );
}

#[test]
fn event_counters() {
    each(
        1,
        |input| input.program() == "meters" && input.is("net10/eventcounters.nettrace"),
        |input| {
            let report = input.report("counters");
            let total = rows(&report, "series").find(|series| series["name"] == "total").unwrap();
            assert_eq!((&total["provider"], &total["kind"]), (&json!("Demo-Counters"), &json!("rate")));
            // 7 per round, of which the first and last may not be in a complete interval.
            assert_eq!(total["total"].as_f64(), input.truth("ec_total").as_f64(), "{input}");
        },
    );
}

#[test]
fn non_finite_counters_are_distinguished() {
    let folder = folder();
    let file = folder.path().join("ec.nettrace");
    fs::write(&file, require!(shared_data("reports/net/recordings/ec-10.0.12.nettrace"))).unwrap();
    let file = file.to_str().unwrap();
    let report = runtap(["report", file, "counters", "--format", "json"]).expect_code(0).json();
    let series = |name: &str| rows(&report, "series").find(|series| series["name"] == name).unwrap().clone();
    for (name, text) in [("nan", "NaN"), ("inf", "inf")] {
        let series = series(name);
        for member in ["value", "min", "max"] {
            assert_eq!(series[member], text, "{series:#}");
        }
        // Fields that this kind of counter does not have are null.
        assert_eq!(series["delta"], Value::Null, "{series:#}");
    }
    assert_eq!((&series("ie")["kind"], &series("ie")["delta"]), (&json!("rate"), &json!(147.0)));
    let table = runtap(["report", file, "counters"]);
    for row in
        ["   NaN           -    NaN   NaN  Ec-Source/nan", "   inf           -    inf   inf  Ec-Source/inf"]
    {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let found = table.text().lines().any(|line| words(line).ends_with(&words(row)));
        assert!(found, "{table}");
    }
}

#[test]
fn log_messages() {
    each(
        1,
        |input| input.program() == "logs" && input.is("net8/logs.nettrace"),
        |input| {
            let report = input.report("logs");
            let truth = |name| input.truth(name).as_u64().unwrap();
            let by_level: Vec<u64> = input
                .truth("orders_by_level")
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_u64().unwrap())
                .collect();
            // The event source does not forward the level Trace.
            assert_eq!(report["messages_count"], truth("log_messages") - by_level[0], "{input}");
            assert_eq!(report["scopes_count"], truth("log_scopes"), "{input}");
            assert_eq!(report["exceptions_count"], truth("exceptions"), "{input}");
            for (level, n) in
                ["Debug", "Information", "Warning", "Error", "Critical"].iter().zip(&by_level[1..])
            {
                let found = rows(&report, "by_level")
                    .find(|row| row["level"] == *level && row["category"] == "Demo.Orders")
                    .map(|row| &row["messages_count"]);
                assert_eq!(found, Some(&json!(n)), "{input}: {level}");
            }
        },
    );
}

#[test]
fn http_requests() {
    each(
        1,
        |input| input.program() == "web",
        |input| {
            let report = input.report("http");
            for side in ["server", "client"] {
                for name in ["fast", "slow", "throw", "alloc"] {
                    let row = rows(&report, "endpoints")
                        .find(|row| row["side"] == side && row["path"].as_str().unwrap().ends_with(name))
                        .unwrap_or_else(|| panic!("{input}: {side} {name}"));
                    assert_eq!(row["requests_count"], *input.truth(name), "{input}: {side} {name}");
                    assert_eq!(row["durations"]["timed_count"], row["requests_count"], "{input}: {row}");
                    let fails = side == "server" && name == "throw";
                    let failed = if fails { input.truth(name).clone() } else { json!(0) };
                    assert_eq!(row["failed_count"], failed, "{input}: {side} {name}");
                    let status = if name == "throw" { "500" } else { "200" };
                    let statuses =
                        if side == "client" { json!({status: input.truth(name)}) } else { json!({}) };
                    assert_eq!(row["statuses"], statuses, "{input}: {side} {name}");
                }
            }
            assert_eq!(report["client_error_statuses_count"], *input.truth("throw"), "{input}");
            let slow = rows(&report, "endpoints").find(|row| row["path"] == "/slow").unwrap();
            assert!(
                slow["durations"]["p50_ns"].as_u64() > Some(10_000_000),
                "{input}: the endpoint sleeps: {slow}"
            );
        },
    );
}

#[test]
fn compiled_methods() {
    each(
        2,
        |input| input.truth("dynamic_methods").is_u64() && input.count(RUNTIME, 143) > 0,
        |input| {
            let report = input.report("jit");
            let count = |start: &str| {
                let names = rows(&report, "methods").map(|row| row["name"].as_str().unwrap());
                names.filter(|name| name.starts_with(start)).count() as u64
            };
            assert_eq!(
                count("dynamicClass.dm_"),
                input.truth("dynamic_methods").as_u64().unwrap(),
                "{input}"
            );
            assert_eq!(count("Gen.T"), input.truth("emitted_methods").as_u64().unwrap(), "{input}");
            assert_eq!(report["compiled_count"], rows(&report, "methods").count(), "{input}");
        },
    );
}

#[test]
fn events_and_losses() {
    each(
        30,
        |_| true,
        |input| {
            let report = input.report("loss");
            let expected = &input.recording.expected;
            assert_eq!(report["lost_count"], expected["dropped_by_seq_gap"], "{input}");
            assert_eq!(report["received_count"], expected["events"], "{input}");
            assert_eq!(sum(&report, "threads", "received_count"), expected["events"].as_u64().unwrap());
            let report = input.report("events");
            assert_eq!(report["events_count"], expected["events"], "{input}");
            assert_eq!(sum(&report, "events", "events_count"), expected["events"].as_u64().unwrap());
        },
    );
}

#[test]
fn samples() {
    each(
        5,
        |input| {
            input.count("Microsoft-DotNETCore-SampleProfiler", 0) > 0 && input.recording.bytes.len() < 1 << 20
        },
        |input| {
            let file = input.folder.path().join("input.nettrace");
            let arguments =
                ["report", file.to_str().unwrap(), "cpu", "--view", "thread-time", "--format", "json"];
            let code = if input.recording.expected["end_marker"] == true { 0 } else { 5 };
            let report = runtap(arguments).expect_code(code).json();
            assert_eq!(report["samples"], input.count("Microsoft-DotNETCore-SampleProfiler", 0), "{input}");
            assert_eq!(sum(&report, "threads", "samples"), report["samples"].as_u64().unwrap(), "{input}");
            assert!(sum(&report, "frames", "self") <= sum(&report, "threads", "total"), "{input}");
        },
    );
}

#[test]
fn tables_are_short_and_count_omitted_rows() {
    let recordings = require!(recordings());
    let recording = recordings
        .iter()
        .find(|it| RecordingFile { recording: it, folder: folder() }.is("net8/exceptions.nettrace"));
    let input = RecordingFile::new(recording.unwrap());
    let file = input.folder.path().join("input.nettrace");
    let file = file.to_str().unwrap();
    let table = runtap(["report", file, "exceptions", "-n", "2"]);
    let text = table.expect_code(0).text();
    assert_eq!(text.lines().count(), 2 + 4 + 1 + 4, "{text}");
    assert!(text.contains("\n… and 4 more types (-n shows more)\n"), "{text}");
    runtap(["report", file, "gc", "--inclusive"]).expect_code(2).says("cpu");
    runtap(["report", file, "nonsense"]).expect_code(2).says("exceptions");
}

#[test]
fn heaps_are_reported_from_recordings_and_heap_graphs() {
    let _machine = beside_others();
    let folder = folder();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let recording = file("heap.nettrace", &require!(shared_data("nettrace/net10/heap-bigheap.nettrace.zst")));
    let report = runtap(["report", &recording, "heap", "--format", "json", "-n", "3"]).expect_code(0).json();
    assert_eq!((&report["schema"], &report["format"]), (&json!("runtap.heap/1"), &json!("nettrace")));
    let numbers =
        ["objects", "bytes", "complete", "kind", "partial", "lost"].map(|name| report[name].clone());
    assert_eq!(json!(numbers), json!([3_849, 2_224_949, true, "dotnet", null, 0]));
    let types = report["types"].as_array().unwrap();
    assert_eq!((types.len(), report["types_count"].as_u64().unwrap() > 100), (3, true));
    assert!(types.is_sorted_by_key(|row| std::cmp::Reverse(row["bytes"].as_u64())));
    let text =
        runtap(["report", &recording, "heap", "--sort", "count", "-n", "1"]).expect_code(0).text().to_owned();
    assert!(text.starts_with("3,849 objects, 2.2 MB"), "{text}");
    assert!(text.contains("COUNT") && text.contains("more types (-n shows more)"), "{text}");

    // A file that contains only a heap needs no kind.
    let graph = file("old.gcdump", &require!(shared_data("nettrace/test1.gcdump.zst")));
    let report = runtap(["report", &graph, "--format", "json"]).expect_code(0).json();
    assert_eq!((&report["objects"], &report["format"]), (&json!(6_481), &json!("gcdump")));
    let cut = fs::read(&graph).unwrap();
    let cut = file("cut.gcdump", &cut[..cut.len() / 2]);
    let done = runtap(["report", &cut, "heap"]);
    assert!(done.expect_code(5).stderr.contains("cut.gcdump is partial: truncated"), "{}", done.stderr);

    for (arguments, error) in [
        (&["report", &*recording][..], "a value is required for '<KIND>'"),
        (&["report", "nosuch.hprof"], "nosuch.hprof"),
        (&["report", &*recording, "gc", "--sort", "count"], "--sort and --path apply only to report heap"),
        (&["report", &*graph, "gc"], "is a heap graph (gcdump), not a recording"),
    ] {
        let done = runtap(arguments);
        assert!(done.expect_code(2).stderr.contains(error), "{}", done.stderr);
    }
    let empty = file("gc.nettrace", &require!(shared_data("nettrace/net10/meters.nettrace.zst")));
    let text = runtap(["report", &empty, "heap"]).expect_code(0).text().to_owned();
    assert!(
        text.starts_with("No objects of a heap in this recording") && text.contains("0x1980001"),
        "{text}"
    );

    // Files of different kinds can be compared too.
    let diff = runtap(["diff", &graph, &recording, "-n", "2", "--format", "json"]).expect_code(0).json();
    let sides = ["before", "after"].map(|side| diff[side]["objects"].clone());
    assert_eq!((json!(sides), &diff["schema"]), (json!([6_481, 3_849]), &json!("runtap.heap.diff/1")));
    let none = runtap(["diff", &graph, &graph]).expect_code(0).text().to_owned();
    assert!(none.ends_with("The number and size of the objects of each type are equal.\n"), "{none}");
    let partial = runtap(["diff", &graph, &cut]);
    assert!(partial.expect_code(5).stderr.contains("cut.gcdump is partial"), "{}", partial.stderr);
    let rejected = runtap(["diff", &graph, &graph, "--to", "folded"]);
    assert!(rejected.expect_code(2).stderr.contains("heaps are compared by type"), "{}", rejected.stderr);
}
