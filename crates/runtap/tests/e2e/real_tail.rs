//! `tail` shows what a program tells, while it runs: every event, those that a filter takes, up to the end that was asked
//! for.

use std::fs::{self, File};

use runtap_testkit::{RealRuntime, Running, Signal, Skip, eventually, run};
use serde_json::Value;

use crate::common::{Target, command, folder, runtap, shell};

on_each_runtime!(
    every_event_is_a_line,
    the_last_events_are_not_held_back,
    filters_choose,
    the_time_ends_it,
    a_reader_that_leaves_ends_it
);

/// `storm`, which writes so many events as soon as somebody listens.
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

/// What `tail` prints until the program has done its work.
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

/// Nothing follows the last events of a program that falls silent, but they are shown.
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

fn the_time_ends_it(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = storm(runtime, "1000000")?;
    let finished =
        runtap(["tail", &target.p(), STORM[0], STORM[1], "--duration", "0.5s", "--format", "text"]);
    let text = finished.expect_code(0).text();
    assert!(text.contains("Demo-Storm"), "{text}");
    target.still_answers();
    Ok(())
}

fn a_reader_that_leaves_ends_it(runtime: &RealRuntime) -> Result<(), Skip> {
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

#[test]
fn what_it_can_t_do_is_said() {
    runtap(["tail", "1"]).expect_code(2).says("--clrevents");
    let stack = runtap(["tail", "1", "--clrevents", "gc", "--filter", "stack ~ Main"]);
    stack.expect_code(2).says("stacks");
    runtap(["tail", "1", "--clrevents", "gc", "--filter", "id ="]).expect_code(2).says("--filter");
}
