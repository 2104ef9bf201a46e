//! `--diagnostic-port`: runtimes that connect or listen, and signals while runtap waits for a connection or an answer.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use runtap_diag_proto::{Advertise, Uuid};
use runtap_testkit::{Program, Running, Signal, eventually};
use tempfile::TempDir;

use crate::cli_launch::{DEMO, demo, path, ticks_in};
use crate::common::{command, folder, json, runtap, socket_in};

#[test]
fn a_port_can_listen_or_connect() {
    let folder = folder();
    let port = path(&folder, "port");
    let file = path(&folder, "x.nettrace");
    // Suspended until a tool listens.
    let mut launched = demo(&folder, "2");
    launched.env("DOTNET_DiagnosticPorts", &port).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(launched);
    let listen = format!("{port},listen");
    let info = json(["info", "--diagnostic-port", &listen, "--format", "json"]);
    assert_eq!(info["pid"], program.id());
    // The runtime was not resumed. Without a mode runtap listens, since no other process does.
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
    let socket = socket.display();
    for port in [format!("{socket}"), format!("{socket},connect"), format!("uds://{socket},Connect")] {
        runtap(["trace", "--dport", &port, "--providers", DEMO, "--duration", "1s", "-o", &file])
            .expect_code(0);
        assert!(ticks_in(file.as_ref()) > 0);
    }
}

/// A runtime with such a port could never connect.
#[test]
fn a_port_that_no_runtime_can_reach_is_rejected() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let longest = folder.path().join("p".repeat(107 - folder.path().as_os_str().len() - 1));
    let listen = format!("{}x,listen", longest.display());
    for verb in ["trace", "info", "resume"] {
        let file = path(&folder, "x.nettrace");
        let output: &[&str] = if verb == "trace" { &["-o", &file] } else { &[] };
        let arguments = [&[verb, "--diagnostic-port", &listen], output].concat();
        runtap(arguments).expect_code(1).says("the path is 108 bytes long").says("at most 107");
    }
}

/// All forms of dotnet-trace, for every kind of port.
#[test]
fn a_port_has_many_forms() {
    let folder = folder();
    let mut launched = demo(&folder, "600");
    launched.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(launched);
    program.wait_for("ready");
    let socket = socket_in(folder.path(), program.id());
    for scheme in ["", "uds:", "UDS:", "uds://", "file://"] {
        for mode in ["", ",connect", ",CONNECT"] {
            let port = format!("{scheme}{}{mode}", socket.display());
            let info = json(["info", "--dport", &port, "--format", "json"]);
            assert_eq!(info["pid"], program.id(), "{port}");
        }
    }
    let port = path(&folder, "listen");
    let nobody = format!("uds:{port},Listen");
    let resumed = runtap(["resume", "--dport", &nobody, "--duration", "0.2"]);
    resumed.expect_code(3).says(&format!("no program has connected to {port}\n"));
    for (wrong, why) in [
        ("", "the address is missing"),
        ("uds:", "the address is missing"),
        ("vsock://host:1", "'vsock:' is not a kind of port"),
        ("/p,suspend", "'suspend' is not a mode"),
        ("/p,connect,nosuspend", "unexpected ',nosuspend' after the mode"),
        ("namedpipe:p", "named pipes exist only on Windows"),
        (r"\\.\pipe\p,connect", "named pipes exist only on Windows"),
    ] {
        for verb in ["info", "trace", "resume"] {
            let told = runtap([verb, "--diagnostic-port", wrong]);
            told.expect_code(2).says(why).says("uds:PATH");
        }
    }
    let other = runtap(["info", "--diagnostic-port", "tcp://host:1"]);
    other.expect_code(2).says("not the address of a process").says("runtap://HOST:PORT");
}

/// Every verb that can wait on a port, with the arguments to send a request.
const WAITING_VERBS: [&[&str]; 18] = [
    &["doctor"],
    &["stack"],
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
    &["top"],
    &["trace"],
    &["counters"],
    &["counters", "monitor"],
    &["counters", "collect"],
    &["heap"],
];

/// Starts a verb that waits at a port of the test; returns its socket.
fn wait_at_a_port(folder: &TempDir, verb: &[&str]) -> (Running, PathBuf) {
    let port = folder.path().join("port");
    let mut waiting = command(verb);
    waiting.arg("--diagnostic-port").arg(format!("{},listen", port.display())).current_dir(folder.path());
    let waiting = Running::start(waiting);
    eventually("the socket", || port.exists().then_some(()));
    (waiting, port)
}

/// No runtime connects; the socket is removed.
#[test]
fn waiting_on_a_port_can_be_interrupted() {
    let folder = folder();
    for verb in WAITING_VERBS {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let (waiting, port) = wait_at_a_port(&folder, verb);
            waiting.signal(signal);
            waiting.wait().expect_code(code);
            assert!(!port.exists(), "{verb:?}");
        }
    }
}

/// A runtime has connected and received a request, but does not answer.
#[test]
fn waiting_for_an_answer_on_a_port_can_be_interrupted() {
    let folder = folder();
    let advertise = Advertise { runtime_cookie: Uuid::from_u128(7), process_id: 1 };
    for verb in WAITING_VERBS {
        let (waiting, port) = wait_at_a_port(&folder, verb);
        // A connection may be closed without a request, after which a runtime connects again. Held until the end.
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
