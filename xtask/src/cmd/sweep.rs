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
    chosen(args.word())?.into_iter().try_for_each(|(_, run)| run(ws, megabytes))
}

/// The one that is named, or all.
fn chosen(word: Option<&str>) -> Result<Vec<&'static Subject>> {
    let chosen: Vec<_> = SUBJECTS.iter().filter(|(name, _)| word.is_none_or(|word| word == *name)).collect();
    if let (Some(word), true) = (word, chosen.is_empty()) {
        let names: Vec<&str> = SUBJECTS.iter().map(|(name, _)| *name).collect();
        bail!("there is no subject '{word}', only {}", names.join(", "));
    }
    Ok(chosen)
}

type Subject = (&'static str, fn(&Workspace, u64) -> Result<()>);

/// In the order in which all of them run.
const SUBJECTS: &[Subject] = &[
    ("classes", |ws, _| classes(ws)),
    ("damage", |ws, _| damage(ws)),
    ("repair", |ws, _| repair(ws)),
    ("jvm-programs", |ws, _| jvm_programs(ws)),
    ("coverage", |ws, _| coverage(ws)),
    ("jvm", |ws, _| jvm(ws)),
    ("replay", |ws, _| replay(ws)),
    ("tests", |ws, _| tests(ws)),
    ("hostile", hostile::run),
];

/// All classes of the JDKs of this machine, read and written, and with probes in the place of those that the JDKs have.
fn classes(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap-classfile", "--test", "it"], &[])
}

/// Java programs under the agent, with a second opinion of the JVM on every count, and all classes of the JDKs.
fn jvm_programs(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap-jvm-agent", "--test", "it"], &["real_programs", "real_modules"])
}

/// Lines of large programs, told by runtap and by JaCoCo.
fn coverage(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap", "--test", "e2e"], &["real_jacoco"])
}

/// The JVM agent under stress: attached a hundred times, HQs that are killed, hundreds of threads with a slow one.
fn jvm(ws: &Workspace) -> Result<()> {
    // One after the other: they compare speeds and memory.
    let parts = ["--test-threads", "1", "sweep::attach", "sweep::crowds", "sweep::killed"];
    ignored(ws, &["--package", "runtap-jvm-agent", "--test", "it"], &parts)
}

/// Recordings with every kind of damage, through the readers and through everything that reads.
fn damage(ws: &Workspace) -> Result<()> {
    // The tests of another subject are ignored as well.
    ignored(ws, &["--package", "runtap-nettrace", "--test", "it"], &["--skip", "real_"])?;
    ignored(ws, &["--package", "runtap", "--test", "sweep"], &[])
}

/// Runs of test applications, whose reports are compared with each other and the exit code.
fn tests(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap", "--test", "e2e"], &["real_agree"])
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
    ignored(ws, &["--package", "runtap-jvm", "--test", "memory"], &["--test-threads", "1"])
}

fn ignored(ws: &Workspace, tests: &[&str], of_them: &[&str]) -> Result<()> {
    let mut tool = ws.cargo(&["test", "--release"]).args(tests);
    tool = tool.args(&["--", "--ignored", "--nocapture"]).args(of_them);
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    tool.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_that_there_is_not_is_refused() {
        assert_eq!(chosen(None).unwrap().len(), SUBJECTS.len());
        assert_eq!(chosen(Some("jvm")).unwrap()[0].0, "jvm");
        let error = chosen(Some("jvms")).unwrap_err().to_string();
        assert!(error.contains("'jvms'") && error.contains("damage, repair"), "{error}");
    }
}
