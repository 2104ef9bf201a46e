//! CPU samples of the built-in program: its real stacks, in Microsoft's dotnet-trace and in ours.
//!
//! By construction `hot_work` takes three times as long as `parse`, and `wait_for_request` a millisecond for each request.

use std::path::Path;
use std::process::Stdio;

use runtap_testkit::{Peer, Program, require, run};

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

pub(crate) fn demo(folder: &Path) -> Program {
    let mut demo = command(["demo", "serve", "--seconds", "600"]);
    demo.env("TMPDIR", folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(demo);
    program.wait_for("ready");
    program
}

/// The time in which these functions are on the stack in this order.
fn time_in(threads: &[Thread], functions: &[&str]) -> f64 {
    let is_in = |stack: &[String]| {
        let mut frames = stack.iter();
        functions.iter().all(|function| frames.any(|frame| frame == function))
    };
    let slices = threads.iter().flat_map(|thread| &thread.slices);
    slices.filter(|(stack, _)| is_in(stack)).map(|(_, weight)| weight).sum()
}

#[track_caller]
fn judge(hot: f64, warm: f64) {
    let ratio = hot / warm;
    assert!((2.0..=4.5).contains(&ratio), "hot {hot}, warm {warm}: {ratio} instead of 3");
}

#[track_caller]
fn judge_profile(file: &Path) {
    let threads = speedscope::read(file);
    judge(time_in(&threads, &HOT), time_in(&threads, &WARM));
    assert!(time_in(&threads, &REST) > 0.0, "it rests after each request");
    let names = threads.iter().flat_map(|thread| &thread.slices).flat_map(|(stack, _)| stack);
    assert_eq!(names.filter(|name| name.contains("?!?")).count(), 0, "frames without a name");
}

#[test]
fn dotnet_trace_shows_the_demos_real_stacks() {
    let peer = require!(Peer::available("dotnet-trace"));
    let _machine = alone();
    let folder = folder();
    let demo = demo(folder.path());
    let file = folder.path().join("t.nettrace");
    let trace = |arguments: &[&str]| {
        let mut command = peer.command();
        command.args(arguments).arg(&file).env("TMPDIR", folder.path());
        run(command)
    };
    let mut collect = peer.command();
    collect.args(["collect", "-p", &demo.id().to_string(), "--duration", "00:00:00:03", "-o"]).arg(&file);
    collect.env("TMPDIR", folder.path());
    run(collect).expect_code(0);

    let mut report = peer.command();
    report.arg("report").arg(&file).args(["topN", "-n", "20"]);
    let report = run(report);
    let report = report.expect_code(0).text();
    // `2. runtap!runtap_demo.work.hot_work   21.73%   21.73%`: inclusive, exclusive.
    let percent = |function: &str| {
        let line = report.lines().find(|line| line.split_whitespace().nth(1) == Some(function));
        let line = line.unwrap_or_else(|| panic!("{function} is not among\n{report}"));
        line.split_whitespace().last().unwrap().trim_end_matches('%').parse::<f64>().unwrap()
    };
    judge(percent(HOT[2]), percent(WARM[3]));

    trace(&["convert", "--format", "Speedscope"]).expect_code(0);
    judge_profile(&folder.path().join("t.speedscope.json"));
}

#[test]
fn runtap_shows_the_demos_real_stacks() {
    let _machine = alone();
    let folder = folder();
    let demo = demo(folder.path());
    let file = folder.path().join("t.speedscope.json");
    let mut trace =
        command(["trace", "-p", &demo.id().to_string(), "--duration", "3", "--to", "speedscope", "-o"]);
    trace.arg(&file).env("TMPDIR", folder.path());
    run(trace).expect_code(0);
    judge_profile(&file);
    // A second session has its own names.
    let again = folder.path().join("u.nettrace");
    let mut trace = command(["trace", "-p", &demo.id().to_string(), "--duration", "1", "-o"]);
    trace.arg(&again).env("TMPDIR", folder.path());
    run(trace).expect_code(0);
    let report = runtap(["report".as_ref(), again.as_os_str(), "cpu".as_ref()]);
    assert!(report.expect_code(0).text().contains(HOT[2]), "{}", report.text());
}
