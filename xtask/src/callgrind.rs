//! Counts the instructions of a program.
//!
//! Owns: the call of valgrind's callgrind and the reading of its total. The count does not depend on what else the
//! machine does, so it can be limited where time cannot.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::Workspace;

/// What is said where valgrind is missing.
pub(crate) const MISSING: &str = "no valgrind to count instructions";

pub(crate) fn is_there(ws: &Workspace) -> bool {
    process::find(ws.root(), "valgrind").is_some()
}

/// From the start of `program` to its exit.
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
