//! `trace -- dotnet …`: recorded from the first event, with all children, whatever process is interrupted or killed at
//! any moment. No process stays suspended.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use runtap_diag::ports::Port;
use runtap_discover::{Startup, System};
use runtap_testkit::{RealRuntime, Running, Signal, Skip, eventually, run};
use rustix::process::{Pid, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{
    RemoveOnDrop, all_have_ended, command, count_of, counts, folder, port_of_those_with, runtap, shell,
    trace_of,
};

on_each_runtime!(
    a_program_is_recorded_from_its_first_event,
    children_of_a_recorded_program_do_not_wait,
    every_child_is_recorded_from_its_first_event,
    a_program_that_was_started_for_a_port_is_recorded,
    children_that_run_already_are_recorded,
    interrupted_at_any_moment_no_process_stays_suspended,
    killed_parents_leave_no_process_suspended,
    a_successor_resumes_the_programs_of_a_killed_tool,
);

const CLR: &str = "Microsoft-Windows-DotNETRuntime";
/// Runtime/Start: the first event of all.
const FIRST: u32 = 187;
/// The number of processes that `children` starts by default.
pub(crate) const TREE: usize = 7;

/// Returns the command for a program of the shared folder, with its own folder.
fn program(runtime: &RealRuntime, name: &str, arguments: &[&str]) -> Result<(Command, TempDir), Skip> {
    let folder = folder();
    let mut command = runtime.program(name, arguments)?.command();
    command.env("TMPDIR", folder.path());
    Ok((command, folder))
}

fn processes(summary: &Value) -> &Vec<Value> {
    summary["processes"].as_array().unwrap()
}

/// Checks the recording of a process that ran undisturbed from start to exit.
#[track_caller]
fn is_whole(process: &Value) {
    assert_eq!((&process["partial"], &process["lost"]), (&Value::Null, &Value::from(0)), "{process:#}");
    let file = process["outputs"][0]["path"].as_str().unwrap();
    let counts = counts(file.as_ref(), 0);
    assert_eq!(counts["process_id"], process["pid"]);
    assert_eq!(count_of(&counts, CLR, FIRST), 1, "{counts:#}");
}

fn a_program_is_recorded_from_its_first_event(runtime: &RealRuntime) -> Result<(), Skip> {
    let (spin, folder) = program(runtime, "spin", &["1", "20000"])?;
    let file = folder.path().join("x.nettrace");
    let words = std::iter::once(spin.get_program()).chain(spin.get_args());
    let mut launched = shell("\"$@\"; exit 7", words);
    launched.envs(spin.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let options = ["--format", "json", "--to", "nettrace,speedscope", "-o", file.to_str().unwrap()];
    let summary = run(trace_of(options, &launched)).expect_code(7).json();
    assert_eq!(processes(&summary).len(), 1);
    assert_eq!(summary["processes"][0]["name"], "spin");
    is_whole(&summary["processes"][0]);
    let profile = fs::read_to_string(file.with_extension("speedscope.json")).unwrap();
    assert!(profile.contains("spin!A.Heavy()"), "{profile}");
    Ok(())
}

/// Child processes inherit the port, unless runtap removes it from the environment; in either case they must not wait.
fn children_of_a_recorded_program_do_not_wait(runtime: &RealRuntime) -> Result<(), Skip> {
    let (children, folder) = program(runtime, "children", &["0.3"])?;
    let file = folder.path().join("x.nettrace");
    let options = ["--show-child-io", "--format", "json", "-o", file.to_str().unwrap()];
    let finished = run(trace_of(options, &children));
    let summary = finished.expect_code(0).says("\"tree_size\":7").json();
    assert_eq!(processes(&summary).len(), 1);
    is_whole(&summary["processes"][0]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the file alone is left");
    Ok(())
}

fn every_child_is_recorded_from_its_first_event(runtime: &RealRuntime) -> Result<(), Skip> {
    let (children, folder) = program(runtime, "children", &["0.3"])?;
    let file = folder.path().join("x.nettrace");
    let options = ["--children", "--format", "json", "-o", file.to_str().unwrap()];
    let summary = run(trace_of(options, &children)).expect_code(0).json();
    assert_eq!(processes(&summary).len(), TREE);
    let mut pids = BTreeSet::new();
    for (n, process) in processes(&summary).iter().enumerate() {
        is_whole(process);
        assert_eq!(process["name"], "children");
        let pid = process["pid"].as_u64().unwrap();
        let path = process["outputs"][0]["path"].as_str().unwrap();
        let expected = if n == 0 { file.clone() } else { folder.path().join(format!("x.{pid}.nettrace")) };
        assert_eq!(Path::new(path), expected);
        pids.insert(pid);
    }
    assert_eq!(pids.len(), TREE);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), TREE, "the files alone are left");
    Ok(())
}

fn a_program_that_was_started_for_a_port_is_recorded(runtime: &RealRuntime) -> Result<(), Skip> {
    let (mut children, folder) = program(runtime, "children", &["0.3"])?;
    let port = folder.path().join("port");
    let file = folder.path().join("x.nettrace");
    children.env("DOTNET_DiagnosticPorts", &port);
    let running = Running::start(children);
    let port = port.to_str().unwrap();
    let listen = |options: &[&str]| {
        let arguments = ["trace", "--diagnostic-port", port, "--format", "json", "-o"];
        runtap(arguments.into_iter().chain([file.to_str().unwrap()]).chain(options.iter().copied()))
            .expect_code(0)
            .json()
    };
    let summary = listen(&["--children"]);
    assert_eq!(processes(&summary).len(), TREE);
    processes(&summary).iter().for_each(is_whole);
    running.wait().expect_code(0);
    Ok(())
}

fn children_that_run_already_are_recorded(runtime: &RealRuntime) -> Result<(), Skip> {
    let (children, folder) = program(runtime, "children", &["600"])?;
    let running = Running::start(children);
    let tree = || System::current().tree(running.id());
    eventually("the whole tree", || (tree().len() == TREE).then_some(()));
    // Each has its socket, so that all are found at once.
    let sockets = || {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.filter(|entry| {
            entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("dotnet-diagnostic-")
        })
    };
    eventually("the sockets", || (sockets().count() == TREE).then_some(()));
    let file = folder.path().join("x.nettrace");
    let pid = running.id().to_string();
    let mut tracing = command(["trace", "-p", &pid, "--children", "--format", "json", "-o"]);
    tracing.arg(&file);
    let tracing = Running::start(tracing);
    // Wait for a session in each: an earlier stop would find processes without one.
    let recordings = || {
        let paths = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let recordings = paths.filter(|path| path.extension().is_some_and(|it| it == "nettrace"));
        recordings.filter(|path| fs::metadata(path).unwrap().len() > 0).count()
    };
    eventually("a recording of each", || (recordings() == TREE).then_some(()));
    tracing.signal(Signal::INT);
    let summary = tracing.wait().expect_code(0).json();
    let recorded: BTreeSet<u64> =
        processes(&summary).iter().map(|process| process["pid"].as_u64().unwrap()).collect();
    assert_eq!(recorded, tree().into_iter().map(u64::from).collect());
    assert_eq!(summary["pid"], running.id());
    for pid in tree() {
        let _ = kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL);
    }
    Ok(())
}

