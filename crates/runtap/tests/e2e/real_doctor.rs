//! `doctor`: each finding is produced by a real situation. Those with other users or namespaces are in
//! `real_doctor_rights`, suspended programs in `real_doctor_waits`, dumps in `real_doctor_dumps`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use runtap_testkit::{Launch, RealRuntime, Signal, Skip, eventually, run};
use rustix::process::{Pid, kill_process};
use serde_json::Value;

use crate::common::{Recording, Target, command, folder, ps_row, ps_row_now, runtap, unique};

on_each_runtime!(
    a_healthy_process_has_no_errors,
    switched_off_diagnostics,
    a_missing_temporary_directory,
    a_long_temporary_directory,
    a_port_that_is_ignored,
    a_deleted_socket,
    a_silent_client_is_named,
    a_stopped_process_is_busy,
);
on_the_newest_runtime!(all_processes_and_the_machine, a_name_is_enough);

/// Returns the doctor's document about a process.
#[track_caller]
pub(crate) fn doctor(pid: u32, code: i32) -> Value {
    judged(command(["doctor"]), pid, code)
}

/// Like [`doctor`], with a given `runtap doctor`.
#[track_caller]
pub(crate) fn judged(mut command: Command, pid: u32, code: i32) -> Value {
    command.args([&pid.to_string(), "--format", "json"]);
    let document = run(command).expect_code(code).json();
    assert_eq!((&document["schema"], &document["pid"]), (&"runtap.doctor/1".into(), &pid.into()));
    assert_eq!(document["reachable"], code == 0, "{document:#}");
    for finding in document["findings"].as_array().unwrap() {
        assert!(
            ["error", "warning", "info"].iter().any(|known| finding["severity"] == *known),
            "{finding:#}"
        );
        for member in ["code", "detail", "fix"] {
            assert_ne!(finding[member].as_str().unwrap(), "", "{finding:#}");
        }
    }
    document
}

