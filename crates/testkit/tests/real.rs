//! Real runtimes are found, run programs, and end with the test.

#![cfg(target_os = "linux")]

use std::process::Command;

use runtap_diag::blocking::Client;
use runtap_testkit::{Peer, RealRuntime, Skip, require, shared_data};

#[test]
fn real_programs_tell_the_truth() {
    for runtime in require!(RealRuntime::all()) {
        let mut program = require!(runtime.program("spin", &["1", "10000", "--stdin"])).spawn();
        assert_eq!(program.own_pid(), program.id());
        let version =
            program.lines().iter().find_map(|line| line.strip_prefix("runtime ")).unwrap().to_owned();
        assert_eq!(version.split('.').next().unwrap(), runtime.major().to_string());
        let found = runtap_discover::process(program.id()).unwrap();
        assert!(found.endpoint().is_some());
        program.begin();
        let truth = program.truth();
        assert_eq!(truth["rounds"].as_array().unwrap().len(), 3);
        program.wait_for("done");
        assert!(program.wait().success());
    }
}

#[test]
fn real_small_program_runs_on_every_version() {
    let mut tried = 0;
    for major in [3, 8, 9, 10] {
        let launch = RealRuntime::available(major).and_then(|runtime| runtime.small_program());
        let mut program = match launch {
            Ok(launch) => launch.spawn(),
            Err(skip) => {
                skip.report();
                continue;
            }
        };
        assert_eq!(program.own_pid(), program.id());
        assert!(program.lines()[1].starts_with(&format!("runtime {major}.")), "{:?}", program.lines());
        for round in 1..=2 {
            program.begin();
            assert_eq!(program.truth()["rounds"], round);
            program.wait_for("done");
        }
        assert!(program.wait().success());
        tried += 1;
    }
    if tried == 0 {
        Skip::because("the small program ran nowhere").report();
    }
}

#[test]
fn real_programs_die_with_their_handle() {
    let runtime = require!(RealRuntime::newest());
    let program = require!(runtime.program("spin", &["600", "--stdin"])).spawn();
    let pid = program.id();
    let socket = runtap_discover::process(pid).unwrap().endpoint().unwrap();
    drop(program);
    let error = runtap_discover::process(pid).unwrap_err();
    assert_eq!(error.reason.code().name(), "no-such-process");
    assert!(!socket.path().unwrap().exists(), "killed, and cleaned up after");
}

/// A command that runs its arguments in pid and mount namespaces of their own, if this user may make some.
fn namespaces() -> Result<Vec<&'static str>, Skip> {
    for rights in [&[][..], &["--map-root-user"]] {
        let wrapper: Vec<_> = ["unshare"].into_iter().chain(rights.iter().copied()).collect();
        let wrapper = [&wrapper[..], &["--pid", "--fork", "--kill-child", "--mount-proc"]].concat();
        let tried = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output();
        if tried.is_ok_and(|output| output.status.success()) {
            return Ok(wrapper);
        }
    }
    Err(Skip::because("this user can't make namespaces (unshare)"))
}

#[test]
fn real_programs_of_another_pid_namespace_are_found() {
    let wrapper = require!(namespaces());
    let tmp = tempfile::tempdir().unwrap();
    for runtime in require!(RealRuntime::all()) {
        let launch = require!(runtime.program("spin", &["600", "--stdin"]));
        let program = launch.wrapped_by(&wrapper).env("TMPDIR", tmp.path()).spawn();
        assert_eq!(program.own_pid(), 1);
        let is_below = |process: &runtap_discover::Process| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
            let parent = stat.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(1));
            parent == Some(&program.id().to_string())
        };
        let all = runtap_discover::processes(runtap_discover::Options::default());
        let found = all.into_iter().find(is_below).expect("the program is listed");
        assert_eq!(found.ns_pid, 1);
        assert!(found.other_pid_namespace && found.other_mount_namespace);
        assert_eq!(runtap_discover::process(found.pid).unwrap(), found);
        let client = Client::new(found.endpoint().unwrap()).unwrap();
        assert_eq!(client.process_info().unwrap().process_id, 1);
        let threads = runtap_discover::threads(found.pid).unwrap();
        assert_eq!((threads[0].tid, threads[0].ns_tid), (found.pid, 1));
    }
}

#[test]
fn real_programs_without_a_socket_have_a_reason() {
    let runtime = require!(RealRuntime::newest());
    let tmp = tempfile::tempdir().unwrap();
    let gone = tmp.path().join("gone");
    for (variable, value, code) in [
        ("DOTNET_EnableDiagnostics", "0".as_ref(), "diagnostics-disabled"),
        ("TMPDIR", gone.as_os_str(), "other-tmpdir"),
    ] {
        let program = require!(runtime.program("spin", &["600", "--stdin"])).env(variable, value).spawn();
        let error = runtap_discover::process(program.id()).unwrap_err();
        assert_eq!(error.reason.code().name(), code, "{error:?}");
    }
    let error = runtap_discover::process(std::process::id()).unwrap_err();
    assert_eq!(error.reason.code().name(), "not-dotnet", "{error:?}");
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
