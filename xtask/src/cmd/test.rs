//! `cargo xtask test`: runs all tests, some of them as another user, then the examples in the docs.
//!
//! Tests run with cargo-nextest if installed, which gives each test its own process and a time limit
//! (`.config/nextest.toml`), and otherwise with `cargo test`. Skipped tests are counted; this file lists the acceptable
//! reasons.

pub(crate) mod as_another;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::thread;

use anyhow::{Context as _, Result};

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Prefixes of reasons that depend on the kernel and user of a machine, so that they are acceptable.
const MAY_BE_MISSING: &[&str] = &[
    "only root ",
    "users can't make namespaces",
    "unshare can make no ",
    "another user can't read ",
    "this kernel has ",
    "another meters runs ",
    "cargo-nextest is not here",
];

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    run(ws)?;
    as_another::run(ws)?;
    doctests(ws)?;
    Ok(())
}

pub(crate) fn run(ws: &Workspace) -> Result<Outcome> {
    run_some(ws, true)
}

/// Runs the tests that need nothing but this checkout (profile `quick` in `.config/nextest.toml`).
pub(crate) fn without_peers(ws: &Workspace) -> Result<Outcome> {
    output::note("without the tests that need a .NET or Java runtime; `cargo xtask test` runs all tests");
    run_some(ws, false)
}

fn run_some(ws: &Workspace, with_peers: bool) -> Result<Outcome> {
    let has_nextest = ws.cargo(&["nextest", "--version"]).works();
    let mut tool = if has_nextest {
        // Some tests wait for time-outs, so one more than there are processors can run.
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = (processors + 1).to_string();
        ws.cargo(&["nextest", "run", "--workspace", "--no-fail-fast", "--test-threads", &threads])
    } else {
        output::note("cargo-nextest is not installed; using cargo test");
        ws.cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"])
    };
    if !with_peers {
        tool = tool.args(if has_nextest { &["--profile", "quick"][..] } else { &["--", "--skip", "real_"] });
    }
    // Tests find it themselves, but this makes a relative path valid in every package's folder.
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    let skips = ws.target().join("skips.txt");
    fs::create_dir_all(ws.target())?;
    fs::write(&skips, "").with_context(|| format!("cannot write {}", skips.display()))?;
    tool.env("RUNTAP_SKIPS", &skips).run()?;
    Ok(judge(&fs::read_to_string(&skips)?))
}

/// Counts the skipped tests. If a reason is not listed, the step counts as skipped too.
fn judge(skips: &str) -> Outcome {
    let mut reasons: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (test, why) in skips.lines().filter_map(|line| line.split_once('\t')) {
        reasons.entry(why).or_insert((0, test)).0 += 1;
    }
    let text = |unlisted: bool| {
        let listed = |why: &str| MAY_BE_MISSING.iter().any(|known| why.starts_with(known));
        let some = reasons.iter().filter(|(why, _)| listed(why) != unlisted);
        let some = some.map(|(why, (n, test))| format!("{n} × {why} ({test})"));
        some.collect::<Vec<_>>().join("; ")
    };
    let (known, unknown) = (text(false), text(true));
    match (known.is_empty(), unknown.is_empty()) {
        (_, false) => Outcome::Skipped(format!("tests: {unknown}")),
        (false, true) => Outcome::Told(format!("skipped: {known}")),
        (true, true) => Outcome::Passed,
    }
}

pub(crate) fn doctests(ws: &Workspace) -> Result<Outcome> {
    ws.cargo(&["test", "--workspace", "--doc"]).run()?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_reasons_are_acceptable() {
        assert!(matches!(judge(""), Outcome::Passed));
        let told = judge("a\tonly root can do x\nb\tonly root can do x\n");
        assert!(matches!(&told, Outcome::Told(text) if text.contains("2 × only root can do x (a)")));
        let skipped = judge("a\tonly root can do x\nc\tthere is no peer\n");
        assert!(matches!(&skipped, Outcome::Skipped(text) if text == "tests: 1 × there is no peer (c)"));
    }
}
