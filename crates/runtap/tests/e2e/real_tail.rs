//! `tail` shows a program's events while it runs: all events, or those that a filter selects, until the requested end.

use std::fs::{self, File};
use std::path::Path;

use runtap_testkit::{RealRuntime, Running, Signal, Skip, eventually, run};
use serde_json::Value;

use crate::common::{Target, command, folder, runtap, shell, unique};

on_each_runtime!(
    every_event_is_a_line,
    the_last_events_are_not_held_back,
    filters_choose,
    the_duration_ends_the_recording,
    a_provider_without_events_is_named,
    a_closed_reader_stops_the_session
);
on_the_newest_runtime!(
    several_processes_in_one_stream,
    one_of_several_that_is_killed_is_named,
    a_closed_reader_stops_all_sessions,
);

/// Starts `storm`, which writes `count` events as soon as a session enables them.
fn storm(runtime: &RealRuntime, count: &str) -> Result<Target, Skip> {
    let arguments = ["2", "5000", "64", "600", count, "ints", "--stdin", "--linger", "600"];
    let mut target = Target::start(runtime.program("storm", &arguments)?);
    target.program.begin();
    Ok(target)
}

const STORM: [&str; 2] = ["--providers", "Demo-Storm:0x7:5"];

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Returns the output of `tail` until the program has done its work.
fn tail(target: &mut Target, more: &[&str]) -> String {
    let mut command = command(["tail", &target.p()]);
    command.args(STORM).args(more);
    let running = Running::start(command);
    let truth = target.program.truth();
    assert!(truth["total"].as_u64() > Some(0), "{truth}");
    running.signal(Signal::INT);
    let finished = running.wait();
    finished.expect_code(0);
    target.still_answers();
    finished.text().to_owned()
}

fn every_event_is_a_line(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = storm(runtime, "2000")?;
    let lines = lines(&tail(&mut target, &[]));
    let storm: Vec<&Value> =
        lines.iter().filter(|line| line["provider"] == "Demo-Storm" && line["id"] == 3).collect();
    assert_eq!(storm.len(), 4_000);
    for line in storm {
        assert_eq!((&line["type"], &line["process"]), (&"event".into(), &target.pid().into()), "{line}");
        assert!(line["ts_ns"].is_u64() && line["payload"].is_object(), "{line}");
    }
    Ok(())
}

/// A note like that of `trace`, never an error: whether there should have been events is unknown.
fn a_provider_without_events_is_named(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = storm(runtime, "1000000")?;
    let note = "no events were received from Demo-Strom: the program wrote none, or the provider name";
    let tail = |more: &[&str]| {
        let words = ["tail", &target.p(), "--duration", "0.3", "--providers"];
        let done = runtap([&words[..], more].concat());
        done.expect_code(0);
        done
    };
    tail(&["Demo-Strom"]).says(note);
    assert_eq!(tail(&["Demo-Strom", "--quiet"]).stderr, "");
    // Beside a provider with events, only the silent one is named.
    let both = tail(&["Demo-Strom,Demo-Storm:0x7:5"]);
    both.says(note);
    assert!(both.text().contains("Demo-Storm") && !both.stderr.contains("Demo-Storm"), "{both}");
    // Each of several processes is named.
    let folder = folder();
    let (targets, name) = two_storms(runtime, folder.path(), ["1", "1"])?;
    let words = ["tail", "--all", "-n", &name, "--duration", "0.3", "--providers", "Demo-Strom"];
    let several = runtap(words);
    several.expect_code(0);
    for target in &targets {
        several.says(&format!("process {}: {note}", target.pid()));
    }
    Ok(())
}

/// No event follows the last ones of a program that becomes silent, but they are shown.
fn the_last_events_are_not_held_back(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = storm(runtime, "500")?;
    let folder = folder();
    let file = folder.path().join("lines");
    let mut tail = command(["tail", &target.p()]);
    tail.args(STORM).args(["--filter", "id = 3"]).stdout(File::create(&file).unwrap());
    let running = Running::start_as_it_is(tail);
    eventually("a line for each event", || {
        let text = fs::read_to_string(&file).unwrap();
        (text.lines().count() == 1_000).then_some(())
    });
    assert!(target.program.truth()["total"].as_u64() > Some(0));
    running.signal(Signal::INT);
    running.wait().expect_code(0);
    target.still_answers();
    Ok(())
}

fn filters_choose(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = storm(runtime, "500")?;
    let filter = ["--provider", "Demo-Storm", "--filter", "id = 3 and payload.seq < 10", "--format", "csv"];
    let text = tail(&mut target, &filter);
    assert_eq!(text.lines().count(), 1 + 2 * 10, "{text}");
    Ok(())
}

fn the_duration_ends_the_recording(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = storm(runtime, "1000000")?;
    let finished = runtap(["tail", &target.p(), STORM[0], STORM[1], "--duration", "1s", "--format", "text"]);
    let text = finished.expect_code(0).text();
    assert!(text.contains("Demo-Storm"), "{text}");
    target.still_answers();
    Ok(())
}

