//! Counts the instructions of a program with valgrind's callgrind. Unlike time, the count does not depend on the load
//! of the machine, so it can be limited.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::Workspace;

/// The reason for skipping if valgrind is missing.
pub(crate) const MISSING: &str = "no valgrind to count instructions";

pub(crate) fn is_there(ws: &Workspace) -> bool {
    process::find(ws.root(), "valgrind").is_some()
}

/// Returns the number of instructions that `program` executes.
pub(crate) fn instructions(ws: &Workspace, program: &Path, args: &[&str]) -> Result<u64> {
    let out = ws.target().join("xtask.callgrind");
    ws.tool("valgrind")
        .args(&["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(args)
        .quiet()
        .capture()?;
    let text = fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))?;
    total(&text).context("callgrind left no total")
}

fn total(profile: &str) -> Option<u64> {
    profile.lines().find_map(|line| line.strip_prefix("summary: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_total() {
        assert_eq!(total("events: Ir\nsummary: 1234\n\nfn=(1)\n0 5\n"), Some(1234));
        assert_eq!(total("events: Ir\n"), None);
    }
}
