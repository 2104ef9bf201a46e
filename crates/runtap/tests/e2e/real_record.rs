//! `record`, `replay` and `inspect` between Microsoft's tools and real runtimes: forwarded bytes are unchanged, the
//! transcript is complete, and replaying it gives the tools equal answers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{Finished, Peer, RealRuntime, Running, Signal, Skip, eventually, run, shared_dir};
use serde_json::{Value, json};

use crate::common::{Target, command, folder, json as document, on, runtap};

on_each_runtime!(
    commands_of_microsofts_library_are_forwarded_unchanged,
    dotnet_trace_gets_an_identical_file_from_a_replay,
    a_program_that_connects_to_a_tool_is_recorded_and_replayed,
    a_second_process_gets_the_requests_of_the_first,
);

const CLASS_ID: &str = "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0";

/// A running `runtap record`.
struct Recorder {
    runtap: Running,
    socket: PathBuf,
    transcript: PathBuf,
}

impl Recorder {
    /// Starts a recorder between its socket and the target that these options select.
    #[track_caller]
    fn start(folder: &Path, name: &str, target: &[&str]) -> Self {
        let (socket, transcript) =
            (folder.join(name).with_extension("sock"), folder.join(name).with_extension("jsonl"));
        let mut command = command(["record"]);
        command.args(target).arg("--listen").arg(&socket).arg("-o").arg(&transcript);
        let runtap = Running::start(command);
        eventually("the recorder's socket", || socket.exists().then_some(()));
        Self { runtap, socket, transcript }
    }

    fn port(&self) -> String {
        format!("{},connect", self.socket.display())
    }

    /// Stops the recorder and returns its transcript.
    #[track_caller]
    fn end(self) -> PathBuf {
        self.runtap.signal(Signal::INT);
        self.runtap.wait().expect_code(0);
        assert!(!self.socket.exists(), "the socket was not removed");
        self.transcript
    }
}

/// Returns the bytes sent on each connection, to the runtime and to the client, in the order of the connections.
fn conversations(transcript: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut order: Vec<String> = Vec::new();
    let mut sent: BTreeMap<String, (Vec<u8>, Vec<u8>)> = BTreeMap::new();
    for line in fs::read_to_string(transcript).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let conn = line["conn"].as_str().unwrap_or_default().to_owned();
        match line["kind"].as_str().unwrap() {
            "open" => order.push(conn),
            "frame" => {
                let bytes = if let Some(hex) = line["hex"].as_str() {
                    from_hex(hex)
                } else {
                    let file = transcript.with_file_name(line["file"].as_str().unwrap());
                    let number = |key: &str| usize::try_from(line[key].as_u64().unwrap()).unwrap();
                    fs::read(file).unwrap()[number("offset")..][..number("bytes")].to_vec()
                };
                let (up, down) = sent.entry(conn).or_default();
                (if line["dir"] == "c2r" { up } else { down }).extend(bytes);
            }
            _ => {}
        }
    }
    order.into_iter().map(|conn| sent.remove(&conn).unwrap_or_default()).collect()
}

fn from_hex(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).unwrap()).unwrap();
    digits.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Checks that every message is decoded; returns the names of the requests in order.
#[track_caller]
fn requests(transcript: &Path) -> Vec<String> {
    let document = document(["inspect", transcript.to_str().unwrap(), "--format", "json"]);
    assert_eq!(document["schema"], "runtap.transcript/1");
    assert_eq!((&document["undecoded"], &document["partial"]), (&Value::from(0), &Value::Null));
    let rows = document["rows"].as_array().unwrap();
    for row in rows.iter().filter(|row| row["what"] == "request" || row["what"] == "reply") {
        assert!(row["name"].is_string() && row["fields"].get("error").is_none(), "{row}");
    }
    // The text output agrees.
    let text = runtap(["inspect", transcript.to_str().unwrap()]);
    let text = text.expect_code(0).text();
    let requests = rows.iter().filter(|row| row["what"] == "request");
    let names: Vec<String> = requests.map(|row| row["name"].as_str().unwrap().to_owned()).collect();
    for name in &names {
        assert!(text.contains(&format!("request {name} (")), "{name}: {text}");
    }
    names
}

