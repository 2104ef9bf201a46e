//! `cargo xtask sweep [SUBJECT]`: runs tests that take too long for every test run; docs/reliability.md has their
//! results. `hostile` measures the memory used for endless streams; the others are tests that are ignored otherwise.
//! The normal tests contain samples of each.

mod hostile;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::workspace::Workspace;

const DEFAULT_MEGABYTES: u64 = 1024;

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    let megabytes = args.number("--megabytes").unwrap_or(DEFAULT_MEGABYTES);
    chosen(args.word())?.into_iter().try_for_each(|(_, run)| run(ws, megabytes))
}

/// Returns the named subject, or all.
fn chosen(word: Option<&str>) -> Result<Vec<&'static Subject>> {
    let chosen: Vec<_> = SUBJECTS.iter().filter(|(name, _)| word.is_none_or(|word| word == *name)).collect();
    if let (Some(word), true) = (word, chosen.is_empty()) {
        let names: Vec<&str> = SUBJECTS.iter().map(|(name, _)| *name).collect();
        bail!("unknown subject '{word}'; the subjects are {}", names.join(", "));
    }
    Ok(chosen)
}

type Subject = (&'static str, fn(&Workspace, u64) -> Result<()>);

/// In the order in which they run.
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

/// Reads and writes all classes of the installed JDKs, and links them with probes.
fn classes(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap-classfile", "--test", "it"], &[])
}

/// Runs Java programs under the agent and compares every count with the JVM's own, and all classes of the JDKs.
fn jvm_programs(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap-jvm-agent", "--test", "it"], &["real_programs", "real_modules"])
}

/// Compares the line coverage of large programs with JaCoCo's.
fn coverage(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap", "--test", "e2e"], &["real_jacoco"])
}

/// Stress tests of the JVM agent: a hundred attachments, killed HQs, hundreds of threads with a slow HQ.
fn jvm(ws: &Workspace) -> Result<()> {
    // Sequentially, because they compare speeds and memory.
    let parts = ["--test-threads", "1", "sweep::attach", "sweep::crowds", "sweep::killed"];
    ignored(ws, &["--package", "runtap-jvm-agent", "--test", "it"], &parts)
}

/// Reads recordings with every kind of damage with all readers and commands.
fn damage(ws: &Workspace) -> Result<()> {
    // The tests of another subject are ignored too.
    ignored(ws, &["--package", "runtap-nettrace", "--test", "it"], &["--skip", "real_"])?;
    ignored(ws, &["--package", "runtap", "--test", "sweep"], &[])
}

/// Compares the reports of test runs with each other and with the exit code.
fn tests(ws: &Workspace) -> Result<()> {
    ignored(ws, &["--package", "runtap", "--test", "e2e"], &["real_agree"])
}

/// Reads repaired recordings with TraceEvent.
fn repair(ws: &Workspace) -> Result<()> {
    ws.cargo(&["run", "--quiet", "--package", "xtask-dist", "--", "peers"]).run()?;
    // Without TraceEvent, the test would pass without checking anything.
    if !ws.peers().join("tebench").is_dir() {
        bail!("TraceEvent (tebench) is not installed; see docs/peers.md");
    }
    ignored(ws, &["--package", "runtap-nettrace", "--test", "it"], &["real_traceevent"])
}

/// Replays recordings of Java traces with 10^8 and 10^9 events, which must take no more memory than a short one. Needs
/// 8 GB of disk space.
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
    fn an_unknown_subject_is_rejected() {
        assert_eq!(chosen(None).unwrap().len(), SUBJECTS.len());
        assert_eq!(chosen(Some("jvm")).unwrap()[0].0, "jvm");
        let error = chosen(Some("jvms")).unwrap_err().to_string();
        assert!(error.contains("'jvms'") && error.contains("damage, repair"), "{error}");
    }
}
