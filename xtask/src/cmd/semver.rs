//! `cargo xtask semver`: compares the public interfaces of the libraries with the last release (the last tag before
//! this commit), and determines which part of the version must change. Uses cargo-semver-checks, which documents every
//! crate twice and takes minutes, so this is not a step of `cargo xtask ci`.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::output;
use crate::workspace::Workspace;

const TOOL: &str = "cargo install --locked cargo-semver-checks --version 0.51.0";

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    let Some(tag) = last_release(ws) else {
        output::note("no tag `v…` before this commit, so there is no release to compare with");
        return Ok(());
    };
    if !ws.cargo(&["semver-checks", "--version"]).works() {
        bail!("cargo-semver-checks is not installed: {TOOL}");
    }
    output::note(&format!("compared with {tag}"));
    ws.cargo(&["semver-checks", "--workspace", "--exclude", "runtap", "--baseline-rev", &tag]).run()
}

fn last_release(ws: &Workspace) -> Option<String> {
    let git = ws.tool("git").args(&["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]);
    let tag = git.quiet().capture().ok()?.trim().to_owned();
    (!tag.is_empty()).then_some(tag)
}
