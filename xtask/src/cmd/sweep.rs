//! `cargo xtask sweep [SUBJECT]`: what takes too long for every run of the tests, and whose results are in docs/reliability.md.
//!
//! Owns: the list of subjects. `damage` and `repair` are tests that are ignored otherwise; `hostile` measures the memory
//! that streams without an end take. Refuses to: be part of `ci`; a sample of each is among the tests.

mod hostile;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::cmd::peers;
use crate::step::Outcome;
use crate::workspace::Workspace;

const DEFAULT_MEGABYTES: u64 = 1024;

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    let megabytes = args.number("--megabytes").unwrap_or(DEFAULT_MEGABYTES);
    match args.word() {
        Some("hostile") => hostile::run(ws, megabytes),
        Some("repair") => repair(ws),
        Some(_) => damage(ws),
        None => {
            damage(ws)?;
            repair(ws)?;
            hostile::run(ws, megabytes)
        }
    }
}

/// Recordings with every kind of damage, through the readers and through everything that reads.
fn damage(ws: &Workspace) -> Result<()> {
    // The tests of another subject are ignored as well.
    ignored(ws, &["--package", "runtap-nettrace", "--test", "it"], &["--skip", "real_"])?;
    ignored(ws, &["--package", "runtap", "--test", "sweep"], &[])
}

/// What is repaired of recordings with a flipped bit, read by TraceEvent.
fn repair(ws: &Workspace) -> Result<()> {
    if let Outcome::Skipped(why) = peers::from_here(ws)? {
        bail!("{why}");
    }
    // Without it the test would pass, and have looked at nothing.
    if !ws.peers().join("tebench").is_dir() {
        bail!("TraceEvent (tebench) is not here: docs/peers.md says where it comes from");
    }
    ignored(ws, &["--package", "runtap-nettrace", "--test", "it"], &["real_traceevent"])
}

fn ignored(ws: &Workspace, tests: &[&str], of_them: &[&str]) -> Result<()> {
    let mut tool = ws.cargo(&["test", "--release"]).args(tests);
    tool = tool.args(&["--", "--ignored", "--nocapture"]).args(of_them);
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    tool.run()
}
