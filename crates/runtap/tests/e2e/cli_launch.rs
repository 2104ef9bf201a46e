//! `trace -- COMMAND` and ports, on the built-in program, which dials in as a runtime does.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runtap_diag_proto::{Advertise, Uuid};
use runtap_testkit::{Finished, Program, Running, Signal, eventually, run};
use runtap_transport::discover::System;
use rustix::process::{Pid, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{
    all_have_ended, beside_others, command, count_of, counts, folder, json, runtap, shell, socket_in,
    trace_of,
};

const DEMO: &str = "Runtap-Demo";

/// The built-in program for so many seconds.
fn demo(folder: &TempDir, seconds: &str) -> Command {
    let mut command = command(["demo", "serve", "--seconds", seconds]);
    command.env("TMPDIR", folder.path());
    command
}

/// The built-in program as the words of a script.
fn words(demo: &Command) -> Vec<&OsStr> {
    std::iter::once(demo.get_program()).chain(demo.get_args()).collect()
}

/// The same command with what it says on its output too, for messages that have to be read while it runs.
fn in_one_stream(traced: &Command) -> Command {
    let mut both = shell("exec \"$@\" 2>&1", words(traced));
    both.envs(traced.get_envs().filter_map(|(name, value)| Some((name, value?))));
    both.env_remove("DOTNET_DiagnosticPorts").stdin(Stdio::piped()).stdout(Stdio::piped());
    both
}

/// Tells the built-in programs of a folder to end. They make a good end of it.
fn end_all(folder: &TempDir) {
    let system = System::current();
    for pid in system.started_with(folder.path().as_os_str().as_encoded_bytes()) {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // Others have these words behind their own.
        if command_line.split(|b| *b == 0).nth(1) == Some(b"demo") {
            // It may just have ended.
            let _ = kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::TERM);
        }
    }
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn ticks_in(file: &Path) -> u64 {
    count_of(&counts(file, 0), "Runtap-Demo", 1)
}

/// The ticks that programs say they have made, in order of size.
fn told_ticks(said: &str) -> Vec<u64> {
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
    let missing = run(trace_of(["-o", &file], &Command::new("/no/such/command")));
    missing.expect_code(125).says("/no/such/command");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no file, no socket");
}

#[test]
fn mistakes_are_told_before_anything_is_started() {
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
    // Stdout has the summary alone.
    let summary = finished.expect_code(9).says("ready").json();
    assert_eq!(summary["partial"], Value::Null);
    assert_eq!(summary["processes"].as_array().unwrap().len(), 1);
    assert_eq!(told_ticks(&finished.stderr), [ticks_in(file.as_ref())]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the file alone is left");
}

#[test]
fn what_the_command_says_is_hidden_shown_or_moved() {
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
    let folder = folder.path().display();
    let start = format!("=/my/port,nosuspend;{folder}/runtap-");
    assert!(finished.expect_code(0).text().starts_with(&start), "{finished}");
    assert!(finished.text().trim_end().ends_with(".socket,suspend,connect"), "{finished}");
}

#[test]
fn the_command_goes_on_when_the_recording_is_over_or_is_ended() {
    let folder = folder();
    let file = path(&folder, "x.nettrace");
    let launched = demo(&folder, "600");
    let options = ["--providers", DEMO, "--duration", "0.3s", "--show-child-io", "-o", &file];
    let mut tracing = Program::start(in_one_stream(&trace_of(options, &launched)));
    // That is said a second later: some ticks.
    tracing.wait_for("the recording is over; waiting for the command");
    end_all(&folder);
    let told = told_ticks(&format!("truth {}", tracing.wait_for("truth ")));
    tracing.wait_for("done");
    assert_eq!(tracing.wait().code(), Some(0), "{:?}", tracing.lines());
    assert!(told[0] > ticks_in(file.as_ref()), "{told:?}");

    let launched = demo(&folder, "600");
    let finished = run(trace_of(options.into_iter().chain(["--kill-command"]), &launched));
    // It makes a good end of SIGTERM.
    assert!(finished.expect_code(0).text().contains("done"), "{finished}");
    // This one does not hear it; what it has started outlives it.
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
        // Some ticks.
        eventually("a recording", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 1500).then_some(()));
        tracing.signal(signal);
        let summary = tracing.wait().expect_code(0).json();
        assert_eq!(summary["partial"], Value::Null, "{summary:#}");
        assert!(ticks_in(&file) > 0);
        fs::remove_file(&file).unwrap();
    }
    all_have_ended(folder.path());
}

