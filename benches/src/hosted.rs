//! The cost of being a test application: 100,000 tests under the real `dotnet test`, with results in batches and one at
//! a time; and the duration of Ctrl-C with such an application and with a wrapped command.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use runtap_mtp_host::{Application, Batching};
use runtap_testkit::DotnetTest;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::cost;
use crate::output::{self, Table, bar, line, median};

/// Set in a process that acts as the application: the number of tests, whether results are sent in batches, and the
/// file for the measurements. With `sleep` instead of a number, the application writes its process id and sleeps.
const PART: &str = "RUNTAP_BENCH_HOST";
const TESTS: usize = 100_000;
const RUNS: usize = 5;
const INTERRUPTS: usize = 21;
/// Maximum share of the total time that the application may use.
const MAX_SHARE: f64 = 0.05;

/// Runs the application if this process is meant to be it; otherwise returns `None`.
pub(crate) fn play() -> Option<Result<ExitCode>> {
    let part = std::env::var(PART).ok()?;
    Some(application(&part))
}

fn application(part: &str) -> Result<ExitCode> {
    let words: Vec<&str> = part.splitn(3, ' ').collect();
    let [tests, batching, file] = words[..] else { bail!("{part:?} is no part") };
    if tests == "sleep" {
        return Ok(Application::new().main(|session, _| {
            session.test("bench::sleeps", || {
                let written = fs::write(file, format!("{}\n", std::process::id()));
                std::thread::sleep(Duration::from_mins(5));
                written.map(drop)
            })
        }));
    }
    let tests: usize = tests.parse()?;
    let batching = if batching == "batched" { Batching::default() } else { Batching::NONE };
    let code = Application::new().batching(batching).main(|session, _| {
        for number in 0..tests {
            session.test(format!("bench::test_{number}"), || ())?;
        }
        Ok::<_, runtap_mtp_host::HostError>(())
    });
    fs::write(file, cost::cpu(getrusage(UsageWho::RUSAGE_SELF)?).as_micros().to_string())?;
    Ok(code)
}

