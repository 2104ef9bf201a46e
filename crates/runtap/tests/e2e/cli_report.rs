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
        fs::write(folder.path().join("it.nettrace"), &recording.bytes).unwrap();
        Self { recording, folder }
    }

    fn report(&self, kind: &str) -> Value {
        let file = self.folder.path().join("it.nettrace");
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
        let asked = RecordingFile { recording, folder: folder() };
        if wants(&asked) {
            test(&RecordingFile::new(recording));
            tested += 1;
        }
    }
    assert!(tested >= at_least, "only {tested} recordings");
}

/// A table of zeros would claim that nothing happened, so the report explains how to record the events instead.
#[test]
fn of_what_is_not_in_a_recording_a_sentence_says_so() {
    // Event counters only.
    each(
        1,
        |asked| asked.is("console-net8.nettrace"),
        |asked| {
            let file = asked.folder.path().join("it.nettrace");
            let file = file.to_str().unwrap();
            for (kind, subject, advice) in [
                ("cpu", "no samples in the view 'cpu'", "dotnet-sampled-thread-time"),
                ("gc", "no collections", "--clrevents gc'"),
                ("alloc", "no allocations", "--profile gc-verbose"),
                ("exceptions", "no exceptions", "--clrevents exception"),
                ("contention", "no waits for locks", "--clrevents contention"),
                ("jit", "no compiled methods", "--clrevents jit"),
                ("threadpool", "no thread pool events", "--clrevents threading"),
                ("http", "no HTTP requests", "System.Net.Http"),
                ("logs", "no log messages", "Microsoft-Extensions-Logging"),
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
        |asked| asked.program() == "allocs" && asked.count(RUNTIME, 1) > 0,
        |asked| {
            let report = asked.report("gc");
            let by_generation = &report["collections_by_generation"];
            assert_eq!(by_generation, asked.truth("collections_by_generation"), "{asked}");
            assert_eq!(report["collections_count"], by_generation[0], "{asked}");
            let induced: u64 = ["induced_gen0", "induced_gen1", "induced_gen2"]
                .map(|name| asked.truth(name).as_u64().unwrap())
                .iter()
                .sum();
            assert!(report["induced_count"].as_u64().unwrap() >= induced, "{asked}");
            for collection in rows(&report, "collections") {
                assert!(collection["heap_after"]["total_bytes"].as_u64() > Some(0), "{asked}: {collection}");
                let [pause, duration] = ["pause_ns", "duration_ns"].map(|name| collection[name].as_u64());
                assert!(
                    pause >= duration && duration > Some(0),
                    "{asked}: they stop the program: {collection}"
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
        |asked| asked.program() == "allocs" && asked.count(RUNTIME, 80) > 0,
        |asked| {
            let report = asked.report("exceptions");
            assert_eq!(report["thrown_count"], *asked.truth("exceptions_thrown"), "{asked}");
            let of_type = |row: &Value| {
                let name = row["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
                (name, row["thrown_count"].clone())
            };
            for (name, n) in rows(&report, "types").map(of_type) {
                assert_eq!(n, *asked.truth(&name), "{asked}: {name}");
            }
            assert_eq!(rows(&report, "types").count(), 6, "{asked}");
            // .NET 9 and later do not report them.
            let told = asked.recording.expected["runtime"].as_str().unwrap().starts_with("8.");
            let rethrown = if told { asked.truth("rethrows").clone() } else { Value::Null };
            assert_eq!(report["rethrown_count"], rethrown, "{asked}");
            assert_eq!(rows(&report, "exceptions").count() as u64, asked.count(RUNTIME, 80), "{asked}");
        },
    );
}

#[test]
fn allocations() {
    each(
        1,
        |asked| asked.program() == "allocs" && asked.count(RUNTIME, 10) > 0,
        |asked| {
            let report = asked.report("alloc");
            let truth = asked.truth("allocated_bytes").as_u64().unwrap();
            let estimate = report["allocated_bytes"].as_u64().unwrap();
            // The runtime's startup allocates too, and the last 100 kB of each heap are not reported.
            assert!(
                estimate * 10 > truth * 9 && estimate * 10 < truth * 12,
                "{asked}: {estimate} of {truth}"
            );
            assert_eq!(report["samples_count"], asked.count(RUNTIME, 10), "{asked}");
            assert_eq!(sum(&report, "types", "allocated_bytes"), estimate, "{asked}");
            let mut first: Vec<_> = rows(&report, "types").take(2).map(|row| row["type"].clone()).collect();
            first.sort_by_key(Value::to_string);
            assert_eq!(first, [json!("SmallObject"), json!("System.Byte[]")], "{asked}");
        },
    );
}

#[test]
fn locks() {
    each(
        1,
        |asked| asked.program() == "allocs" && asked.count(RUNTIME, 81) > 0,
        |asked| {
            let report = asked.report("contention");
            // The program's own locks; the runtime has a few more.
            let n = report["contentions_count"].as_u64().unwrap();
            assert!(n >= asked.truth("lock_contention_count").as_u64().unwrap(), "{asked}: {n}");
            assert_eq!(n, asked.count(RUNTIME, 81), "{asked}");
            assert_eq!(sum(&report, "sites", "contentions_count"), n, "{asked}");
            let first = rows(&report, "sites").next().unwrap();
            assert_eq!(first["module"], "allocs", "{asked}");
            assert!(
                first["contentions_count"].as_u64() >= asked.truth("contention_rounds").as_u64(),
                "{asked}"
            );
        },
    );
}

#[test]
fn the_thread_pool() {
    each(
        1,
        |asked| asked.program() == "allocs" && asked.count(RUNTIME, 50) > 0 && asked.count(RUNTIME, 59) > 0,
        |asked| {
            let report = asked.report("threadpool");
            assert_eq!(report["min_workers_count"], *asked.truth("pool_min_threads"), "{asked}");
            assert_eq!(report["workers_last_count"], *asked.truth("pool_threads_after"), "{asked}");
            // Blocking items make the pool short of threads, until each has one.
            let short = asked.truth("pool_blocked_items").as_u64().unwrap()
                - asked.truth("pool_min_threads").as_u64().unwrap();
            assert_eq!(report["starvation_count"], short, "{asked}");
        },
    );
}

/// The program prints for each series the number of its event, its values in the event's order, and its id.
#[test]
fn meters() {
    each(
        2,
        |asked| asked.recording.expected["last_values"].as_object().is_some_and(|all| !all.is_empty()),
        |asked| {
            let report = asked.report("counters");
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
            let theirs = asked.recording.expected["last_values"].as_object().unwrap();
            let mut kinds = std::collections::BTreeSet::new();
            for (key, theirs) in theirs {
                let ours = ours.get(key).unwrap_or_else(|| panic!("{asked}: {key} is not there"));
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
                        assert_eq!(ours["quantiles"], quantiles, "{asked}: {key}");
                        let sum = asked.truth(&format!("latency_{route}_sum"));
                        assert_eq!(ours["sum"].as_f64(), sum.as_f64(), "{asked}: {key}");
                        let count = match route {
                            "a" => asked.truth("latency_a_count"),
                            _ => asked.truth("rounds"),
                        };
                        assert_eq!(&ours["count"], count, "{asked}: {key}");
                        assert!(ours["count"].as_f64() >= Some(value(2)), "{asked}: {key}");
                        "histogram"
                    }
                    Some(5) => {
                        assert_eq!(ours["value"].as_f64(), Some(value(1)), "{asked}: {key}");
                        "gauge"
                    }
                    id => {
                        assert_eq!(ours["delta"].as_f64(), Some(value(1)), "{asked}: {key}");
                        if theirs[2].is_string() {
                            assert_eq!(ours["value"].as_f64(), Some(value(2)), "{asked}: {key}");
                        }
                        if id == Some(4) { "rate" } else { "updown" }
                    }
                };
                assert_eq!(ours["kind"], kind, "{asked}: {key}");
                kinds.insert(kind);
            }
            assert!(!kinds.is_empty(), "{asked}");
        },
    );
}

#[test]
fn event_counters() {
    each(
        1,
        |asked| asked.program() == "meters" && asked.is("net10/eventcounters.nettrace"),
        |asked| {
            let report = asked.report("counters");
            let total = rows(&report, "series").find(|series| series["name"] == "total").unwrap();
            assert_eq!((&total["provider"], &total["kind"]), (&json!("Demo-Counters"), &json!("rate")));
            // 7 per round, of which the first and last may not be in a complete interval.
            assert_eq!(total["total"].as_f64(), asked.truth("ec_total").as_f64(), "{asked}");
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
        |asked| asked.program() == "logs" && asked.is("net8/logs.nettrace"),
        |asked| {
            let report = asked.report("logs");
            let truth = |name| asked.truth(name).as_u64().unwrap();
            let by_level: Vec<u64> = asked
                .truth("orders_by_level")
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_u64().unwrap())
                .collect();
            // The event source does not forward the level Trace.
            assert_eq!(report["messages_count"], truth("log_messages") - by_level[0], "{asked}");
            assert_eq!(report["scopes_count"], truth("log_scopes"), "{asked}");
            assert_eq!(report["exceptions_count"], truth("exceptions"), "{asked}");
            for (level, n) in
                ["Debug", "Information", "Warning", "Error", "Critical"].iter().zip(&by_level[1..])
            {
                let found = rows(&report, "by_level")
                    .find(|row| row["level"] == *level && row["category"] == "Demo.Orders")
                    .map(|row| &row["messages_count"]);
                assert_eq!(found, Some(&json!(n)), "{asked}: {level}");
            }
        },
    );
}

#[test]
fn http_requests() {
    each(
        1,
        |asked| asked.program() == "web",
        |asked| {
            let report = asked.report("http");
            for side in ["server", "client"] {
                for name in ["fast", "slow", "throw", "alloc"] {
                    let row = rows(&report, "endpoints")
                        .find(|row| row["side"] == side && row["path"].as_str().unwrap().ends_with(name))
                        .unwrap_or_else(|| panic!("{asked}: {side} {name}"));
                    assert_eq!(row["requests_count"], *asked.truth(name), "{asked}: {side} {name}");
                    assert_eq!(row["durations"]["timed_count"], row["requests_count"], "{asked}: {row}");
                    let fails = side == "server" && name == "throw";
                    let failed = if fails { asked.truth(name).clone() } else { json!(0) };
                    assert_eq!(row["failed_count"], failed, "{asked}: {side} {name}");
                    let status = if name == "throw" { "500" } else { "200" };
                    let statuses =
                        if side == "client" { json!({status: asked.truth(name)}) } else { json!({}) };
                    assert_eq!(row["statuses"], statuses, "{asked}: {side} {name}");
                }
            }
            assert_eq!(report["client_error_statuses_count"], *asked.truth("throw"), "{asked}");
            let slow = rows(&report, "endpoints").find(|row| row["path"] == "/slow").unwrap();
            assert!(slow["durations"]["p50_ns"].as_u64() > Some(10_000_000), "{asked}: it sleeps: {slow}");
        },
    );
}

#[test]
fn compiled_methods() {
    each(
        2,
        |asked| asked.truth("dynamic_methods").is_u64() && asked.count(RUNTIME, 143) > 0,
        |asked| {
            let report = asked.report("jit");
            let count = |start: &str| {
                let names = rows(&report, "methods").map(|row| row["name"].as_str().unwrap());
                names.filter(|name| name.starts_with(start)).count() as u64
            };
            assert_eq!(
                count("dynamicClass.dm_"),
                asked.truth("dynamic_methods").as_u64().unwrap(),
                "{asked}"
            );
            assert_eq!(count("Gen.T"), asked.truth("emitted_methods").as_u64().unwrap(), "{asked}");
            assert_eq!(report["compiled_count"], rows(&report, "methods").count(), "{asked}");
        },
    );
}

#[test]
fn events_and_losses() {
    each(
        30,
        |_| true,
        |asked| {
            let report = asked.report("loss");
            let expected = &asked.recording.expected;
            assert_eq!(report["lost_count"], expected["dropped_by_seq_gap"], "{asked}");
            assert_eq!(report["received_count"], expected["events"], "{asked}");
            assert_eq!(sum(&report, "threads", "received_count"), expected["events"].as_u64().unwrap());
            let report = asked.report("events");
            assert_eq!(report["events_count"], expected["events"], "{asked}");
            assert_eq!(sum(&report, "events", "events_count"), expected["events"].as_u64().unwrap());
        },
    );
}

#[test]
fn samples() {
    each(
        5,
        |asked| {
            asked.count("Microsoft-DotNETCore-SampleProfiler", 0) > 0 && asked.recording.bytes.len() < 1 << 20
        },
        |asked| {
            let file = asked.folder.path().join("it.nettrace");
            let arguments =
                ["report", file.to_str().unwrap(), "cpu", "--view", "thread-time", "--format", "json"];
            let code = if asked.recording.expected["end_marker"] == true { 0 } else { 5 };
            let report = runtap(arguments).expect_code(code).json();
            assert_eq!(report["samples"], asked.count("Microsoft-DotNETCore-SampleProfiler", 0), "{asked}");
            assert_eq!(sum(&report, "threads", "samples"), report["samples"].as_u64().unwrap(), "{asked}");
            assert!(sum(&report, "frames", "self") <= sum(&report, "threads", "total"), "{asked}");
        },
    );
}

#[test]
fn tables_are_short_and_say_what_is_missing() {
    let recordings = require!(recordings());
    let recording = recordings
        .iter()
        .find(|it| RecordingFile { recording: it, folder: folder() }.is("net8/exceptions.nettrace"));
    let asked = RecordingFile::new(recording.unwrap());
    let file = asked.folder.path().join("it.nettrace");
    let file = file.to_str().unwrap();
    let table = runtap(["report", file, "exceptions", "-n", "2"]);
    let text = table.expect_code(0).text();
    assert_eq!(text.lines().count(), 2 + 4 + 1 + 4, "{text}");
    assert!(text.contains("\n… and 4 more types (-n shows more)\n"), "{text}");
    runtap(["report", file, "gc", "--inclusive"]).expect_code(2).says("cpu");
    runtap(["report", file, "nonsense"]).expect_code(2).says("exceptions");
}
