//! `cargo xtask test`: the release binary first, then all tests, then the examples in the docs.
//!
//! Owns: the choice of runner. cargo-nextest gives each test its own process and a time limit
//! (`.config/nextest.toml`); without it `cargo test` runs the same tests as threads.

use anyhow::Result;

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    build(ws)?;
    run(ws)?;
    doctests(ws)?;
    Ok(())
}

/// The binary that tests start and that is measured afterwards.
pub(crate) fn build(ws: &Workspace) -> Result<Outcome> {
    ws.cargo(&["build", "--release", "--package", "runtap"]).run()?;
    Ok(Outcome::Passed)
}

pub(crate) fn run(ws: &Workspace) -> Result<Outcome> {
    let runner: &[&str] = if ws.cargo(&["nextest", "--version"]).works() {
        &["nextest", "run", "--workspace", "--no-fail-fast"]
    } else {
        output::note("cargo-nextest is not there: cargo test runs the tests");
        &["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]
    };
    let mut tool = ws.cargo(runner);
    // Tests look for it themselves; this makes a relative path mean the same in every package's folder.
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    tool.run()?;
    Ok(Outcome::Passed)
}

pub(crate) fn doctests(ws: &Workspace) -> Result<Outcome> {
    ws.cargo(&["test", "--workspace", "--doc"]).run()?;
    Ok(Outcome::Passed)
}
