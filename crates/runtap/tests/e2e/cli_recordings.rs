//! `events --count` and `convert` on the recordings of the shared folder agree with other readers.

use std::fs;
use std::path::Path;

use runtap_nettrace::{EventToWrite, Metadata, TraceHeader, Writer};
use runtap_testkit::{Recording, recordings, require, shared_archive, shared_data};
use serde_json::{Value, json};

use crate::common::{beside_others, counts, folder, runtap};

/// Split into several tests, so that they run in parallel.
fn every(nth: usize, of: usize) {
    let _machine = beside_others();
    let folder = folder();
    let mut read = 0;
    for recording in require!(recordings()).iter().skip(nth).step_by(of) {
        let file = folder.path().join("recording.nettrace");
        fs::write(&file, &recording.bytes).unwrap();
        check(recording, &file);
        read += 1;
    }
    assert!(read >= 10, "only {read} recordings");
}

fn check(recording: &Recording, file: &Path) {
    let (path, expected) = (recording.path.display(), &recording.expected);
    let whole = expected["end_marker"] == true;
    let found = counts(file, if whole { 0 } else { 5 });
    assert_eq!(found["file"], file.to_str().unwrap(), "{path}");
    let format = if expected["version"] == 3 { "NetPerf" } else { "Nettrace" };
    assert_eq!((&found["format"], &found["version"]), (&json!(format), &expected["version"]), "{path}");
    for (ours, theirs) in [
        ("events", "events"),
        ("lost", "dropped_by_seq_gap"),
        ("process_id", "process_id"),
        ("pointer_size", "pointer_size"),
    ] {
        assert_eq!(found[ours], expected[theirs], "{ours} of {path}");
    }
    if whole {
        assert_eq!(found["partial"], Value::Null, "{path}");
    } else {
        assert!(
            found["partial"]["offset"].is_u64() && found["partial"]["reason"].is_string(),
            "{path}: {found}"
        );
    }
    let mut theirs = expected["counts"].as_array().unwrap().clone();
    theirs.sort_by_key(|row| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        (text("provider"), row["id"].as_u64(), row["version"].as_u64(), text("name"))
    });
    // The other readers use only names from the stream, runtap also those of the runtime's own events.
    let mut ours = found["counts"].as_array().unwrap().clone();
    for (our, their) in ours.iter_mut().zip(&theirs).filter(|(_, their)| their["name"] == "") {
        let native = our["provider"].as_str().is_some_and(|provider| provider.starts_with("Microsoft-"));
        assert!(our["name"].as_str().is_some_and(|name| name.contains('/')) || native, "{path}: {our}");
        our["name"] = their["name"].clone();
    }
    assert_eq!(ours, theirs, "{path}");
}

#[test]
fn counts_of_the_first_third() {
    every(0, 3);
}

#[test]
fn counts_of_the_second_third() {
    every(1, 3);
}

#[test]
fn counts_of_the_last_third() {
    every(2, 3);
}

