//! `cargo xtask size`: checks the size, the linking and the start-up cost of the shipped program. Time is only reported;
//! the limit is on the number of instructions, which does not depend on the load of the machine.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::callgrind;
use crate::elf;
use crate::output;
use crate::process::{self, Tool};
use crate::step::Outcome;
use crate::symbols;
use crate::workspace::{SHIPPED, Workspace};

/// Maximum size with all verbs and the names of functions, without which the demo's stacks have none
/// (docs/design/self-sampling.md).
const MAX_BYTES: u64 = 12_100_000;
/// Maximum number of instructions of `runtap version`. It was 525,000 when the limit was set, 93,000 more than with
/// `opt-level = "s"` for the crate of the program, which takes 620,000 bytes more (docs/performance.md, "Starting").
const MAX_INSTRUCTIONS: u64 = 540_000;
const RUNS: usize = 21;

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    build(ws)?;
    for check in [size, linking, start_up] {
        if let Outcome::Skipped(why) = check(ws)? {
            output::note(&format!("skipped: {why}"));
        }
    }
    Ok(())
}

/// Returns the command that builds the program as it is shipped, which other subcommands measure too.
pub(crate) fn building(ws: &Workspace) -> Tool {
    ws.cargo(&["build", "--profile", SHIPPED, "--package", "runtap"])
}

/// Builds it, and packs its symbols.
pub fn build(ws: &Workspace) -> Result<Outcome> {
    building(ws).run()?;
    if cfg!(target_os = "linux") {
        pack(ws, &ws.shipped("runtap"))?;
    }
    Ok(Outcome::Passed)
}

/// Packs the symbols of a program for Linux (`symbols.rs`). The result replaces the file, not what cargo linked it to.
pub fn pack(ws: &Workspace, program: &Path) -> Result<()> {
    let file = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let directory = process::temporary()?;
    let compress = |symbols: &[u8]| {
        let path = directory.path().join("symbols");
        fs::write(&path, symbols)?;
        // One thread: several would split the input, depending on their number.
        ws.tool("xz").args(&["-9", "--extreme", "--threads=1", "--check=crc32"]).arg(&path).quiet().run()?;
        Ok(fs::read(path.with_extension("xz"))?)
    };
    let packed = symbols::packed(&file, compress)
        .with_context(|| format!("cannot pack the symbols of {}", program.display()))?;
    if let Some(packed) = packed {
        let new = program.with_extension("packed");
        fs::copy(program, &new)?;
        fs::write(&new, packed)?;
        fs::rename(&new, program)?;
    }
    Ok(())
}

/// Checks the size.
pub(crate) fn size(ws: &Workspace) -> Result<Outcome> {
    within(&read(ws)?)?;
    Ok(Outcome::Passed)
}

/// Checks the size of a program in bytes.
pub fn within(program: &[u8]) -> Result<()> {
    let bytes = u64::try_from(program.len())?;
    output::note(&format!("{bytes} bytes (limit {MAX_BYTES})"));
    if bytes > MAX_BYTES {
        bail!("the binary has {bytes} bytes, which exceeds the limit of {MAX_BYTES}");
    }
    Ok(())
}

/// Checks that the binary is static (docs/design/static-binary.md).
pub(crate) fn linking(ws: &Workspace) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("only Linux binaries are static".to_owned()));
    }
    let linking = elf::linking(&read(ws)?)?;
    if linking.is_static() {
        output::note("static: no loader, no shared library");
        return Ok(Outcome::Passed);
    }
    // The build script falls back with a warning if static linking is impossible; otherwise the build is broken.
    let archive = ws.tool("cc").arg("-print-file-name=libc.a").quiet().capture().unwrap_or_default();
    if Path::new(archive.trim()).is_absolute() {
        bail!("the binary is not static: {linking:?} (docs/design/static-binary.md)");
    }
    Ok(Outcome::Skipped("the C library has no archive (libc.a), so the binary is dynamic".to_owned()))
}

fn read(ws: &Workspace) -> Result<Vec<u8>> {
    let path = ws.shipped("runtap");
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Measures the time (reported) and instructions (limited) of the cheapest command.
pub(crate) fn start_up(ws: &Workspace) -> Result<Outcome> {
    let path = ws.shipped("runtap");
    let median = wall_time(ws, &path)?;
    output::note(&format!("`runtap version` start to exit: {} µs, median of {RUNS}", median.as_micros()));
    if !callgrind::is_there(ws) {
        return Ok(Outcome::Skipped(callgrind::MISSING.to_owned()));
    }
    let counted = callgrind::instructions(ws, &path, &["version"])?;
    output::note(&format!("{counted} instructions (limit {MAX_INSTRUCTIONS})"));
    if counted > MAX_INSTRUCTIONS {
        bail!("a start takes {counted} instructions, which exceeds the limit of {MAX_INSTRUCTIONS}");
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
