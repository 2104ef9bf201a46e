//! Finding processes: by name, in any temporary directory, among stale sockets, and behind a silent client.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;

use runtap_diag::blocking::Client;
use runtap_testkit::{Finished, Launch, RealRuntime, Signal, Skip, eventually, run};
use runtap_transport::Endpoint;
use rustix::process::{Pid, kill_process};
use serde_json::Value;

use crate::common::{
    Target, command, counts, folder, json, ps, ps_row, ps_row_now, runtap, socket_in, unique,
};
use crate::real_verbs::{CLASS_ID, hook, profiler};

on_each_runtime!(
    any_temporary_directory_is_found,
    a_socket_with_a_long_path_is_reachable,
    thousands_of_stale_sockets_hide_no_process,
    a_silent_client_makes_a_process_busy,
);
on_the_newest_runtime!(
    a_stopped_process_is_reported,
    a_busy_process_is_not_recorded,
    the_name_that_ps_shows_can_be_used,
    a_name_has_to_be_unique,
    all_processes_of_a_name,
    one_of_several_is_stopped,
    all_processes_of_a_name_are_changed,
    started_and_ended_processes_are_shown,
    processes_of_one_name_can_be_watched,
);

fn idle(runtime: &RealRuntime) -> Result<Launch, Skip> {
    runtime.program("spin", &["0.05", "1000", "--stdin"])
}

/// Values of TMPDIR in practice: with a trailing slash, relative, empty, unset, or an arbitrary folder.
fn any_temporary_directory_is_found(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    fs::create_dir(folder.path().join("relative")).unwrap();
    let slash = format!("{}/", folder.path().display());
    let launches = [
        (idle(runtime)?.env("TMPDIR", &slash), folder.path()),
        (idle(runtime)?.env("TMPDIR", "relative").in_folder(folder.path()), Path::new("/proc")),
        (idle(runtime)?.env("TMPDIR", ""), Path::new("/tmp")),
        (idle(runtime)?.without_env("TMPDIR"), Path::new("/tmp")),
    ];
    for (launch, place) in launches {
        let mut program = launch.spawn();
        let row = ps_row(program.id());
        let socket = row["socket"].as_str().unwrap();
        assert_eq!(
            (&row["reachable"], Path::new(socket).starts_with(place)),
            (&Value::from(true), true),
            "{row:#}"
        );
        // A runtap process with another temporary directory finds it too.
        let mut elsewhere = command(["info", "--format", "json"]);
        elsewhere.arg(program.id().to_string()).env("TMPDIR", folder.path().join("relative"));
        assert_eq!(run(elsewhere).expect_code(0).json()["entry_assembly"], "spin");
        // A program that exits normally leaves no socket in /tmp.
        program.begin();
        assert!(program.wait().success());
    }
    Ok(())
}

/// A socket whose path is longer than the 108 bytes of a socket address.
fn a_socket_with_a_long_path_is_reachable(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let deep = folder.path().join("x".repeat(60)).join("y".repeat(60));
    fs::DirBuilder::new().recursive(true).mode(0o755).create(deep.join("t")).unwrap();
    let mut program = idle(runtime)?.env("TMPDIR", "t").in_folder(&deep).spawn();
    assert_eq!(ps_row(program.id())["reachable"], true);
    assert_eq!(json(["info", &program.id().to_string(), "--format", "json"])["pid"], program.id());
    let socket = socket_in(&deep.join("t"), program.id());
    assert!(socket.as_os_str().len() > 108);
    let judged = json(["doctor", "--dport", socket.to_str().unwrap(), "--format", "json"]);
    assert_eq!((&judged["pid"], &judged["reachable"]), (&Value::from(program.id()), &Value::from(true)));
    let by_port = json(["info", "--diagnostic-port", socket.to_str().unwrap(), "--format", "json"]);
    assert_eq!(by_port["pid"], program.id());
    program.begin();
    assert!(program.wait().success());
    Ok(())
}

