//! Every verb from the host into another pid and mount namespace, as root and as the same unprivileged user. Paths in
//! the target's temporary directory are different on the host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{Finished, Program, RealRuntime, Skip, eventually, run};
use serde_json::Value;

use crate::real_doctor::{codes, idle, judged};
use crate::real_doctor_rights::{NOBODY, ProgramCopy, can_run, child_of, contained};
use crate::real_verbs::{CLASS_ID, hook, profiler};

on_each_runtime!(
    every_verb_as_root,
    every_verb_as_the_same_user,
    a_profiler_for_the_start_as_root,
    a_profiler_for_the_start_as_the_same_user,
);

fn every_verb_as_root(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    every_verb(runtime, &place, &["unshare"], |arguments| place.command(&["env"], arguments))
}

fn every_verb_as_the_same_user(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let unshare = unshare_of_nobody(runtime)?;
    every_verb(runtime, &place, &unshare, |arguments| place.command(&NOBODY, arguments))
}

/// Returns a command that creates namespaces as an unprivileged user.
fn unshare_of_nobody(runtime: &RealRuntime) -> Result<Vec<&'static str>, Skip> {
    can_run(&NOBODY, runtime)?;
    let mut unshare = NOBODY.to_vec();
    unshare.extend(["unshare", "--user", "--map-root-user"]);
    let mut probe = Command::new(unshare[0]);
    if !probe.args(&unshare[1..]).args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        return Err(Skip::because("users can't make namespaces on this machine"));
    }
    Ok(unshare)
}

fn a_profiler_for_the_start_as_root(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    profiler_for_the_start(runtime, &place, &["unshare"], |arguments| place.command(&["env"], arguments))
}

fn a_profiler_for_the_start_as_the_same_user(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let unshare = unshare_of_nobody(runtime)?;
    profiler_for_the_start(runtime, &place, &unshare, |arguments| place.command(&NOBODY, arguments))
}

/// A program in its own namespaces that is suspended at startup.
struct ContainedProgram {
    program: Program,
    /// The process id on the host.
    pid: u32,
    /// The path of the temporary directory inside the namespace.
    temp: PathBuf,
}

/// Starts a program that writes all files to its temporary directory.
fn suspended(
    runtime: &RealRuntime,
    place: &ProgramCopy,
    unshare: &[&str],
    command: &impl Fn(&[&str]) -> Command,
) -> Result<ContainedProgram, Skip> {
    let temp = place.path().join("inside");
    fs::create_dir(&temp).unwrap();
    fs::set_permissions(&temp, fs::Permissions::from_mode(0o777)).unwrap();
    let launch = contained(idle(runtime)?, unshare, &temp)
        .env("DOTNET_DefaultDiagnosticPortSuspend", "1")
        .env("DOTNET_PerfMapJitDumpPath", &temp)
        .env("DEMO_HOOK_OUT", temp.join("hook.txt"))
        .env("DEMO_PROFILER_OUT", temp.join("profiler.txt"));
    let program = launch.spawn_unready();
    let pid = child_of(&program);
    eventually("a suspended program", || {
        let document = run(command(&["doctor", &pid.to_string(), "--format", "json"])).json();
        (document["reachable"] == true && codes(&document) == ["suspended"]).then_some(())
    });
    Ok(ContainedProgram { program, pid, temp })
}

/// Returns the path on the host of a folder of the process.
fn seen_from_here(pid: u32, folder: &Path) -> PathBuf {
    Path::new(&format!("/proc/{pid}/root")).join(folder.strip_prefix("/").unwrap())
}

/// The library is checked and loaded by its path in the target.
fn profiler_for_the_start(
    runtime: &RealRuntime,
    place: &ProgramCopy,
    unshare: &[&str],
    command: impl Fn(&[&str]) -> Command,
) -> Result<(), Skip> {
    let ContainedProgram { mut program, pid, temp } = suspended(runtime, place, unshare, &command)?;
    let p = pid.to_string();
    // Visible only on the host: in the target a file system covers the folder.
    let library = profiler()?;
    let ours = temp.join("libours.so");
    fs::copy(&library, &ours).unwrap();
    let startup =
        |path: &str| run(command(&["profiler", "startup", &p, "--clsid", CLASS_ID, "--path", path]));
    startup(ours.to_str().unwrap()).expect_code(2).says("target's file system");
    startup(&library).expect_code(0);
    let seen = seen_from_here(pid, &temp).join("profiler.txt");
    assert!(!seen.exists(), "it waits, too");
    run(command(&["resume", &p])).expect_code(0);
    program.wait_for("ready");
    assert_eq!(fs::read_to_string(&seen).unwrap(), "init\n");
    Ok(())
}

fn every_verb(
    runtime: &RealRuntime,
    place: &ProgramCopy,
    unshare: &[&str],
    command: impl Fn(&[&str]) -> Command,
) -> Result<(), Skip> {
    let ContainedProgram { mut program, pid, temp } = suspended(runtime, place, unshare, &command)?;
    let p = pid.to_string();
    let seen = |name: &str| seen_from_here(pid, &temp).join(name);
    let done = |arguments: &[&str]| -> Finished {
        let finished = run(command(arguments));
        finished.expect_code(0);
        finished
    };

    done(&["resume", &p]);
    program.wait_for("ready");
    assert_eq!(program.own_pid(), 1, "first in its namespace");

    done(&["set-env", &p, "RUNTAP_E2E=inside"]);
    let env = done(&["env", &p, "--format", "json"]).json();
    let mut variables = env["variables"].as_array().unwrap().iter();
    assert!(variables.any(|it| it["name"] == "RUNTAP_E2E" && it["value"] == "inside"));

    done(&["startup-hook", &p, &hook()?]);
    assert!(fs::read_to_string(seen("hook.txt")).unwrap().starts_with("hook pid=1 "));
    done(&["profiler", "attach", &p, "--clsid", CLASS_ID, "--path", &profiler()?, "--data", "hex:41"]);
    assert_eq!(fs::read_to_string(seen("profiler.txt")).unwrap(), "attach 1 41\nattached\n");

    done(&["perfmap", "enable", &p]);
    assert!(fs::metadata(seen("perf-1.map")).unwrap().len() > 0);
    done(&["perfmap", "disable", &p]);

    // A separate file system hides the folder from the target, so the file is fetched.
    let dump = temp.join("x.dmp");
    let told = done(&["dump", &p, "--type", "Mini", "-o", dump.to_str().unwrap(), "--format", "json"]).json();
    assert_eq!(
        (&told["path"], &told["verified"]),
        (&dump.to_str().unwrap().into(), &true.into()),
        "{told:#}"
    );
    assert!(fs::read(&dump).unwrap().starts_with(b"\x7fELF"));
    assert!(!seen("x.dmp").exists(), "the dump is not outside the container");

    let file = temp.join("x.nettrace");
    let file = file.to_str().unwrap();
    let trace = done(&["trace", &p, "--duration", "0.2s", "-o", file, "--format", "json"]).json();
    assert_eq!(trace["partial"], Value::Null);
    assert_eq!(done(&["info", &p, "--format", "json"]).json()["pid"], pid);
    assert_eq!(codes(&judged(command(&["doctor"]), pid, 0)), [] as [&str; 0]);
    Ok(())
}
