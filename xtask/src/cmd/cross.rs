//! `cargo xtask cross`: does it compile for other systems?
//!
//! Owns: which targets there are, and what is expected to compile for each. A target whose standard library is not
//! installed is named, and the check counts as skipped. Refuses to: install anything, and to call something tried that was not: to
//! compile is not to run.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::cmd::foreign;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// What is expected to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The program and all that it is made of.
    Program,
    /// The libraries up to the client: the program itself was not brought to that system so far.
    Libraries,
}

const TARGETS: &[(&str, Scope)] = &[
    ("x86_64-unknown-linux-musl", Scope::Program),
    ("aarch64-unknown-linux-gnu", Scope::Program),
    ("aarch64-unknown-linux-musl", Scope::Program),
    ("x86_64-apple-darwin", Scope::Libraries),
    ("aarch64-apple-darwin", Scope::Libraries),
    ("x86_64-pc-windows-gnu", Scope::Program),
];

/// Stands in for the agent that the program carries: to build it takes a linker, and optimizes it for nobody. Those that
/// are used are built by `cargo xtask qemu` and with the release.
const GIVEN_AGENT: &str = "RUNTAP_JVM_AGENT_LIBRARY";

const LIBRARIES: &[&str] = &[
    "runtap-wire",
    "runtap-diag-proto",
    "runtap-nettrace",
    "runtap-providers",
    "runtap-transport",
    "runtap-discover",
    "runtap-diag",
    "runtap-diag-server",
    "runtap-model",
    "runtap-clr",
    "runtap-sinks",
];

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    if let Outcome::Skipped(why) = check(ws)? {
        output::note(&format!("skipped: {why}"));
    }
    Ok(())
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    let agent = ws.target().join("no-agent.so");
    fs::create_dir_all(ws.target())?;
    fs::write(&agent, "").with_context(|| format!("cannot write {}", agent.display()))?;
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for (target, scope) in TARGETS {
        if !foreign::is_installed(ws, target)? {
            lines.push(format!(
                "{target}: not tried, its standard library is not here (rustup target add {target})"
            ));
            continue;
        }
        match ws.cargo(&arguments(target, *scope)).env(GIVEN_AGENT, &agent).run() {
            Ok(()) => lines.push(format!("{target}: {} compile", scope.name())),
            Err(error) => {
                lines.push(format!("{target}: {error:#}"));
                failed.push(*target);
            }
        }
    }
    for line in &lines {
        output::note(line);
    }
    if !failed.is_empty() {
        bail!("does not compile for {}", failed.join(", "));
    }
    Ok(Outcome::Passed)
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::Program => "the program and its libraries",
            Self::Libraries => "the libraries",
        }
    }
}

fn arguments(target: &str, scope: Scope) -> Vec<&str> {
    let mut arguments = vec!["check", "--target", target];
    let packages: &[&str] = match scope {
        Scope::Program => &["runtap"],
        Scope::Libraries => LIBRARIES,
    };
    arguments.extend(packages.iter().flat_map(|package| ["-p", package]));
    arguments
}

/// Whether the whole program is expected to compile for a target: for the host and others that are not listed too.
pub(crate) fn takes_program(target: &str) -> bool {
    TARGETS.iter().find(|(known, _)| *known == target).is_none_or(|(_, scope)| *scope == Scope::Program)
}

/// Whether `cargo xtask cross` compiles for a target.
#[cfg(test)]
pub(crate) fn is_known(target: &str) -> bool {
    TARGETS.iter().any(|(known, _)| *known == target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::layers;

    #[test]
    fn arguments_name_every_package() {
        assert_eq!(arguments("t", Scope::Program), ["check", "--target", "t", "-p", "runtap"]);
        let libraries = arguments("t", Scope::Libraries);
        assert_eq!(libraries.len(), 3 + 2 * LIBRARIES.len());
        assert!(libraries.ends_with(&["-p", "runtap-sinks"]));
    }

    #[test]
    fn the_libraries_have_a_layer() {
        for library in LIBRARIES {
            assert!(layers::layer(library).is_some(), "{library}");
        }
    }
}
