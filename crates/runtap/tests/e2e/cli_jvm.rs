//! `jvm hq` and `demo jvm`: the collected data equals what was sent, agents exit in order, and scripts control agents.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::{Command, Dialect, Mode};
use runtap_testkit::fake_agent::{FakeAgent, Step, recorded};
use runtap_testkit::{eventually, require, shared_data};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{command, folder, runtap};

/// A running collector.
pub(crate) struct Collector {
    child: Child,
    pub(crate) address: SocketAddr,
    told: Arc<Mutex<String>>,
    heard: Option<JoinHandle<()>>,
    result: Option<JoinHandle<Vec<u8>>>,
}

impl Collector {
    /// Starts `jvm hq` with these arguments, on its own port.
    #[track_caller]
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut collector = command(["jvm", "hq", "--listen", "127.0.0.1:0"]);
        collector.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = collector.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let told = Arc::<Mutex<String>>::default();
        let shared = Arc::clone(&told);
        let heard = thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut told = shared.lock().unwrap();
                told.push_str(&line);
                told.push('\n');
            }
        });
        let result = thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let address = eventually("an address", || {
            let told = told.lock().unwrap();
            let (_, rest) = told.split_once("bytefrog-tracer.jar=")?;
            rest.split_whitespace().next()?.parse().ok()
        });
        Self { child, address, told, heard: Some(heard), result: Some(result) }
    }

    /// Returns the text printed to stderr so far.
    pub(crate) fn stderr_so_far(&self) -> String {
        self.told.lock().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        eventually(text, || self.stderr_so_far().contains(text).then_some(()));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the exit: returns stdout, stderr and the exit code.
    #[track_caller]
    pub(crate) fn wait(mut self) -> (String, String, Option<i32>) {
        let status = eventually("its end", || self.child.try_wait().unwrap());
        let printed = self.result.take().unwrap().join().unwrap();
        self.heard.take().unwrap().join().unwrap();
        (String::from_utf8(printed).unwrap(), self.stderr_so_far(), status.code())
    }

    /// Waits for the exit with this code; returns the agents of the JSON document.
    #[track_caller]
    pub(crate) fn agents(self, code: i32) -> Vec<Value> {
        let (printed, told, status) = self.wait();
        assert_eq!(status, Some(code), "{told}");
        let document: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(document["schema"], "runtap.jvm/1");
        document["agents"].as_array().unwrap().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the status of an agent from the collector at this control socket.
#[track_caller]
pub(crate) fn status(control: &Path, agent: usize) -> Value {
    let mut stream = UnixStream::connect(control).unwrap();
    stream.write_all(b"status\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str::<Value>(&line).unwrap()["agents"].get(agent).cloned().unwrap_or_default()
}

/// Replays the bytes of a recorded agent to their end.
#[track_caller]
pub(crate) fn play(address: SocketAddr, dialect: Dialect, steps: &[Step]) {
    FakeAgent::connect(address, dialect).unwrap().run(steps).unwrap();
}

const VERSIONS: [(&str, u64); 5] = [("1", 1), ("2", 2), ("3", 3), ("4", 4), ("f1", 241)];

/// In every version, the collected data equals the built-in program's own counts.
#[test]
fn the_collected_data_equals_the_counts_of_the_demo() {
    let runs = VERSIONS.map(|(version, number)| {
        thread::spawn(move || {
            let words = ["demo", "jvm", "--duration", "1s", "--version", version, "--format", "json"];
            (number, runtap(words))
        })
    });
    for run in runs {
        let (number, run) = run.join().unwrap();
        let document = run.expect_code(0).json();
        let (_, truth) = run.stderr.split_once("What the demo program reported doing: ").unwrap();
        let truth: Value = serde_json::from_str(truth.lines().next().unwrap()).unwrap();
        let agent = &document["agents"][0];
        assert_eq!(agent["version"], number);
        for member in ["entries", "exits", "exceptions", "bubbles", "markers"] {
            assert_eq!(agent[member], truth[member], "{number}: {member}");
        }
        assert!(truth["entries"].as_u64().unwrap() > 0, "{truth}");
        let methods = agent["methods"].as_array().unwrap();
        assert_eq!(methods.len(), truth["methods"].as_object().unwrap().len());
        for method in methods {
            assert_eq!(method["entries"], truth["methods"][method["signature"].as_str().unwrap()]);
        }
        assert_eq!((&agent["gaps"], &agent["data_breaks"]), (&0.into(), &0.into()));
        assert_eq!(agent["classes"]["transformed"], 8);
        let has_one_count = agent["first_sequence"].is_u64();
        assert_eq!(has_one_count, number != 241, "{agent}");
    }
}

/// Checks that an agent's document has exactly these members.
pub(crate) fn has_the_members_of_an_agent(document: &Value) {
    let members: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    let mut contract = [
        "version",
        "run_id",
        "entries",
        "exits",
        "exceptions",
        "bubbles",
        "markers",
        "data_breaks",
        "signatures",
        "threads",
        "first_sequence",
        "last_sequence",
        "gaps",
        "missing",
        "dropped",
        "drops_of_unknown_size",
        "untimed_entries",
        "classes",
        "methods",
    ];
    contract.sort_unstable();
    assert_eq!(members, contract);
}

/// The documented members are present, and no others.
#[test]
fn the_document_has_the_members_of_the_contract() {
    let (dialect, steps) = require!(recorded("v1_basic"));
    let told: Value = serde_json::from_slice(&require!(shared_data("bytefrog/v1_basic.json"))).unwrap();
    let collector = Collector::start(&["--once", "--format", "json"]);
    play(collector.address, dialect, &steps);
    let agents = collector.agents(0);
    let [agent] = &agents[..] else { panic!("{agents:?}") };
    has_the_members_of_an_agent(agent);
    let counts = &told["streams"]["data0.a2h"]["counts"];
    for (member, message) in [
        ("entries", "methodEntry"),
        ("exits", "methodExit"),
        ("exceptions", "exception"),
        ("bubbles", "exceptionBubble"),
        ("signatures", "mapMethodSignature"),
    ] {
        assert_eq!(agent[member], counts[message], "{member}");
    }
    assert_eq!((&agent["first_sequence"], &agent["last_sequence"]), (&0.into(), &5133.into()));
    assert_eq!((&agent["classes"]["transformed"], &agent["classes"]["ignored"]), (&4.into(), &35.into()));
    let method = agent["methods"][0].as_object().unwrap();
    let mut members: Vec<&str> = method.keys().map(String::as_str).collect();
    members.sort_unstable();
    let contract =
        ["entries", "exception_exits", "exits", "self_ns", "signature", "total_ns", "untimed_entries"];
    assert_eq!(members, contract);
}

/// The report contains the calls and exceptions, and fits into a terminal.
#[test]
fn the_report_has_calls_and_exceptions() {
    let (dialect, steps) = require!(recorded("v1_basic"));
    let collector = Collector::start(&["--once", "--slow", "10ms", "--limit", "0"]);
    play(collector.address, dialect, &steps);
    let (printed, told, code) = collector.wait();
    assert_eq!(code, Some(0), "{told}");
    for text in [
        "2,542 calls of 20 methods in 3 threads; 50 exceptions thrown, 50 calls ended by an exception",
        "4 classes transformed, 35 ignored, 0 failed",
        "demo.Counts.fib(int)",
        "swallowed",
        "java.lang.NullPointerException",
    ] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
    for text in ["agent 0 connected from 127.0.0.1:", "agent 0 is initializing", "agent 0 ended"] {
        assert!(told.contains(text), "{text}: {told}");
    }
}

/// Ctrl-C stops the agents, collects their remaining data, and gives a complete result.
#[test]
fn an_interrupt_stops_the_agents_and_prints_the_results() {
    for (version, signal) in [("1", Signal::INT), ("f1", Signal::TERM)] {
        let folder = folder();
        let path = folder.path().join("hq.sock");
        let collector = Collector::start(&["--format", "json", "--control", path.to_str().unwrap()]);
        let address = collector.address.to_string();
        let agent = thread::spawn(move || {
            runtap(["demo", "jvm-agent", "--connect", &address, "--seconds", "60", "--version", version])
        });
        eventually("calls", || (status(&path, 0)["entries"].as_u64()? > 0).then_some(()));
        collector.signal(signal);
        let agents = collector.agents(0);
        let program = agent.join().unwrap();
        let (_, truth) = program.expect_code(0).text().split_once("truth ").unwrap();
        let truth: Value = serde_json::from_str(truth.lines().next().unwrap()).unwrap();
        assert_eq!(agents[0]["entries"], truth["entries"]);
        assert!(agents[0]["entries"].as_u64().unwrap() > 0);
    }
}

/// The collector waits for an agent that does not exit, until a second interrupt.
#[test]
fn a_second_interrupt_does_not_wait() {
    let collector = Collector::start(&["--format", "json"]);
    let mut agent = FakeAgent::connect(collector.address, Dialect::V1).unwrap();
    agent
        .run(&[
            Step::Hello,
            Step::AwaitConfiguration,
            Step::Await(Command::Start),
            Step::Heartbeat(Mode::Tracing),
        ])
        .unwrap();
    collector.wait_for("is tracing");
    collector.signal(Signal::INT);
    collector.wait_for("Ctrl-C again stops waiting");
    let began = Instant::now();
    collector.signal(Signal::INT);
    assert_eq!(collector.agents(5).len(), 1);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    agent.run(&[Step::Await(Command::Stop)]).unwrap();
}

/// Without an agent there is nothing to report.
#[test]
fn a_run_without_agents_is_reported() {
    let (_, told, code) = Collector::start(&["--duration", "200ms"]).wait();
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("no agent has connected"), "{told}");
    let collector = Collector::start(&[]);
    collector.signal(Signal::INT);
    assert_eq!(collector.wait().2, Some(130));
    runtap(["jvm", "hq", "--listen", "0.0.0.0:0", "--duration", "100ms"]).expect_code(2).says("--insecure");
    runtap(["jvm", "hq", "--listen", "8765"]).expect_code(2).says("HOST:PORT");
    let taken = Collector::start(&["--duration", "60s"]);
    let address = taken.address.to_string();
    runtap(["jvm", "hq", "--listen", &address]).expect_code(1).says("Another collector");
}

/// Commands of a script reach the agents; only the current user can access the socket.
#[test]
fn scripts_command_agents() {
    let folder = folder();
    let path = folder.path().join("hq.sock");
    let path = path.to_str().unwrap();
    let collector = Collector::start(&["--no-start", "--control", path, "--format", "json"]);
    let send = |command: &str| runtap(["jvm", "hq", "--control", path, "--send", command]);
    let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(send("status").expect_code(0).json()["agents"], Value::Array(Vec::new()));
    send("stop").expect_code(4);
    let mut agent = FakeAgent::connect(collector.address, Dialect::V4).unwrap();
    agent.run(&[Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::Initializing)]).unwrap();
    collector.wait_for("is initializing");
    // The original agent would hang.
    send("stop").expect_code(4);
    send("start 7").expect_code(4);
    for command in Command::ALL.into_iter().filter(|command| *command != Command::Stop) {
        send(command.name()).expect_code(0);
        agent.run(&[Step::Await(command)]).unwrap();
    }
    assert_eq!(agent.errors, Vec::<String>::new());
    let status = send("status").expect_code(0).json();
    assert_eq!((&status["type"], &status["agents"][0]["mode"]), (&"status".into(), &"tracing".into()));
    assert_eq!(send("report 0").expect_code(0).json()["schema"], "runtap.jvm/1");
    send("dance").expect_code(2).says("'dance' is not a command");
    agent.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).unwrap();
    collector.wait_for("agent 0 ended");
    send("quit").expect_code(0);
    assert_eq!(collector.agents(0).len(), 1);
    assert!(fs::metadata(path).is_err());
    send("status").expect_code(3).says("--control");
}

