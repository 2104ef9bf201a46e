//! Limits on the size of the workspace: the number of crates, and the lines of folders that grow if nothing stops them.
//! A limit may fall, not rise.

use std::fs;

use anyhow::{Context as _, Result};

use super::Package;
use crate::workspace::Workspace;

/// What a limit counts.
#[derive(Debug)]
enum Measure {
    /// The packages whose manifests are below `crates`.
    Crates,
    /// The lines of all Rust files in a folder.
    Lines(&'static str),
}

/// The measure, its maximum, and the reason for it.
const LIMITS: &[(Measure, usize, &str)] = &[
    (
        Measure::Crates,
        34,
        "a crate exists because others can use it alone, because of what it must not depend on, or because of unsafe code",
    ),
    (
        Measure::Lines("crates/runtap/src"),
        11_000,
        "the binary turns arguments into specifications and results into text; everything else is in libraries",
    ),
    (Measure::Lines("xtask"), 4_850, "the checks must cost less than what they check"),
    (
        Measure::Lines("xtask-dist"),
        4_200,
        "as above; only what needs other systems or makes releases belongs here",
    ),
];

/// How far a count may be below its limit before that is reported.
const SLACK: usize = 500;

/// Returns a line for each limit that is exceeded, and one for each that can be lowered.
pub(super) fn check(ws: &Workspace, packages: &[Package]) -> Result<(Vec<String>, Vec<String>)> {
    let (mut exceeded, mut lower) = (Vec::new(), Vec::new());
    for (measure, limit, reason) in LIMITS {
        let (count, counted) = match measure {
            Measure::Crates => (crates(ws, packages), "crates below crates".to_owned()),
            Measure::Lines(folder) => (lines(ws, folder)?, format!("lines of Rust in {folder}")),
        };
        if count > *limit {
            exceeded.push(format!("{count} {counted}, limit {limit}: {reason}"));
        } else if count + SLACK <= *limit {
            lower.push(format!(
                "{count} {counted}, limit {limit}: lower the limit in xtask/src/cmd/layers/limits.rs"
            ));
        }
    }
    Ok((exceeded, lower))
}

fn crates(ws: &Workspace, packages: &[Package]) -> usize {
    let folder = ws.root().join("crates");
    packages.iter().filter(|package| package.manifest_path.starts_with(&folder)).count()
}

fn lines(ws: &Workspace, folder: &str) -> Result<usize> {
    let mut lines = 0;
    for file in ws.files(&[&format!("{folder}/*.rs")])? {
        let text =
            fs::read_to_string(ws.root().join(&file)).with_context(|| format!("cannot read {file}"))?;
        lines += text.lines().count();
    }
    Ok(lines)
}
