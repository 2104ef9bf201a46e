//! `cargo xtask musl`: builds the static program with musl's C library, runs it on this machine, and runs the unit
//! tests of libraries for which the C library matters. The build needs no other linker than the host's. The commands
//! that are run are in `foreign/runs.rs`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::foreign::{self, MUSL, runs};
use xtask::args::Args;
use xtask::elf;
use xtask::output;
use xtask::process::GIVEN_AGENT;
use xtask::step::Outcome;
use xtask::workspace::Workspace;

/// Libraries for signals, stacks and memory; files; processes.
const TESTED: [&str; 3] = ["runtap-unwind", "runtap-os", "runtap-discover"];

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    ws.cargo(&["build", "-p", "runtap"]).run()?;
    match run(ws, &ws.target().join("debug/runtap"))? {
        Outcome::Skipped(why) => bail!("{why}"),
        _ => Ok(()),
    }
}

/// The results must equal those of `host`.
fn run(ws: &Workspace, host: &Path) -> Result<Outcome> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Outcome::Skipped("this machine cannot run programs for Linux on x86-64".to_owned()));
    }
    if !foreign::is_installed(ws, MUSL)? {
        return Ok(Outcome::Skipped(format!("no standard library for {MUSL} (rustup target add {MUSL})")));
    }
    let agent = foreign::no_agent(ws)?;
    foreign::lean(ws.cargo(&["build", "-p", "runtap", "--target", MUSL])).env(GIVEN_AGENT, &agent).run()?;
    let program = ws.target().join(MUSL).join("debug/runtap");
    let bytes = fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let linking = elf::linking(&bytes)?;
    if !linking.is_static() {
        bail!("{} is not static: {linking:?}", program.display());
    }
    let folder = ws.target().join("musl");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for row in runs::all(ws, MUSL, [&program, host], &folder)? {
        output::note(&format!("{MUSL}: {row}"));
    }
    let packages: Vec<&str> = TESTED.iter().flat_map(|package| ["-p", package]).collect();
    foreign::lean(ws.cargo(&["test", "--lib", "--target", MUSL])).args(&packages).run()?;
    Ok(Outcome::Passed)
}
