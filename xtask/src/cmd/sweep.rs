//! `cargo xtask sweep [SUBJECT]`: what takes too long for every run of the tests, and whose results are in docs/reliability.md.
//!
//! Owns: the list of subjects. `hostile` measures the memory that streams without an end take; the others are tests that
//! are ignored otherwise.
//! Refuses to: be part of `ci`; a sample of each is among the tests.

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
        Some("classes") => classes(ws),
        Some("hostile") => hostile::run(ws, megabytes),
        Some("jvm-programs") => jvm_programs(ws),
        Some("repair") => repair(ws),
        Some("replay") => replay(ws),
        Some(_) => damage(ws),
        None => {
            classes(ws)?;
            damage(ws)?;
            repair(ws)?;
            jvm_programs(ws)?;
            replay(ws)?;
            hostile::run(ws, megabytes)
        }
    }
}

/// All classes of the JDKs of this machine, read and written, and with probes in the place of those that the JDKs have.
fn classes(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap-classfile", "--test", "it"], &[])
}

/// Java programs under the agent, with a second opinion of the JVM on every count, and all classes of the JDKs.
fn jvm_programs(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap-jvm-agent", "--test", "it"], &["real_programs", "real_modules"])
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

/// Recordings of Java traces of 10^8 and 10^9 events, whose replay takes no more memory than a short one. Wants 8 GB of disk.
fn replay(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap-bytefrog-record", "--test", "memory"], &["--test-threads", "1"])
}

fn ignored(ws: &Workspace, tests: &[&str], of_them: &[&str]) -> Result<()> {
    let mut tool = ws.cargo(&["test", "--release"]).args(tests);
    tool = tool.args(&["--", "--ignored", "--nocapture"]).args(of_them);
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    tool.run()
}