/// Deterministic pseudorandom numbers (xorshift).
pub(crate) struct Moments(u64);

impl Moments {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self, below: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let below = u64::try_from(below.as_micros()).unwrap();
        Duration::from_micros(self.0 % below)
    }
}

/// Approximate duration of the tree: moments range from before its start to after its exit.
pub(crate) const TREE_DURATION: Duration = Duration::from_millis(1500);
/// For each of three versions: twenty-one altogether.
pub(crate) const MOMENTS: usize = 7;

fn interrupted_at_any_moment_no_process_stays_suspended(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut moments = Moments::new(0x5eed_0000 + u64::from(runtime.major()));
    for n in 0..MOMENTS {
        let (children, folder) = program(runtime, "children", &["0.3"])?;
        let file = folder.path().join("x.nettrace");
        let options = ["--children", "--format", "json", "-o", file.to_str().unwrap()];
        let tracing = Running::start(trace_of(options, &children));
        let moment = moments.next(TREE_DURATION);
        std::thread::sleep(moment);
        let mut tracing = tracing;
        if !tracing.has_ended() {
            tracing.signal(Signal::INT);
        }
        let finished = tracing.wait();
        all_have_ended(folder.path());
        // Before the first session runs, nothing else is guaranteed: the command may not even have started. Before
        // runtap handles signals, a signal terminates it like any program, and then nothing was started.
        let nothing_begun = || fs::read_dir(folder.path()).unwrap().next().is_none();
        assert!(finished.code().is_some() || nothing_begun(), "{n}, after {moment:?}: {finished}");
        if finished.code() == Some(0) {
            for process in processes(&finished.json()) {
                assert_eq!(process["partial"], Value::Null, "{n}, after {moment:?}: {finished}");
            }
        }
    }
    Ok(())
}

