//! `cargo xtask conformance`: every command of the protocol against live runtimes, as docs/conformance.md.
//!
//! Owns: the call of `runtap-conformance`, which measures, writes and compares. With `--check`, and in `cargo xtask ci`,
//! the document is compared with what is measured; a runtime that is not here is passed over.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

const DOCUMENT: &str = "docs/conformance.md";

/// Its exit code when some runtime was not here and the others are as they should be.
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
    ws.cargo(&["build", "--package", "runtap-conformance"]).run()?;
    let program =
        ws.target().join("debug").join(format!("runtap-conformance{}", std::env::consts::EXE_SUFFIX));
    let mut tool = ws.tool(&program.to_string_lossy()).args(&[mode, DOCUMENT]);
    // A relative path is seen from the root, here and there.
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    match tool.code()? {
        Some(0) => Ok(Outcome::Passed),
        Some(NOT_ALL) => {
            Ok(Outcome::Skipped("not every runtime is here (cargo xtask peers --download)".to_owned()))
        }
        _ => bail!("see above"),
    }
}
