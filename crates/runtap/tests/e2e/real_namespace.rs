//! A process of another pid and mount namespace, as in a container: found, asked and recorded by the pid that we see,
//! through the paths that it sees.

use std::fs;
use std::path::Path;

use runtap_testkit::{Program, RealRuntime, Skip, eventually, shared_dir, workspace_root};
use serde_json::Value;

use crate::common::{counts, folder, json, ps_row, runtap};

on_each_runtime!(a_container_is_no_obstacle, a_network_of_its_own_hides_nothing);

fn a_container_is_no_obstacle(runtime: &RealRuntime) -> Result<(), Skip> {
    contained(runtime, &[])
}

/// Then the kernel's table of sockets, which is per network namespace, does not show its socket.
fn a_network_of_its_own_hides_nothing(runtime: &RealRuntime) -> Result<(), Skip> {
    contained(runtime, &["--net"])
}

fn contained(runtime: &RealRuntime, more: &[&str]) -> Result<(), Skip> {
    if !rustix::process::geteuid().is_root() {
        return Err(Skip::because("only root can make namespaces and look into them"));
    }
    // Its own /tmp, as in a container; unless that would hide the runtime from it.
    let outside = folder();
    let needed = [workspace_root(), shared_dir().unwrap_or_default()];
    let temp =
        if needed.iter().any(|path| path.starts_with("/tmp")) { outside.path() } else { Path::new("/tmp") };
    let script = format!("mount -t tmpfs none '{}' && exec \"$@\"", temp.display());
    let mut wrapper = vec!["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"];
    wrapper.extend(more);
    wrapper.extend(["sh", "-c", &script, "sh"]);
    let launch = runtime.program("spin", &["600", "20000"])?.wrapped_by(&wrapper).env("TMPDIR", temp);
    let program = launch.spawn();
    assert_eq!(program.own_pid(), 1, "first in its namespace");
    let pid = child_of(&program);
    let p = pid.to_string();

    let row = ps_row(pid);
    assert_eq!(
        (&row["reachable"], &row["name"], &row["kind"]),
        (&Value::from(true), &Value::from("spin"), &Value::from("dotnet"))
    );
    assert!(row["socket"].as_str().unwrap().starts_with(&format!("/proc/{pid}/root/")), "{row:#}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "its socket is not seen from outside");
    let info = json(["info", "-p", &p, "--format", "json"]);
    assert_eq!((&info["pid"], &info["suspended"]), (&Value::from(pid), &Value::from(false)));
    let env = json(["env", "-p", &p, "--format", "json"]);
    let mut variables = env["variables"].as_array().unwrap().iter();
    assert!(
        variables.any(|variable| variable["name"] == "TMPDIR" && variable["value"] == temp.to_str().unwrap())
    );

    let file = outside.path().join("contained.nettrace");
    let summary = json([
        "trace",
        "-p",
        &p,
        "--duration",
        "0.5s",
        "-o",
        file.to_str().unwrap(),
        "--to",
        "nettrace",
        "--to",
        "speedscope",
        "--format",
        "json",
    ]);
    assert_eq!((&summary["pid"], &summary["partial"]), (&Value::from(pid), &Value::Null));
    // The stream speaks the language of the namespace.
    assert_eq!(counts(&file, 0)["process_id"], 1);
    let profile = fs::read(file.with_extension("speedscope.json")).unwrap();
    let profile: Value = serde_json::from_slice(&profile).unwrap();
    let names: Vec<&str> = profile["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|profile| profile["name"].as_str().unwrap())
        .collect();
    for (tid, name) in threads(pid).into_iter().filter(|(_, name)| name.starts_with("spin-")) {
        assert!(
            names.contains(&format!("Thread ({tid}) {name}").as_str()),
            "{tid} {name} is not among {names:?}"
        );
    }
    let info = runtap(["info", "-p", &p]);
    info.expect_code(0);
    Ok(())
}

/// The only child of a wrapper.
fn child_of(wrapper: &Program) -> u32 {
    let id = wrapper.id();
    let children = format!("/proc/{id}/task/{id}/children");
    eventually("the wrapper's child", || fs::read_to_string(&children).unwrap().trim().parse().ok())
}

/// The threads of a process by their numbers in its own namespace.
fn threads(pid: u32) -> Vec<(u32, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path());
    let thread = |task: std::path::PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap();
        let line = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.split_whitespace().next_back().unwrap().to_owned()
        };
        (line("NSpid:").parse().unwrap(), line("Name:"))
    };
    tasks.map(thread).collect()
}
