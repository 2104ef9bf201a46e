//! `cargo xtask conformance`: runs every command of the protocol against live runtimes, for docs/conformance.md. Calls
//! `runtap-conformance`, which measures, writes and compares. With `--check`, and in `cargo xtask ci --all`, the document is
//! compared with the results; runtimes that are not installed are skipped.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

const DOCUMENT: &str = "docs/conformance.md";

/// The exit code if a runtime is missing and all others match.
const NOT_ALL: i32 = 3;

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    let mode = if args.has("--check") { "check" } else { "write" };
    if let Outcome::Skipped(why) = run(ws, mode)? {
        output::note(&why);
    }
    Ok(())
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    run(ws, "check")
}

fn run(ws: &Workspace, mode: &str) -> Result<Outcome> {
    // The crates are those of the tests.
    ws.cargo(&["build", "--profile", "test", "--package", "runtap-conformance"]).run()?;
    let program =
        ws.target().join("debug").join(format!("runtap-conformance{}", std::env::consts::EXE_SUFFIX));
    let mut tool = ws.tool(&program.to_string_lossy()).args(&[mode, DOCUMENT]);
    // A relative path is relative to the root of the workspace.
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    match tool.code()? {
        Some(0) => Ok(Outcome::Passed),
        Some(NOT_ALL) => {
            Ok(Outcome::Skipped("not all runtimes are installed (cargo xtask peers --download)".to_owned()))
        }
        _ => bail!("see above"),
    }
}