fn killed_parents_leave_no_process_suspended(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut moments = Moments::new(0xdead_0000 + u64::from(runtime.major()));
    for n in 0..MOMENTS {
        let (children, folder) = program(runtime, "children", &["0.3"])?;
        let file = folder.path().join("x.nettrace");
        let options = ["--children", "--format", "json", "-o", file.to_str().unwrap()];
        let tracing = Running::start(trace_of(options, &children));
        let moment = moments.next(TREE_DURATION);
        std::thread::sleep(moment);
        // Only the parent; its children keep running.
        if let Some(parent) = System::current().tree(tracing.id()).get(1) {
            let _ = kill_process(Pid::from_raw((*parent).try_into().unwrap()).unwrap(), Signal::KILL);
        }
        let finished = tracing.wait();
        all_have_ended(folder.path());
        if finished.stdout.is_empty() {
            continue;
        }
        let summary = finished.json();
        let mut others = processes(&summary).iter();
        if finished.code() == Some(137) {
            // The killed process.
            others.next();
        }
        others.for_each(is_whole);
        assert!(processes(&summary).len() <= TREE, "{n}, after {moment:?}: {finished}");
    }
    Ok(())
}

/// kill -9 of runtap leaves every process suspended that has connected, or will connect. The path is in their
/// environment.
fn a_successor_resumes_the_programs_of_a_killed_tool(runtime: &RealRuntime) -> Result<(), Skip> {
    let (children, folder) = program(runtime, "children", &["0.3"])?;
    let file = folder.path().join("x.nettrace");
    // Killed by its own command, before a process has connected: none was resumed.
    let words = std::iter::once(children.get_program()).chain(children.get_args());
    let mut launched = shell("kill -9 $PPID; exec \"$@\"", words);
    launched.envs(children.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let tracing = Running::start(trace_of(["--children", "-o", file.to_str().unwrap()], &launched));
    assert_eq!(tracing.wait().code(), None);
    let port = port_of_those_with(folder.path());
    let _left = RemoveOnDrop(port.clone());
    let system = System::current();
    let holders = || system.started_with(port.as_os_str().as_encoded_bytes(), |_| true);
    let waits = |pid: &u32| system.startup(*pid) == Startup::Waiting;
    eventually("the first process waits", || holders().iter().any(waits).then_some(()));

    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let freed = tokio.block_on(async {
        // The stale socket is replaced.
        let mut successor = Port::bind(&port).unwrap();
        let mut freed = BTreeSet::new();
        let until = async {
            while !holders().is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        successor
            .resume_all(until, |runtime, outcome| {
                outcome.unwrap();
                freed.insert(runtime.process_id());
            })
            .await;
        freed
    });
    assert_eq!(freed.len(), TREE, "{freed:?}");
    all_have_ended(folder.path());
    Ok(())
}