fn thousands_of_stale_sockets_hide_no_process(runtime: &RealRuntime) -> Result<(), Skip> {
    let name = unique("stale");
    let copy = folder();
    let target = Target::start(idle(runtime)?.called(&name, copy.path()));
    let live = target.socket();
    // Sockets of killed processes, without a listener. Some have the ids of live processes, one that of the target
    // itself; it is newer than the target's own.
    let me = std::process::id();
    let mut pids: Vec<u32> = (0..1_000).map(|n| 4_194_304 - n).collect();
    pids.extend([1, me, target.pid()].repeat(300));
    for (n, pid) in pids.iter().enumerate() {
        let path = target.temp.path().join(format!("dotnet-diagnostic-{pid}-{n}-socket"));
        drop(UnixListener::bind(path).unwrap());
    }
    for n in 0..2_000 {
        fs::write(target.temp.path().join(format!("dotnet-diagnostic-{me}-{}-socket", 5_000 + n)), "")
            .unwrap();
    }

    let with_its_tmpdir = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env("TMPDIR", target.temp.path());
        command
    };
    let rows = ps(with_its_tmpdir(&["ps"]));
    let here: Vec<&Value> = rows
        .iter()
        .filter(|row| {
            row["socket"].as_str().is_some_and(|socket| Path::new(socket).starts_with(target.temp.path()))
        })
        .collect();
    assert_eq!(here.len(), 1, "{here:#?}");
    assert_eq!((&here[0]["pid"], &here[0]["socket"]), (&target.pid().into(), &live.to_str().unwrap().into()));
    // Another test in this process may have a socket elsewhere that is not stale.
    let is_elsewhere = |row: &Value| {
        let socket = row["socket"].as_str();
        socket.is_some_and(|socket| !Path::new(socket).starts_with(target.temp.path()))
    };
    let of_this = rows.iter().find(|row| row["pid"] == me);
    assert!(of_this.is_none_or(is_elsewhere), "a stale socket made this test a .NET process: {of_this:?}");
    let info = run(with_its_tmpdir(&["info", "-n", &name, "--format", "json"]));
    assert_eq!(info.expect_code(0).json()["pid"], target.pid());
    let file = copy.path().join("found.nettrace");
    let trace = run(with_its_tmpdir(&[
        "trace",
        &name,
        "--duration",
        "0.2s",
        "-o",
        file.to_str().unwrap(),
        "--format",
        "json",
    ]));
    assert_eq!(trace.expect_code(0).json()["partial"], Value::Null);
    // The process whose id is used only by stale sockets.
    let mine = run(with_its_tmpdir(&["info", &me.to_string()]));
    mine.expect_code(3).says("hint:");
    target.still_answers();
    Ok(())
}

/// One client that connects and sends nothing blocks a runtime's only server thread.
fn a_silent_client_makes_a_process_busy(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(idle(runtime)?);
    let free = Target::start(idle(runtime)?);
    let silent = UnixStream::connect(target.socket()).unwrap();
    let row = ps_row_now(command(["ps"]), target.pid());
    assert_eq!((&row["reachable"], &row["reason"]), (&Value::from(false), &Value::from("busy")), "{row:#}");
    assert_eq!(row["name"], "spin", "known from its command line");
    assert_eq!(ps_row(free.pid())["reachable"], true, "a busy process costs the others nothing");
    runtap(["info", &target.p()])
        .expect_code(3)
        .says(&format!(
            "process {} is not responding: its diagnostics server waits for process {}",
            target.pid(),
            std::process::id()
        ))
        .says("which is connected and sends nothing")
        .says(&format!("kill {}", std::process::id()));
    drop(silent);
    target.still_answers();
    assert_eq!(ps_row(target.pid())["reachable"], true);
    Ok(())
}

/// runtap does not wait for a stopped process: it prints the doctor's explanation at once.
fn a_stopped_process_is_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("halt"), folder());
    let target = Target::start(idle(runtime)?.called(&name, copy.path()));
    let pid = Pid::from_raw(target.pid().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    eventually("the stopped process", || {
        (ps_row_now(command(["ps"]), target.pid())["reason"] == "busy").then_some(())
    });
    let p = target.p();
    let file = target.temp.path().join("none.nettrace");
    for words in [&["info", &p][..], &["env", "-n", &name], &["trace", &p, "-o", file.to_str().unwrap()]] {
        let told = runtap(words);
        told.expect_code(3).says(&format!("process {p} is not responding: it was stopped by a signal"));
        told.says(&format!("hint: kill -CONT {p}"));
    }
    assert!(!file.exists());
    // By a name that only its runtime could report.
    let doctor = runtap(["doctor", "-n", "spin-that-is-not-there"]);
    doctor
        .expect_code(3)
        .says("no process that looks like .NET or Java is named")
        .says("did not respond")
        .says(&p);
    kill_process(pid, Signal::CONT).unwrap();
    target.still_answers();
    Ok(())
}

