//! `trace -- COMMAND` on the built-in program, which connects as a runtime does. `cli_many` has several programs,
//! `cli_ports` ports of the user.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use runtap_discover::System;
use runtap_testkit::{Program, Running, Signal, eventually, run};
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{all_have_ended, command, count_of, counts, folder, runtap, shell, trace_of};

pub(crate) const DEMO: &str = "Runtap-Demo";

/// Returns the command for the built-in program, for `seconds` seconds.
pub(crate) fn demo(folder: &TempDir, seconds: &str) -> Command {
    let mut command = command(["demo", "serve", "--seconds", seconds]);
    command.env("TMPDIR", folder.path());
    command
}

/// Returns the words of a command for a script.
pub(crate) fn words(demo: &Command) -> Vec<&OsStr> {
    std::iter::once(demo.get_program()).chain(demo.get_args()).collect()
}

/// Redirects stderr to stdout, for messages that have to be read while the command runs.
fn in_one_stream(traced: &Command) -> Command {
    let mut both = shell("exec \"$@\" 2>&1", words(traced));
    both.envs(traced.get_envs().filter_map(|(name, value)| Some((name, value?))));
    both.env_remove("DOTNET_DiagnosticPorts").stdin(Stdio::piped()).stdout(Stdio::piped());
    both
}

/// Sends SIGTERM to the built-in programs of a folder, which then exit in order.
fn end_all(folder: &TempDir) {
    let system = System::current();
    for pid in system.started_with(folder.path().as_os_str().as_encoded_bytes(), |_| true) {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // Other processes have these words in later arguments.
        if command_line.split(|b| *b == 0).nth(1) == Some(b"demo") {
            // The process may just have exited.
            let _ = kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::TERM);
        }
    }
}

pub(crate) fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

pub(crate) fn ticks_in(file: &Path) -> u64 {
    count_of(&counts(file, 0), "Runtap-Demo", 1)
}

/// Returns the ticks that programs print, in ascending order.
pub(crate) fn told_ticks(said: &str) -> Vec<u64> {
    let truth = said.lines().filter_map(|line| line.strip_prefix("truth "));
    let mut ticks: Vec<u64> =
        truth.map(|truth| serde_json::from_str::<Value>(truth).unwrap()["ticks"].as_u64().unwrap()).collect();
    ticks.sort_unstable();
    ticks
}

#[test]
fn the_code_of_the_command_is_passed_on() {
    let folder = folder();
    let file = path(&folder, "x.nettrace");
    let script = |script: &str| {
        let mut launched = shell(script, []);
        launched.env("TMPDIR", folder.path());
        run(trace_of(["-o", &file], &launched))
    };
    for (what, code) in [("exit 7", 7), ("true", 0), ("kill -9 $$", 137)] {
        script(what).expect_code(code).says("nothing was recorded");
    }
    // A program that reads the result gets one.
    for (what, code) in [("exit 7", 7), ("true", 0)] {
        let mut launched = shell(what, []);
        launched.env("TMPDIR", folder.path());
        let told = run(trace_of(["--format", "json", "-o", &file], &launched));
        let summary = told.expect_code(code).json();
        assert_eq!(summary["schema"], "runtap.trace/1");
        assert_eq!((&summary["pid"], &summary["command"]), (&Value::Null, &Value::Null));
        assert_eq!((&summary["events"], &summary["outputs"]), (&Value::from(0), &json!([])));
        assert_eq!(
            (&summary["processes"], &summary["notes"]),
            (&json!([]), &json!(["nothing was recorded"]))
        );
    }
    let missing = run(trace_of(["-o", &file], &Command::new("/no/such/command")));
    missing.expect_code(125).says("/no/such/command");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no file, no socket");
}

#[test]
fn mistakes_are_reported_before_a_program_is_started() {
    let touched = folder();
    let mut launched = Command::new("touch");
    launched.arg(touched.path().join("started"));
    for options in [
        &["-p", "1"][..],
        &["--diagnostic-port", "/x"],
        &["--resume-runtime", "false"],
        &["--children", "-o", "-"],
        &["--providers", "A:b:c:d:e"],
    ] {
        run(trace_of(options.iter().copied(), &launched)).expect_code(2);
    }
    assert_eq!(fs::read_dir(touched.path()).unwrap().count(), 0);
    // The empty argument is probably an unset variable: no other process is recorded instead.
    let place = folder();
    let mut launched_service = demo(&place, "600");
    launched_service.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut service = Program::start(launched_service);
    service.wait_for("ready");
    let pid = service.id().to_string();
    for verb in ["trace", "collect"] {
        for target in [&[][..], &["-p", &pid, "--duration", "0.1s"]] {
            runtap([&[verb], target, &["--"]].concat()).expect_code(2).says("no command").says("'--'");
        }
    }
    let unnamed = run(trace_of([], &Command::new("")));
    unnamed.expect_code(2).says("the command is empty");
    runtap(["trace", "--kill-command", "-p", "1"]).expect_code(2);
    runtap(["trace", "--show-child-io", "-p", "1"]).expect_code(2);
}

