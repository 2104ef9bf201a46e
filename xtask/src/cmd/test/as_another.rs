//! Runs the tests of libraries as another user, because tests that only pass as root would not be noticed otherwise.
//! The test programs are those of `cargo xtask test`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Folders of libraries that check the users of processes, files or connections. Their tests take a few seconds.
const LIBRARIES: [&str; 4] = ["jvm/bytefrog", "dotnet/route", "dotnet/target", "base/transport"];

/// `nobody`, without the groups and privileges of the current user.
const AS_NOBODY: [&str; 4] = ["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"];

pub(crate) fn run(ws: &Workspace) -> Result<Outcome> {
    let become_nobody = || ws.tool("setpriv").args(&AS_NOBODY).quiet();
    if !become_nobody().arg("true").works() {
        return Ok(Outcome::Told("not run as another user: only root can become one".to_owned()));
    }
    if !become_nobody().args(&["test", "-r"]).arg(ws.root().join("Cargo.toml")).works() {
        return Ok(Outcome::Told("not run as another user: others cannot reach this checkout".to_owned()));
    }
    let programs = programs(ws)?;
    if programs.is_empty() {
        bail!("cargo lists no test programs");
    }
    let mut failed = Vec::new();
    for (folder, program) in &programs {
        let tool = become_nobody().arg(program).arg("-q").folder(folder).env("HOME", "/nonexistent");
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        if let Err(error) = tool.run_logged(&ws.target().join("as-another.log")) {
            output::error(&format!("{name} as user nobody: {error:#}"));
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("as user nobody: {}", failed.join(", "));
    }
    output::note(&format!("{} test programs as user nobody", programs.len()));
    Ok(Outcome::Passed)
}

/// Returns the test programs, each with the folder of its package.
fn programs(ws: &Workspace) -> Result<Vec<(PathBuf, PathBuf)>> {
    // All packages, like `cargo xtask test`: selecting others would rebuild dependencies.
    let build =
        ws.cargo(&["test", "--no-run", "--message-format=json", "--workspace", "--lib", "--bins", "--tests"]);
    let said = build.capture()?;
    let mut found = Vec::new();
    for line in said.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("cargo writes no JSON")?;
        let (program, manifest) = (message["executable"].as_str(), message["manifest_path"].as_str());
        let Some((program, folder)) = program.zip(manifest.and_then(|path| Path::new(path).parent())) else {
            continue;
        };
        if !LIBRARIES.iter().any(|library| folder.ends_with(library)) {
            continue;
        }
        found.push((folder.to_owned(), PathBuf::from(program)));
    }
    Ok(found)
}