/// Returns the finding with this code.
#[track_caller]
pub(crate) fn finding(document: &Value, code: &str) -> Value {
    let found = document["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code);
    found.unwrap_or_else(|| panic!("no {code} in {document:#}")).clone()
}

/// Returns the codes of findings that are not just informational.
#[track_caller]
pub(crate) fn codes(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().unwrap().iter();
    findings.filter(|it| it["severity"] != "info").map(|it| it["code"].as_str().unwrap()).collect()
}

/// Checks that a member of the finding contains this text.
#[track_caller]
pub(crate) fn says(finding: &Value, member: &str, text: &str) {
    assert!(finding[member].as_str().unwrap().contains(text), "no {text:?} in the {member} of {finding:#}");
}

pub(crate) fn idle(runtime: &RealRuntime) -> Result<Launch, Skip> {
    runtime.program("spin", &["0.05", "1000", "--stdin"])
}

/// A program without a runtime that runs until its input ends.
pub(crate) struct Cat(pub(crate) Child);

impl Cat {
    fn start(mut command: Command) -> Self {
        Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat can be started"))
    }
}

impl Drop for Cat {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn a_healthy_process_has_no_errors(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(idle(runtime)?);
    let document = doctor(target.pid(), 0);
    assert_eq!(codes(&document), [] as [&str; 0], "{document:#}");
    assert_eq!(document["name"], "spin");
    // The process uses its own temporary directory, which tools do not search by default.
    let finding = finding(&document, "other-tmpdir");
    says(&finding, "fix", &format!("TMPDIR={}", target.temp.path().display()));
    let mut there = command(["doctor", &target.p()]);
    there.env("TMPDIR", target.temp.path());
    let text = run(there);
    assert!(text.expect_code(0).text().contains("No problems found"), "{text}");
    target.still_answers();
    Ok(())
}

#[test]
fn real_ids_of_zombies_and_threads_are_not_processes() {
    let mut child = Command::new("true").spawn().unwrap();
    // The child has exited, but its exit code has not been read yet.
    eventually("a zombie", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.contains(") Z ").then_some(())
    });
    let document = doctor(child.id(), 3);
    says(&finding(&document, "no-such-process"), "detail", "has exited");
    child.wait().unwrap();
    assert_eq!(codes(&doctor(child.id(), 3)), ["no-such-process"]);

    let (tell, told) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("only-a-thread".to_owned());
    let thread = thread.spawn(move || told.recv()).unwrap();
    let tasks = || fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let tid = eventually("the thread", || {
        let mut found = tasks()
            .filter(|task| fs::read_to_string(task.join("comm")).unwrap_or_default() == "only-a-thread\n");
        found.next()?.file_name()?.to_str()?.parse().ok()
    });
    let document = doctor(tid, 3);
    says(&finding(&document, "no-such-process"), "detail", "is a thread of");
    says(&finding(&document, "no-such-process"), "fix", &std::process::id().to_string());
    drop(tell);
    thread.join().unwrap().unwrap_err();
}

#[test]
fn real_programs_without_dotnet() {
    let cat = Cat::start(Command::new("cat"));
    eventually("cat itself", || {
        let exe = fs::read_link(format!("/proc/{}/exe", cat.0.id())).ok()?;
        exe.to_str()?.ends_with("cat").then_some(())
    });
    let document = doctor(cat.0.id(), 3);
    assert_eq!(codes(&document), ["not-dotnet"]);
    let text = runtap(["doctor", &cat.0.id().to_string()]);
    assert!(text.expect_code(3).text().contains("cannot be reached"), "{text}");
}

/// Simulates old runtimes: their library is in a folder named after the version. The kernel's map of the process is
/// real.
#[test]
fn real_maps_of_an_old_runtime() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut files = maps.lines().filter_map(|line| Some(PathBuf::from(line.get(line.find('/')?..)?)));
    let Some(library) = files.find(|file| file.to_string_lossy().contains("libgcc_s")) else {
        return Skip::because("this test has no library that could stand for a runtime").report();
    };
    let dir = folder();
    let runtime = dir.path().join("Microsoft.NETCore.App/2.1.30");
    fs::create_dir_all(&runtime).unwrap();
    fs::copy(library, runtime.join("libcoreclr.so")).unwrap();
    let mut cat = Command::new("cat");
    cat.env("LD_PRELOAD", runtime.join("libcoreclr.so"));
    let cat = Cat::start(cat);
    let maps = format!("/proc/{}/maps", cat.0.id());
    eventually("the library", || fs::read_to_string(&maps).ok()?.contains("libcoreclr.so").then_some(()));
    let document = doctor(cat.0.id(), 3);
    assert_eq!(codes(&document), ["too-old"]);
    says(&finding(&document, "too-old"), "detail", ".NET Core 2.1.30");
}

/// A program of the .NET Framework on Mono.
#[test]
fn real_mono_is_too_old() {
    let dir = folder();
    let source = dir.path().join("wait.cs");
    fs::write(
        &source,
        "class P { static void Main() { System.Console.WriteLine(\"ready\"); System.Console.ReadLine(); } }",
    )
    .unwrap();
    let compiled = Command::new("mcs").arg(&source).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return Skip::because("there is no mcs on this machine (Debian: mono-mcs)").report();
    }
    let mut mono = Command::new("mono");
    mono.arg(dir.path().join("wait.exe")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = mono.spawn() else {
        return Skip::because("there is no mono on this machine").report();
    };
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let mono = Cat(child);
    let document = doctor(mono.0.id(), 3);
    assert_eq!(codes(&document), ["too-old"]);
    says(&finding(&document, "too-old"), "detail", "Mono");
}

