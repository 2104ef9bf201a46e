//! Runtimes that are suspended at startup, and whose tool is gone: `resume` resumes them.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use runtap_testkit::{Launch, Program, RealRuntime, Running, Skip, eventually};

use crate::common::{Target, command, folder, json, runtap};

on_each_runtime!(
    a_default_port_is_resumed,
    a_killed_tool_leaves_no_process_suspended,
    several_ports_are_all_taken_over,
    resume_leaves_the_programs_of_a_live_tool_alone,
    every_connecting_process_is_resumed,
);

/// A program that is idle until it receives input.
const IDLE: [&str; 3] = ["0.05", "1000", "--stdin"];

fn idle(runtime: &RealRuntime) -> Result<Launch, Skip> {
    runtime.program("spin", &IDLE)
}

fn a_default_port_is_resumed(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::suspended(idle(runtime)?);
    target.resume_to_its_end();
    // Has no effect on a running program, any number of times.
    let target = Target::start(idle(runtime)?);
    for _ in 0..3 {
        runtap(["resume", &target.p()]).expect_code(0);
    }
    target.still_answers();
    Ok(())
}

/// Starts programs that wait for the socket `ports` in `folder`.
fn waiting(runtime: &RealRuntime, folder: &Path, ports: &str, n: usize) -> Result<Vec<Program>, Skip> {
    let start = |_| {
        let launch = idle(runtime)?.env("TMPDIR", folder).in_folder(folder);
        Ok(launch.env("DOTNET_DiagnosticPorts", ports).spawn_unready())
    };
    let programs = (0..n).map(start).collect::<Result<Vec<_>, Skip>>()?;
    for program in &programs {
        eventually("the suspended runtime", || {
            let info = runtap(["info", "-p", &program.id().to_string(), "--format", "json"]);
            (info.code() == Some(0)).then(|| assert_eq!(info.json()["suspended"], true))
        });
    }
    Ok(programs)
}

fn run_to_their_end(programs: Vec<Program>) {
    for mut program in programs {
        program.wait_for("ready");
        program.begin();
        program.wait_for("done");
        assert!(program.wait().success());
    }
}

fn a_killed_tool_leaves_no_process_suspended(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let port = folder.path().join("port");
    // A tool that held them suspended and was killed: its socket is stale.
    let tool = UnixListener::bind(&port).unwrap();
    let programs = waiting(runtime, folder.path(), port.to_str().unwrap(), 3)?;
    drop(tool);
    let first = programs[0].id().to_string();
    let resumed = runtap(["resume", "-p", &first]);
    resumed.expect_code(0);
    for program in &programs {
        resumed.says(&format!("Resumed process {}.", program.id()));
    }
    eventually("the program runs", || {
        (json(["info", &first, "--format", "json"])["suspended"] == false).then_some(())
    });
    assert!(!port.exists(), "runtap's socket is removed");
    run_to_their_end(programs);
    Ok(())
}

/// An absolute path, a path relative to the program's working directory, and a port that does not suspend.
fn several_ports_are_all_taken_over(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let ports = format!("{}/a;b,connect;{0}/c,nosuspend;{0}/d,listen", folder.path().display());
    let programs = waiting(runtime, folder.path(), &ports, 1)?;
    runtap(["resume", &programs[0].id().to_string()]).expect_code(0);
    run_to_their_end(programs);
    Ok(())
}

fn resume_leaves_the_programs_of_a_live_tool_alone(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let port = folder.path().join("port");
    let tool = UnixListener::bind(&port).unwrap();
    let programs = waiting(runtime, folder.path(), port.to_str().unwrap(), 1)?;
    let p = programs[0].id().to_string();
    let me = std::process::id();
    runtap(["resume", &p]).expect_code(1).says(&format!("is waiting for process {me}")).says("stop the tool");
    assert_eq!(json(["info", &p, "--format", "json"])["suspended"], true);
    assert!(port.exists(), "the tool's socket was not touched");
    drop(tool);
    fs::remove_file(&port).unwrap();
    runtap(["resume", &p]).expect_code(0);
    run_to_their_end(programs);
    Ok(())
}

fn every_connecting_process_is_resumed(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let port = format!("{},LISTEN", folder.path().join("port").display());
    let mut resume = command(["resume", "--diagnostic-port"]);
    resume.args([port.as_str(), "--duration", "600"]);
    let resume = Running::start(resume);
    let launch =
        idle(runtime)?.env("TMPDIR", folder.path()).env("DOTNET_DiagnosticPorts", folder.path().join("port"));
    let mut program = launch.spawn();
    program.begin();
    program.wait_for("done");
    drop(resume);
    let nobody = format!("{}/nobody,listen", folder.path().display());
    runtap(["resume", "--dport", &nobody, "--duration", "0.2"])
        .expect_code(3)
        .says("no program has connected");
    Ok(())
}
