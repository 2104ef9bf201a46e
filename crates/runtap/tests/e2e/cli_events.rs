//! `events` on the recordings of the shared folder: a line for each event, and the options that select events.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use runtap_testkit::{Finished, Running, recordings, require, shared_data};
use serde_json::{Value, json};

use crate::common::{beside_others, command, counts, folder, runtap};

/// Unpacks a recording of the shared folder into a file.
fn unpacked(folder: &Path, name: &str) -> Result<PathBuf, runtap_testkit::Skip> {
    let file = folder.join("x.nettrace");
    fs::write(&file, shared_data(format!("nettrace/{name}.nettrace.zst"))?).unwrap();
    Ok(file)
}

fn lines(finished: &Finished) -> Vec<Value> {
    finished
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

#[track_caller]
fn events(file: &Path, more: &[&str]) -> Vec<Value> {
    let finished = runtap(["events", file.to_str().unwrap()].iter().chain(more));
    lines(finished.expect_code(0))
}

const MEMBERS: [&str; 18] = [
    "type",
    "ts_ns",
    "time",
    "provider",
    "name",
    "id",
    "version",
    "level",
    "keywords",
    "opcode",
    "thread",
    "capture_thread",
    "processor",
    "process",
    "activity",
    "related_activity",
    "payload",
    "stack",
];

#[test]
fn every_event_of_the_first_third_is_a_line() {
    every_event_is_a_line(0, 3);
}

#[test]
fn every_event_of_the_second_third_is_a_line() {
    every_event_is_a_line(1, 3);
}

#[test]
fn every_event_of_the_last_third_is_a_line() {
    every_event_is_a_line(2, 3);
}

/// Every event is one line with all members, ordered by time, in every recording, including truncated ones (exit code
/// 5).
fn every_event_is_a_line(nth: usize, of: usize) {
    let _machine = beside_others();
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    for recording in require!(recordings()).iter().skip(nth).step_by(of) {
        let (path, expected) = (recording.path.display(), &recording.expected);
        fs::write(&file, &recording.bytes).unwrap();
        let finished = runtap(["events", file.to_str().unwrap()]);
        finished.expect_code(if expected["end_marker"] == true { 0 } else { 5 });
        let mut found: BTreeMap<(String, u64, u64), u64> = BTreeMap::new();
        let mut last = i64::MIN;
        for line in finished.text().lines() {
            let event: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{path}: {error}: {line}"));
            let members = event.as_object().unwrap();
            assert!(MEMBERS.iter().all(|member| members.contains_key(*member)), "{path}: {line}");
            assert!(event["type"] == "event" && event["name"].is_string(), "{path}: {line}");
            assert!(!members.contains_key("payload_error"), "{path}: {line}");
            let time = event["ts_ns"].as_i64().unwrap();
            assert!(time >= last, "{path}: {last} before {line}");
            last = time;
            let provider = event["provider"].as_str().unwrap().to_owned();
            let key = (provider, event["id"].as_u64().unwrap(), event["version"].as_u64().unwrap());
            *found.entry(key).or_default() += 1;
        }
        let mut wanted: BTreeMap<(String, u64, u64), u64> = BTreeMap::new();
        for row in expected["counts"].as_array().unwrap() {
            let provider = row["provider"].as_str().unwrap().to_owned();
            let key = (provider, row["id"].as_u64().unwrap(), row["version"].as_u64().unwrap());
            *wanted.entry(key).or_default() += row["n"].as_u64().unwrap();
        }
        assert_eq!(found, wanted, "{path}");
    }
}

#[test]
fn a_line_has_the_contents_of_the_stream() {
    let folder = folder();
    let file = require!(unpacked(folder.path(), "net10/allocs"));
    let exceptions = events(&file, &["--filter", "name = Exception/Start", "--stacks"]);
    assert_eq!(exceptions.len(), 72);
    let mut first = exceptions[0].clone();
    assert_eq!(
        first["stack"].take(),
        json!([
            "System.Private.CoreLib!System.Runtime.EH.DispatchEx(value class System.Runtime.StackFrameIterator&,value \
             class ExInfo&)",
            "allocs!Program.Plain(int32)",
            "allocs!Program.Main(class System.String[])"
        ])
    );
    assert_eq!(
        first,
        json!({
            "type": "event", "ts_ns": 172_130_888, "time": "2026-11-21T10:02:22.165130888Z",
            "provider": "Microsoft-Windows-DotNETRuntime", "name": "Exception/Start", "id": 80, "version": 1,
            "level": 2, "keywords": "0x200008000", "opcode": 1, "thread": 28479, "capture_thread": 28479,
            "processor": null, "process": 28479, "activity": null, "related_activity": null,
            "payload": {
                "ExceptionType": "System.InvalidOperationException", "ExceptionMessage": "plain 0",
                "ExceptionEIP": "0x0", "ExceptionHRESULT": 2_148_734_217u32, "ExceptionFlags": 16, "ClrInstanceID": 0
            },
            "payload_names": {"ExceptionFlags": "CLSCompliant"},
            "stack": null
        })
    );
}

#[test]
fn filters_and_providers_select() {
    let folder = folder();
    let file = require!(unpacked(folder.path(), "net10/logs"));
    let messages = events(&file, &["--filter", "name = FormattedMessage and payload.Level >= 4"]);
    assert!(!messages.is_empty());
    assert!(messages.iter().all(|event| event["payload"]["Level"].as_u64().unwrap() >= 4));
    let of_two = events(&file, &["--provider", "Demo-Types,Microsoft-DotNETCore-EventPipe"]);
    let all = counts(&file, 0);
    let wanted = |row: &&Value| {
        ["Demo-Types", "Microsoft-DotNETCore-EventPipe"].map(Value::from).contains(&row["provider"])
    };
    let n: u64 =
        all["counts"].as_array().unwrap().iter().filter(wanted).map(|row| row["n"].as_u64().unwrap()).sum();
    assert_eq!(of_two.len() as u64, n);
    // The selection with counts.
    let few = runtap([
        "events",
        file.to_str().unwrap(),
        "--count",
        "--format",
        "json",
        "--provider",
        "Demo-Types",
        "--filter",
        "id < 3",
    ]);
    let few = few.expect_code(0).json();
    let rows: Vec<&str> =
        few["counts"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!((rows, &few["lost"]), (vec!["Integers", "Others"], &json!(0)));
    // The stack is resolved only for the filter.
    let file = require!(unpacked(folder.path(), "net10/cpu-spin"));
    let heavy = events(&file, &["--filter", "id = 0 and stack ~ 'A\\.Heavy'"]);
    assert_eq!(heavy.len(), 1075);
    assert!(heavy.iter().all(|event| event["stack"].is_null()));
}

#[test]
fn unknown_event_names_are_reported_with_the_nearest() {
    let folder = folder();
    let file = require!(unpacked(folder.path(), "net10/logs"));
    let file = file.to_str().unwrap();
    let all = events(Path::new(file), &["--provider", "Microsoft-Extensions-Logging"]).len();
    assert!(all > 0);
    let none = |more: &[&str]| {
        let finished = runtap(["events", file].iter().chain(more));
        assert_eq!(finished.expect_code(0).text(), "", "{more:?}");
        finished
    };
    none(&["--provider", "Microsoft-Extension-Logging"])
        .says("no event has a provider named 'Microsoft-Extension-Logging'")
        .says("did you mean 'Microsoft-Extensions-Logging'?")
        .says("matches --provider");
    none(&["--filter", "name = messagejson"])
        .says("no event is named 'messagejson'; did you mean 'MessageJson'?");
    none(&["--filter", "payload.LoggersName ~ ."])
        .says("no event has a field 'payload.LoggersName'; did you mean 'payload.LoggerName'?");
    // Values are not names, and negated fields need not exist.
    let value = none(&["--filter", "payload.LoggerName = Missing and not name = zzz"]);
    assert!(value.says("matches --filter").stderr.lines().count() == 1, "{value}");

    // A missing provider is reported although the other provider has events.
    let two = ["--provider", "Microsoft-Extensions-Logging", "--provider", "Zz"];
    let two = runtap(["events", file].iter().chain(&two));
    assert_eq!(lines(&two).len(), all);
    two.expect_code(0).says("no event has a provider named 'Zz'");
    let counted = runtap(["events", file, "--count", "--provider", "Microsoft-Extension-Logging"]);
    counted.expect_code(0).says("did you mean 'Microsoft-Extensions-Logging'?");
    // No warning about missing names is printed for other selections.
    assert_eq!(runtap(["events", file, "--filter", "name = MessageJson"]).expect_code(0).stderr, "");
}

#[test]
fn usage_errors_are_reported() {
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let wrong = runtap(["events", file, "--filter", "id = 1 and nme = 2"]);
    wrong.expect_code(2).says("did you mean 'name'? (column 12)").says("id = 1 and nme = 2\n           ^^^");
    runtap(["events", file, "--format", "speedscope"]).expect_code(2).says("invalid value 'speedscope'");
    runtap(["events", file, "--count", "--stacks"]).expect_code(2);
    runtap(["events", file, "--count", "--format", "csv"]).expect_code(2);
    runtap(["events", file]).expect_code(2).says("ends before its header");
}

#[test]
fn other_formats() {
    let folder = folder();
    let file = require!(unpacked(folder.path(), "net10/logs"));
    let path = file.to_str().unwrap();
    let text = runtap(["events", path, "--format", "text", "--filter", "name = FormattedMessage"]);
    assert!(text.expect_code(0).text().contains("  info: Demo.Orders["), "{text}");
    let csv = runtap(["events", path, "--format", "csv", "--provider", "Demo-Types"]);
    let csv = csv.expect_code(0).text();
    let mut rows = csv.split("\r\n");
    let head = MEMBERS[1..17].join(",") + ",payload_names,payload_hex,payload_error";
    assert_eq!(rows.next(), Some(head.as_str()));
    assert!(csv.contains(",Demo-Types,HighId,300,") && csv.contains(r#","{""n"":0}""#), "{csv}");
    let none = runtap(["events", path, "--format", "csv", "--provider", "Nobody"]);
    assert_eq!(none.expect_code(0).text(), head + "\r\n");
}

/// Names of stacks are at the end of a recording, so stacks cannot be read from a pipe; other fields can.
#[test]
fn a_pipe_is_read_once() {
    let folder = folder();
    let file = require!(unpacked(folder.path(), "net10/logs"));
    let from_pipe = |more: &[&str]| {
        let mut cat = std::process::Command::new("cat");
        let mut cat = cat.arg(&file).stdout(Stdio::piped()).spawn().unwrap();
        let mut command = command(["events", "/dev/stdin"].iter().chain(more));
        command.stdin(cat.stdout.take().unwrap()).stdout(Stdio::piped());
        let finished = Running::start_as_it_is(command).wait();
        cat.wait().unwrap();
        finished
    };
    assert_eq!(lines(from_pipe(&[]).expect_code(0)).len(), 139);
    from_pipe(&["--stacks"]).expect_code(2).says("Save it to a file");
}

#[test]
fn a_closed_reader_ends_events_quietly() {
    let folder = folder();
    let file = require!(unpacked(folder.path(), "net10/cpu-spin"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(["events", file.to_str().unwrap()]);
    command.stdin(Stdio::null()).stdout(writer);
    let finished = Running::start_as_it_is(command).wait();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
}

/// Enumeration values are matched by their names and shown with them.
#[test]
fn numbers_are_shown_and_matched_by_name() {
    let folder = folder();
    let file = require!(unpacked(folder.path(), "net10/allocs"));
    let induced = events(&file, &["--filter", "name = GC/Start and payload.Reason = Induced"]);
    assert_eq!(induced.len(), 11);
    assert_eq!(induced[0]["payload"]["Reason"], 1);
    assert_eq!(induced[0]["payload_names"], json!({"Reason": "Induced", "Type": "NonConcurrentGC"}));
    assert_eq!(events(&file, &["--filter", "name = GC/Start and payload.Reason != Induced"]).len(), 0);
    assert_eq!(events(&file, &["--filter", "name = GC/Start and payload.Reason = 1"]).len(), 11);
    let committed = events(&file, &["--filter", "name = GC/CommittedUsage"]);
    assert_eq!(committed[0]["payload"]["TotalCommittedInUse"], 2_740_224, "{}", committed[0]);
    let path = file.to_str().unwrap();
    let text = runtap(["events", path, "--format", "text", "--filter", "name = GC/Start"]);
    assert!(text.expect_code(0).text().contains(" Reason=1 (Induced) Type=0 (NonConcurrentGC)"), "{text}");
    // The names equal those in the lines.
    let counted = counts(&file, 0);
    let start = counted["counts"].as_array().unwrap().iter().find(|row| row["name"] == "GC/Start").unwrap();
    assert_eq!((&start["id"], &start["n"]), (&json!(1), &json!(11)));
}

/// Payload problems have their own columns, because the payload is JSON.
#[test]
fn a_payload_in_a_table_is_json() {
    let folder = folder();
    let file = require!(unpacked(folder.path(), "net10/logs"));
    let csv = runtap(["events", file.to_str().unwrap(), "--format", "csv"]);
    let csv = csv.expect_code(0).text();
    let odd: Vec<&str> = csv.lines().filter(|line| line.contains(",null,")).collect();
    assert!(!odd.is_empty() && !csv.contains("null,\"\"payload_hex"), "{csv}");
    for line in odd {
        let cells: Vec<&str> = line.split(',').collect();
        let [.., payload, names, hex, error] = cells[..] else { panic!("{line}") };
        assert_eq!((payload, names, error), ("null", "", ""), "{line}");
        assert!(!hex.is_empty() && hex.bytes().all(|digit| digit.is_ascii_hexdigit()), "{line}");
    }
}