/// Every switch has the effect that it has on the runtime, even if its value suggests otherwise.
fn switched_off_diagnostics(runtime: &RealRuntime) -> Result<(), Skip> {
    let older = "COMPlus_EnableDiagnostics";
    let newer = "DOTNET_EnableDiagnostics";
    let only_ipc = "DOTNET_EnableDiagnostics_IPC";
    for (variables, off) in [
        (vec![(newer, "0")], Some(newer)),
        (vec![(only_ipc, "0")], Some(only_ipc)),
        (vec![(older, "0x0")], Some(older)),
        (vec![(older, "0"), (newer, "1")], None),
        (vec![(newer, "")], None),
        (vec![(newer, "10")], None),
    ] {
        let mut launch = idle(runtime)?;
        for (name, value) in &variables {
            launch = launch.env(name, value);
        }
        let target = Target::start(launch);
        match off {
            Some(name) => {
                let document = doctor(target.pid(), 3);
                assert_eq!(codes(&document), ["diagnostics-disabled"], "{variables:?}");
                says(&finding(&document, "diagnostics-disabled"), "fix", &format!("env -u {name} "));
            }
            None => assert_eq!(codes(&doctor(target.pid(), 0)), [] as [&str; 0], "{variables:?}"),
        }
    }
    Ok(())
}

fn a_missing_temporary_directory(runtime: &RealRuntime) -> Result<(), Skip> {
    let dir = folder();
    let missing = dir.path().join("none");
    let program = idle(runtime)?.env("TMPDIR", &missing).spawn();
    let document = doctor(program.id(), 3);
    assert_eq!(codes(&document), ["other-tmpdir"]);
    says(&finding(&document, "other-tmpdir"), "fix", &format!("mkdir -p {}", missing.display()));
    // Other verbs that can't reach the process print this explanation too.
    runtap(["info", &program.id().to_string()]).expect_code(3).says("does not exist").says("mkdir -p");
    Ok(())
}

/// The runtime truncates the path of its socket.
fn a_long_temporary_directory(runtime: &RealRuntime) -> Result<(), Skip> {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let long = |length: usize| {
        let long = dir.path().join("d".repeat(length - dir.path().as_os_str().len() - 1));
        fs::create_dir(&long).unwrap();
        long
    };
    for length in [72, 80, 90] {
        let program = idle(runtime)?.env("TMPDIR", long(length)).spawn();
        let document = doctor(program.id(), 0);
        assert_eq!(codes(&document), [] as [&str; 0], "{document:#}");
        let truncated = |it: &&Value| it["detail"].as_str().unwrap().contains("truncated name");
        let finding = document["findings"].as_array().unwrap().iter().find(truncated).unwrap();
        says(finding, "detail", &format!("TMPDIR is {length} bytes long"));
        assert_eq!(ps_row(program.id())["reachable"], true);
        runtap(["info", &program.id().to_string()]).expect_code(0);
    }
    let program = idle(runtime)?.env("TMPDIR", long(121)).spawn();
    let document = doctor(program.id(), 3);
    assert_eq!(codes(&document), ["other-tmpdir"]);
    says(&finding(&document, "other-tmpdir"), "detail", "121 bytes");
    Ok(())
}

fn a_port_that_is_ignored(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(idle(runtime)?.env("DOTNET_DiagnosticPorts", "/tmp/no-such-port,listen"));
    let document = doctor(target.pid(), 0);
    assert_eq!(codes(&document), ["diagnostic-ports"]);
    says(&finding(&document, "diagnostic-ports"), "detail", "ignored");
    says(&finding(&document, "diagnostic-ports"), "fix", "remove 'listen'");
    Ok(())
}

fn a_deleted_socket(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(idle(runtime)?);
    let socket = target.socket();
    // Stale sockets with this process id are reported, but do not interfere.
    let stale = target.temp.path().join(format!("dotnet-diagnostic-{}-7-socket", target.pid()));
    drop(UnixListener::bind(&stale).unwrap());
    let document = doctor(target.pid(), 0);
    says(&finding(&document, "stale-socket"), "fix", &format!("rm {}", stale.display()));

    fs::remove_file(&socket).unwrap();
    let document = doctor(target.pid(), 3);
    assert_eq!(codes(&document), ["stale-socket"]);
    let finding = finding(&document, "stale-socket");
    says(&finding, "detail", "was deleted");
    says(&finding, "detail", socket.to_str().unwrap());
    assert_eq!(ps_row(target.pid())["reason"], "stale-socket");
    Ok(())
}

