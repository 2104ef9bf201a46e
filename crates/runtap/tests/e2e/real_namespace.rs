//! A process of another pid and mount namespace, as in a container: found, queried and recorded by its host process id,
//! with paths inside the container.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use runtap_diag::core_file;
use runtap_discover::System;
use runtap_testkit::{Program, RealRuntime, Skip, eventually, run, shared_dir, workspace_root};
use runtap_transport::naming::SocketName;
use serde_json::Value;

use crate::common::{command, counts, folder, json, ps_row, ps_row_of, runtap};
use crate::speedscope;

on_each_runtime!(a_container_is_no_obstacle, a_process_in_a_network_namespace_is_found);
on_the_newest_runtime!(a_process_in_a_time_namespace_is_found_in_a_crowded_folder);

fn a_container_is_no_obstacle(runtime: &RealRuntime) -> Result<(), Skip> {
    contained(runtime, &[])
}

/// In a separate network namespace, the kernel's table of sockets does not show its socket.
fn a_process_in_a_network_namespace_is_found(runtime: &RealRuntime) -> Result<(), Skip> {
    contained(runtime, &["--net"])
}

/// The socket is in no table of the host, its name does not match the start time on the host's clock, and its folder has
/// more names than are listed.
fn a_process_in_a_time_namespace_is_found_in_a_crowded_folder(runtime: &RealRuntime) -> Result<(), Skip> {
    if !rustix::process::geteuid().is_root() {
        return Err(Skip::because("only root can make namespaces and look into them"));
    }
    let wrapper = ["unshare", "--net", "--time", "--boottime", "1000", "--"];
    let mut probe = Command::new(wrapper[0]);
    if !probe.args(&wrapper[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        return Err(Skip::because("unshare can make no time namespace here"));
    }
    let dir = folder();
    let name = |key| dir.path().join(SocketName::runtime(4_194_000, key).to_string());
    let _listener = UnixListener::bind(name(0)).unwrap();
    for key in 1..60_000 {
        fs::hard_link(name(0), name(key)).unwrap();
    }
    let program = runtime.program("spin", &["600", "20000"])?.wrapped_by(&wrapper).env("TMPDIR", dir.path());
    let program = program.spawn();
    let by_us = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env("TMPDIR", dir.path());
        command
    };
    let row = ps_row_of(|| by_us(&["ps"]), program.id());
    assert_eq!((&row["reachable"], &row["name"]), (&Value::from(true), &Value::from("spin")));
    let socket = row["socket"].as_str().unwrap();
    let key = SocketName::parse(Path::new(socket).file_name().unwrap().to_str().unwrap()).unwrap().key;
    assert_eq!(key, System::current().start_time(program.id()).unwrap() + 100_000);
    let info = run(by_us(&["info", "-p", &program.id().to_string(), "--format", "json"]));
    assert_eq!(info.expect_code(0).json()["pid"], program.id());
    Ok(())
}

fn contained(runtime: &RealRuntime, more: &[&str]) -> Result<(), Skip> {
    if !rustix::process::geteuid().is_root() {
        return Err(Skip::because("only root can make namespaces and look into them"));
    }
    // With its own /tmp, as in a container, unless that would hide the runtime from it.
    let outside = folder();
    let needed = [workspace_root(), shared_dir().unwrap_or_default()];
    let temp =
        if needed.iter().any(|path| path.starts_with("/tmp")) { outside.path() } else { Path::new("/tmp") };
    let script = format!("mount -t tmpfs none '{}' && exec \"$@\"", temp.display());
    let mut wrapper = vec!["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"];
    wrapper.extend(more);
    wrapper.extend(["sh", "-c", &script, "sh"]);
    let launch = runtime.program("spin", &["600", "20000"])?.wrapped_by(&wrapper).env("TMPDIR", temp);
    // This folder is in no other container, whatever /tmp is.
    let profiler = temp.join("demo-profiler.txt");
    let launch = launch.env("DEMO_PROFILER_OUT", &profiler);
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
        "1s",
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
    // The stream has the process ids of the namespace.
    assert_eq!(counts(&file, 0)["process_id"], 1);
    let threads_shown = speedscope::read(&file.with_extension("speedscope.json"));
    let names: Vec<&str> = threads_shown.iter().map(|thread| thread.name.as_str()).collect();
    for (tid, name) in threads(pid).into_iter().filter(|(_, name)| name.starts_with("spin-")) {
        assert!(
            names.contains(&format!("Thread ({tid}) {name}").as_str()),
            "{tid} {name} is not among {names:?}"
        );
    }
    change(pid, outside.path(), &profiler)?;
    let info = runtap(["info", "-p", &p]);
    info.expect_code(0);
    Ok(())
}