/// A recording that could not start leaves no file.
fn a_busy_process_is_not_recorded(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(idle(runtime)?);
    let silent = UnixStream::connect(target.socket()).unwrap();
    let file = target.temp.path().join("none.nettrace");
    let trace = runtap(["trace", &target.p(), "--duration", "1s", "-o", file.to_str().unwrap()]);
    trace.expect_code(3).says("which is connected and sends nothing");
    assert!(!file.exists(), "there was nothing to record");
    drop(silent);
    target.still_answers();
    Ok(())
}

/// A program is named after its entry assembly, whatever the name of its file is.
fn the_name_that_ps_shows_can_be_used(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("renamed"), folder());
    let launch = runtime.program("meters", &["0", "1", "0", "--stdin"])?;
    let target = Target::start(launch.called(&name, copy.path()));
    assert_eq!(ps_row(target.pid())["name"], "meters");
    let namesakes = ps(command(["ps"]));
    if namesakes.iter().any(|row| row["name"] == "meters" && row["pid"] != target.pid()) {
        return Err(Skip::because("another meters runs on this machine"));
    }
    let info = ["info", "-n", "meters", "--format", "json"];
    assert_eq!(json(info)["pid"], target.pid());

    // A process whose name is unknown may be the one selected.
    let silent = UnixStream::connect(target.socket()).unwrap();
    let told = runtap(info);
    told.expect_code(3)
        .says("no .NET or Java process is named 'meters'")
        .says("did not respond")
        .says(&target.p());
    drop(silent);
    assert_eq!(json(info)["pid"], target.pid());
    target.still_answers();
    Ok(())
}

/// A name of several processes is rejected with a list; a name of one process is sufficient.
fn a_name_has_to_be_unique(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("twice"), folder());
    let old = Target::start(idle(runtime)?.called(&name, copy.path()));
    let new = Target::start(idle(runtime)?.called(&name, copy.path()));
    for verb in [&["info"][..], &["env"], &["trace", "-o", "/dev/null"]] {
        let refused = runtap(verb.iter().copied().chain(["-n", &name]));
        refused.expect_code(3).says(&name).says(&old.p()).says(&new.p()).says("-p");
    }
    runtap(["info", &format!("{name}x")]).expect_code(3).says("no .NET or Java process is named");
    drop(old);
    assert_eq!(json(["info", &name, "--format", "json"])["pid"], new.pid());
    // The name that the runtime reports, which is that of the assembly inside the file.
    assert_eq!(ps_row(new.pid())["name"], "spin");
    new.still_answers();
    Ok(())
}

