//! Details of a session: event filters, stacks, the rundown, the buffer; features that a runtime is too old for are
//! reported.

use std::collections::BTreeSet;
use std::path::Path;

use runtap_testkit::{RealRuntime, Signal, Skip};
use serde_json::Value;

use crate::common::{Recording, Target, count_of, counts, runtap};

on_each_runtime!(
    only_these_events_come,
    excluded_events_are_not_sent,
    no_stacks_are_recorded,
    the_rundown_is_as_requested,
    a_runtime_that_cannot_be_suspended_is_reported,
    arguments_reach_a_provider_as_they_were_typed,
    a_file_of_a_running_recording_is_not_used_by_another,
);

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Records `allocs`, which collects garbage and throws, from before its work until it exits.
fn record(runtime: &RealRuntime, more: &[&str]) -> Result<(Target, Value, std::path::PathBuf), Skip> {
    let mut target = Target::start(runtime.program("allocs", &["4", "2", "--stdin", "--linger", "600"])?);
    let recording = Recording::start(&target, target.temp.path().join("x.nettrace"), more);
    recording.wait_for_bytes(1);
    target.program.begin();
    target.program.truth();
    recording.runtap.signal(Signal::INT);
    let (summary, file) = recording.finish(0);
    assert_eq!(summary["partial"], Value::Null);
    target.still_answers();
    Ok((target, summary, file))
}

fn downgrades(summary: &Value) -> String {
    let list = summary["downgrades"].as_array().unwrap().iter();
    list.map(|text| text.as_str().unwrap()).collect::<Vec<_>>().join("; ")
}

/// Returns the ids of the runtime's events in a file.
fn ids(file: &Path) -> BTreeSet<u64> {
    let counts = counts(file, 0);
    let rows = counts["counts"].as_array().unwrap().iter().filter(|row| row["provider"] == RUNTIME);
    rows.map(|row| row["id"].as_u64().unwrap()).collect()
}

/// 1 is the start of a collection, 2 its end, 80 an exception.
fn only_these_events_come(runtime: &RealRuntime) -> Result<(), Skip> {
    let filter = format!("{RUNTIME}=1,80-90");
    let (_target, summary, file) =
        record(runtime, &["--clrevents", "gc+exception", "--event-filter", &filter])?;
    let ids = ids(&file);
    assert!(ids.contains(&1) && ids.contains(&80), "{ids:?}");
    if runtime.major() >= 10 {
        assert_eq!((ids.len(), downgrades(&summary).as_str()), (2, ""), "{ids:?}");
    } else {
        assert!(ids.contains(&2), "{ids:?}");
        assert_eq!(downgrades(&summary), format!("this runtime does not apply event filters: {RUNTIME}"));
    }
    Ok(())
}

/// 4 has the sizes of the heap. (Without 1 the runtime does not even check whether most other GC events are enabled.)
fn excluded_events_are_not_sent(runtime: &RealRuntime) -> Result<(), Skip> {
    let filter = format!("{RUNTIME}=!4,6-7");
    let (_target, _, file) = record(runtime, &["--clrevents", "gc", "--event-filter", &filter])?;
    let ids = ids(&file);
    assert!(ids.contains(&1) && ids.contains(&2), "{ids:?}");
    assert_eq!(ids.contains(&4), runtime.major() < 10, "{ids:?}");
    // A filter for a provider that is not recorded is an error.
    let wrong = ["trace", "-p", "1", "--clrevents", "gc", "--event-filter", "Other=1"];
    runtap(wrong).expect_code(2).says("Other is not recorded");
    Ok(())
}

fn no_stacks_are_recorded(runtime: &RealRuntime) -> Result<(), Skip> {
    let (_target, summary, file) = record(runtime, &["--clrevents", "exception", "--no-stackwalk"])?;
    let events = runtap(["events", file.to_str().unwrap(), "--stacks", "--provider", RUNTIME]);
    let thrown =
        events.expect_code(0).text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let frames: Vec<usize> = thrown
        .filter(|event| event["id"] == 80)
        .map(|event| event["stack"].as_array().map_or(0, Vec::len))
        .collect();
    assert!(!frames.is_empty());
    if runtime.major() >= 9 {
        assert!(frames.iter().all(|frames| *frames == 0), "{frames:?}");
    } else {
        assert!(frames.iter().all(|frames| *frames > 0), "{frames:?}");
        assert_eq!(downgrades(&summary), "this runtime cannot disable stacks");
    }
    Ok(())
}

