//! `cargo xtask cross`: does it compile for other systems?
//!
//! Owns: which targets there are, and what is expected to compile for each. A target whose standard library is not
//! installed is named and passed over. Refuses to: install anything, and to call something tried that was not: to
//! compile is not to run.

use std::path::Path;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// What is expected to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The program and all that it is made of.
    Program,
    /// The libraries up to the client: the program itself is Linux's so far.
    Libraries,
}

const TARGETS: &[(&str, Scope)] = &[
    ("x86_64-unknown-linux-musl", Scope::Program),
    ("aarch64-unknown-linux-gnu", Scope::Program),
    ("aarch64-unknown-linux-musl", Scope::Program),
    ("x86_64-apple-darwin", Scope::Libraries),
    ("aarch64-apple-darwin", Scope::Libraries),
    ("x86_64-pc-windows-gnu", Scope::Libraries),
];

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
    check(ws)?;
    Ok(())
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for (target, scope) in TARGETS {
        if !is_installed(ws, target)? {
            lines.push(format!(
                "{target}: not tried, its standard library is not here (rustup target add {target})"
            ));
            continue;
        }
        match ws.cargo(&arguments(target, *scope)).run() {
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

/// Whether the compiler has a standard library for the target.
fn is_installed(ws: &Workspace, target: &str) -> Result<bool> {
    let folder =
        ws.tool("rustc").args(&["--print", "target-libdir", "--target", target]).quiet().capture()?;
    Ok(Path::new(folder.trim()).is_dir())
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
