//! Applications that run at the same time: a faulty one does not affect a correct one.

use std::process::Command;

use runtap_testkit::run;
use serde_json::Value;

use crate::reports::Folder;
use crate::scenario::application;

/// A child of an application that never reads its replies delays only itself.
pub(crate) fn a_connection_that_reads_no_replies_delays_no_other() {
    let folder = Folder::new();
    let script = "handshake\nspawn deaf\nstart\nsleep 1s\nrepeat 2000\npass t{n}\ndone\nend\n\
        part deaf\nhandshake\nalways no-wait\nrepeat 200000\nprogress x\ndone\n";
    let deaf = folder.application("deaf", script);
    let told = folder.run(&[&deaf], &["--timeout", "60s"]);
    assert!(told.text().contains("2000 passed"), "{told}");
}

/// Applications that crash, hang, flood their output, send wrong data and leave processes behind, all at once.
const FAULTY: [&str; 6] =
    ["death-in-test", "stall-connected", "flood-stdout", "length-2gb", "lies", "fork-stdout"];

pub(crate) fn faulty_applications_do_not_disturb_others() {
    let folder = tempfile::Builder::new().prefix("runtap-scripted-").tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_runtap"));
    command.arg("test").args(FAULTY.map(|name| application(name, folder.path())));
    command.arg(application("well-behaved", folder.path()));
    command.args(["-j", "7", "--no-history", "--start-timeout", "10s", "--format", "json"]);
    let told = run(command);
    let lines: Vec<Value> = told.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended: Vec<_> = lines.iter().filter(|line| line["type"] == "module-end").collect();
    let of = |name: &str| {
        let is = |line: &&&Value| line["module"].as_str().is_some_and(|path| path.ends_with(name));
        *ended.iter().find(is).unwrap_or_else(|| panic!("{name} has no end: {told}"))
    };
    let good = of("well-behaved");
    assert_eq!((&good["passed"], &good["skipped"], &good["exit_code"]), (&1.into(), &1.into(), &0.into()));
    // The results of the others are complete.
    for name in ["death-in-test", "flood-stdout", "length-2gb", "fork-stdout"] {
        assert_eq!(of(name)["passed"], 1, "{name}: {}", of(name));
    }
    assert_eq!(of("lies")["passed"], 2);
    assert_eq!(ended.len(), FAULTY.len() + 1);
    // The applications fail in different ways.
    assert_eq!(told.code(), Some(1), "{told}");
}
