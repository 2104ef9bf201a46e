//! `cargo xtask dist --check`: builds the commit again in another directory and compares the files. Uncommitted changes
//! are an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::SUMS;
use super::source::Source;
use xtask::output;
use xtask::process::Tool;
use xtask::workspace::Workspace;

/// Compares with the release in `dist`, which was just built.
pub(super) fn check(ws: &Workspace, source: &Source, chosen: Option<&str>, dist: &Path) -> Result<()> {
    // Without a space, which the linker for Windows (dlltool) does not support.
    let other = ws.target().join("dist-check/another-directory");
    // An existing checkout was left by a failed check; its build results are still valid.
    if !other.join(".git").exists() {
        ws.tool("git").args(&["clone", "--quiet", "--shared"]).arg(ws.root()).arg(&other).run()?;
    }
    ws.tool("git").args(&["checkout", "--quiet", "--detach", &source.commit]).folder(&other).run()?;
    let target = other.join("target");
    Tool::cargo(&other)
        .args(&["run", "--quiet", "--package", "xtask-dist", "--", "dist"])
        .args(&chosen.map_or_else(Vec::new, |name| vec![name]))
        .env("CARGO_TARGET_DIR", &target)
        .run()?;
    let read = |folder: &Path| {
        let path = folder.join(SUMS);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let differences = differences(&read(dist)?, &read(&target.join("dist"))?);
    for line in &differences {
        output::note(line);
    }
    if !differences.is_empty() {
        bail!("two builds of the same commit differ; the other one is in {}", other.display());
    }
    fs::remove_dir_all(&other)?;
    output::note("all files are identical");
    Ok(())
}

/// Fails if the checkout has uncommitted changes, which would be in one build only.
pub(super) fn committed(ws: &Workspace) -> Result<()> {
    let changes = ws.tool("git").args(&["status", "--porcelain"]).quiet().capture()?;
    if !changes.is_empty() {
        bail!("there are uncommitted changes:\n{}", changes.trim_end());
    }
    Ok(())
}

/// Returns a line for each file that is missing in one build or differs.
fn differences(one: &str, other: &str) -> Vec<String> {
    let read = |text: &str| -> BTreeMap<String, String> {
        let rows = text.lines().filter_map(|line| line.split_once("  "));
        rows.map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect()
    };
    let (one, other) = (read(one), read(other));
    let missing = other
        .keys()
        .filter(|name| !one.contains_key(*name))
        .map(|name| format!("{name}: only in the other build"));
    let wrong = one.iter().filter_map(|(name, sum)| match other.get(name) {
        None => Some(format!("{name}: not in the other build")),
        Some(theirs) if theirs != sum => Some(format!("{name}: {sum} here, {theirs} there")),
        Some(_) => None,
    });
    wrong.chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_named() {
        let sums = "aa  x.tar.xz\nbb  y.deb\n";
        assert!(differences(sums, sums).is_empty());
        assert_eq!(differences(sums, "aa  x.tar.xz\ncc  y.deb\n"), ["y.deb: bb here, cc there"]);
        assert_eq!(
            differences(sums, "bb  y.deb\ndd  z\n"),
            ["x.tar.xz: not in the other build", "z: only in the other build"]
        );
    }
}