/// The silent client is this test, over a connection that is distinguishable from others.
fn a_silent_client_is_named(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &["60", "1000"])?);
    let socket = target.socket();
    let recording = Recording::start(&target, target.temp.path().join("x.nettrace"), &["-q"]);
    let clients = |document: &Value| finding(document, "busy")["detail"].as_str().unwrap().to_owned();
    // By then runtap has sent all requests, and its only connection is the session's.
    recording.wait_for_bytes(1);
    target.still_answers();
    let silent = UnixStream::connect(&socket).unwrap();
    let document = doctor(target.pid(), 3);
    assert_eq!(codes(&document), ["busy"]);
    let detail = clients(&document);
    let me = std::process::id();
    assert!(detail.contains(&format!("waits for process {me} (")), "{detail}");
    assert!(!detail.contains(&format!("process {} (", recording.runtap.id())), "{detail}");
    says(&finding(&document, "busy"), "fix", &format!("kill {me}"));
    assert_eq!(ps_row_now(command(["ps"]), target.pid())["reason"], "busy");
    drop(silent);
    target.still_answers();
    drop(recording);
    Ok(())
}

fn a_stopped_process_is_busy(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(idle(runtime)?);
    let pid = Pid::from_raw(target.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    eventually("a stopped process", || {
        fs::read_to_string(format!("/proc/{}/stat", target.pid())).unwrap().contains(") T ").then_some(())
    });
    let document = doctor(target.pid(), 3);
    assert_eq!(codes(&document), ["busy"]);
    assert_eq!(finding(&document, "busy")["fix"], format!("kill -CONT {}", target.pid()));
    kill_process(pid, Signal::CONT).unwrap();
    target.still_answers();
    Ok(())
}

fn all_processes_and_the_machine(runtime: &RealRuntime) -> Result<(), Skip> {
    let dir = folder();
    let well = Target::start(idle(runtime)?);
    let off = Target::start(idle(runtime)?.env("DOTNET_EnableDiagnostics", "0"));
    let left = dir.path().join("dotnet-diagnostic-4194304-7-socket");
    drop(UnixListener::bind(&left).unwrap());
    // A socket with a listener is left alone, whatever its name is.
    let live = dir.path().join("dotnet-diagnostic-4194303-8-socket");
    let listener = UnixListener::bind(&live).unwrap();

    let mut command = command(["doctor", "--format", "json"]);
    command.env("TMPDIR", dir.path());
    let document = run(command).expect_code(0).json();
    assert_eq!((&document["pid"], &document["reachable"]), (&Value::Null, &Value::Null));
    let processes = document["processes"].as_array().unwrap();
    let of = |pid: u32| processes.iter().find(|process| process["pid"] == pid).unwrap();
    assert_eq!((&of(well.pid())["reachable"], &of(well.pid())["name"]), (&true.into(), &"spin".into()));
    assert_eq!(codes(of(off.pid())), ["diagnostics-disabled"]);
    assert!(processes.iter().all(|process| process["pid"] != std::process::id()), "this test is no .NET");
    let stale = finding(&document, "stale-socket");
    says(&stale, "fix", left.to_str().unwrap());
    assert!(!stale["fix"].as_str().unwrap().contains(live.to_str().unwrap()), "{stale:#}");
    drop(listener);

    let text = runtap(["doctor"]);
    let text = text.expect_code(0).text();
    let line = text.lines().find(|line| line.contains(&off.p())).unwrap();
    assert!(line.contains("diagnostics-disabled"), "{line}");
    Ok(())
}

fn a_name_is_enough(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("ill"), folder());
    let target =
        Target::start(idle(runtime)?.called(&name, copy.path()).env("DOTNET_EnableDiagnostics", "0"));
    let found = runtap(["doctor", "-n", &name, "--format", "json"]);
    assert_eq!(found.expect_code(3).json()["pid"], target.pid());
    let second = Target::start(idle(runtime)?.called(&name, copy.path()));
    runtap(["doctor", &name]).expect_code(3).says(&target.p()).says(&second.p()).says("-p");
    runtap(["doctor", &format!("{name}x")]).expect_code(3).says("looks like .NET");
    Ok(())
}