/// Runs the benchmark; `runtap` is the program that wraps a command.
pub(crate) fn run(runtap: &str) -> Result<()> {
    output::machine();
    let sdk = match DotnetTest::available() {
        Ok(sdk) => sdk,
        Err(skip) => {
            line(skip);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir_in(runtap_testkit::workspace_root().join("target"))?;
    let module = folder.path().join("bench-host");
    fs::hard_link(std::env::current_exe()?, &module)?;
    let mut table = Table::new(&["", "wall", "the application's processor time", "share"]);
    for batching in ["batched", "singly"] {
        let (mut walls, mut cpus) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let (wall, cpu) = once(&sdk, folder.path(), batching)?;
            walls.push(wall);
            cpus.push(cpu);
        }
        let (wall, cpu) = (median(walls), median(cpus));
        let share = cpu.as_secs_f64() / wall.as_secs_f64();
        table.row(&[
            batching.to_owned(),
            format!("{:.2} s", wall.as_secs_f64()),
            format!("{:.3} s", cpu.as_secs_f64()),
            format!("{:.1} %", share * 100.0),
        ]);
        if batching == "batched" {
            bar(
                "at most 5 % of the time, in batches",
                share <= MAX_SHARE,
                &format!("{:.1} %", share * 100.0),
            );
        }
    }
    table.print(&format!("{TESTS} tests of a Rust program under dotnet test, medians of {RUNS} runs"));
    interrupts(&sdk, folder.path(), runtap)?;
    output::machine();
    Ok(())
}

/// Measures Ctrl-C alternately with an application, with a wrapped command and with a script that only sleeps: the time
/// until the SDK exits, and until the remaining processes do.
fn interrupts(sdk: &DotnetTest, folder: &Path, runtap: &str) -> Result<()> {
    let file = folder.join("pid");
    let script = folder.join("bench-script");
    fs::write(&script, format!("#!/bin/sh\necho $$ > '{}'; exec sleep 300\n", file.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let wrapped = folder.join("bench-wrapped");
    let two = format!("sleep 300 & echo 'running 1 test'; echo $$ > '{}'; wait", file.display());
    let mut write = Command::new(runtap);
    write
        .args(["mtp", "host", "--from", "libtest", "--write-module"])
        .arg(&wrapped)
        .args(["--", "sh", "-c", &two]);
    if !write.output()?.status.success() {
        bail!("{runtap} can't write a module");
    }
    let modules = ["bench-host", "bench-wrapped", "bench-script"];
    let mut all = modules.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..INTERRUPTS {
        for (module, (until_exit, until_rest)) in modules.iter().zip(&mut all) {
            let (server, rest) = interrupted(sdk, folder, module, &file)?;
            until_exit.push(server);
            until_rest.push(rest);
        }
    }
    let mut table =
        Table::new(&["", "fastest", "median", "slowest", "the rest gone after it: median", "slowest"]);
    for (module, (mut until_exit, mut until_rest)) in modules.iter().zip(all) {
        until_exit.sort_unstable();
        until_rest.sort_unstable();
        let shown = |time: Option<&Duration>| {
            time.map_or_else(String::new, |time| format!("{:.1} ms", time.as_secs_f64() * 1e3))
        };
        table.row(&[
            (*module).to_owned(),
            shown(until_exit.first()),
            shown(until_exit.get(until_exit.len() / 2)),
            shown(until_exit.last()),
            shown(until_rest.get(until_rest.len() / 2)),
            shown(until_rest.last()),
        ]);
    }
    table.print(&format!("from Ctrl-C until dotnet test is gone, {INTERRUPTS} runs each by turns"));
    Ok(())
}

/// Returns the time from the signal to the process group until `dotnet test` has exited, and from then until all of its
/// descendants have.
fn interrupted(sdk: &DotnetTest, folder: &Path, module: &str, file: &Path) -> Result<(Duration, Duration)> {
    let _ = fs::remove_file(file);
    let mut command = sdk.command(folder, module);
    command.env(PART, format!("sleep - {}", file.display())).arg("--no-progress");
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.process_group(0).spawn()?;
    let begun = Instant::now();
    while !fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n')) {
        if begun.elapsed() > Duration::from_mins(1) {
            server.kill()?;
            bail!("{module} has not begun within a minute");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let started = descendants(Pid::from_child(&server))?;
    let since = Instant::now();
    kill_process_group(Pid::from_child(&server), Signal::INT)?;
    server.wait()?;
    let until_exit = since.elapsed();
    let since = Instant::now();
    while started.iter().any(|pid| is_running(*pid)) {
        if since.elapsed() > Duration::from_secs(20) {
            bail!("{module} has left processes behind");
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok((until_exit, since.elapsed()))
}

/// Returns whether the process is not a zombie: init may take seconds to reap it.
fn is_running(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !"ZX".contains(state))
}

/// Returns the descendants of a process.
fn descendants(root: Pid) -> Result<Vec<Pid>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse().ok());
        parents.extend(pid.zip(parent.and_then(Pid::from_raw)));
    }
    let (mut found, mut at) = (vec![root], 0);
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    Ok(found.split_off(1))
}

fn once(sdk: &DotnetTest, folder: &Path, batching: &str) -> Result<(Duration, Duration)> {
    let file = folder.join("cpu");
    let mut command = sdk.command(folder, "bench-host");
    command.env(PART, format!("{TESTS} {batching} {}", file.display()));
    command.arg("--no-progress").stdin(Stdio::null());
    let since = Instant::now();
    let output = command.output()?;
    let wall = since.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !text.contains(&format!("total: {TESTS}")) {
        bail!("{}: {text}", output.status);
    }
    let micros = fs::read_to_string(&file)?.parse().context("the application's time")?;
    Ok((wall, Duration::from_micros(micros)))
}
