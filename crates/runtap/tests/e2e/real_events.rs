//! A session delivers what it requests: providers, kinds of runtime events, profiles, and the number of lost events.

use std::fs;

use runtap_testkit::{Peer, RealRuntime, Signal, Skip, run};
use serde_json::{Value, json};

use crate::common::{Recording, Target, count_of, counts, runtap};

on_each_runtime!(
    every_event_that_was_written_is_received,
    lost_events_are_counted,
    without_keywords_all_are_enabled,
    kinds_of_runtime_events,
    profiles_that_old_runtimes_lack_are_mended,
    the_default_is_samples_and_lightweight_events,
    an_event_of_the_runtime_ends_the_recording,
);

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Starts `storm` with a number of threads that write `count` events each on request.
fn storm(runtime: &RealRuntime, threads: &str, rate: &str, count: &str, kind: &str) -> Result<Target, Skip> {
    let arguments = [threads, rate, "64", "600", count, kind, "--stdin", "--linger", "600"];
    Ok(Target::start(runtime.program("storm", &arguments)?))
}

/// Records while the program works; returns the program's own counts, the summary and the event counts.
fn record(target: &mut Target, more: &[&str]) -> (Value, Value, Value) {
    let recording = Recording::start(target, target.temp.path().join("x.nettrace"), more);
    recording.wait_for_bytes(1);
    target.program.begin();
    let truth = target.program.truth();
    recording.runtap.signal(Signal::INT);
    let (summary, file) = recording.finish(0);
    let counts = counts(&file, 0);
    assert_eq!(
        (&summary["partial"], &summary["events"], &summary["lost"]),
        (&Value::Null, &counts["events"], &counts["lost"])
    );
    (truth, summary, counts)
}

fn sum(numbers: &Value) -> u64 {
    numbers.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).sum()
}

fn every_event_that_was_written_is_received(runtime: &RealRuntime) -> Result<(), Skip> {
    for (kind, id) in [("bytes", 1), ("string", 2), ("ints", 3)] {
        let mut target = storm(runtime, "2", "5000", "2000", kind)?;
        let (truth, summary, counts) = record(&mut target, &["--providers", "Demo-Storm:0x7:5"]);
        assert_eq!((sum(&truth["enabled_writes"]), &summary["lost"]), (4_000, &json!(0)));
        assert_eq!(count_of(&counts, "Demo-Storm", id), 4_000, "{counts:#}");
        target.still_answers();
    }
    Ok(())
}

/// The stream is not read for a while, and the buffer is small: events that do not fit are lost, and each is counted.
/// With a single thread: all events of a second one could be lost, and then their number would be unknown.
fn lost_events_are_counted(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = storm(runtime, "1", "0", "200000", "bytes")?;
    let more = ["--providers", "Demo-Storm:0x7:5", "--buffersize", "1"];
    let recording = Recording::start(&target, target.temp.path().join("x.nettrace"), &more);
    recording.wait_for_bytes(1);
    recording.runtap.signal(Signal::STOP);
    target.program.begin();
    let truth = target.program.truth();
    recording.runtap.signal(Signal::CONT);
    recording.runtap.signal(Signal::INT);
    let finished = recording.runtap.wait();
    let summary = finished.expect_code(0).says("dropped").json();
    let (written, lost) = (sum(&truth["enabled_writes"]), summary["lost"].as_u64().unwrap());
    assert!(lost > 0, "{summary:#}");
    let counts = counts(&recording.file, 0);
    assert_eq!(count_of(&counts, "Demo-Storm", 1) + lost, written, "{summary:#}");
    assert_eq!(counts["lost"], lost);
    target.still_answers();
    Ok(())
}

/// dotnet-trace enables none of them, and receives no event of this source.
fn without_keywords_all_are_enabled(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = storm(runtime, "2", "5000", "200", "bytes")?;
    let recording = Recording::start(
        &target,
        target.temp.path().join("x.nettrace"),
        &["--providers", "Demo-Storm,Demo-Other"],
    );
    recording.wait_for_bytes(1);
    target.program.begin();
    target.program.truth();
    recording.runtap.signal(Signal::INT);
    let finished = recording.runtap.wait();
    finished.expect_code(0);
    assert_eq!(finished.stderr.matches("No keywords specified").count(), 1, "said once: {finished}");
    assert_eq!(count_of(&counts(&recording.file, 0), "Demo-Storm", 1), 400);

    // Literally, 0 selects the events without keywords, of which this source has none.
    let none = target.temp.path().join("none.nettrace");
    let finished = runtap([
        "trace",
        &target.p(),
        "--providers",
        "Demo-Storm:0",
        "--duration",
        "0.1s",
        "-o",
        none.to_str().unwrap(),
    ]);
    assert!(!finished.expect_code(0).stderr.contains("No keywords specified"), "{finished}");
    assert_eq!(count_of(&counts(&none, 0), "Demo-Storm", 1), 0);
    target.still_answers();
    Ok(())
}

