//! `runtap ps` from start to exit, with three idle runtimes running.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runtap_testkit::{Peer, Program, RealRuntime};
use serde_json::Value;

use crate::output::{self, Table, bar, line, median};

const RUNS: usize = 50;
const STALE: u32 = 5_000;
const BAR: Duration = Duration::from_millis(5);

pub(crate) fn run(runtap: &Path) -> Result<()> {
    let runtimes = match RealRuntime::all() {
        Ok(runtimes) => runtimes,
        Err(skip) => {
            line(skip);
            return Ok(());
        }
    };
    let temp = tempfile::tempdir()?;
    let mut idle = Vec::new();
    for runtime in &runtimes {
        match runtime.program("spin", &["1", "--stdin"]) {
            Ok(launch) => idle.push(launch.env("TMPDIR", temp.path()).spawn()),
            Err(skip) => {
                line(skip);
                return Ok(());
            }
        }
    }
    output::machine();
    let ps = |word: &str| {
        let mut command = Command::new(runtap);
        command.arg(word).env("TMPDIR", temp.path());
        command
    };
    let seen = check_listing(&mut ps("ps"), &idle)?;

    let mut table = Table::new(&["", "median", "fastest"]);
    let version = times(|| ps("version"), RUNS)?;
    let few = times(|| ps("ps"), RUNS)?;
    make_stale(temp.path())?;
    check_listing(&mut ps("ps"), &idle)?;
    let many = times(|| ps("ps"), RUNS)?;
    let (few_median, many_median) = (median(few.clone()), median(many.clone()));
    for (name, times) in [
        ("runtap version".to_owned(), version),
        ("runtap ps".to_owned(), few),
        (format!("runtap ps, {STALE} stale sockets"), many),
    ] {
        table.row(&row(name, times));
    }
    if let Ok(tool) = Peer::available("dotnet-trace") {
        let theirs = times(
            || {
                let mut command = tool.command();
                command.arg("ps").env("TMPDIR", temp.path());
                command
            },
            5,
        )?;
        table.row(&row("dotnet-trace ps".to_owned(), theirs));
    }
    table.print(&format!("{} idle runtimes ({seen} in all) start to exit, {RUNS} runs each", idle.len()));
    bar("runtap ps takes at most 5 ms", few_median <= BAR, &milliseconds(few_median));
    bar("also with stale sockets", many_median <= BAR, &milliseconds(many_median));
    output::machine();
    Ok(())
}

/// Checks that the timed command does its work; returns the number of listed processes.
fn check_listing(ps: &mut Command, idle: &[Program]) -> Result<usize> {
    let output = ps.args(["--format", "json"]).output()?;
    let document: Value = serde_json::from_slice(&output.stdout).context("runtap ps printed no JSON")?;
    let processes = document["processes"].as_array().context("runtap ps printed no list")?;
    for program in idle {
        let listed = |row: &&Value| row["pid"] == program.id() && row["runtime_version"].is_string();
        if !processes.iter().any(|row| listed(&row)) {
            bail!("runtap ps does not list process {} with its version: {document}", program.id());
        }
    }
    Ok(processes.len())
}

fn times(mut command: impl FnMut() -> Command, runs: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..runs {
        let mut command = command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let status = command.status()?;
        times.push(start.elapsed());
        if !status.success() {
            bail!("{command:?} ended with {status}");
        }
    }
    Ok(times)
}

/// Creates sockets like those left by killed processes. The first process id is above the kernel's maximum.
fn make_stale(temp: &Path) -> Result<()> {
    for number in 0..STALE {
        let name = format!("dotnet-diagnostic-{}-{}-socket", 5_000_000 + number, 1_000 + number);
        drop(UnixListener::bind(temp.join(name))?);
    }
    Ok(())
}

fn row(name: String, times: Vec<Duration>) -> [String; 3] {
    let fastest = times.iter().min().copied().unwrap_or_default();
    [name, milliseconds(median(times)), milliseconds(fastest)]
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
