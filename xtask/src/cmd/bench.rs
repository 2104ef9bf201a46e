//! `cargo xtask bench`: what reading a recording costs, in instructions a sample, against limits.
//!
//! Owns: the limits. Each stage of `runtap-benches` is run on a short and on a long recording; the difference leaves
//! start and names out. Refuses to: measure time. That is for the commands of docs/performance.md.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::callgrind;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Stage, and the instructions allowed for a sample of 24 frames. About a quarter above what it took when the limit was
/// set. Lower it when the code got better; a reason to raise it belongs into the commit's message.
const LIMITS: [(&str, u64); 3] = [("decode", 500), ("count", 360), ("profile", 4_000)];

const SHORT: u64 = 10_000;
const LONG: u64 = 30_000;

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    match check(ws)? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(why) => bail!(why),
    }
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    if !callgrind::is_there(ws) {
        return Ok(Outcome::Skipped(callgrind::MISSING.to_owned()));
    }
    ws.cargo(&["build", "--release", "--package", "runtap-benches"]).run()?;
    let program = ws.target().join("release").join(format!("runtap-benches{}", std::env::consts::EXE_SUFFIX));
    let mut files = Vec::new();
    for samples in [SHORT, LONG] {
        let file = ws.target().join(format!("bench-{samples}.nettrace")).to_string_lossy().into_owned();
        ws.tool(&program.to_string_lossy()).args(&["make", &file, &samples.to_string()]).quiet().run()?;
        files.push(file);
    }
    let mut above = Vec::new();
    for (stage, limit) in LIMITS {
        let mut counted = Vec::new();
        for file in &files {
            counted.push(callgrind::instructions(ws, &program, &[stage, file])?);
        }
        let each = counted.last().zip(counted.first()).map_or(0, |(long, short)| long.saturating_sub(*short));
        let each = each / (LONG - SHORT);
        output::note(&format!("{stage:<8} {each:>6} instructions a sample, {limit} allowed"));
        if each > limit {
            above.push(stage);
        }
    }
    if !above.is_empty() {
        bail!("above the limit: {}", above.join(", "));
    }
    Ok(Outcome::Passed)
}