fn kinds_of_runtime_events(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = Target::start(runtime.program("allocs", &["10", "0", "--stdin", "--linger", "600"])?);
    let (truth, _, counts) = record(&mut target, &["--clrevents", "gc", "--clreventlevel", "informational"]);
    // GCStart: the runtime counts a collection in every generation up to its own.
    let collections = truth["collections_by_generation"][0].as_u64().unwrap();
    assert!(collections >= 10);
    assert_eq!(count_of(&counts, RUNTIME, 1), collections, "{counts:#}");
    assert_eq!(count_of(&counts, "Microsoft-DotNETCore-SampleProfiler", 0), 0);
    target.still_answers();
    Ok(())
}

/// Native events of the runtime have no names and no fields in the stream.
fn an_event_of_the_runtime_ends_the_recording(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = Target::start(runtime.program("allocs", &["600", "0", "--stdin"])?);
    let more = [
        "--clrevents=gc",
        "--clreventlevel=informational",
        "--stopping-event-provider-name",
        RUNTIME,
        "--stopping-event-event-name=GC/Start",
        "--stopping-event-payload-filter=Depth:1",
    ];
    let recording = Recording::start(&target, target.temp.path().join("x.nettrace"), &more);
    recording.wait_for_bytes(1);
    target.program.begin();
    let (_, file) = recording.finish(0);
    assert!(count_of(&counts(&file, 0), RUNTIME, 1) > 0);
    target.still_answers();
    Ok(())
}

/// The profile requests a rundown without methods, which .NET 8 does not support.
fn profiles_that_old_runtimes_lack_are_mended(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = Target::start(runtime.program("allocs", &["10", "0", "--stdin", "--linger", "600"])?);
    let (truth, summary, counts) = record(&mut target, &["--profile", "gc-collect"]);
    let collections = truth["collections_by_generation"][0].as_u64().unwrap();
    assert_eq!(count_of(&counts, RUNTIME, 1), collections, "{counts:#}");
    let downgrades = summary["downgrades"].as_array().unwrap();
    match runtime.major() {
        8 => assert_eq!(downgrades.len(), 1, "{summary:#}"),
        _ => assert!(downgrades.is_empty(), "{summary:#}"),
    }
    target.still_answers();
    Ok(())
}

/// The summary, `events --count` and TraceEvent agree on the contents of the file.
fn the_default_is_samples_and_lightweight_events(runtime: &RealRuntime) -> Result<(), Skip> {
    let tebench = Peer::available("tebench")?;
    let target = Target::start(runtime.program("spin", &["600", "20000"])?);
    let file = target.temp.path().join("x.nettrace");
    let finished = runtap([
        "trace",
        "-p",
        &target.p(),
        "--duration",
        "1s",
        "-o",
        file.to_str().unwrap(),
        "--format",
        "json",
    ]);
    let summary = finished.expect_code(0).says("dotnet-common").json();
    let bytes = fs::metadata(&file).unwrap().len();
    let members: Vec<&str> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members.len(), 11, "{members:?}");
    assert_eq!(summary["schema"], "runtap.trace/1");
    assert_eq!(summary["pid"], target.pid());
    assert_eq!(
        summary["outputs"],
        json!([{
            "path": file.to_str().unwrap(),
            "format": "nettrace",
            "bytes": bytes,
            "deep_stacks": 0,
            "cut_at_ns": null
        }])
    );
    assert_eq!(
        (&summary["bytes"], &summary["lost"], &summary["partial"]),
        (&json!(bytes), &json!(0), &Value::Null)
    );
    assert_eq!(summary["downgrades"], json!([]));
    let command = if runtime.major() == 8 { "CollectTracing2" } else { "CollectTracing" };
    assert!(summary["command"].as_str().unwrap().starts_with(command), "{summary:#}");
    assert!(summary["duration_ns"].as_u64().unwrap() >= 1_000_000_000);

    let counts = counts(&file, 0);
    assert_eq!((&counts["events"], &counts["lost"]), (&summary["events"], &summary["lost"]));
    assert_eq!((&counts["process_id"], &counts["pointer_size"]), (&json!(target.pid()), &json!(8)));
    assert!(count_of(&counts, "Microsoft-DotNETCore-SampleProfiler", 0) > 0, "{counts:#}");
    assert!(count_of(&counts, "Microsoft-Windows-DotNETRuntimeRundown", 144) > 0, "{counts:#}");

    let theirs = target.temp.path().join("theirs.json");
    let mut parse = tebench.command();
    parse.arg(&file).args(["--mode", "parse", "--counts"]).arg(&theirs);
    run(parse).expect_code(0);
    let theirs: Value = serde_json::from_slice(&fs::read(&theirs).unwrap()).unwrap();
    assert_eq!(theirs["error"], Value::Null);
    assert_eq!((&theirs["events"], &theirs["events_lost"]), (&counts["events"], &counts["lost"]));
    target.still_answers();
    Ok(())
}
