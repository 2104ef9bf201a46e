//! The agent in a JVM with its own process ids and files, as in a container.

use std::fs;
use std::process::{Command, Stdio};

use runtap_testkit::{Jdk, OWN_TMP, Program, Skip, eventually, in_own_tmp, require};

use crate::real_jvm::{AttachedTrace, agents, calls, classes};

/// The network is shared: the agent connects to the collector on the host.
const WRAPPER: [&str; 6] = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"];

#[test]
fn a_program_in_other_namespaces_is_attached_to_and_detached_from() {
    require!(contained());
}

fn contained() -> Result<(), Skip> {
    let possible = Command::new(WRAPPER[0]).args(&WRAPPER[1..]).arg("true").stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        return Err(Skip::because("only root can make namespaces"));
    }
    let compiled = classes()?;
    for jdk in Jdk::all()? {
        let mut command = Command::new(WRAPPER[0]);
        command.args(&WRAPPER[1..]).args(["sh", "-c", OWN_TMP, "sh"]);
        command.arg(in_own_tmp(&jdk.home().join("bin/java"))).arg("-cp").arg(in_own_tmp(compiled.path()));
        command.args(["shop.Work", "1000000", "1", "0"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut wrapper = Program::start(command);
        wrapper.wait_for("ready");
        let children = format!("/proc/{0}/task/{0}/children", wrapper.id());
        let pid: u32 =
            eventually("the wrapper's child", || fs::read_to_string(&children).unwrap().trim().parse().ok());
        for _ in 0..2 {
            let traces = AttachedTrace::start(&pid.to_string(), &["--format", "json"]);
            traces.wait_for_calls();
            let document = traces.end();
            let [agent] = &agents(&document)[..] else { panic!("{document:#}") };
            let [entries, exits, thrown] = calls(agent, "shop/Work.work");
            assert!(entries > 20 && thrown == 0 && entries.abs_diff(exits) <= 1, "{entries} {exits}");
        }
        let inside = fs::read_dir(format!("/proc/{pid}/root/tmp")).unwrap().flatten();
        let left: Vec<_> = inside.map(|entry| entry.file_name()).collect();
        let ours = left.iter().find(|name| name.to_string_lossy().contains("runtap"));
        assert_eq!(ours, None, "JDK {}: {left:?}", jdk.major());
    }
    Ok(())
}