#[test]
fn a_command_is_recorded_from_its_first_event_to_its_last() {
    let folder = folder();
    let file = path(&folder, "x.nettrace");
    let demo = demo(&folder, "1");
    let mut launched = shell("\"$@\"; exit 9", words(&demo));
    launched.env("TMPDIR", folder.path());
    let options = ["--providers", DEMO, "--show-child-io", "--format", "json", "-o", &file];
    let finished = run(trace_of(options, &launched));
    // Stdout has only the summary.
    let summary = finished.expect_code(9).says("ready").json();
    assert_eq!(summary["partial"], Value::Null);
    assert_eq!(summary["processes"].as_array().unwrap().len(), 1);
    assert_eq!(told_ticks(&finished.stderr), [ticks_in(file.as_ref())]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the file alone is left");
}

#[test]
fn the_output_of_the_command_is_hidden_shown_or_redirected() {
    let folder = folder();
    let said = |options: &[&str]| {
        let mut launched = shell("echo to-stdout; echo to-stderr >&2", []);
        launched.env("TMPDIR", folder.path());
        let finished = run(trace_of(options.iter().copied(), &launched));
        finished.expect_code(0);
        let stdout = finished.text().lines().filter(|line| line.starts_with("to-")).collect::<String>();
        let stderr = finished.stderr.lines().filter(|line| line.starts_with("to-")).collect::<String>();
        (stdout, stderr)
    };
    let texts = |stdout: &str, stderr: &str| (stdout.to_owned(), stderr.to_owned());
    assert_eq!(said(&[]), texts("", ""));
    assert_eq!(said(&["--show-child-io"]), texts("to-stdout", "to-stderr"));
    let (stdout, stderr) = said(&["--show-child-io", "-o", "-"]);
    assert_eq!(stdout, "");
    assert!(stderr.contains("to-stdout") && stderr.contains("to-stderr"), "{stderr}");
}

#[test]
fn ports_that_were_there_are_kept() {
    let folder = folder();
    let mut launched = shell("echo \"=$DOTNET_DiagnosticPorts\"", []);
    launched.env("TMPDIR", folder.path()).env("DOTNET_DiagnosticPorts", "/my/port,nosuspend");
    let finished = run(trace_of(["--show-child-io"], &launched));
    let ours = finished.expect_code(0).text().trim_end().strip_prefix("=/my/port,nosuspend;");
    let port = ours.and_then(|ours| ours.strip_suffix("/port,suspend,connect"));
    let port = Path::new(port.unwrap_or_else(|| panic!("{finished}")));
    // No part of it is left.
    let name = port.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("runtap-") && !port.exists(), "{finished}");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Root's port is in the temporary folder only if there is no better one, and never where others can exchange names.
    assert_eq!(port.parent().unwrap(), Path::new("/run"), "{finished}");
    for (mode, place) in [(0o755, folder.path()), (0o1777, folder.path()), (0o777, Path::new("/tmp"))] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let traced = trace_of(["--show-child-io"], &launched);
        let mut without_run = Command::new("unshare");
        without_run.args([
            "--mount",
            "sh",
            "-c",
            "mount -t tmpfs -o mode=1777 none /run && exec \"$@\"",
            "sh",
        ]);
        without_run.args(words(&traced));
        without_run.envs(traced.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let finished = run(without_run);
        let start = format!("=/my/port,nosuspend;{}/runtap-", place.display());
        assert!(finished.expect_code(0).text().starts_with(&start), "{mode:o}: {finished}");
    }
}

#[test]
fn the_command_continues_after_the_recording_or_is_stopped() {
    let folder = folder();
    let file = path(&folder, "x.nettrace");
    let launched = demo(&folder, "600");
    let options = ["--providers", DEMO, "--duration", "0.3s", "--show-child-io", "-o", &file];
    let mut tracing = Program::start(in_one_stream(&trace_of(options, &launched)));
    // The message is printed after a second, so there are some ticks.
    tracing.wait_for("the recording is complete; waiting for the command");
    end_all(&folder);
    let told = told_ticks(&format!("truth {}", tracing.wait_for("truth ")));
    tracing.wait_for("done");
    assert_eq!(tracing.wait().code(), Some(0), "{:?}", tracing.lines());
    assert!(told[0] > ticks_in(file.as_ref()), "{told:?}");

    let launched = demo(&folder, "600");
    let finished = run(trace_of(options.into_iter().chain(["--kill-command"]), &launched));
    // The demo exits in order after SIGTERM.
    assert!(finished.expect_code(0).text().contains("done"), "{finished}");
    // This command ignores SIGTERM, and its child outlives it.
    let mut launched = shell("trap '' TERM; \"$@\"", words(&demo(&folder, "600")));
    launched.env("TMPDIR", folder.path());
    let options = ["--duration", "0.3s", "-o", &file, "--kill-command"];
    run(trace_of(options, &launched)).expect_code(137).says("still running");
    end_all(&folder);
    all_have_ended(folder.path());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the file alone is left");
}

