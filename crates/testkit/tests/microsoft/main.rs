//! Microsoft's own clients against our server: dotnet-trace, and their client library (dncli).

#![cfg(target_os = "linux")]

mod commands;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use runtap_diag_proto::{
    AttachProfiler, CoreDump, ErrorReply, Hresult, PerfMapType, StartupProfiler, Variable,
};
use runtap_diag_server::{
    Builder, Commands, ConnectPort, EventData, EventPipe, ProcessDescription, ServerThread,
};
use runtap_nettrace::{Field, FieldType, Metadata, Reader, StreamItem};
use runtap_testkit::{Peer, require};
use runtap_wire::Writer;
use serde_json::Value;

const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// Methods of the made-up program, each 0x100 bytes long.
const METHODS: [(u64, &str); 4] =
    [(0x7000_0000, "Main"), (0x7000_0100, "Loop"), (0x7000_0200, "hot_work"), (0x7000_0300, "warm_work")];
const MODULE: u64 = 0x6000_0000;

/// A server in this process with a thread that counts and takes samples of a made-up program.
struct Target {
    server: ServerThread,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Target {
    fn new(path: Option<&Path>) -> Self {
        Self::with(|builder| match path {
            Some(path) => builder.path(path),
            None => builder,
        })
    }

    /// Starts a program that is suspended and connects to the port of a tool.
    fn connecting(folder: &Path, port: &Path) -> Self {
        Self::with(|builder| builder.path(folder.join("default")).connect_port(ConnectPort::new(port)))
    }

    fn with(change: impl FnOnce(Builder) -> Builder) -> Self {
        let pipe = EventPipe::new();
        let mut tick = Metadata::new("Test-Events", 1, "Tick");
        (tick.keywords, tick.level) = (1, 4);
        tick.fields = vec![Field::new("n", FieldType::I32), Field::new("text", FieldType::String)];
        let tick = pipe.define(tick).unwrap();
        let sample = pipe.define(Metadata::new(SAMPLER, 0, "")).unwrap();
        rundown(&pipe);

        let description = ProcessDescription::of_this_process()
            .entry_assembly("demo")
            .environment(vec![Variable::new("A", "b=c"), Variable::new("É", "")]);
        let server = change(Builder::new(description).pipe(pipe)).spawn().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut n = 0;
            while !stopped.load(Ordering::Relaxed) {
                let leaf = METHODS[if n % 4 == 3 { 3 } else { 2 }].0;
                let stack = [leaf + 0x10, METHODS[1].0 + 0x20, METHODS[0].0 + 0x30];
                let payload = 2u32.to_le_bytes();
                sample.write(&EventData {
                    thread_id: Some(4242),
                    stack: &stack,
                    payload: &payload,
                    ..EventData::default()
                });
                if tick.is_enabled() {
                    let mut payload = Writer::new();
                    payload.i32(n).utf16z("text é😀");
                    tick.write_here(payload.as_bytes());
                }
                n += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { server, stop, thread: Some(thread) }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Names for the addresses, as a runtime gives them at the end of a session.
fn rundown(pipe: &EventPipe) {
    let define = |id: u32, version: u32, keywords: u64| {
        let mut metadata = Metadata::new(RUNDOWN, id, "");
        (metadata.version, metadata.keywords, metadata.level) = (version, keywords, 4);
        pipe.define(metadata).unwrap()
    };
    let module = define(154, 2, 0x8);
    let method = define(144, 2, 0x10);
    pipe.on_rundown(move |out| {
        let mut w = Writer::new();
        w.u64(MODULE).u64(0x5000_0000).u32(8).u32(0).utf16z("/app/demo.dll").utf16z("").u16(0);
        w.bytes(&[0; 16]).u32(0).utf16z("").bytes(&[0; 16]).u32(0).utf16z("");
        out.write(&module, w.as_bytes());
        for (n, (start, name)) in (1..).zip(METHODS) {
            let mut w = Writer::new();
            w.u64(0x6100_0000 + 16 * n).u64(MODULE).u64(start).u32(0x100).u32(0x0600_0000).u32(8 | 4 << 7);
            w.utf16z("Demo.Program").utf16z(name).utf16z("void  ()").u16(0).u64(0);
            out.write(&method, w.as_bytes());
        }
    });
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// The numbers of the Tick events in order, after a check that the file is whole.
fn ticks(file: &Path) -> Vec<u32> {
    let mut reader = Reader::new();
    reader.feed(&fs::read(file).unwrap());
    reader.finish();
    let mut numbers = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let StreamItem::Event(event) = item
            && event.metadata.is_some_and(|metadata| metadata.name == "Tick")
        {
            numbers.push(u32::from_le_bytes(*event.payload.first_chunk().unwrap()));
        }
    }
    assert!(reader.is_complete());
    assert_eq!(reader.lost(), 0);
    numbers
}

fn is_a_run_of_numbers(numbers: &[u32]) -> bool {
    !numbers.is_empty() && numbers.windows(2).all(|pair| pair[0] + 1 == pair[1])
}

#[test]
fn real_dotnet_trace_lists_records_and_converts() {
    let peer = require!(Peer::available("dotnet-trace"));
    let dir = tempfile::tempdir().unwrap();
    let target = Target::new(None);
    let pid = std::process::id().to_string();

    symlink(target.server.path(), dir.path().join(target.server.path().file_name().unwrap())).unwrap();
    let listed = peer.pids_listed(dir.path());
    assert!(listed.contains(&std::process::id()), "{listed:?}");

    let file = dir.path().join("t.nettrace");
    let providers = format!("Test-Events:1:5,{SAMPLER}:0:4");
    run(peer
        .command()
        .args(["collect", "-p", &pid, "--duration", "00:00:00:01", "--providers", &providers, "-o"])
        .arg(&file));
    assert!(is_a_run_of_numbers(&ticks(&file)));
    drop(target);

    run(peer.command().args(["convert", "--format", "Speedscope"]).arg(&file));
    let converted = fs::read(dir.path().join("t.speedscope.json")).unwrap();
    let converted: Value = serde_json::from_slice(&converted).unwrap();
    let frames = converted["shared"]["frames"].as_array().unwrap();
    let names: Vec<_> = frames.iter().filter_map(|frame| frame["name"].as_str()).collect();
    for (_, method) in METHODS {
        assert!(names.contains(&format!("demo!Demo.Program.{method}()").as_str()), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains('?')), "{names:?}");
    let profiles = converted["profiles"].as_array().unwrap();
    assert!(profiles.iter().any(|profile| profile["name"].as_str() == Some("Thread (4242)")), "{profiles:?}");
}

/// What dncli answers: one JSON object.
fn dncli(peer: &Peer, socket: &Path, arguments: &[&str]) -> Value {
    let port = format!("{},connect", socket.display());
    let output = peer.command().args(&arguments[..1]).args(["--port", &port]).args(&arguments[1..]).output();
    let output = output.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn real_client_library_is_served() {
    let peer = require!(Peer::available("dncli"));
    let dir = tempfile::tempdir().unwrap();
    let target = Target::new(Some(&dir.path().join("s")));

    for version in ["1", "2", "3"] {
        let info = dncli(&peer, target.server.path(), &["info", "--version", version]);
        assert_eq!(info["ok"], true, "{info}");
        assert_eq!(info["answer"]["ProcessId"], std::process::id().to_string());
        assert_eq!(info["answer"]["ManagedEntrypointAssemblyName"], "demo");
    }
    let env = dncli(&peer, target.server.path(), &["env"]);
    assert_eq!(env["answer"]["env"], serde_json::json!({"A": "b=c", "É": ""}), "{env}");
    assert_eq!(dncli(&peer, target.server.path(), &["resume"])["ok"], true);
    let set = dncli(&peer, target.server.path(), &["set-env", "--name", "N", "--value", "V"]);
    assert_eq!(set["ok"], true, "{set}");
    let env = dncli(&peer, target.server.path(), &["env"]);
    assert_eq!(env["answer"]["env"], serde_json::json!({"A": "b=c", "É": "", "N": "V"}), "{env}");
    assert_eq!(target.server.variable("N").as_deref(), Some("V"));
    // As of a NativeAOT runtime.
    let refused = dncli(&peer, target.server.path(), &["perfmap-on"]);
    assert_eq!(refused["error"]["type"], "ServerErrorException", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("Not supported by this runtime"));

    // Each form of CollectTracing that the library has: 2, 3 and 4.
    for form in [&[][..], &["--no-stackwalk"], &["--rundown-keyword", "0x10"], &["--no-rundown"]] {
        let file = dir.path().join("t.nettrace");
        let mut arguments = vec!["trace", "-o", file.to_str().unwrap(), "--duration", "1"];
        arguments.extend(["--providers", "Test-Events:1:5"]);
        arguments.extend(form);
        let traced = dncli(&peer, target.server.path(), &arguments);
        assert_eq!(traced["ok"], true, "{traced}");
        assert_eq!(traced["answer"]["stop"], "acknowledged", "{traced}");
        assert_eq!(traced["answer"]["stream_complete"], true, "{traced}");
        assert!(is_a_run_of_numbers(&ticks(&file)), "{form:?}");
    }
}

#[test]
fn real_dotnet_trace_listens_and_resumes_us() {
    let peer = require!(Peer::available("dotnet-trace"));
    let dir = tempfile::tempdir().unwrap();
    let (port, file) = (dir.path().join("port"), dir.path().join("t.nettrace"));
    let target = Target::connecting(dir.path(), &port);
    assert!(target.server.dispatcher().is_suspended());
    let mut listen = peer.command();
    listen.arg("collect").arg("--diagnostic-port").arg(format!("{},listen", port.display()));
    run(listen.args(["--duration", "00:00:00:01", "--providers", "Test-Events:1:5", "-o"]).arg(&file));
    assert!(is_a_run_of_numbers(&ticks(&file)));
    assert!(!target.server.dispatcher().is_suspended());
}

#[test]
fn real_client_library_takes_us_from_its_port() {
    let peer = require!(Peer::available("dncli"));
    let dir = tempfile::tempdir().unwrap();
    let (port, file) = (dir.path().join("port"), dir.path().join("t.nettrace"));
    let target = Target::connecting(dir.path(), &port);
    let mut listen = peer.command();
    listen.args(["listen", "--resume", "--duration", "1", "--providers", "Test-Events:1:5", "--socket"]);
    let output = run(listen.arg(&port).arg("-o").arg(&file));
    let said = String::from_utf8(output.stdout).unwrap();
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(said.iter().all(|line| line["ok"] == true), "{said:?}");
    let advertised = said.iter().find(|line| line["command"] == "advertise").unwrap();
    let cookie = target.server.dispatcher().description().info.runtime_cookie;
    assert_eq!(advertised["answer"]["pid"], std::process::id());
    assert_eq!(advertised["answer"]["cookie"], cookie.to_string());
    assert!(said.iter().any(|line| line["command"] == "resume"), "{said:?}");
    assert!(!target.server.dispatcher().is_suspended());
    assert!(is_a_run_of_numbers(&ticks(&file)));
}

/// A program that carries out everything, notes it, and can't write to `/full`.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Commands for Notes {
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        self.note(format!("dump {} {:?} {:?}", dump.path, dump.kind, dump.flags));
        if dump.path == "/full" {
            return Err(ErrorReply { hresult: Hresult::E_FAIL, message: Some("no room é".into()) });
        }
        Ok(())
    }

    fn attach_profiler(&self, profiler: &AttachProfiler) -> Result<(), Hresult> {
        self.note(format!("attach {} {} {:?}", profiler.class_id, profiler.path, profiler.client_data));
        Err(Hresult::PROFILER_ALREADY_ACTIVE)
    }

    fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Hresult> {
        self.note(format!("startup {} {}", profiler.class_id, profiler.path));
        Ok(())
    }

    fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Hresult> {
        self.note(format!("set {name} {value:?}"));
        Ok(())
    }

    fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Hresult> {
        self.note(format!("perf map {kind:?}"));
        Ok(())
    }

    fn disable_perf_map(&self) -> Result<(), Hresult> {
        self.note("no perf map".into());
        Ok(())
    }

    fn apply_startup_hook(&self, path: &str) -> Result<(), Hresult> {
        self.note(format!("hook {path}"));
        Ok(())
    }
}

#[test]
fn real_client_library_has_its_commands_carried_out() {
    let peer = require!(Peer::available("dncli"));
    let dir = tempfile::tempdir().unwrap();
    let notes = Arc::new(Notes::default());
    let commands = Arc::clone(&notes);
    let target = Target::with(|builder| builder.path(dir.path().join("s")).commands(commands));
    let ask = |arguments: &[&str]| dncli(&peer, target.server.path(), arguments);

    let guid = "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0";
    for arguments in [
        &["dump", "--path", "/x.dmp", "--type", "Full", "--flags", "5"][..],
        &["startup-profiler", "--guid", guid, "--path", "/p.so"],
        &["startup-hook", "--path", "/hook.dll"],
        &["set-env", "--name", "N", "--value", "é"],
        &["perfmap-on", "--type", "JitDump"],
        &["perfmap-off"],
    ] {
        let answer = ask(arguments);
        assert_eq!(answer["ok"], true, "{answer}");
    }
    let full = ask(&["dump", "--path", "/full"]);
    assert!(full["error"]["message"].as_str().unwrap().contains("no room é"), "{full}");
    let active = ask(&["attach-profiler", "--guid", guid, "--path", "/p.so", "--data", "01ff"]);
    assert_eq!(active["error"]["type"], "ProfilerAlreadyActiveException", "{active}");
    let mut said = notes.0.lock().unwrap().clone();
    // Which type dncli takes by itself is its own affair.
    let full = said.iter().position(|line| line.starts_with("dump /full")).unwrap();
    said.remove(full);
    assert_eq!(
        said,
        [
            "dump /x.dmp 4 (full) DumpFlags(5)",
            "startup d0d0cafe-0001-4002-8003-a0b0c0d0e0f0 /p.so",
            "hook /hook.dll",
            "set N Some(\"é\")",
            "perf map JitDump",
            "no perf map",
            "attach d0d0cafe-0001-4002-8003-a0b0c0d0e0f0 /p.so [1, 255]",
        ]
    );
}
