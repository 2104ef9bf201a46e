//! `cargo xtask fmt`: runs rustfmt for the workspace and the fuzz workspace.

use anyhow::Result;

use crate::args::Args;
use crate::step::Outcome;
use crate::workspace::Workspace;

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    format(ws, args.has("--check"))
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    format(ws, true)?;
    Ok(Outcome::Passed)
}

fn format(ws: &Workspace, check: bool) -> Result<()> {
    let tail: &[&str] = if check { &["--check"] } else { &[] };
    ws.cargo(&["fmt", "--all"]).args(tail).run()?;
    if ws.fuzz_manifest().is_file() {
        ws.cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml"]).args(tail).run()?;
    }
    Ok(())
}
