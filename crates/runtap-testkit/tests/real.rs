//! Real runtimes are found, run programs, and end with the test.

#![cfg(target_os = "linux")]

use runtap_testkit::{Peer, RealRuntime, require, shared_data};
use runtap_transport::discover;

#[test]
fn real_programs_tell_the_truth() {
    for runtime in require!(RealRuntime::all()) {
        let mut program = require!(runtime.program("spin", &["1", "10000", "--stdin"])).spawn();
        assert_eq!(program.own_pid(), program.id());
        let version =
            program.lines().iter().find_map(|line| line.strip_prefix("runtime ")).unwrap().to_owned();
        assert_eq!(version.split('.').next().unwrap(), runtime.major().to_string());
        let found = discover::process(program.id()).unwrap();
        assert!(found.endpoint().is_some());
        program.begin();
        let truth = program.truth();
        assert_eq!(truth["rounds"].as_array().unwrap().len(), 3);
        program.wait_for("done");
        assert!(program.wait().success());
    }
}

#[test]
fn real_programs_die_with_their_handle() {
    let runtime = require!(RealRuntime::newest());
    let program = require!(runtime.program("spin", &["600", "--stdin"])).spawn();
    let pid = program.id();
    let socket = discover::process(pid).unwrap().endpoint().unwrap();
    drop(program);
    let error = discover::process(pid).unwrap_err();
    assert_eq!(error.reason.code(), "no-such-process");
    // It was killed: its socket is stale. Remove it for others.
    std::fs::remove_file(socket.path().unwrap()).unwrap();
}

#[test]
fn real_peers_run() {
    let peer = require!(Peer::available("dotnet-trace"));
    let output = peer.command().arg("--version").output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("10."), "{output:?}");
}

#[test]
fn packed_data_is_unpacked() {
    let bytes = require!(shared_data("nettrace/eventpipe-dotnetcore3.0-win-x64-objver4.nettrace.zst"));
    assert_eq!(bytes.len(), 4_826_850);
    assert!(bytes.starts_with(b"Nettrace"));
}
