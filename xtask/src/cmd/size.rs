//! `cargo xtask size`: what the release binary weighs, what it needs, and what its start costs.
//!
//! Owns: the limits. Refuses to: fail by the clock. Wall time is reported; what is limited is the number of
//! instructions from start to exit, which valgrind counts and which does not depend on what else the machine does.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::callgrind;
use crate::cmd::test;
use crate::elf;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// What all verbs together may have. The names of functions are 960,000 of it: without them the demo's stacks have none
/// (docs/design/self-sampling.md). Running tests takes 2,400,000: the protocol, the runner with its HTTP server, reports,
/// filters, `runtap.toml`, recordings of the protocol. Java takes 2,650,000: the agent (450,000, packed), the collector with
/// its live view, recordings, coverage, class files.
const MAX_BYTES: u64 = 17_500_000;
/// `runtap version`, start to exit. It took 575,000 when this was set: the options of a verb are made only when it is
/// called. A fifth of it are the program's own relocations.
const MAX_INSTRUCTIONS: u64 = 600_000;
const RUNS: usize = 21;

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    test::build(ws)?;
    for check in [size, linking, start_up] {
        if let Outcome::Skipped(why) = check(ws)? {
            output::note(&format!("skipped: {why}"));
        }
    }
    Ok(())
}

/// Bytes.
pub(crate) fn size(ws: &Workspace) -> Result<Outcome> {
    within(&read(ws)?)?;
    Ok(Outcome::Passed)
}

/// Whether a program has no more bytes than are allowed.
pub(crate) fn within(program: &[u8]) -> Result<()> {
    let bytes = u64::try_from(program.len())?;
    output::note(&format!("{bytes} bytes, {MAX_BYTES} allowed"));
    if bytes > MAX_BYTES {
        bail!("the binary has {bytes} bytes, {MAX_BYTES} are allowed");
    }
    Ok(())
}

/// Static or not (docs/design/static-binary.md).
pub(crate) fn linking(ws: &Workspace) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("only a Linux binary is linked statically".to_owned()));
    }
    let linking = elf::linking(&read(ws)?)?;
    if linking.is_static() {
        output::note("static: no loader, no shared library");
        return Ok(Outcome::Passed);
    }
    // The build script fell back, with a warning, if this machine cannot do it; otherwise the build is broken.
    let archive = ws.tool("cc").arg("-print-file-name=libc.a").quiet().capture().unwrap_or_default();
    if Path::new(archive.trim()).is_absolute() {
        bail!("the binary is not static: {linking:?} (docs/design/static-binary.md)");
    }
    Ok(Outcome::Skipped("the C library has no archive (libc.a) here, so the binary is dynamic".to_owned()))
}

fn read(ws: &Workspace) -> Result<Vec<u8>> {
    let path = ws.release_binary();
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Time (reported) and instructions (limited) of the cheapest command.
pub(crate) fn start_up(ws: &Workspace) -> Result<Outcome> {
    let path = ws.release_binary();
    let median = wall_time(ws, &path)?;
    output::note(&format!("`runtap version` start to exit: {} µs, median of {RUNS}", median.as_micros()));
    if !callgrind::is_there(ws) {
        return Ok(Outcome::Skipped(callgrind::MISSING.to_owned()));
    }
    let counted = callgrind::instructions(ws, &path, &["version"])?;
    output::note(&format!("{counted} instructions, {MAX_INSTRUCTIONS} allowed"));
    if counted > MAX_INSTRUCTIONS {
        bail!("a start takes {counted} instructions, {MAX_INSTRUCTIONS} are allowed");
    }
    Ok(Outcome::Passed)
}

fn wall_time(ws: &Workspace, path: &Path) -> Result<Duration> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let tool = ws.tool(&path.to_string_lossy()).arg("version").quiet();
        let start = Instant::now();
        tool.capture()?;
        times.push(start.elapsed());
    }
    times.sort();
    times.get(RUNS / 2).copied().context("no run")
}