/// The verbs that change a process work too: with paths inside the container, and results on the host.
fn change(pid: u32, outside: &Path, profiler: &Path) -> Result<(), Skip> {
    let shared = shared_dir().ok_or_else(|| Skip::because("there is no shared folder (RUNTAP_SHARED)"))?;
    let p = pid.to_string();
    let inside = format!("/proc/{pid}/root");
    // The container's /tmp hides the host's folder: the dump is written inside and copied.
    let path = outside.join("x.core");
    let dump = [
        "dump",
        "-p",
        &p,
        "--type",
        "mini",
        "--crashreport",
        "-o",
        path.to_str().unwrap(),
        "--format",
        "json",
    ];
    let told = runtap(dump);
    told.expect_code(0).says("runtap copies it from there");
    let summary = told.json();
    assert_eq!((&summary["pid"], &summary["verified"]), (&Value::from(pid), &Value::from(true)));
    let theirs = summary["target_path"].as_str().unwrap();
    assert!(!Path::new(&format!("{inside}{theirs}")).exists(), "nothing is left in there");
    let core = core_file::inspect(&fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(core.process.pid, Some(1), "it speaks the language of the namespace");
    assert!(Path::new(summary["crash_report"].as_str().unwrap()).is_file());

    let map = json(["perfmap", "enable", "-p", &p, "--type", "perfmap", "--format", "json"]);
    let file = &map["files"][0];
    assert_eq!(file["target_path"], "/tmp/perf-1.map");
    assert!(fs::read_to_string(file["path"].as_str().unwrap()).unwrap().contains("Program::Main"));
    runtap(["perfmap", "disable", "-p", &p]).expect_code(0);

    // The temporary folder of the dump is gone; its parent is the target's temporary directory.
    let out = Path::new(theirs).parent().and_then(Path::parent).unwrap().display();
    let variables = [format!("DEMO_HOOK_OUT={out}/hook.txt")];
    runtap(["set-env", "-p", &p, &variables[0]]).expect_code(0);
    let hook = shared.join("apps/dotnet/startuphook/bin/startuphook.dll");
    runtap(["startup-hook", "-p", &p, hook.to_str().unwrap()]).expect_code(0);
    let said = fs::read_to_string(format!("{inside}{out}/hook.txt")).unwrap();
    assert!(said.starts_with("hook pid=1 "), "{said}");
    // A file that only the host sees does not exist for it.
    let ours = outside.join("hook.dll");
    fs::copy(&hook, &ours).unwrap();
    runtap(["startup-hook", "-p", &p, ours.to_str().unwrap()]).expect_code(2).says("target's file system");

    let library = shared.join("apps/dotnet/profiler/bin/libdemoprofiler.so");
    let class_id = "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0";
    let attach = [
        "profiler",
        "attach",
        "-p",
        &p,
        "--clsid",
        class_id,
        "--path",
        library.to_str().unwrap(),
        "--data",
        "ns",
    ];
    runtap(attach).expect_code(0);
    let said = fs::read_to_string(format!("{inside}{}", profiler.display())).unwrap();
    assert_eq!(said, "attach 2 6e73\nattached\n");
    runtap(["resume", "-p", &p]).expect_code(0);
    Ok(())
}

/// Returns the only child of a wrapper.
fn child_of(wrapper: &Program) -> u32 {
    let id = wrapper.id();
    let children = format!("/proc/{id}/task/{id}/children");
    eventually("the wrapper's child", || fs::read_to_string(&children).unwrap().trim().parse().ok())
}

/// Returns the threads of a process by their ids in its own namespace.
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
