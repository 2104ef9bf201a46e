//! `cargo xtask semver`: what the public interfaces of the libraries have become since the last release, and which part of
//! the version has to change with that.
//!
//! Owns: which release that is: the last tag before this commit. cargo-semver-checks does the rest; it documents every
//! crate twice, which takes minutes, so it is no step of `cargo xtask ci`. Refuses to: install it.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::output;
use crate::workspace::Workspace;

const TOOL: &str = "cargo install --locked cargo-semver-checks --version 0.51.0";

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    let Some(tag) = last_release(ws) else {
        output::note(
            "nothing was released yet: no tag `v…` is before this commit, so there is nothing to compare with",
        );
        return Ok(());
    };
    if !ws.cargo(&["semver-checks", "--version"]).works() {
        bail!("cargo-semver-checks is not here: {TOOL}");
    }
    output::note(&format!("compared with {tag}"));
    ws.cargo(&["semver-checks", "--workspace", "--exclude", "runtap", "--baseline-rev", &tag]).run()
}

fn last_release(ws: &Workspace) -> Option<String> {
    let git = ws.tool("git").args(&["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]);
    let tag = git.quiet().capture().ok()?.trim().to_owned();
    (!tag.is_empty()).then_some(tag)
}
