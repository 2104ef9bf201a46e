//! The programs that runtap is compared with, and runtap itself: their output and run time.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runtap_testkit::Peer;
use serde_json::Value;

use crate::cost::{self, Cost};

/// A file, and the number of its events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recording<'a> {
    pub(super) file: &'a Path,
    pub(super) events: u64,
}

/// Runs tebench and returns its own best time, and the rest of its output. `temp` is a directory for its files.
pub(super) fn tebench(
    tebench: &Peer,
    recording: Recording<'_>,
    mode: &str,
    runs: &[&str],
    temp: &Path,
) -> Result<(Duration, String)> {
    let mut command = tebench.command();
    command.arg(recording.file).args(["--mode", mode]).args(runs).env("TMPDIR", temp);
    let output = command.stderr(Stdio::inherit()).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout).context("tebench printed no JSON")?;
    // TraceLog leaves out events that it considers bookkeeping.
    let is_all = mode == "tracelog" || answer["events"] == recording.events;
    if !is_all || !answer["error"].is_null() {
        bail!("tebench reads something else: {answer}");
    }
    let ms = answer["ms"].as_f64().context("tebench tells no time")?;
    Ok((Duration::from_secs_f64(ms / 1e3), answer["detail"].as_str().unwrap_or_default().to_owned()))
}

/// Returns the time from start to exit.
pub(super) fn process(mut command: Command) -> Result<Duration> {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let time = start.elapsed();
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(time)
}

/// Runs `dotnet-trace convert`; returns the time from start to exit, its cost, and the number of bytes written into
/// `folder`.
pub(super) fn dotnet_trace(dotnet_trace: &Peer, file: &Path, folder: &Path) -> Result<(Duration, Cost, u64)> {
    // dotnet-trace appends its own file extension.
    let output = folder.join("theirs");
    let mut command = dotnet_trace.command();
    command.arg("convert").arg(file).args(["--format", "Speedscope", "-o"]).arg(&output);
    let start = Instant::now();
    let cost = cost::of(&command)?;
    let time = start.elapsed();
    let written = output.with_extension("speedscope.json");
    let bytes = fs::metadata(&written)?.len();
    fs::remove_file(written)?;
    Ok((time, cost, bytes))
}

/// Returns the command `runtap convert --to speedscope`.
pub(super) fn convert(runtap: &Path, file: &Path, options: &[&str], output: &Path) -> Command {
    let mut command = Command::new(runtap);
    command.args(["convert", "--to", "speedscope"]).args(options).arg(file).arg("-o").arg(output);
    command
}

/// Returns the command `runtap events --count`.
pub(super) fn count(runtap: &Path, file: &Path) -> Command {
    let mut command = Command::new(runtap);
    command.args(["events", "--count"]).arg(file);
    command
}
