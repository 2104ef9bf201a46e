//! `cargo xtask cross`: compiles for other systems.
//!
//! Targets whose standard library is not installed are listed, and the check counts as skipped. `cargo xtask ci --all` leaves
//! out targets that another step builds and runs, and those without sources of their own. Programs are compiled, not
//! run.

use anyhow::{Result, bail};

use crate::foreign;
use xtask::args::Args;
use xtask::output;
use xtask::process::GIVEN_AGENT;
use xtask::step::Outcome;
use xtask::workspace::Workspace;

/// A target to compile for.
#[derive(Debug)]
struct Target {
    name: &'static str,
    package: &'static str,
    in_ci: InCi,
}

/// What `cargo xtask ci --all` does for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InCi {
    /// Another step builds the program and runs it.
    RunBy(&'static str),
    /// It is compiled.
    Compiled,
    /// Nothing, because no source file is specific to it.
    LikeAnother,
}

const fn program(name: &'static str, in_ci: InCi) -> Target {
    Target { name, package: "runtap", in_ci }
}

const TARGETS: &[Target] = &[
    program(foreign::MUSL, InCi::LikeAnother),
    program(foreign::ARM_MUSL, InCi::RunBy("qemu")),
    // Only what JVMs load is built for glibc; the program is the same as with musl.
    Target { name: "aarch64-unknown-linux-gnu", package: "runtap-jvm-agent", in_ci: InCi::Compiled },
    program("aarch64-apple-darwin", InCi::Compiled),
    program("x86_64-apple-darwin", InCi::LikeAnother),
    program("x86_64-pc-windows-gnu", InCi::RunBy("wine")),
];

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    if let Outcome::Skipped(why) = compile(ws, TARGETS.iter())? {
        output::note(&format!("skipped: {why}"));
    }
    Ok(())
}

/// Compiles for the targets that no other step of `cargo xtask ci --all` covers.
pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    compile(ws, TARGETS.iter().filter(|target| target.in_ci == InCi::Compiled))
}

fn compile<'a>(ws: &Workspace, targets: impl Iterator<Item = &'a Target>) -> Result<Outcome> {
    let agent = foreign::no_agent(ws)?;
    let (mut missing, mut here) = (Vec::new(), Vec::new());
    for target in targets {
        let known = if foreign::is_installed(ws, target.name)? { &mut here } else { &mut missing };
        known.push(target);
    }
    let mut failed = Vec::new();
    for (package, names) in by_package(&here) {
        // In one call, so that build scripts and macros are built once.
        if let Err(error) = ws.cargo(&arguments(package, &names)).env(GIVEN_AGENT, &agent).run() {
            failed.push(format!("{package} for {}: {error:#}", names.join(" or ")));
        } else {
            output::note(&format!("{package}: compiles for {}", names.join(", ")));
        }
    }
    if !failed.is_empty() {
        bail!("does not compile: {}", failed.join("; "));
    }
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    let names: Vec<&str> = missing.iter().map(|target| target.name).collect();
    let names = names.join(" ");
    Ok(Outcome::Skipped(format!("no standard library for {names} (rustup target add {names})")))
}

/// Groups the targets by package.
fn by_package(targets: &[&Target]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for target in targets {
        match groups.iter_mut().find(|(package, _)| *package == target.package) {
            Some((_, names)) => names.push(target.name),
            None => groups.push((target.package, vec![target.name])),
        }
    }
    groups
}

fn arguments<'a>(package: &'a str, targets: &[&'a str]) -> Vec<&'a str> {
    let targets = targets.iter().flat_map(|target| ["--target", target]);
    ["check", "-p", package].into_iter().chain(targets).collect()
}

/// Returns whether `cargo xtask cross` compiles for a target.
#[cfg(test)]
pub(crate) fn is_known(target: &str) -> bool {
    TARGETS.iter().any(|known| known.name == target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::cmd::COMMANDS;

    #[test]
    fn targets_of_one_package_are_compiled_at_once() {
        let targets: Vec<&Target> = TARGETS.iter().filter(|target| target.in_ci == InCi::Compiled).collect();
        let groups = by_package(&targets);
        assert_eq!(
            groups.iter().map(|(package, _)| *package).collect::<Vec<_>>(),
            ["runtap-jvm-agent", "runtap"]
        );
        let expected = ["check", "-p", "p", "--target", "a", "--target", "b"];
        assert_eq!(arguments("p", &["a", "b"]), expected);
    }

    #[test]
    fn omitted_targets_are_built_by_other_steps() {
        for target in TARGETS {
            if let InCi::RunBy(step) = target.in_ci {
                assert!(COMMANDS.iter().any(|command| command.name == step), "{step}");
            }
        }
    }
}