/// A client that sends nothing, half a line, garbage or too much does not delay other clients.
#[test]
fn hostile_clients_of_the_control_socket_do_not_block_others() {
    let folder = folder();
    let path = folder.path().join("hq.sock");
    let collector = Collector::start(&["--control", path.to_str().unwrap(), "--format", "json"]);
    let mut silent: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
    for (client, bytes) in
        silent.iter_mut().zip([&b"sta"[..], b"\xff\xfe\0\n", b"\n\n\n", b"report report\n"])
    {
        client.write_all(bytes).unwrap();
    }
    let mut endless = UnixStream::connect(&path).unwrap();
    endless.write_all(&[b'x'; 5000]).unwrap();
    let mut answer = String::new();
    // The server closes the connection with unread bytes.
    let _ = endless.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.contains("too long"), "{answer}");
    let junk = silent.get_mut(1).unwrap();
    let mut line = String::new();
    BufReader::new(junk).read_line(&mut line).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["type"], "error");
    runtap(["jvm", "hq", "--control", path.to_str().unwrap(), "--send", "status"]).expect_code(0);
    collector.signal(Signal::TERM);
    assert_eq!(collector.wait().2, Some(143));
}

/// A recording gives the report of the live collection.
#[test]
fn a_recording_gives_the_report_of_the_collection() {
    let (dialect, steps) = require!(recorded("v4_basic"));
    let folder = folder();
    let path = folder.path().join("recording");
    let path = path.to_str().unwrap();
    let collector = Collector::start(&["--once", "--record", path, "--format", "json"]);
    play(collector.address, dialect, &steps);
    let live = collector.agents(0);
    let again = runtap(["jvm", "replay", path, "--format", "json"]).expect_code(0).json();
    assert_eq!(again["agents"], Value::Array(live));
    runtap(["jvm", "hq", "--record", path, "--listen", "127.0.0.1:0"]).expect_code(1).says("--record");
}
