//! `runtap router` without a runtime: rejected arguments and their messages, how it exits, and the built-in program
//! behind it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use runtap_testkit::{Program, Running, Signal, eventually};

use crate::cli_launch::demo;
use crate::common::{command, folder, json, runtap, socket_in};

#[test]
fn unsupported_features_are_reported_with_a_hint() {
    for (mode, says) in [
        ("server-websocket", "server-server"),
        ("client-websocket", "server-server"),
        ("ios", "iproxy"),
        ("ios-sim", "--tcp-client 127.0.0.1:9000"),
        ("android", "adb reverse"),
        ("android-emu", "--tcp-server 127.0.0.1:9000"),
    ] {
        runtap(["router", mode]).expect_code(2).says(says);
        runtap(["router", mode, "--web-socket", "http://localhost:8088/x", "-v", "debug"])
            .expect_code(2)
            .says(says);
    }
    let forward = ["router", "server-server", "-tcps", "127.0.0.1:9000", "--forward-port", "Android"];
    runtap(forward).expect_code(2).says("adb reverse");
    runtap(["router", "server-server"]).expect_code(2).says("--tcp-server");
    runtap(["router", "server-client"]).expect_code(2).says("--tcp-client");
    runtap(["router", "client-server", "-tcps", "127.0.0.1:9000"]).expect_code(2).says("--ipc-client");
}

#[test]
fn tcp_stays_on_this_machine() {
    for (mode, option) in [("server-server", "--tcp-server"), ("server-client", "--tcp-client")] {
        for address in ["0.0.0.0:0", "*:9000", "192.0.2.1:9000", "[::]:0"] {
            let refused = runtap(["router", mode, option, address]);
            refused.expect_code(2).says(option).says("not a loopback address").says("--insecure");
        }
        runtap(["router", mode, option, "9000"]).expect_code(2).says("HOST:PORT");
    }
    let mut beyond =
        command(["router", "server-server", "--tcp-server", "0.0.0.0:0", "--insecure", "-rt", "1"]);
    let folder = folder();
    beyond.env("TMPDIR", folder.path());
    Running::start(beyond).wait().expect_code(3).says("not encrypted");
}

#[test]
fn without_a_runtime_the_router_exits_and_leaves_nothing() {
    let folder = folder();
    let mut router =
        command(["router", "server-server", "--tcp-server", "127.0.0.1:0", "-rt", "1", "--format", "json"]);
    router.env("TMPDIR", folder.path());
    let ended = Running::start(router).wait();
    ended.expect_code(3).says("--runtime-timeout");
    assert_eq!(ended.json()["schema"], "runtap.router/1");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_existing_name_is_not_reused() {
    let folder = folder();
    let socket = folder.path().join("tools");
    let start = || {
        let mut router = command(["router", "server-server", "--tcp-server", "127.0.0.1:0", "--ipc-server"]);
        router.arg(&socket);
        Running::start(router)
    };
    let first = start();
    eventually("the socket", || socket.exists().then_some(()));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    start().wait().expect_code(1).says("in use");
    first.signal(Signal::KILL);
    first.wait();
    // The socket is stale now, and is replaced.
    assert!(socket.exists());
    let second = start();
    eventually("a router that listens", || std::os::unix::net::UnixStream::connect(&socket).ok());
    second.signal(Signal::TERM);
    second.wait().expect_code(0);
    assert!(!socket.exists());
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    runtap(["router", "server-server", "--tcp-server", &address]).expect_code(1).says(&address);
}

/// The built-in program behind a router is selected by the router's process id, in runtap too.
#[test]
fn the_demo_is_reached_by_the_id_of_the_router() {
    let folder = folder();
    let mut launched = demo(&folder, "600");
    launched.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(launched);
    program.wait_for("ready");
    let socket = format!("{},connect", socket_in(folder.path(), program.id()).display());
    let temp = crate::common::folder();
    let mut router = command(["router", "server-client", "--diagnostic-port", &socket]);
    router.env("TMPDIR", temp.path());
    let router = Running::start(router);
    let pid = router.id().to_string();
    let both = || fs::read_dir(temp.path()).unwrap().count() == 2;
    eventually("both sockets of the router", || both().then_some(()));
    let direct = json(["info", "--diagnostic-port", &socket, "--format", "json"]);
    let routed = json(["info", "-p", &pid, "--format", "json"]);
    assert_eq!(routed["runtime_cookie"], direct["runtime_cookie"]);
    let file = temp.path().join("x.nettrace");
    let trace = runtap(["trace", "-p", &pid, "--duration", "1s", "-o", file.to_str().unwrap()]);
    trace.expect_code(0);
    router.signal(Signal::INT);
    router.wait().expect_code(0);
}