#[test]
fn unsupported_versions_are_rejected_by_number() {
    let folder = folder();
    let file = folder.path().join("new.nettrace");
    fs::write(&file, b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0").unwrap();
    runtap(["events", "--count", file.to_str().unwrap()]).expect_code(2).says("version 7").says("hint:");
}

/// A truncated recording gives a partial result, a message, and exit code 5.
#[test]
fn a_truncated_recording_is_read_to_its_end() {
    let bytes = require!(shared_data("nettrace/net10/cpu-spin.nettrace.zst"));
    let folder = folder();
    let file = folder.path().join("cut.nettrace");
    let mut before = 0;
    for part in [1, 2, 3] {
        let cut = bytes.len() * part / 4;
        fs::write(&file, &bytes[..cut]).unwrap();
        let found = counts(&file, 5);
        let events = found["events"].as_u64().unwrap();
        assert!(events > before, "{events} events in {part} quarters");
        assert!(found["partial"]["offset"].as_u64().unwrap() <= cut as u64);
        before = events;
        let convert = runtap(["convert", file.to_str().unwrap(), "--to", "folded", "-o", "-"]);
        assert!(convert.expect_code(5).says("partial").text().contains(' '), "{convert}");
    }
    fs::write(&file, &bytes).unwrap();
    assert_eq!(counts(&file, 0)["partial"], Value::Null);
}

/// One conversion into all formats: file names, locations, and no overwriting.
#[test]
fn convert_writes_beside_the_recording() {
    let bytes = require!(shared_data("nettrace/net10/cpu-spin.nettrace.zst"));
    let folder = folder();
    let file = folder.path().join("my.app.nettrace");
    fs::write(&file, &bytes).unwrap();
    let all = ["--to", "speedscope", "--to", "folded", "--to", "flamegraph,chrome,perfetto,firefox,pprof"];
    let done = runtap(["convert", file.to_str().unwrap()].iter().chain(&all));
    // A line for each file, with its format and size.
    let lines: Vec<Vec<&str>> =
        done.expect_code(0).text().lines().map(|line| line.split("  ").collect()).collect();
    assert!(lines.iter().all(|line| line.len() == 3 && Path::new(line[0]).is_file()), "{done}");
    let formats: Vec<&str> = lines.iter().map(|line| line[1]).collect();
    assert_eq!(formats, ["speedscope", "folded", "flamegraph", "chrome", "perfetto", "firefox", "pprof"]);
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let of_one_name = [
        "chromium.json",
        "firefox.json.gz",
        "folded",
        "nettrace",
        "pb.gz",
        "perfetto-trace",
        "speedscope.json",
        "svg",
    ];
    assert_eq!(names, of_one_name.map(|extension| format!("my.app.{extension}")));
    assert_eq!(fs::read(&file).unwrap(), bytes, "the recording is as it was");

    let speedscope: Value =
        serde_json::from_slice(&fs::read(folder.path().join("my.app.speedscope.json")).unwrap()).unwrap();
    assert_eq!(speedscope["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let folded = fs::read_to_string(folder.path().join("my.app.folded")).unwrap();
    assert!(folded.lines().all(|line| line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok())));
    assert!(folded.contains("spin!A.Round();spin!A.Heavy();spin!Burn.Cycles(int32) "), "{folded}");
    assert!(fs::read_to_string(folder.path().join("my.app.svg")).unwrap().trim_end().ends_with("</svg>"));

    let to_stdout = runtap(["convert", file.to_str().unwrap(), "--to", "folded", "-o", "-"]);
    assert_eq!(to_stdout.expect_code(0).text(), folded);
    // dotnet-trace's name of the option, with its spelling.
    let other = folder.path().join("other.json");
    runtap(["convert", file.to_str().unwrap(), "--format", "Speedscope", "-o", other.to_str().unwrap()])
        .expect_code(0);
    assert!(other.is_file());
    runtap(["convert", file.to_str().unwrap()]).expect_code(2).says("--to");
}

/// .NET 9 marks nearly all samples as External. A default view that would be almost empty is replaced by all samples,
/// with a message; an explicitly requested view is kept.
#[test]
fn an_almost_empty_view_is_replaced_unless_requested() {
    let mut writer = Writer::new(&TraceHeader::new(0, 0, 1_000));
    let metadata = Metadata::new("Microsoft-DotNETCore-SampleProfiler", 0, "");
    let metadata_id = writer.define_event(&metadata).unwrap();
    for timestamp in 0..1_000 {
        let kind: i32 = if timestamp < 9 { 2 } else { 1 };
        let (thread_id, capture_thread_id) = (7, 1);
        let payload = &kind.to_le_bytes();
        let stack = &[0x1000];
        let event = EventToWrite {
            metadata_id,
            thread_id,
            capture_thread_id,
            timestamp,
            stack,
            payload,
            ..Default::default()
        };
        writer.event(&event).unwrap();
    }
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    fs::write(&file, writer.finish()).unwrap();
    let file = file.to_str().unwrap();
    let told = runtap(["convert", file, "--to", "folded", "-o", "-"]);
    assert_eq!(
        told.expect_code(0).says("only 9 of 1,000 samples").text(),
        "Thread (7);?!0x1000 1000000000\n"
    );
    let asked = runtap(["convert", file, "--to", "folded", "-o", "-", "--view", "cpu"]);
    assert_eq!(asked.expect_code(0).text(), "Thread (7);?!0x1000 9000000\n");
    assert!(!asked.stderr.contains("samples"), "{asked}");
}

/// Views of events, in the formats that support them.
#[test]
fn views_of_events_are_converted() {
    let bytes = require!(shared_data("nettrace/net8/gcverbose-allocs.nettrace.zst"));
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    fs::write(&file, &bytes).unwrap();
    let path = file.to_str().unwrap();
    let convert = |view: &str, to: &str| runtap(["convert", path, "--view", view, "--to", to, "-o", "-"]);

    let exceptions = convert("exceptions", "folded");
    let thrown = "allocs!Program.Main(class System.String[]);allocs!Program.Plain(int32);System.InvalidOperationException 10";
    assert!(exceptions.expect_code(0).text().lines().any(|line| line.ends_with(thrown)), "{exceptions}");
    let speedscope = convert("alloc", "speedscope").expect_code(0).json();
    assert_eq!(speedscope["profiles"][0]["unit"], "bytes");
    assert_eq!(speedscope["profiles"][0]["startValue"], 0);
    assert!(convert("alloc", "flamegraph").expect_code(0).text().contains("memory allocated"));
    assert!(convert("gc", "chrome").expect_code(0).text().contains("GC gen 2 (Induced)"));
    convert("alloc", "chrome").expect_code(2).says("no time axis").says("use speedscope");
    let merged = runtap(["convert", path, "--view", "alloc", "--merge-threads", "--to", "folded", "-o", "-"]);
    assert!(!merged.expect_code(0).text().contains("Thread ("), "{merged}");
    let beside = runtap(["convert", path, "--merge-threads", "--to", "pprof", "-o", "-"]);
    beside.expect_code(2).says("--merge-threads applies to folded and flamegraph");
    for (view, hint) in
        [("contention", "--clrevents contention"), ("jit", "--clrevents jit"), ("async", "TplEventSource")]
    {
        convert(view, "folded").expect_code(1).says(&format!("no samples in the view `{view}`")).says(hint);
    }
    runtap(["convert", path, "--view", "heap", "--to", "folded"]).expect_code(2).says("invalid value 'heap'");
}

/// A block with a damaged header looks like one of a newer format and is skipped. The target did not drop its events,
/// and the result is partial.
#[test]
fn a_skipped_block_is_reported() {
    let mut bytes = require!(shared_data("nettrace/net10/meters.nettrace.zst"));
    // The most significant byte of the minimum reader version of a block with events.
    bytes[15_691] ^= 1;
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    fs::write(&file, &bytes).unwrap();
    let count = counts(&file, 5);
    assert_eq!(count["lost"], 15, "{count:#}");
    let (at, reason) = (count["partial"]["offset"].as_u64().unwrap(), &count["partial"]["reason"]);
    assert!(reason.as_str().unwrap().starts_with("1 block is of a newer format, or damaged"), "{reason}");
    assert!((15_600..15_691).contains(&at), "{at}");
    let file = file.to_str().unwrap();
    for words in [&["events", file][..], &["report", file, "counters"], &["report", file, "loss"]] {
        let told = runtap(words);
        told.expect_code(5).says("skipped");
        assert!(!told.stderr.contains("the target dropped"), "{told}");
    }
    runtap(["report", file, "counters"])
        .says("at least 15 events missing: dropped by the target, or in blocks");
    // The table contains all lost events.
    let loss = runtap(["report", file, "loss", "--format", "json"]).expect_code(5).json();
    assert_eq!(loss["elsewhere_count"], 15, "{loss:#}");
    let table = runtap(["report", file, "loss"]);
    assert!(
        table.text().lines().any(|line| line.contains(" 15 ") && line.contains("before the first")),
        "{table}"
    );
}

/// Programs compiled ahead of time send few events, and none about collections unless there were some.
#[test]
fn missing_events_of_an_enabled_provider_did_not_occur() {
    let file = require!(shared_archive("apps/dotnet/aot/aottarget-net8.nettrace"));
    let report = |kind: &str| runtap(["report", file.to_str().unwrap(), kind]);
    let none = report("gc");
    assert!(
        none.expect_code(0).text().contains("either none occurred, or their events were not enabled"),
        "{none}"
    );
    for kind in ["cpu", "alloc", "contention", "jit"] {
        let none = report(kind);
        assert!(none.expect_code(0).text().contains("NativeAOT"), "{none}");
    }
}
