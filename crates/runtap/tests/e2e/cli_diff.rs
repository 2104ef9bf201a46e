//! `diff` of recordings whose difference can be counted by hand, and of real recordings.

use std::fs;
use std::path::{Path, PathBuf};

use runtap_nettrace::{EventToWrite, Metadata, TraceHeader, Writer};
use runtap_testkit::{require, shared_data};
use serde_json::{Value, json};

use crate::common::{folder, runtap};

const METHODS: [&str; 4] = ["Main", "Parse", "Render", "Save"];
const CODE: u64 = 0x1000;
const CODE_SIZE: u32 = 0x100;

/// Writes a recording of one thread with a sample per millisecond: the given number in each method, called by the first
/// method.
fn recording(folder: &Path, name: &str, samples: [u64; 4]) -> PathBuf {
    recording_of(folder, name, samples, [0; 4])
}

/// Like [`recording`], followed by samples that are marked as outside of managed code.
fn recording_of(folder: &Path, name: &str, managed: [u64; 4], external: [u64; 4]) -> PathBuf {
    let mut writer = Writer::new(&TraceHeader::new(0, 0, 1_000_000_000));
    let sample = writer.define_event(&Metadata::new("Microsoft-DotNETCore-SampleProfiler", 0, "")).unwrap();
    let method =
        writer.define_event(&Metadata::new("Microsoft-Windows-DotNETRuntimeRundown", 144, "")).unwrap();
    let mut event = EventToWrite { thread_id: 7, capture_thread_id: 1, ..Default::default() };
    let start = |method: usize| CODE + method as u64 * u64::from(CODE_SIZE);
    let of_kind = |kind: i32, samples: [u64; 4]| samples.into_iter().enumerate().map(move |it| (kind, it));
    for (kind, (called, times)) in of_kind(2, managed).chain(of_kind(1, external)) {
        let stack = [start(called) + 0x10, start(0) + 0x20];
        let stack = if called == 0 { &stack[1..] } else { &stack[..] };
        for _ in 0..times {
            event.timestamp += 1_000_000;
            let payload = kind.to_le_bytes();
            writer.event(&EventToWrite { metadata_id: sample, stack, payload: &payload, ..event }).unwrap();
        }
    }
    for (index, name) in METHODS.iter().enumerate() {
        let mut payload = Vec::new();
        for value in [1 + index as u64, 1, start(index)] {
            payload.extend_from_slice(&value.to_le_bytes());
        }
        for value in [CODE_SIZE, 0, 8] {
            payload.extend_from_slice(&value.to_le_bytes());
        }
        for text in ["App.Program", name, "void ()"] {
            payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        }
        payload.extend_from_slice(&[0; 10]);
        writer.event(&EventToWrite { metadata_id: method, payload: &payload, ..event }).unwrap();
    }
    let file = folder.join(name);
    fs::write(&file, writer.finish()).unwrap();
    file
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn a_longer_recording_is_compared_by_shares() {
    let folder = folder();
    let before = recording(folder.path(), "before.nettrace", [0, 600, 250, 150]);
    let after = recording(folder.path(), "after.nettrace", [0, 900, 560, 540]);
    let [before, after] = [&before, &after].map(|file| file.to_str().unwrap());
    let result = runtap(["diff", before, after]);
    let text = result.expect_code(0).text();
    assert!(text.contains("before.nettrace  1,000 samples, 1,000 ms in 1 thread"), "{text}");
    assert!(text.contains("after.nettrace  2,000 samples, 2,000 ms in 1 thread"), "{text}");
    let rows: Vec<_> = text.lines().filter(|line| line.contains("?!App.")).map(words).collect();
    assert_eq!(rows.len(), 3, "Main has no share of its own, before and after: {text}");
    let parse = ["60.0", "45.0", "-15.0", "3.7", "60.0", "45.0", "-15.0", "3.7", "?!App.Program.Parse()"];
    assert_eq!(rows[0], parse);
    assert_eq!((rows[1][2], rows[1][8]), ("+12.0", "?!App.Program.Save()"));
    assert_eq!((rows[2][2], rows[2][8]), ("~+3.0", "?!App.Program.Render()"));

    let absolute = runtap(["diff", before, after, "--absolute", "--inclusive", "-n", "1"]);
    let text = absolute.expect_code(0).text();
    let rows: Vec<_> = text.lines().filter(|line| line.contains("?!App.")).map(words).collect();
    let main = ["0", "ms", "0", "ms", "+0", "ms", "1,000", "ms", "2,000", "ms", "+1,000", "ms"];
    assert_eq!(rows[0][..12], main, "{text}");
    assert!(text.contains("… and 3 more frames (-n shows more)"), "{text}");
}

#[test]
fn the_extension_of_the_output_selects_the_format() {
    let folder = folder();
    let before = recording(folder.path(), "before.nettrace", [0, 6, 3, 1]);
    let after = recording(folder.path(), "after.nettrace", [0, 5, 3, 2]);
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let diff =
        |name: &str| runtap(["diff", before.to_str().unwrap(), after.to_str().unwrap(), "-o", &out(name)]);
    for (name, starts) in [("d.svg", "<?xml"), ("d.folded", "?!App."), ("D.SVG", "<?xml")] {
        diff(name).expect_code(0);
        let text = fs::read_to_string(out(name)).unwrap();
        assert!(text.starts_with(starts), "{name}: {text}");
    }
    diff("d.nettrace").expect_code(2).says("folded or flamegraph");
    diff("d.xyz").expect_code(2).says("--to");
}

/// .NET 8 marks two thirds of a thread's computing time as waiting when the machine is busy.
#[test]
fn an_incomplete_view_is_reported() {
    let folder = folder();
    let sound = recording_of(folder.path(), "sound.nettrace", [0, 60, 0, 0], [0, 2, 900, 0]);
    let doubtful = recording_of(folder.path(), "doubtful.nettrace", [0, 35, 0, 0], [0, 65, 900, 0]);
    let [sound, doubtful] = [&sound, &doubtful].map(|file| file.to_str().unwrap());
    let out = folder.path().join("x.folded");
    let out = out.to_str().unwrap();
    let verbs: [&[&str]; 3] =
        [&["report", doubtful, "cpu"], &["convert", doubtful, "-o", out], &["diff", sound, doubtful]];
    for words in verbs {
        let told = runtap(words);
        told.expect_code(0)
            .says("shows 35 samples and excludes 65 samples in these same methods")
            .says("thread-time");
        assert_eq!(told.stderr.matches("marked them as waiting").count(), 1, "{told}");
        let insists = runtap(words.iter().chain(&["--view", "cpu"]));
        assert!(!insists.expect_code(0).stderr.contains("marked them as waiting"), "{insists}");
    }
    let told = runtap(["report", sound, "cpu"]);
    assert!(!told.expect_code(0).stderr.contains("warning"), "{told}");
}

#[test]
fn the_document_has_samples_and_margins() {
    let folder = folder();
    let before = recording(folder.path(), "before.nettrace", [10, 60, 25, 15]);
    let after = recording(folder.path(), "after.nettrace", [0, 44, 26, 30]);
    let [before, after] = [&before, &after].map(|file| file.to_str().unwrap());
    let document = runtap(["diff", before, after, "--format", "json"]).expect_code(0).json();
    assert_eq!(document["schema"], "runtap.diff/1");
    assert_eq!((&document["view"], &document["unit"]), (&json!("cpu"), &json!("nanoseconds")));
    assert_eq!((&document["normalized"], &document["frames_count"]), (&json!(true), &json!(4)));
    assert_eq!(document["before"]["samples"], 110);
    assert_eq!(document["after"]["total"], 100_000_000);
    assert_eq!((&document["after"]["threads"], &document["after"]["partial"]), (&json!(1), &Value::Null));
    let frames = document["frames"].as_array().unwrap();
    let save = frames.iter().find(|frame| frame["name"] == "App.Program.Save()").unwrap();
    assert_eq!(save["before"]["self_samples"], 15);
    assert_eq!(save["after"]["self"], 30_000_000);
    assert_eq!(save["self_share"]["significant"], true, "{save}");
    let render = frames.iter().find(|frame| frame["name"] == "App.Program.Render()").unwrap();
    assert_eq!(render["self_share"]["significant"], false, "25 of 110 and 26 of 100 are the same: {render}");
    assert!(render["self_share"]["margin"].as_f64().unwrap() > 0.1, "{render}");
    let main = frames.iter().find(|frame| frame["name"] == "App.Program.Main()").unwrap();
    assert_eq!((&main["total_share"]["before"], &main["total_share"]["after"]), (&json!(1.0), &json!(1.0)));
}

#[test]
fn the_stacks_are_written_beside_the_second_recording() {
    let folder = folder();
    let before = recording(folder.path(), "before.nettrace", [0, 60, 25, 15]);
    let after = recording(folder.path(), "after.nettrace", [0, 90, 50, 60]);
    let [before, after] = [&before, &after].map(|file| file.to_str().unwrap());
    let result = runtap(["diff", before, after, "--to", "folded,flamegraph", "--format", "json"]);
    let outputs = result.expect_code(0).json()["outputs"].clone();
    assert_eq!(outputs.as_array().map(Vec::len), Some(2));
    let folded = fs::read_to_string(folder.path().join("after.diff.folded")).unwrap();
    assert!(folded.contains("?!App.Program.Main();?!App.Program.Parse() 120000000 90000000\n"), "{folded}");
    let svg = fs::read_to_string(folder.path().join("after.diff.svg")).unwrap();
    assert!(svg.contains("before.nettrace → after.nettrace"));
    let to_stdout = runtap(["diff", before, after, "--to", "folded", "-o", "-"]);
    assert_eq!(to_stdout.expect_code(0).text(), folded);

    runtap(["diff", before, after, "--to", "pprof"]).expect_code(2).says("folded or flamegraph");
    runtap(["diff", before, after, "-o", "x"]).expect_code(2).says("--to");
    runtap(["diff", before, "missing.nettrace"]).expect_code(2).says("missing.nettrace");
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    fs::write(&file, require!(shared_data("nettrace/net10/cpu-spin.nettrace.zst"))).unwrap();
    let file = file.to_str().unwrap();
    assert!(runtap(["diff", file, file]).expect_code(0).text().contains("no frame changed"));
    let document = runtap(["diff", file, file, "--format", "json"]).expect_code(0).json();
    let frames = document["frames"].as_array().unwrap();
    assert!(frames.iter().all(|f| f["self_share"]["change"] == 0.0 && f["before"] == f["after"]));
    assert!(frames.iter().any(|frame| frame["module"] == "spin" && frame["name"] == "Burn.Cycles(int32)"));

    // Views of events have counts, but no margins.
    let file = folder.path().join("y.nettrace");
    fs::write(&file, require!(shared_data("nettrace/net8/gcverbose-allocs.nettrace.zst"))).unwrap();
    let file = file.to_str().unwrap();
    let document = runtap(["diff", file, file, "--view", "alloc", "--format", "json"]).expect_code(0).json();
    assert_eq!(
        (&document["unit"], &document["frames"][0]["self_share"]["margin"]),
        (&json!("bytes"), &Value::Null)
    );
}

#[test]
fn half_a_recording_gives_a_result_and_the_code_for_it() {
    let folder = folder();
    let bytes = require!(shared_data("nettrace/net10/cpu-spin.nettrace.zst"));
    let [whole, cut] = ["whole.nettrace", "cut.nettrace"].map(|name| folder.path().join(name));
    fs::write(&whole, &bytes).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let result = runtap(["diff", whole.to_str().unwrap(), cut.to_str().unwrap(), "--format", "json"]);
    let document = result.expect_code(5).says("cut.nettrace is partial").json();
    assert!(document["after"]["partial"]["offset"].is_u64(), "{document}");
    assert_eq!(document["before"]["partial"], Value::Null);
}