fn a_closed_reader_stops_the_session(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = storm(runtime, "1000000")?;
    let mut tail = command(["tail", &target.p()]);
    tail.args(STORM);
    let words = std::iter::once(tail.get_program()).chain(tail.get_args());
    let finished = run(shell(r#"{ "$@"; echo "code $?" >&2; } | head -n 3"#, words));
    assert_eq!(lines(finished.expect_code(0).text()).len(), 3, "{finished}");
    assert_eq!(finished.stderr, "code 0\n");
    target.still_answers();
    Ok(())
}

/// Starts two programs with one name; returns the options that select both for `tail`.
fn two_storms(
    runtime: &RealRuntime,
    folder: &Path,
    counts: [&str; 2],
) -> Result<([Target; 2], String), Skip> {
    let name = unique("storms");
    let start = |count| {
        let arguments = ["1", "5000", "64", "600", count, "ints", "--stdin", "--linger", "600"];
        let launch = runtime.program("storm", &arguments)?.called(&name, folder);
        Ok(Target::start(launch))
    };
    Ok(([start(counts[0])?, start(counts[1])?], name))
}

fn several_processes_in_one_stream(runtime: &RealRuntime) -> Result<(), Skip> {
    for format in ["json", "csv", "text"] {
        let folder = folder();
        let (mut targets, name) = two_storms(runtime, folder.path(), ["3000", "2000"])?;
        runtap(["tail", &name, STORM[0], STORM[1]]).expect_code(3).says("--all");
        let file = folder.path().join("lines");
        let mut tail = command(["tail", "--all", "-n", &name, "--filter", "id = 3", "--format", format]);
        tail.args(STORM).stdout(File::create(&file).unwrap());
        let running = Running::start_as_it_is(tail);
        for target in &mut targets {
            target.program.begin();
        }
        for target in &mut targets {
            assert!(target.program.truth()["total"].as_u64() > Some(0));
        }
        // All events are shown when the file has a line for each; the header of a table is one more.
        let expected = 5_000 + usize::from(format == "csv");
        eventually("a line for each event", || {
            (fs::read_to_string(&file).unwrap().lines().count() >= expected).then_some(())
        });
        running.signal(Signal::INT);
        running.wait().expect_code(0);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), expected, "{format}");
        let process = |line: &str| match format {
            "json" => serde_json::from_str::<Value>(line).unwrap()["process"].as_u64(),
            // The thirteenth column of docs/events.md, and the second word.
            "csv" => line.split(',').nth(12).unwrap().parse().ok(),
            _ => line.split_whitespace().nth(1).unwrap().parse().ok(),
        };
        let lines: Vec<Option<u64>> = text.lines().map(process).collect();
        if format == "csv" {
            assert!(text.starts_with("ts_ns,") && lines[0].is_none(), "{text}");
        }
        for (target, count) in targets.iter().zip([3_000, 2_000]) {
            let of_it = lines.iter().filter(|pid| **pid == Some(target.pid().into())).count();
            assert_eq!(of_it, count, "{format}");
            target.still_answers();
        }
    }
    Ok(())
}

fn one_of_several_that_is_killed_is_named(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let (mut targets, name) = two_storms(runtime, folder.path(), ["2000", "2000"])?;
    let file = folder.path().join("lines");
    let mut tail = command(["tail", "--all", &name, "--filter", "id = 3"]);
    tail.args(STORM).stdout(File::create(&file).unwrap());
    let running = Running::start_as_it_is(tail);
    let lines = |count: usize| {
        eventually("lines", || (fs::read_to_string(&file).unwrap().lines().count() == count).then_some(()));
    };
    let killed = targets[0].pid();
    targets[0].program.begin();
    lines(2_000);
    targets[0].program.kill();
    // The other program keeps running.
    targets[1].program.begin();
    lines(4_000);
    running.signal(Signal::INT);
    running.wait().expect_code(5).says(&format!("process {killed}: ")).says("before the stream was complete");
    targets[1].still_answers();
    Ok(())
}

/// Without a reader all sessions are stopped, including silent ones.
fn a_closed_reader_stops_all_sessions(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let (mut targets, name) = two_storms(runtime, folder.path(), ["1000000", "1"])?;
    targets[0].program.begin();
    let mut tail = command(["tail", "--all", &name]);
    tail.args(STORM);
    let words = std::iter::once(tail.get_program()).chain(tail.get_args());
    let finished = run(shell(r#"{ "$@"; echo "code $?" >&2; } | head -n 3"#, words));
    assert_eq!(lines(finished.expect_code(0).text()).len(), 3, "{finished}");
    assert_eq!(finished.stderr, "code 0\n");
    targets.iter().for_each(Target::still_answers);
    Ok(())
}

#[test]
fn impossible_requests_are_rejected() {
    runtap(["tail", "1"]).expect_code(2).says("--clrevents");
    let stack = runtap(["tail", "1", "--clrevents", "gc", "--filter", "stack ~ Main"]);
    stack.expect_code(2).says("stacks");
    runtap(["tail", "1", "--clrevents", "gc", "--filter", "id ="]).expect_code(2).says("--filter");
}
