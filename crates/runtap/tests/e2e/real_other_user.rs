//! Programs that a command runs as another user, as `su` and container entry points do: they must be able to connect to
//! the port of root's tool. Requires root.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use runtap_discover::{Startup, System};
use runtap_testkit::{RealRuntime, Running, Signal, Skip, eventually, run};
use serde_json::Value;

use crate::common::{
    RemoveOnDrop, all_have_ended, count_of, counts, folder, json, port_of_those_with, runtap, trace_of,
};
use crate::real_doctor_rights::{NOBODY, ProgramCopy, can_run};

on_each_runtime!(
    a_command_of_another_user_is_recorded,
    a_private_temporary_folder_does_not_prevent_recording,
    another_users_programs_of_a_killed_tool_are_freed,
);

/// Returns the command for `children` as user `nobody`, with a folder for all files.
fn children_of_nobody(runtime: &RealRuntime, place: &Path) -> Result<Command, Skip> {
    can_run(&NOBODY, runtime)?;
    let launch = runtime.program("children", &["0.3"])?.env("TMPDIR", place);
    Ok(launch.wrapped_by(&NOBODY).command())
}

fn a_command_of_another_user_is_recorded(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let children = children_of_nobody(runtime, place.path())?;
    let file = place.path().join("x.nettrace");
    let options = ["--children", "--format", "json", "-o", file.to_str().unwrap()];
    let summary = run(trace_of(options, &children)).expect_code(0).json();
    let processes = summary["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 7, "{summary:#}");
    for process in processes {
        assert_eq!((&process["partial"], &process["lost"]), (&Value::Null, &Value::from(0)), "{process:#}");
        let counts = counts(process["outputs"][0]["path"].as_str().unwrap().as_ref(), 0);
        assert_eq!(count_of(&counts, "Microsoft-Windows-DotNETRuntime", 187), 1, "its first event");
    }
    all_have_ended(place.path());
    Ok(())
}

/// Root's temporary folder may be private, and the program inherits it, so its port has to be elsewhere.
fn a_private_temporary_folder_does_not_prevent_recording(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    can_run(&NOBODY, runtime)?;
    let private = place.private();
    let children = runtime.program("children", &["0.3"])?.env("TMPDIR", &private).wrapped_by(&NOBODY);
    let file = place.path().join("x.nettrace");
    let options = ["--children", "--format", "json", "-o", file.to_str().unwrap()];
    let summary = run(trace_of(options, &children.command())).expect_code(0).json();
    assert_eq!(summary["processes"].as_array().unwrap().len(), 7, "{summary:#}");
    assert_eq!(summary["partial"], Value::Null, "{summary:#}");
    all_have_ended(&private);
    Ok(())
}

/// `kill -9` of root's runtap: `doctor` lists the suspended processes, `resume` by root resumes the whole tree.
fn another_users_programs_of_a_killed_tool_are_freed(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let mut children = children_of_nobody(runtime, place.path())?;
    // A port without a listener, where a tool of root would create it: programs wait there.
    let above = folder();
    let home = above.path().join("runtap-0123456789abcdef");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o711)).unwrap();
    let port = home.join("port");
    let tool = std::os::unix::net::UnixListener::bind(&port).unwrap();
    children.env("DOTNET_DiagnosticPorts", format!("{},suspend,connect", port.display()));
    children.stdin(Stdio::null());
    let running = Running::start(children);
    let waiting = || -> BTreeSet<u64> {
        let all = json(["doctor", "--format", "json"]);
        let suspended = |process: &&Value| {
            process["findings"].as_array().unwrap().iter().any(|it| it["code"] == "suspended")
        };
        let all = all["processes"].as_array().unwrap();
        all.iter().filter(suspended).map(|process| process["pid"].as_u64().unwrap()).collect()
    };
    let pid = running.id();
    eventually("the suspended program", || waiting().contains(&u64::from(pid)).then_some(()));
    drop(tool);
    let resumed = runtap(["resume", &pid.to_string()]);
    resumed.expect_code(0).says(&format!("Resumed process {pid}.")).says("stays in the background");
    // The children of the program connect later, and find a listener.
    let finished = running.wait();
    assert!(finished.expect_code(0).text().contains("\"tree_size\":7"), "{finished}");
    all_have_ended(place.path());
    eventually("the end of the guard, and of the folder", || (!home.exists()).then_some(()));
    Ok(())
}

/// Like the test above, with a runtap process that is killed at any moment.
#[test]
fn real_tools_that_are_killed() {
    let killed = |runtime: &RealRuntime| -> Result<(), Skip> {
        let place = ProgramCopy::new()?;
        let children = children_of_nobody(runtime, place.path())?;
        let file = place.path().join("x.nettrace");
        let tracing = Running::start(trace_of(["--children", "-o", file.to_str().unwrap()], &children));
        let port = port_of_those_with(place.path());
        let _left = RemoveOnDrop(port.clone());
        let holders = || System::current().started_with(port.as_os_str().as_encoded_bytes(), |_| true);
        eventually("the first process", || (!holders().is_empty()).then_some(()));
        tracing.signal(Signal::KILL);
        tracing.wait();
        // Some may have been resumed by the tool: all others are resumed, until all have exited.
        let system = System::current();
        eventually("the end of every program", || {
            for pid in holders().into_iter().filter(|pid| system.startup(*pid) == Startup::Waiting) {
                // A process that is only starting, or is resumed by the guard of another one, is not an error.
                runtap(["resume", &pid.to_string()]);
            }
            holders().is_empty().then_some(())
        });
        all_have_ended(place.path());
        Ok(())
    };
    crate::common::on(None, killed);
}
