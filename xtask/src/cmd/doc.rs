//! `cargo xtask doc`: builds the API documentation of the workspace. Broken links and bare addresses are errors.

use anyhow::Result;

use crate::args::Args;
use crate::step::Outcome;
use crate::workspace::Workspace;

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    check(ws)?;
    Ok(())
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    ws.cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run()?;
    Ok(Outcome::Passed)
}