/// Nobody dials in for longer than we wait: the command runs on, and a runtime that comes later is let go.
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
    tracing.wait_for("warning: no .NET runtime has dialled in after 100ms; the command");
    fs::write(&go, "").unwrap();
    // Suspended until it is told to go on.
    tracing.wait_for("truth ");
    tracing.wait_for("done");
    assert_eq!(tracing.wait().code(), Some(7), "{:?}", tracing.lines());
    assert!(!file.exists(), "it was too late to be recorded");
}

#[test]
fn an_interrupted_start_leaves_the_code_of_the_command() {
    let folder = folder();
    // Not a runtime: it never dials in.
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
    // There is no result, and the command has no code that says so.
    tracing.wait().expect_code(143);
}

/// The program is killed, its parent is content: the recording is not.
#[test]
fn a_partial_recording_of_a_successful_command_is_told() {
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

/// Without the event none of these would ever end.
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

fn two(folder: &TempDir, options: &[&str]) -> Finished {
    let demo = demo(folder, "1");
    let mut launched = shell("\"$@\" & \"$@\"; wait", words(&demo));
    launched.env("TMPDIR", folder.path());
    run(trace_of(options.iter().copied(), &launched))
}

#[test]
fn every_process_that_dials_in_goes_on_and_with_children_is_recorded() {
    let folder = folder();
    let file = folder.path().join("x.speedscope.json");
    let options = ["--show-child-io", "--format", "json", "-o", file.to_str().unwrap()];
    let formats =
        ["--to", "speedscope,nettrace", "--providers", DEMO, "--profile", "dotnet-sampled-thread-time"];

    let one = two(&folder, &[&options[..], &formats].concat());
    assert_eq!(told_ticks(&one.expect_code(0).stderr).len(), 2, "both have run");
    assert_eq!(one.json()["processes"].as_array().unwrap().len(), 1);

    let all = two(&folder, &[&options[..], &formats, &["--children"]].concat());
    let summary = all.expect_code(0).json();
    let processes = summary["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2);
    let second = &processes[1]["pid"];
    let names: Vec<&str> =
        summary["outputs"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    let named = |name: String| folder.path().join(name).to_str().unwrap().to_owned();
    let expected = [
        named("x.speedscope.json".into()),
        named("x.nettrace".into()),
        named(format!("x.{second}.speedscope.json")),
        named(format!("x.{second}.nettrace")),
    ];
    assert_eq!(names, expected);
    let mut recorded = [ticks_in(names[1].as_ref()), ticks_in(names[3].as_ref())];
    recorded.sort_unstable();
    assert_eq!(told_ticks(&all.stderr), recorded);
    for (name, process) in [(names[1], &processes[0]), (names[3], &processes[1])] {
        assert_eq!(counts(name.as_ref(), 0)["process_id"], process["pid"]);
    }
}

/// As many as dial in: each is recorded from its first event to its last, and none waits.
#[test]
fn two_hundred_at_once() {
    const MANY: usize = 200;
    let _machine = beside_others();
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    let demo = demo(&folder, "1");
    let script = format!("i=0; while [ $i -lt {MANY} ]; do \"$@\" & i=$((i+1)); done; wait");
    let mut launched = shell(&script, words(&demo));
    launched.env("TMPDIR", folder.path());
    let options = ["--children", "--providers", DEMO, "--show-child-io", "--format", "json", "-o"];
    let finished = run(trace_of(options.into_iter().chain([file.to_str().unwrap()]), &launched));
    let summary = finished.expect_code(0).json();
    assert_eq!((&summary["partial"], &summary["lost"]), (&Value::Null, &Value::from(0)));
    let mut pids = BTreeSet::new();
    let mut recorded = Vec::new();
    for process in summary["processes"].as_array().unwrap() {
        let counts = counts(process["outputs"][0]["path"].as_str().unwrap().as_ref(), 0);
        assert_eq!(counts["process_id"], process["pid"]);
        recorded.push(count_of(&counts, DEMO, 1));
        pids.insert(process["pid"].as_u64().unwrap());
    }
    assert_eq!(pids.len(), MANY);
    recorded.sort_unstable();
    assert_eq!(told_ticks(&finished.stderr), recorded);
}

#[test]
fn all_processes_can_be_in_one_profile() {
    let folder = folder();
    let file = folder.path().join("x.speedscope.json");
    let formats = "speedscope,folded,chrome,perfetto,firefox,flamegraph,pprof";
    let options = ["--children", "--merge", "--format", "json", "--to", formats, "-o"];
    let finished = two(&folder, &[&options[..], &[file.to_str().unwrap()]].concat());
    let summary = finished.expect_code(0).json();
    let pids: Vec<&Value> =
        summary["processes"].as_array().unwrap().iter().map(|process| &process["pid"]).collect();
    assert_eq!(pids.len(), 2);
    assert_eq!(summary["outputs"].as_array().unwrap().len(), 7, "{summary:#}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 7, "a file a format is left");
    let profile: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let names: Vec<&str> = profile["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|profile| profile["name"].as_str().unwrap())
        .collect();
    let folded = fs::read_to_string(folder.path().join("x.folded")).unwrap();
    let chrome = fs::read(folder.path().join("x.chromium.json")).unwrap();
    let chrome: Value = serde_json::from_slice(&chrome).unwrap();
    let chrome = chrome["traceEvents"].as_array().unwrap();
    let perfetto = fs::read(folder.path().join("x.perfetto-trace")).unwrap();
    let unpacked =
        Command::new("gzip").arg("-dc").arg(folder.path().join("x.firefox.json.gz")).output().unwrap();
    let firefox: Value = serde_json::from_slice(&unpacked.stdout).unwrap();
    let firefox = firefox["threads"].as_array().unwrap();
    for pid in pids {
        let start = format!("demo ({pid}) Thread (");
        assert!(names.iter().any(|name| name.starts_with(&start)), "{start}: {names:?}");
        assert!(folded.lines().any(|line| line.starts_with(&start) && line.contains("hot_work")), "{folded}");
        // Chrome, Perfetto and Firefox know processes.
        let of_it = |event: &&Value| event["pid"] == *pid;
        let named = |name: &str| chrome.iter().filter(of_it).find(|event| event["name"] == name);
        assert_eq!(named("process_name").unwrap()["args"]["name"], "demo", "{pid}");
        let thread = named("thread_name").unwrap()["args"]["name"].as_str().unwrap();
        assert!(thread.starts_with("Thread ("), "{thread}");
        assert!(perfetto.windows(6).any(|bytes| bytes.starts_with(&descriptor_of_a_thread(pid))), "{pid}");
        let own = pid.to_string();
        let thread = firefox.iter().find(|thread| thread["pid"].as_str() == Some(&own));
        let samples = thread.unwrap_or_else(|| panic!("{start}"))["samples"]["length"].as_u64();
        assert!(samples.is_some_and(|samples| samples > 0), "{start}");
    }
    // The stream has no place for a second process.
    let mistake = run(trace_of(["--children", "--merge"], &Command::new("true")));
    mistake.expect_code(2).says("--to speedscope");
}

/// How a description of a thread of this process begins in Perfetto's format: `pid`, and the key of `tid`.
fn descriptor_of_a_thread(pid: &Value) -> Vec<u8> {
    let mut rest = pid.as_u64().expect("a number");
    let mut bytes = vec![0x08];
    while rest >= 0x80 {
        bytes.push(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    bytes.extend([u8::try_from(rest).expect("seven bits"), 0x10]);
    bytes
}

#[test]
fn a_port_is_listened_on_or_dialled() {
    let folder = folder();
    let port = path(&folder, "port");
    let file = path(&folder, "x.nettrace");
    // Suspended until somebody listens.
    let mut launched = demo(&folder, "2");
    launched.env("DOTNET_DiagnosticPorts", &port).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(launched);
    let listen = format!("{port},listen");
    let info = json(["info", "--diagnostic-port", &listen, "--format", "json"]);
    assert_eq!(info["pid"], program.id());
    // That did not let it go on. Without a mode: nobody listens there, so that we do.
    runtap(["trace", "--diagnostic-port", &port, "--providers", DEMO, "-o", &file])
        .expect_code(0)
        .says(&port);
    let truth = program.truth();
    assert_eq!(truth["ticks"], ticks_in(file.as_ref()));
    program.wait();
    assert!(!Path::new(&port).exists());

    let mut launched = demo(&folder, "600");
    launched.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(launched);
    program.wait_for("ready");
    let socket = socket_in(folder.path(), program.id());
    for mode in ["", ",connect"] {
        let port = format!("{}{mode}", socket.display());
        runtap(["trace", "--dport", &port, "--providers", DEMO, "--duration", "0.6s", "-o", &file])
            .expect_code(0);
        assert!(ticks_in(file.as_ref()) > 0);
    }
}

/// Every verb that can wait on a port, and what it takes to be sent.
const WAITING: [&[&str]; 12] = [
    &["doctor"],
    &["info"],
    &["env"],
    &["set-env", "A=1"],
    &["resume"],
    &["dump"],
    &[
        "profiler",
        "attach",
        "--clsid",
        "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0",
        "--path",
        env!("CARGO_BIN_EXE_runtap"),
    ],
    &["perfmap", "enable"],
    &["perfmap", "disable"],
    &["startup-hook", "/hook.dll"],
    &["tail", "--clrevents", "gc"],
    &["trace"],
];

/// A verb at a port of ours, and its socket.
fn wait_at_a_port(folder: &TempDir, verb: &[&str]) -> (Running, PathBuf) {
    let port = folder.path().join("port");
    let mut waiting = command(verb);
    waiting.arg("--diagnostic-port").arg(format!("{},listen", port.display())).current_dir(folder.path());
    let waiting = Running::start(waiting);
    eventually("the socket", || port.exists().then_some(()));
    (waiting, port)
}

/// Nobody dials in; the socket does not stay behind.
#[test]
fn waiting_on_a_port_can_be_interrupted() {
    let folder = folder();
    for verb in WAITING {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let (waiting, port) = wait_at_a_port(&folder, verb);
            waiting.signal(signal);
            waiting.wait().expect_code(code);
            assert!(!port.exists(), "{verb:?}");
        }
    }
}

/// Somebody has dialled in, was asked, and does not answer.
#[test]
fn waiting_for_an_answer_on_a_port_can_be_interrupted() {
    let folder = folder();
    let advertise = Advertise { runtime_cookie: Uuid::from_u128(7), process_id: 1 };
    for verb in WAITING {
        let (waiting, port) = wait_at_a_port(&folder, verb);
        // A connection may be hung up on without a word, and a runtime dials in again then. Held until the end.
        let _asked = eventually("a request", || {
            let mut runtime = UnixStream::connect(&port).ok()?;
            runtime.write_all(&advertise.to_bytes()).ok()?;
            let mut request = [0; 20];
            runtime.read_exact(&mut request).ok()?;
            assert!(request.starts_with(b"DOTNET_IPC_V1\0"), "{request:x?}");
            Some(runtime)
        });
        waiting.signal(Signal::INT);
        waiting.wait().expect_code(130);
        assert!(!port.exists(), "{verb:?}");
    }
}
