//! CPU samples of the built-in program: its real stacks, in Microsoft's dotnet-trace and in runtap.
//!
//! By construction `hot_work` takes three times the processor time of `parse`, and `wait_for_request` a millisecond for
//! each request. On a busy machine few samples are of running threads: then the recording is longer.

use std::path::Path;
use std::process::{Command, Stdio};

use runtap_testkit::{Peer, Program, require, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{alone, command, folder, runtap};
use crate::speedscope::{self, Thread};

/// The worker's functions, outermost first, as both tools name them.
const HOT: [&str; 3] = [
    "runtap!runtap_demo.work.serve",
    "runtap!runtap_demo.work.handle_request",
    "runtap!runtap_demo.work.hot_work",
];
const WARM: [&str; 4] =
    [HOT[0], HOT[1], "runtap!runtap_demo.work.warm_work", "runtap!runtap_demo.work.parse"];
const REST: [&str; 2] = [HOT[0], "runtap!runtap_demo.work.wait_for_request"];

/// Durations of a recording in seconds, tried until one suffices.
const LENGTHS: [u32; 4] = [3, 6, 12, 24];

pub(crate) fn demo(folder: &Path) -> Program {
    let mut demo = command(["demo", "serve", "--seconds", "600"]);
    demo.env("TMPDIR", folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(demo);
    program.wait_for("ready");
    program
}

/// Returns the time during which these functions are on the stack in this order.
fn time_in(threads: &[Thread], functions: &[&str]) -> f64 {
    let is_in = |stack: &[String]| {
        let mut frames = stack.iter();
        functions.iter().all(|function| frames.any(|frame| frame == function))
    };
    let slices = threads.iter().flat_map(|thread| &thread.slices);
    slices.filter(|(stack, _)| is_in(stack)).map(|(_, weight)| weight).sum()
}

/// Returns whether one function takes about three times as long as the other. `end` is the end of a running thread's
/// stack.
#[track_caller]
fn is_right(file: &Path, end: &[&str]) -> bool {
    let threads = speedscope::read(file);
    let names = threads.iter().flat_map(|thread| &thread.slices).flat_map(|(stack, _)| stack);
    assert_eq!(names.filter(|name| name.contains("?!?")).count(), 0, "frames without a name");
    let hot = time_in(&threads, &[&HOT[..], end].concat());
    let warm = time_in(&threads, &[&WARM[..], end].concat());
    (2.0..=4.5).contains(&(hot / warm))
}

#[test]
fn dotnet_trace_shows_the_demos_real_stacks() {
    let peer = require!(Peer::available("dotnet-trace"));
    let _machine = alone();
    let folder = folder();
    let demo = demo(folder.path());
    let tool = |arguments: &[&str]| {
        let mut command = peer.command();
        command.args(arguments).env("TMPDIR", folder.path());
        run(command)
    };
    let pid = demo.id().to_string();
    let record = |length: u32| {
        let file = folder.path().join(format!("{length}.nettrace"));
        let (path, length) = (file.to_str().unwrap(), format!("00:00:00:{length:02}"));
        tool(&["collect", "-p", &pid, "--duration", &length, "-o", path]).expect_code(0);
        tool(&["convert", path, "--format", "Speedscope"]).expect_code(0);
        let profile = file.with_extension("speedscope.json");
        is_right(&profile, &["CPU_TIME"]).then_some((file, profile))
    };
    let (file, profile) = LENGTHS.into_iter().find_map(record).expect("the shares are wrong");
    assert!(time_in(&speedscope::read(&profile), &REST) > 0.0, "it rests after each request");

    let report = tool(&["report", file.to_str().unwrap(), "topN", "-n", "20"]);
    let report = report.expect_code(0).text();
    // `2. runtap!runtap_demo.work.hot_work   21.73%   21.73%`: inclusive, exclusive.
    let percent = |function: &str| {
        let line = report.lines().find(|line| line.split_whitespace().nth(1) == Some(function));
        let line = line.unwrap_or_else(|| panic!("{function} is not among\n{report}"));
        line.split_whitespace().last().unwrap().trim_end_matches('%').parse::<f64>().unwrap()
    };
    assert!(percent(HOT[2]) > percent(WARM[3]), "{report}");
}

#[test]
fn runtap_shows_the_demos_real_stacks() {
    let _machine = alone();
    let folder = folder();
    let demo = demo(folder.path());
    let pid = demo.id().to_string();
    let trace = |length: u32, file: &Path, more: &[&str]| {
        let mut trace: Command = command(["trace", "-p", &pid, "--duration", &length.to_string()]);
        trace.args(more).arg("-o").arg(file).env("TMPDIR", folder.path());
        run(trace).expect_code(0);
    };
    let right = LENGTHS.into_iter().any(|length| {
        let file = folder.path().join(format!("{length}.speedscope.json"));
        trace(length, &file, &["--to", "speedscope", "--view", "cpu"]);
        is_right(&file, &[])
    });
    assert!(right, "the shares are wrong");
    // Another session collects its own names, for waiting threads too.
    let again = folder.path().join("u.speedscope.json");
    trace(1, &again, &["--to", "speedscope,nettrace"]);
    assert!(time_in(&speedscope::read(&again), &REST) > 0.0, "it rests after each request");
    let report = runtap(["report".as_ref(), folder.path().join("u.nettrace").as_os_str(), "cpu".as_ref()]);
    assert!(report.expect_code(0).text().contains(HOT[2]), "{}", report.text());
}

#[test]
fn microsofts_readers_show_the_demos_metrics_and_log() {
    let peer = require!(Peer::available("mspipe"));
    let folder = folder();
    let mut demo = demo(folder.path());
    let pid = demo.id();
    let read = |arguments: &[&str]| {
        let mut command = peer.command();
        command.args(arguments).args(["--pid", &pid.to_string()]).env("TMPDIR", folder.path());
        // If no events were delivered, it exits with 1 and prints nothing.
        let read = run(command);
        read.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let counters = read(&["counters", "--counters", "runtap.demo", "--seconds", "5"]);
    // A slow machine takes seconds for a hundred requests.
    let logs = ["5", "20", "60"].into_iter().map(|seconds| read(&["logs", "--seconds", seconds]));
    let logs = logs.into_iter().find(|logs| !logs.is_empty()).expect("no log messages");
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::TERM).unwrap();
    let truth = demo.truth();

    let of = |name: &str| counters.iter().filter(|row| row["name"] == name).cloned().collect::<Vec<Value>>();
    let requests = of("requests").iter().filter_map(|row| row["value"].as_u64()).max().unwrap();
    assert!((1..=truth["requests"].as_u64().unwrap()).contains(&requests), "{requests} of {truth}");
    let latencies = of("latency");
    let quantiles = latencies.iter().filter_map(|row| row["quantiles"].as_array());
    assert!(quantiles.flatten().any(|quantile| quantile[1].as_f64().unwrap() > 0.0), "{latencies:?}");

    assert!(logs.len() as u64 <= truth["logs"].as_u64().unwrap(), "{logs:?}, {truth}");
    for log in &logs {
        assert_eq!((&log["category"], &log["level"]), (&"Runtap.Demo".into(), &"Information".into()));
        let handled: u64 = log["state"][0][1].as_str().unwrap().parse().unwrap();
        assert!(handled.is_multiple_of(100) && handled <= truth["requests"].as_u64().unwrap(), "{log}");
    }
}