/// 144 is a method, 152 a module: with only the loader's keyword there are no methods.
fn the_rundown_is_as_requested(runtime: &RealRuntime) -> Result<(), Skip> {
    let (_target, summary, file) = record(runtime, &["--clrevents", "gc", "--rundown-keyword", "0x8"])?;
    let told = |id| count_of(&counts(&file, 0), RUNDOWN, id);
    assert!(told(152) + told(154) > 0, "modules are told");
    if runtime.major() >= 9 {
        assert_eq!((told(144), downgrades(&summary).as_str()), (0, ""));
    } else {
        assert!(told(144) > 0, "the standard one");
        assert!(downgrades(&summary).contains("the standard rundown is sent"), "{summary:#}");
    }
    let (_target, _, file) = record(runtime, &["--clrevents", "gc", "--rundown-keyword", "0"])?;
    assert_eq!(count_of(&counts(&file, 0), RUNDOWN, 144), 0);
    Ok(())
}

/// The source that converts the output of a `DiagnosticListener` to events has specifications with `=` and `;`, at
/// which the runtime splits unquoted arguments.
fn arguments_reach_a_provider_as_they_were_typed(runtime: &RealRuntime) -> Result<(), Skip> {
    const SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";
    const SPECIFICATIONS: &str = "Evil.Listener/Evil.Event.Before:-Text=Command.CommandText;Number=Id\nEvil.Listener/Evil.Event.After:-Outcome=Result";
    const TEXT: &str = "select 1, \"a\"; -- c\nfrom t";
    let target = Target::start(runtime.reported_program("evil", &["diag", "600"])?);
    // Without quotes, and with the quotes that other tools require.
    for quote in ["", "\""] {
        let providers = format!("{SOURCE}:2:5:FilterAndPayloadSpecs={quote}{SPECIFICATIONS}{quote}");
        let file = target.temp.path().join(format!("{}.nettrace", quote.len()));
        let recording = Recording::start(&target, file, &["--providers", &providers, "--rundown", "false"]);
        recording.wait_for_bytes(20_000);
        recording.runtap.signal(Signal::INT);
        let (_, file) = recording.finish(0);
        let events = runtap(["events", file.to_str().unwrap(), "--filter", "name = Event"]);
        let events: Vec<Value> =
            events.expect_code(0).text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let arguments = |event: &Value| -> Vec<(String, String)> {
            let list = event["payload"]["Arguments"].as_array().unwrap().iter();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            list.map(|pair| (text(&pair["Key"]), text(&pair["Value"]))).collect()
        };
        let (mut before, mut after) = (0, 0);
        for event in &events {
            let arguments = arguments(event);
            let keys: Vec<&str> = arguments.iter().map(|(key, _)| key.as_str()).collect();
            if event["payload"]["EventName"] == "Evil.Event.Before" {
                assert_eq!((&keys[..], arguments[0].1.as_str()), (&["Text", "Number"][..], TEXT), "{event}");
                assert!(arguments[1].1.parse::<u64>().is_ok(), "{event}");
                before += 1;
            } else {
                assert_eq!((&keys[..], arguments[0].1.as_str()), (&["Outcome"][..], "ok"), "{event}");
                after += 1;
            }
        }
        assert!(before > 2 && after > 2, "{before} and {after} events with quote {quote:?}");
    }
    Ok(())
}

fn a_file_of_a_running_recording_is_not_used_by_another(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = Target::start(runtime.program("allocs", &["4", "2", "--stdin", "--linger", "600"])?);
    let file = target.temp.path().join("x.nettrace");
    let first = Recording::start(&target, file.clone(), &["--clrevents", "gc+exception"]);
    first.wait_for_bytes(1);
    let second =
        runtap(["trace", "-p", &target.p(), "-o", file.to_str().unwrap(), "--clrevents", "exception"]);
    assert!(second.code().is_some_and(|code| code != 0), "{second}");
    second.says(&format!("process {} is writing to it", first.runtap.id()));
    target.program.begin();
    target.program.truth();
    first.runtap.signal(Signal::INT);
    let (summary, file) = first.finish(0);
    assert_eq!(summary["partial"], Value::Null);
    let ids = ids(&file);
    assert!(ids.contains(&1) && ids.contains(&80), "{ids:?}");
    // The second recording leaves no file, and the name is free for the next.
    let left: Vec<_> =
        std::fs::read_dir(target.temp.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let of_ours = left.iter().filter(|name| name.to_string_lossy().contains("nettrace")).count();
    assert_eq!(of_ours, 1, "{left:?}");
    let third = Recording::start(&target, file, &["--clrevents", "gc", "--duration", "100ms"]);
    third.finish(0);
    target.still_answers();
    Ok(())
}

fn a_runtime_that_cannot_be_suspended_is_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let (_target, summary, _) = record(runtime, &["--clrevents", "gc", "--buffering", "Block"])?;
    assert!(downgrades(&summary).contains("this runtime cannot block writers"), "{summary:#}");
    Ok(())
}