/// The verbs that change a process apply to all processes of a name; if one fails, the others are still changed.
fn all_processes_of_a_name_are_changed(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("rt"), folder());
    let launch =
        || Ok(idle(runtime)?.called(&name, copy.path()).env("DEMO_HOOK_OUT", copy.path().join("hook.txt")));
    let targets = [Target::start(launch()?), Target::start(launch()?)];
    let pids: BTreeSet<u64> = targets.iter().map(|target| u64::from(target.pid())).collect();
    let all = |verb: &[&str]| runtap(verb.iter().copied().chain(["-n", &name, "--all"]));
    let documents = |finished: &Finished| -> BTreeSet<u64> {
        let lines = finished.expect_code(0).text().lines();
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["pid"].as_u64().unwrap()).collect()
    };

    all(&["set-env", "RUNTAP_E2E_ALL=1"]).expect_code(0);
    for target in &targets {
        let env = runtap(["env", &target.p()]);
        assert!(env.expect_code(0).text().contains("\nRUNTAP_E2E_ALL=1\n"), "{env}");
    }
    all(&["resume"]).expect_code(0);
    for verb in [["perfmap", "enable"], ["perfmap", "disable"]] {
        assert_eq!(documents(&all(&[verb[0], verb[1], "--format", "json"])), pids);
    }
    assert_eq!(documents(&all(&["doctor", "--format", "json"])), pids);
    all(&["startup-hook", &hook()?]).expect_code(0);
    assert_eq!(fs::read_to_string(copy.path().join("hook.txt")).unwrap().lines().count(), 2);
    let dump = copy.path().join("x.dmp");
    let dumps = all(&["dump", "--type", "mini", "--format", "json", "-o", dump.to_str().unwrap()]);
    assert_eq!(documents(&dumps), pids);
    let files = fs::read_dir(copy.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(files.filter(|path| path.extension().is_some_and(|it| it == "dmp")).count(), 2);

    // One process already has a profiler.
    let attach = ["profiler", "attach", "--clsid", CLASS_ID, "--path", &profiler()?];
    let first = targets[0].p();
    runtap(attach.into_iter().chain(["-p", &first])).expect_code(0);
    all(&attach).expect_code(4).says(&format!("process {first}: ")).says("is attached");
    let maps = fs::read_to_string(format!("/proc/{}/maps", targets[1].pid())).unwrap();
    assert!(maps.contains("libdemoprofiler.so"));
    all(&["profiler", "startup", "--clsid", CLASS_ID, "--path", &profiler()?]).expect_code(4);
    targets.iter().for_each(Target::still_answers);
    Ok(())
}

/// A stopped process is reported at once, with a way to continue it, and the others are recorded for the requested
/// time.
fn one_of_several_is_stopped(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("halt"), folder());
    let launch = || Ok(runtime.program("spin", &["60", "2000"])?.called(&name, copy.path()));
    let (runs, stands) = (Target::start(launch()?), Target::start(launch()?));
    let stopped = Pid::from_raw(stands.pid().try_into().unwrap()).unwrap();
    kill_process(stopped, Signal::STOP).unwrap();
    eventually("the stop", || {
        let status = fs::read_to_string(format!("/proc/{}/status", stands.pid())).unwrap();
        status.contains("State:\tT").then_some(())
    });
    let file = copy.path().join("one.nettrace");
    let mut trace = command(["trace", "-n", &name, "--all", "--duration", "1s", "--format", "json", "-o"]);
    trace.arg(&file);
    let told = run(trace);
    let summary = told.expect_code(5).says(&format!("kill -CONT {}", stands.pid())).json();
    assert_eq!(summary["processes"].as_array().unwrap().len(), 1);
    assert_eq!(summary["pid"], runs.pid());
    // runtap gives up on a process that does not answer after 10 s.
    assert!(summary["duration_ns"].as_u64().unwrap() < 9_000_000_000, "{summary:#}");
    let line = told.stderr.lines().find(|line| line.contains("not recorded")).unwrap();
    assert_eq!(line.matches(&format!("process {}", stands.p())).count(), 1, "{line}");
    let tail = ["tail", "-n", &name, "--all", "--clrevents", "gc", "--duration", "0.5s"];
    runtap(tail).expect_code(3).says(&format!("kill -CONT {}", stands.pid()));
    kill_process(stopped, Signal::CONT).unwrap();
    Ok(())
}

