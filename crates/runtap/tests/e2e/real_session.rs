//! The finer points of a session: event filters, stacks, the rundown, the buffer; what a runtime is too old for is said.

use std::collections::BTreeSet;
use std::path::Path;

use runtap_testkit::{RealRuntime, Signal, Skip};
use serde_json::Value;

use crate::common::{Recording, Target, count_of, counts, runtap};

on_each_runtime!(
    only_these_events_come,
    all_but_these_events_come,
    no_stacks_are_recorded,
    the_rundown_is_what_was_asked_for,
    a_runtime_that_cannot_wait_says_so,
);

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Records `allocs`, which collects garbage and throws, from before its work to its end.
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

/// The ids of the runtime's events in a file.
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
        assert_eq!(downgrades(&summary), format!("event filters are not applied by this runtime: {RUNTIME}"));
    }
    Ok(())
}

/// 4 tells the sizes of the heap. (Without 1 the runtime does not even look whether most others of the collector are
/// asked for.)
fn all_but_these_events_come(runtime: &RealRuntime) -> Result<(), Skip> {
    let filter = format!("{RUNTIME}=!4,6-7");
    let (_target, _, file) = record(runtime, &["--clrevents", "gc", "--event-filter", &filter])?;
    let ids = ids(&file);
    assert!(ids.contains(&1) && ids.contains(&2), "{ids:?}");
    assert_eq!(ids.contains(&4), runtime.major() < 10, "{ids:?}");
    // One for a provider that is not recorded is a mistake.
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
        assert_eq!(downgrades(&summary), "stacks cannot be switched off on this runtime");
    }
    Ok(())
}

/// 144 is a method, 152 a module: with the loader's keyword alone no methods come.
fn the_rundown_is_what_was_asked_for(runtime: &RealRuntime) -> Result<(), Skip> {
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

fn a_runtime_that_cannot_wait_says_so(runtime: &RealRuntime) -> Result<(), Skip> {
    let (_target, summary, _) = record(runtime, &["--clrevents", "gc", "--buffering", "Block"])?;
    assert!(downgrades(&summary).contains("this runtime cannot make writers wait"), "{summary:#}");
    Ok(())
}
