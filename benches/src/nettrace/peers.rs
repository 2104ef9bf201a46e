//! The programs that runtap is compared with, and runtap itself: what each says, and how long it took.

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

/// tebench's own figure for the best of its runs, and what it says besides. `temp` is where it may write.
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
    // Its log leaves out what it takes for bookkeeping.
    let is_all = mode == "tracelog" || answer["events"] == recording.events;
    if !is_all || !answer["error"].is_null() {
        bail!("tebench reads something else: {answer}");
    }
    let ms = answer["ms"].as_f64().context("tebench tells no time")?;
    Ok((Duration::from_secs_f64(ms / 1e3), answer["detail"].as_str().unwrap_or_default().to_owned()))
}

/// From start to exit.
pub(super) fn process(mut command: Command) -> Result<Duration> {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let time = start.elapsed();
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(time)
}

/// `dotnet-trace convert`, from start to exit, what it cost, and the bytes that it wrote into `folder`.
pub(super) fn dotnet_trace(dotnet_trace: &Peer, file: &Path, folder: &Path) -> Result<(Duration, Cost, u64)> {
    // It adds an ending of its own.
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

/// `runtap convert --to speedscope`.
pub(super) fn convert(runtap: &Path, file: &Path, options: &[&str], output: &Path) -> Command {
    let mut command = Command::new(runtap);
    command.args(["convert", "--to", "speedscope"]).args(options).arg(file).arg("-o").arg(output);
    command
}

/// `runtap events --count`.
pub(super) fn count(runtap: &Path, file: &Path) -> Command {
    let mut command = Command::new(runtap);
    command.args(["events", "--count"]).arg(file);
    command
}