/// With `--all` a name may select several processes.
fn all_processes_of_a_name(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("many"), folder());
    let launch = || Ok(runtime.program("spin", &["30", "2000"])?.called(&name, copy.path()));
    let targets = [Target::start(launch()?), Target::start(launch()?)];
    let mut pids: Vec<u32> = targets.iter().map(Target::pid).collect();
    pids.sort_unstable();
    for verb in ["info", "env"] {
        let told = runtap([verb, "-n", &name, "--all", "--format", "json"]);
        let lines = told.expect_code(0).text().lines();
        let documents: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut told: Vec<u64> = documents.iter().map(|document| document["pid"].as_u64().unwrap()).collect();
        told.sort_unstable();
        assert_eq!(told, pids.iter().map(|pid| u64::from(*pid)).collect::<Vec<_>>(), "{verb}");
    }
    let text = runtap(["env", "-n", &name, "--all"]);
    for target in &targets {
        assert!(text.expect_code(0).text().contains(&format!("# process {}\n", target.pid())), "{text}");
    }

    let file = copy.path().join("many.nettrace");
    let file = file.to_str().unwrap();
    runtap(["trace", &name, "--all", "-o", "-"]).expect_code(2).says("stdout");
    let trace = runtap(["trace", &name, "--all", "--duration", "0.3s", "-o", file, "--format", "json"]);
    let summary = trace.expect_code(0).json();
    assert_eq!(summary["partial"], Value::Null, "{summary:#}");
    let mut recorded: Vec<u64> = fs::read_dir(copy.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "nettrace"))
        .map(|path| counts(&path, 0)["process_id"].as_u64().unwrap())
        .collect();
    recorded.sort_unstable();
    assert_eq!(recorded, pids.iter().map(|pid| u64::from(*pid)).collect::<Vec<_>>());
    targets.iter().for_each(Target::still_answers);
    Ok(())
}

/// The header is printed to a pipe too, and only processes of this name are listed.
fn processes_of_one_name_can_be_watched(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("watched"), folder());
    let _other = Target::start(idle(runtime)?);
    let target = Target::start(idle(runtime)?.called(&name, copy.path()));
    ps_row(target.pid());
    // Without the numbers that change from one query to the next.
    let query = |target: &str| {
        let mut rows = ps(command(["ps", target]));
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            row.retain(|name, _| !["cpu_percent", "rss_bytes", "uptime_ns"].contains(&name.as_str()));
        }
        rows
    };
    let rows = query(&name);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_eq!(query(&target.p()), rows);
    let text = runtap(["ps", &name]);
    let text = text.expect_code(0).text();
    assert!(text.lines().nth(1).unwrap().contains(" running "), "{text}");
    runtap(["ps", &format!("{name}x")]).expect_code(3).says("no .NET or Java process is named");
    let mut command = command(["ps", "--watch", &name]);
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let (heading, first) = (lines.next().unwrap(), lines.next().unwrap());
    let at = |title: &str| heading.find(title).unwrap_or_else(|| panic!("{title} is not in {heading}"));
    assert!(
        first.starts_with('+') && first.get(at("NAME")..).is_some_and(|rest| rest.starts_with("spin")),
        "{heading}\n{first}"
    );
    assert!(first.contains(&target.p()) && heading.contains("COMMAND LINE"), "{heading}\n{first}");
    kill_process(Pid::from_child(&watch), Signal::INT).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    Ok(())
}

fn started_and_ended_processes_are_shown(runtime: &RealRuntime) -> Result<(), Skip> {
    let before = Target::start(idle(runtime)?);
    let later = idle(runtime)?.env("DOTNET_DefaultDiagnosticPortSuspend", "1");
    let mut command = command(["ps", "--watch", "--format", "json"]);
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = |kind: &str, pid: u32| {
        let is_it = |line: &Value| line["type"] == kind && line["pid"] == pid;
        let mut values = lines.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        values.find(is_it).unwrap_or_else(|| panic!("{kind} of {pid} was not told"))
    };
    let mut row = next("process-start", before.pid());
    // The process was not scheduled during the first query; a later one reports it.
    while row["reason"] == "busy" {
        row = next("process-change", before.pid());
    }
    assert_eq!(row["reachable"], true);
    let mut later = Target::start_unready(later);
    next("process-start", later.pid());
    // The process is reported as suspended, perhaps in the first line. The socket exists before its listener.
    eventually("its server", || {
        let mut paths = fs::read_dir(later.temp.path()).unwrap().map(|entry| entry.unwrap().path());
        let socket = paths.find(|path| path.to_string_lossy().ends_with("-socket"))?;
        Client::new(Endpoint::unix(socket)).unwrap().resume().ok()
    });
    later.program.wait_for("ready");
    later.program.kill();
    assert_eq!(next("process-end", later.pid())["name"], "spin");
    kill_process(Pid::from_child(&watch), Signal::INT).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    before.still_answers();
    Ok(())
}
