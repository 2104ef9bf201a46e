//! The checks of `cargo xtask ci` that need a tool which not everybody has.
//!
//! Owns: how each tool is called and what is said when it is not there. Refuses to: install anything; `.ci/run` does.

use anyhow::Result;

use crate::process;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Licences, sources and banned crates of the whole tree (deny.toml). Advisories are `advisories`' to tell.
pub(crate) fn deny(ws: &Workspace) -> Result<Outcome> {
    with(ws, "cargo-deny", || {
        ws.cargo(&["deny", "--workspace", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"])
            .run()
    })
}

/// Dependencies that nothing uses.
pub(crate) fn machete(ws: &Workspace) -> Result<Outcome> {
    with(ws, "cargo-machete", || ws.cargo(&["machete", "crates", "xtask", "benches", "fuzz"]).run())
}

/// Spelling (typos.toml).
pub(crate) fn typos(ws: &Workspace) -> Result<Outcome> {
    with(ws, "typos", || ws.tool("typos").run())
}

/// Form of the TOML files (tombi.toml).
pub(crate) fn tombi(ws: &Workspace) -> Result<Outcome> {
    with(ws, "tombi", || {
        ws.tool("tombi").args(&["format", "--check", "--offline"]).run()?;
        ws.tool("tombi").args(&["lint", "--offline"]).run()
    })
}

/// What we write, opened by the pages that people open it in (tests/viewer/README.md).
pub(crate) fn viewer(ws: &Workspace) -> Result<Outcome> {
    let folder = ws.root().join("tests/viewer");
    if !folder.join("node_modules").is_dir() {
        return Ok(Outcome::Skipped("tests/viewer has no node_modules (`npm ci` there)".to_owned()));
    }
    let browser = BROWSERS.iter().any(|name| process::find(ws.root(), name).is_some());
    if !browser && std::env::var_os("CHROMIUM").is_none() {
        return Ok(Outcome::Skipped("Chromium is not there".to_owned()));
    }
    with(ws, "node", || {
        ws.tool("node").arg("--test").env("RUNTAP_BIN", ws.release_binary()).folder(&folder).run()
    })
}

/// What the viewer tests look for, where `CHROMIUM` does not say.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn with(ws: &Workspace, tool: &str, check: impl FnOnce() -> Result<()>) -> Result<Outcome> {
    if process::find(ws.root(), tool).is_none() {
        return Ok(Outcome::Skipped(format!("{tool} is not there")));
    }
    check()?;
    Ok(Outcome::Passed)
}