#[test]
fn signals_are_passed_on() {
    let folder = folder();
    for signal in [Signal::TERM, Signal::INT] {
        let file = folder.path().join("x.nettrace");
        let launched = demo(&folder, "600");
        let mut tracing =
            trace_of(["--providers", DEMO, "--format", "json", "-o", file.to_str().unwrap()], &launched);
        tracing.stdin(Stdio::null()).stdout(Stdio::piped());
        let tracing = Running::start_as_it_is(tracing);
        // Contains some ticks.
        eventually("a recording", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 1500).then_some(()));
        tracing.signal(signal);
        let summary = tracing.wait().expect_code(0).json();
        assert_eq!(summary["partial"], Value::Null, "{summary:#}");
        assert!(ticks_in(&file) > 0);
        fs::remove_file(&file).unwrap();
    }
    all_have_ended(folder.path());
}

/// No runtime connects before the time-out: the command continues, and a runtime that connects later is resumed.
#[test]
fn a_command_without_a_runtime_runs_on_untraced() {
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    let go = folder.path().join("go");
    let demo = demo(&folder, "1");
    let script = "while [ ! -e \"$GO\" ]; do sleep 0.05; done; \"$@\"; exit 7";
    let mut launched = shell(script, words(&demo));
    launched.env("TMPDIR", folder.path()).env("GO", &go);
    let options = ["--dial-in", "0.1s", "--show-child-io", "-o", file.to_str().unwrap()];
    let mut tracing = Program::start(in_one_stream(&trace_of(options, &launched)));
    tracing.wait_for("warning: no .NET runtime has connected after 100 ms; the command");
    fs::write(&go, "").unwrap();
    // Suspended until it is resumed.
    tracing.wait_for("truth ");
    tracing.wait_for("done");
    assert_eq!(tracing.wait().code(), Some(7), "{:?}", tracing.lines());
    assert!(!file.exists(), "it was too late to be recorded");
}

#[test]
fn an_interrupted_start_leaves_the_code_of_the_command() {
    let folder = folder();
    // Not a runtime: it never connects.
    let marker = folder.path().join("started");
    let script = "trap 'exit 3' TERM; touch \"$1\"; while :; do sleep 0.05; done";
    let mut launched = shell(script, [marker.as_os_str()]);
    launched.env("TMPDIR", folder.path());
    let tracing = Running::start(trace_of([], &launched));
    eventually("the start of the command", || marker.exists().then_some(()));
    tracing.signal(Signal::TERM);
    tracing.wait().expect_code(3);

    let mut launched =
        shell("trap 'exit 0' TERM; touch \"$1.2\"; while :; do sleep 0.05; done", [marker.as_os_str()]);
    launched.env("TMPDIR", folder.path());
    let tracing = Running::start(trace_of([], &launched));
    eventually("the start of the command", || marker.with_extension("2").exists().then_some(()));
    tracing.signal(Signal::TERM);
    // There is no result, and the command has no exit code for that.
    tracing.wait().expect_code(143);
}

/// The program is killed and its parent succeeds, but the recording is partial.
#[test]
fn a_partial_recording_of_a_successful_command_is_reported() {
    let folder = folder();
    let file = path(&folder, "x.nettrace");
    let demo = demo(&folder, "600");
    let script = "\"$@\" | while read a b; do case $a in pid) p=$b;; ready) kill -9 $p;; esac; done";
    let mut launched = shell(script, words(&demo));
    launched.env("TMPDIR", folder.path());
    let finished = run(trace_of(["--format", "json", "-o", &file], &launched));
    let summary = finished.expect_code(5).says("partial").json();
    assert!(summary["partial"]["reason"].is_string(), "{summary:#}");
}

/// Without the event none of these recordings would ever stop.
#[test]
fn an_event_ends_the_recording() {
    let folder = folder();
    let file = path(&folder, "x.nettrace");
    for (name, payload) in [
        (None, None),
        (Some("Tick"), None),
        (Some("Tick"), Some("n:3")),
        (Some("Tick"), Some("text:tock,n:4")),
    ] {
        let mut options = vec!["--providers", DEMO, "--kill-command", "-o", &file];
        options.extend(["--stopping-event-provider-name", DEMO]);
        for (option, value) in
            [("--stopping-event-event-name", name), ("--stopping-event-payload-filter", payload)]
        {
            options.extend(value.into_iter().flat_map(|value| [option, value]));
        }
        run(trace_of(options, &demo(&folder, "600"))).expect_code(0);
        let least = payload.map_or(1, |payload| u64::from(payload.ends_with('4')) + 3);
        assert!(ticks_in(file.as_ref()) >= least, "{payload:?}");
    }
    let wrong = ["trace", "-p", "1", "--stopping-event-event-name", "Tick"];
    runtap(wrong).expect_code(2).says("--stopping-event-provider-name");
}
