//! Remains of a server, in the built-in program, do not confuse tools: Microsoft's dotnet-trace and runtap.

use runtap_testkit::{Peer, Signal, require, run};
use rustix::process::{Pid, kill_process};

use crate::common::{command, folder, ps};
use crate::real_demo::demo;

/// A killed server leaves its socket. Its successor has its own socket, and no tool confuses them.
#[test]
fn the_socket_of_a_killed_server_confuses_no_tool() {
    let peer = require!(Peer::available("dotnet-trace"));
    let folder = folder();
    let sockets = || {
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let is_socket = |name: &String| name.starts_with("dotnet-diagnostic-");
        names.map(|name| name.into_string().unwrap()).filter(is_socket).collect::<Vec<_>>()
    };
    let listed_by_both = |pid: u32| {
        let ours = ps({
            let mut ps = command(["ps"]);
            ps.env("TMPDIR", folder.path());
            ps
        });
        let by_theirs = peer.pids_listed(folder.path()).into_iter().filter(|listed| *listed == pid).count();
        [ours.iter().filter(|row| row["pid"] == pid).count(), by_theirs]
    };
    let mut killed = demo(folder.path());
    assert_eq!(listed_by_both(killed.id()), [1, 1]);
    let gone = killed.id();
    killed.kill();
    assert_eq!(sockets().len(), 1, "a killed program leaves its socket");
    let successor = demo(folder.path());
    assert_eq!(sockets().len(), 2);
    assert_eq!((listed_by_both(gone), listed_by_both(successor.id())), ([0, 0], [1, 1]));
    let mut of_the_dead = command(["info", "-p", &gone.to_string()]);
    of_the_dead.env("TMPDIR", folder.path());
    run(of_the_dead).expect_code(3);
    // A server that exits in order removes its own.
    let mut ending = successor;
    kill_process(Pid::from_raw(ending.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    assert!(ending.wait().success());
    assert_eq!(sockets().len(), 1);
}
