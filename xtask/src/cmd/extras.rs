//! The checks of `cargo xtask ci --all` that need optional tools, which `.ci/run` installs.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Result;

use crate::process;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Checks licenses, sources and banned crates (deny.toml). Advisories are checked by `advisories`.
pub(crate) fn deny(ws: &Workspace) -> Result<Outcome> {
    with(ws, "cargo-deny", || {
        ws.cargo(&["deny", "--workspace", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"])
            .run()
    })
}

/// Looks for unused dependencies.
pub(crate) fn machete(ws: &Workspace) -> Result<Outcome> {
    with(ws, "cargo-machete", || {
        ws.cargo(&["machete", "crates", "xtask", "xtask-dist", "benches", "fuzz"]).run()
    })
}

/// Checks spelling (typos.toml).
pub(crate) fn typos(ws: &Workspace) -> Result<Outcome> {
    with(ws, "typos", || ws.tool("typos").run())
}

/// Checks the format of TOML files (tombi.toml).
pub(crate) fn tombi(ws: &Workspace) -> Result<Outcome> {
    with(ws, "tombi", || {
        ws.tool("tombi").args(&["format", "--check", "--offline"]).run()?;
        ws.tool("tombi").args(&["lint", "--offline"]).run()
    })
}

/// Opens written files in the viewers that users open them with (tests/viewer/README.md).
pub(crate) fn viewer(ws: &Workspace) -> Result<Outcome> {
    let folder = ws.root().join("tests/viewer");
    if !folder.join("node_modules").is_dir() {
        return Ok(Outcome::Skipped("tests/viewer has no node_modules (`npm ci` there)".to_owned()));
    }
    let browser = BROWSERS.iter().any(|name| process::find(ws.root(), name).is_some());
    if !browser && std::env::var_os("CHROMIUM").is_none() {
        return Ok(Outcome::Skipped("Chromium is not installed".to_owned()));
    }
    let results = ws.target().join("viewer.tap");
    let outcome = with(ws, "node", || {
        let mut node = ws.tool("node").args(&["--test", "--test-reporter=spec", "--test-reporter=tap"]);
        node = node.arg("--test-reporter-destination=stdout");
        node = node.arg(format!("--test-reporter-destination={}", results.display()));
        node = node.env("RUNTAP_BIN", ws.shipped("runtap"));
        // A relative path is relative to the root of the workspace.
        if let Some(shared) = ws.shared()? {
            node = node.env("RUNTAP_SHARED", shared);
        }
        node.folder(&folder).run()
    })?;
    match (outcome, skipped(&fs::read_to_string(&results).unwrap_or_default())) {
        (Outcome::Passed, missing) if !missing.is_empty() => Ok(Outcome::Skipped(missing)),
        (outcome, _) => Ok(outcome),
    }
}

/// Returns why tests were skipped that should have run, according to node's TAP output. Files that were not given are
/// ignored.
fn skipped(results: &str) -> String {
    let reasons =
        results.lines().filter_map(|line| line.trim_start().strip_prefix("ok ")?.split_once(" # SKIP"));
    let reasons: BTreeSet<&str> =
        reasons.map(|(_, why)| why.trim()).filter(|why| *why != "not given").collect();
    reasons.into_iter().collect::<Vec<_>>().join("; ")
}

/// The browsers to search for if `CHROMIUM` is not set.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn with(ws: &Workspace, tool: &str, check: impl FnOnce() -> Result<()>) -> Result<Outcome> {
    if process::find(ws.root(), tool).is_none() {
        return Ok(Outcome::Skipped(format!("{tool} is not installed")));
    }
    check()?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_reported_by_reason() {
        let results = "TAP version 13\n# Subtest: a\n    ok 1 - speedscope: it opens\n    ok 2 - merged # SKIP not given\n\
            \x20   ok 3 - pprof # SKIP no go on PATH\nok 4 - jvm files # SKIP no recordings (RUNTAP_SHARED)\n\
            ok 5 - pprof again # SKIP no go on PATH\n1..5\n# skipped 4\n";
        assert_eq!(skipped(results), "no go on PATH; no recordings (RUNTAP_SHARED)");
        assert_eq!(skipped("ok 1 - a\nnot ok 2 - b\n"), "");
    }
}