fn dncli(peer: &Peer, words: &[&str]) -> Finished {
    let mut command = peer.command();
    command.args(words);
    run(command)
}

/// Returns `runtap OPTIONS -- COMMAND`, with the variables of the command.
fn with_command(options: &[&str], inner: &Command) -> Command {
    let mut command = command(options.iter().copied().chain(["--"]));
    command.env_remove("DOTNET_DiagnosticPorts").arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn commands_of_microsofts_library_are_forwarded_unchanged(runtime: &RealRuntime) -> Result<(), Skip> {
    let peer = Peer::available("dncli")?;
    let shared = shared_dir().ok_or_else(|| Skip::because("there is no shared folder (RUNTAP_SHARED)"))?;
    let target = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let folder = folder();
    let first = Recorder::start(folder.path(), "first", &["-p", &target.p()]);
    // A second recorder between the tools and the first one.
    let second = Recorder::start(folder.path(), "second", &["--diagnostic-port", &first.port()]);
    let port = second.port();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let profiler = shared.join("apps/dotnet/profiler/bin/libdemoprofiler.so").display().to_string();
    let hook = shared.join("apps/dotnet/startuphook/bin/startuphook.dll").display().to_string();
    let (trace, dump) = (place("trace.nettrace"), place("core"));

    let direct = dncli(&peer, &["info", "--port", &format!("{},connect", target.socket().display())]);
    let info = dncli(&peer, &["info", "--port", &port]);
    assert_eq!(info.expect_code(0).json(), direct.expect_code(0).json());
    let session = ["trace", "-o", &trace, "--duration", "1", "--port", &port];
    let attach =
        ["attach-profiler", "--guid", CLASS_ID, "--path", &profiler, "--data", "0102", "--port", &port];
    for (words, code) in [
        (&["env", "--port", &port][..], 0),
        (&["set-env", "--name", "RECORDED", "--value", "secret value", "--port", &port], 0),
        (&session, 0),
        (&["dump", "--path", &dump, "--type", "Normal", "--port", &port], 0),
        (&["perfmap-on", "--type", "PerfMap", "--port", &port], 0),
        (&["perfmap-off", "--port", &port], 0),
        (&["startup-hook", "--path", &hook, "--port", &port], 0),
        (&attach, 0),
        // Rejected the second time.
        (&attach, 1),
        (&["resume", "--port", &port], 0),
    ] {
        dncli(&peer, words).expect_code(code);
    }
    // Neither recorder prevents the target's normal behavior.
    target.still_answers();

    let (second, first) = (second.end(), first.end());
    let (near, far) = (conversations(&second), conversations(&first));
    assert_eq!(near.len(), far.len());
    for (near, far) in near.iter().zip(&far) {
        assert!(near == far, "two recorders in a row have received different bytes");
    }
    let names = requests(&first);
    assert_eq!(names, requests(&second));
    for name in [
        "ProcessInfo3",
        "ProcessEnvironment",
        "SetEnvironmentVariable",
        "CollectTracing2",
        "StopTracing",
        "GenerateCoreDump3",
        "EnablePerfMap",
        "DisablePerfMap",
        "ApplyStartupHook",
        "AttachProfiler",
        "ResumeRuntime",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    // The tool's file equals the stream, and so does the file beside the transcript.
    let beside = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let beside: Vec<PathBuf> = beside.filter(|path| path.to_string_lossy().contains(".jsonl.")).collect();
    assert_eq!(beside.len(), 2, "{beside:?}");
    for path in beside {
        assert!(fs::read(&path).unwrap() == fs::read(&trace).unwrap(), "{}", path.display());
        runtap(["events", path.to_str().unwrap(), "--count"]).expect_code(0);
    }
    // Values are shown only on request.
    let shown = |options: &[&str]| {
        let words = ["inspect", first.to_str().unwrap()];
        runtap(words.iter().chain(options).copied()).expect_code(0).text().to_owned()
    };
    assert!(!shown(&[]).contains("secret value"));
    assert!(shown(&["--show-values"]).contains("secret value"));
    Ok(())
}

/// Returns the answers that a client prints, without durations.
fn printed_answers(finished: &Finished) -> Vec<Value> {
    let lines = finished.text().lines().filter(|line| line.starts_with('{'));
    let mut answers: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    for answer in &mut answers {
        if let Some(members) = answer.get_mut("answer").and_then(Value::as_object_mut) {
            members.retain(|name, _| !name.ends_with("_ms") && name != "path");
        }
    }
    answers
}

fn dotnet_trace_gets_an_identical_file_from_a_replay(runtime: &RealRuntime) -> Result<(), Skip> {
    let (tool, client) = (Peer::available("dotnet-trace")?, Peer::available("dncli")?);
    let target = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let folder = folder();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let collect = |to: &str| {
        let mut command = tool.command();
        command.args([
            "collect",
            "--diagnostic-port",
            "{socket},connect",
            "--duration",
            "00:00:01",
            "-o",
            to,
        ]);
        command
    };
    let (talk, file) = (place("talk.jsonl"), place("file.nettrace"));
    let recorded = run(with_command(&["record", "-p", &target.p(), "-o", &talk], &collect(&file)));
    recorded.expect_code(0);
    assert!(requests(Path::new(&talk)).contains(&"StopTracing".to_owned()));
    let stream = fs::read(&file).unwrap();
    assert!(stream.len() > 10_000);
    drop(target);

    // Without the program, with and without the recorded times.
    for options in [&["replay", &talk][..], &["replay", &talk, "--fast"]] {
        let again = place("again.nettrace");
        run(with_command(options, &collect(&again))).expect_code(0);
        assert!(fs::read(&again).unwrap() == stream, "{options:?}");
        fs::remove_file(&again).unwrap();
    }
    // A tool that sends another request receives a mismatch error.
    let other = place("other.nettrace");
    let mut different = client.command();
    different.args(["trace", "--port", "{socket},connect", "--duration", "1", "--buffer", "3", "-o", &other]);
    let played = run(with_command(&["replay", &talk, "--fast", "--format", "json"], &different));
    let document = played.expect_code(1).json();
    let exchanges = document["exchanges"].as_array().unwrap();
    let session = exchanges.iter().find(|it| it["name"] == "CollectTracing2").unwrap();
    assert_eq!(session["verdict"], "differs");
    let buffer = session["differences"].as_array().unwrap().iter().find(|it| it["field"] == "buffer_mb");
    let buffer = buffer.unwrap_or_else(|| panic!("{session}"));
    assert_eq!((&buffer["recorded"], &buffer["now"]), (&Value::from(256), &Value::from(3)));
    // The header's length depends on the providers: the first field is the size.
    assert!(session["offset"].as_u64().is_some_and(|offset| offset <= 20), "{session}");
    // The recorded bytes were sent anyway.
    assert!(fs::read(&other).unwrap() == stream);
    Ok(())
}

fn a_program_that_connects_to_a_tool_is_recorded_and_replayed(runtime: &RealRuntime) -> Result<(), Skip> {
    let peer = Peer::available("dncli")?;
    let folder = folder();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (port, talk) = (place("port"), place("talk.jsonl"));
    let listen = |file: &str| {
        let mut command = peer.command();
        command.args(["listen", "--socket", &port, "--count", "1", "--set-env", "A=b", "--resume"]);
        // The stream ends with the program, or with its replay.
        command.args(["--duration", "60", "-o", file]);
        let running = Running::start(command);
        eventually("the tool's port", || Path::new(&port).exists().then_some(()));
        running
    };
    let (file, again) = (place("file.nettrace"), place("again.nettrace"));
    let tool = listen(&file);
    let program = runtime.program("spin", &["0.2"])?;
    let options = ["record", "--forward", &port, "-o", &talk];
    let recorded = run(with_command(&options, &program.command()));
    // One for each of five commands, and perhaps one more that the runtime created before it exited.
    assert!(
        ["5", "6"].iter().any(|n| recorded.expect_code(0).stderr.contains(&format!(": {n} connections"))),
        "{recorded}"
    );
    let tool = tool.wait();
    let names = requests(Path::new(&talk));
    for name in ["ProcessInfo3", "SetEnvironmentVariable", "CollectTracing2", "ResumeRuntime"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    // The tool may leave its socket.
    let _ = fs::remove_file(&port);
    let other = listen(&again);
    let played = runtap(["replay", &talk, "--dial", &port, "--format", "json"]);
    let other = other.wait();
    assert_eq!(printed_answers(&other), printed_answers(&tool));
    assert_eq!(other.code(), tool.code());
    assert!(fs::read(&again).unwrap() == fs::read(&file).unwrap());
    assert_eq!(played.expect_code(0).json()["same"], true);
    Ok(())
}

fn a_second_process_gets_the_requests_of_the_first(runtime: &RealRuntime) -> Result<(), Skip> {
    let peer = Peer::available("dncli")?;
    let target = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let folder = folder();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let recorder = Recorder::start(folder.path(), "talk", &["-p", &target.p()]);
    let (port, trace) = (recorder.port(), place("trace.nettrace"));
    dncli(&peer, &["info", "--port", &port]).expect_code(0);
    dncli(&peer, &["trace", "-o", &trace, "--duration", "1", "--port", &port]).expect_code(0);
    // A request that would crash a runtime is not sent, even if a recording contains it.
    let mut fatal = b"DOTNET_IPC_V1\0\x14\0\x05\x01\0\0".to_vec();
    fatal[16..18].copy_from_slice(&[2, 3]);
    let talk = recorder.end();
    let mut text = fs::read_to_string(&talk).unwrap();
    let digits = fatal.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"));
    let frame = json!({ "kind": "frame", "t": 0.1, "conn": "x", "dir": "c2r", "hex": digits });
    text += "{\"kind\":\"open\",\"t\":0.1,\"conn\":\"x\"}\n";
    text += &(frame.to_string() + "\n");
    fs::write(&talk, text).unwrap();
    let talk = talk.display().to_string();

    let other = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let played = runtap(["replay", &talk, "--as", "client", "-p", &other.p(), "--fast", "--format", "json"]);
    let document = played.expect_code(1).json();
    let exchanges = document["exchanges"].as_array().unwrap();
    let verdict = |name: &str| {
        let of = exchanges.iter().filter(|it| it["name"] == name);
        of.map(|it| it["verdict"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(verdict("ProcessInfo3"), ["same"], "{document}");
    assert_eq!(verdict("CollectTracing2"), ["same", "not-sent"].into_iter().rev().collect::<Vec<_>>());
    assert_eq!(verdict("StopTracing"), ["same"]);
    let refused = exchanges.iter().find(|it| it["verdict"] == "not-sent").unwrap();
    assert!(refused["reason"].as_str().unwrap().contains("circular buffer size"), "{refused}");
    let differences = exchanges.iter().flat_map(|it| it["differences"].as_array().unwrap());
    let identities: Vec<&Value> = differences.clone().filter(|it| it["identity"] == true).collect();
    assert_eq!(identities.len(), differences.count(), "{document}");
    assert!(identities.iter().any(|it| it["field"] == "process_id" && it["now"] == other.pid()));
    other.still_answers();
    target.still_answers();
    Ok(())
}

fn killed(runtime: &RealRuntime) -> Result<(), Skip> {
    let peer = Peer::available("dncli")?;
    let target = Target::start(runtime.program("spin", &["60"])?);
    let folder = folder();
    let recorder = Recorder::start(folder.path(), "talk", &["-p", &target.p()]);
    let trace = folder.path().join("trace.nettrace");
    let mut tool = peer.command();
    let samples = ["--providers", "Microsoft-DotNETCore-SampleProfiler:0:4"];
    tool.args(["trace", "--duration", "60", "--port", &recorder.port()]).args(samples).arg("-o").arg(&trace);
    let tool = Running::start(tool);
    // The tool buffers received data for a while; the recorder does not. A chunk is in the stream's file before its
    // line is in the transcript, so the lines show how much is stored.
    let kept = || {
        let lines = fs::read_to_string(&recorder.transcript).unwrap_or_default();
        let frames = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        frames.filter(|line| line["file"].is_string()).filter_map(|line| line["bytes"].as_u64()).sum::<u64>()
    };
    eventually("a part of the stream", || (kept() > 5_000).then_some(()));
    recorder.runtap.signal(Signal::KILL);
    recorder.runtap.wait();
    // The tool would continue for the rest of its minute.
    drop(tool);
    let talk = recorder.transcript.display().to_string();
    let inspected = runtap(["inspect", &talk, "--format", "json"]);
    assert!(matches!(inspected.code(), Some(0 | 5)), "{inspected}");
    let document = inspected.json();
    assert_eq!(document["undecoded"], 0);
    // Bytes that the tool received were written to the transcript before.
    let conversations = conversations(&recorder.transcript);
    let (_, down) = conversations.iter().find(|(_, down)| down.len() > 5_000).unwrap();
    let got = fs::read(&trace).unwrap();
    let behind_reply = &down[28..];
    assert!(behind_reply.starts_with(&got), "{} of {}", got.len(), behind_reply.len());
    // The program has only lost a client.
    target.still_answers();
    Ok(())
}

#[test]
fn a_killed_recorder_leaves_all_received_bytes() {
    on(None, killed);
}

/// A hook that can't be loaded crashes .NET 10: a recorder forwards the request, and shows the outcome.
fn crashing_hook(runtime: &RealRuntime) -> Result<(), Skip> {
    let peer = Peer::available("dncli")?;
    let mut target = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let folder = folder();
    let talk = folder.path().join("talk.jsonl").display().to_string();
    let mut inner = peer.command();
    inner.args(["startup-hook", "--path", "/nope.dll", "--port", "{socket},connect"]);
    // The exit code is the tool's own; the transcript is complete.
    let recorded = run(with_command(&["record", "-p", &target.p(), "-o", &talk], &inner));
    recorded.expect_code(1).says("1 connection, 1 ");
    assert!(!target.program.wait().success());
    assert_eq!(requests(Path::new(&talk)), ["ApplyStartupHook"]);
    // When replayed, the connection ends in the recorded way, without a process.
    let played = run(with_command(&["replay", &talk], &inner));
    assert_eq!(printed_answers(&played), printed_answers(&recorded));
    played.expect_code(1);
    // A live runtime is protected.
    let other = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let (p, words) = (other.p(), ["replay", &talk, "--as", "client", "--format", "json"]);
    let played = |more: &[&str]| {
        let document = runtap([&words[..], &["-p", &p], more].concat()).expect_code(1).json();
        assert_eq!(document["exchanges"][0]["verdict"], "not-sent", "{document}");
        document["exchanges"][0]["reason"].as_str().unwrap().to_owned()
    };
    assert!(played(&[]).contains("--allow-changes"));
    assert!(!played(&["--allow-changes"]).contains("--allow-changes"));
    other.still_answers();
    Ok(())
}

#[test]
fn a_request_that_crashes_the_runtime_is_forwarded_once() {
    on(Some(10), crashing_hook);
}

fn by_process_id(runtime: &RealRuntime) -> Result<(), Skip> {
    let tool = Peer::available("dncli")?;
    // With TMPDIR in the process's environment, the tool would find its real socket.
    let program = runtime.program("spin", &["0.05", "1000", "--stdin"])?.without_env("TMPDIR");
    let program = program.spawn();
    let p = program.id().to_string();
    let folder = folder();
    let talk = folder.path().join("talk.jsonl").display().to_string();
    let mut inner = tool.command();
    inner.args(["info", "--pid", &p]);
    let recorded = run(with_command(&["record", "-p", &p, "-o", &talk], &inner));
    recorded.expect_code(0);
    assert_eq!(requests(Path::new(&talk)), ["ProcessInfo3"]);
    // With output to stdout all data is in one stream.
    let inline = run(with_command(&["record", "-p", &p, "-o", "-"], &inner));
    let lines: Vec<Value> =
        inline.expect_code(0).text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.first().unwrap()["kind"], "header");
    assert_eq!(lines.last().unwrap()["code"], 0);
    // The tool requires the process to exist, but connects to runtap.
    let played = run(with_command(&["replay", &talk], &inner));
    assert_eq!(printed_answers(&played), printed_answers(&recorded));
    played.expect_code(0);
    // A process whose environment reveals its socket: the tool has not connected to runtap, which is reported.
    let target = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let mut inner = tool.command();
    inner.args(["info", "--pid", &target.p()]);
    let bypassed = run(with_command(&["record", "-p", &target.p(), "-o", &talk], &inner));
    bypassed.expect_code(0).says("no tool has connected");
    Ok(())
}

#[test]
fn a_tool_finds_the_recorder_by_the_process_id() {
    on(None, by_process_id);
}
