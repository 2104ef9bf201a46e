//! `cargo xtask ci`: runs the checks, the most informative first. All steps run even if earlier ones failed.
//!
//! Plain `ci` is for every change: it needs cargo, rustfmt and clippy, takes minutes, and ends with the list of the steps
//! that it has not run. `ci --all`, which `.ci/run` calls after installing the tools, runs everything, and fails if a tool
//! is missing.

mod outside;

use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use self::outside::Outside;
use crate::args::Args;
use crate::cmd::{
    self, advisories, bench, book, conformance, doc, extras, fmt, fuzz, layers, licenses, lint, packages,
    size, test, words,
};
use crate::output;
use crate::process;
use crate::step::{self, Missing, Outcome};
use crate::workspace::Workspace;

/// The function of a step.
pub type Check = fn(&Workspace) -> Result<Outcome>;

/// Which of the two runs have a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum In {
    Both,
    /// Needs further tools, the network or many minutes.
    All,
    /// A part of a step that is in [`All`](Self::All).
    Plain,
}

const STEPS: &[(In, &str, Check)] = &[
    // Once for all programs that contain it.
    (In::All, "agent", agent),
    (In::Both, "fmt", fmt::check),
    (In::All, "tombi", extras::tombi),
    (In::All, "typos", extras::typos),
    (In::Both, "files", lint::files),
    (In::Both, "book", book::check),
    (In::Both, "layers", layers::check),
    (In::Both, "words", words::check),
    (In::Both, "licenses", licenses::check),
    (In::Both, "clippy", lint::clippy),
    (In::Plain, "quick tests", test::without_peers),
    (In::All, "cross", in_dist),
    (In::All, "machete", extras::machete),
    (In::All, "deny", extras::deny),
    // Never fails.
    (In::All, "advisories", advisories::tell),
    (In::All, "doc", doc::check),
    (In::All, "doctest", test::doctests),
    (In::All, "packages", packages::check),
    // Started at the beginning; these steps wait for it.
    (In::All, "shipped", size::build),
    (In::All, "fuzz targets", fuzz::targets_built),
    // Programs of other systems that this machine can run.
    (In::All, "wine", in_dist),
    (In::All, "qemu", in_dist),
    // Compared with the result of the shipped program for the same recording.
    (In::All, "peers", in_dist),
    (In::All, "conformance", conformance::check),
    (In::All, "viewer", extras::viewer),
    (In::All, "another user", test::as_another::run),
    // The last step that runs tests, so that its count is at the end of the log.
    (In::All, "test", test::run),
    (In::All, "size", size::size),
    (In::All, "linking", size::linking),
    (In::All, "start-up", size::start_up),
    (In::All, "bench", bench::check),
    // Without the builds of `ahead` beside it.
    (In::All, "fuzz", fuzz::smoke),
];

/// Builds the JVM agent once for all programs that contain it.
fn agent(ws: &Workspace) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Passed);
    }
    ws.cargo(&["build", "--profile", "agent", "--package", "runtap-jvm-agent", "--lib"]).run()?;
    let library = ws.target().join("agent/libruntap_jvm_agent.so");
    // The user's configuration may use another folder; then each program builds its own.
    if library.is_file() {
        process::give_agent(library);
    }
    Ok(Outcome::Passed)
}

/// Starts optimized builds while other steps run, because linking a whole program uses a single processor. A step that
/// needs one of them builds it again, waits for cargo's lock, and reports errors.
fn ahead(ws: &Workspace) {
    let builds = [
        ("shipped", Ok(size::building(ws))),
        ("benches", Ok(bench::building(ws))),
        ("fuzz", fuzz::build_quickly(ws).map(|(build, _)| build)),
    ];
    for (name, build) in builds {
        let built = build.and_then(|build| build.run_logged(&ws.target().join(format!("ahead-{name}.log"))));
        if built.is_err() {
            output::note(&format!("{name}: could not be built ahead"));
        }
    }
}

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    if args.has("--all") { cmd::in_dist(ws, args) } else { run(ws, false, &[]) }
}

/// Stands for a step of `xtask-dist`, whose program replaces it.
fn in_dist(_: &Workspace) -> Result<Outcome> {
    bail!("this step is in the package xtask-dist")
}

/// Runs every step, or without `all` the steps that need no further tools. `own` are the steps that are in the calling
/// program.
pub fn run(ws: &Workspace, all: bool, own: &[(&str, Check)]) -> Result<()> {
    let start = Instant::now();
    let missing = if all { Missing::Fail } else { Missing::Skip };
    let outside = Outside::plant(ws)?;
    let mut reports = Vec::new();
    thread::scope(|scope| {
        for (is_in, name, check) in STEPS {
            if !runs(*is_in, all) {
                continue;
            }
            let check = own.iter().find(|(own, _)| own == name).map_or(*check, |(_, check)| *check);
            reports.push(step::run(name, missing, || check(ws)));
            // The builds contain the agent.
            if *name == "agent" {
                scope.spawn(|| ahead(ws));
            }
        }
    });
    // Covers all earlier steps.
    reports.push(step::run("outside", missing, || outside.check()));
    output::summary(&reports, start.elapsed());
    if !all {
        let names: Vec<&str> = STEPS.iter().filter(|step| step.0 == In::All).map(|step| step.1).collect();
        output::note(&format!(
            "not run: {}\n`cargo xtask ci --all` runs every step, and fails if a tool is missing; `.ci/run` installs the \
             tools on Debian 12 first (CONTRIBUTING.md, \"Build and check\")",
            names.join(", ")
        ));
    }
    let failed: Vec<&str> =
        reports.iter().filter(|report| report.outcome.is_err()).map(|report| report.name).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn runs(is_in: In, all: bool) -> bool {
    match is_in {
        In::Both => true,
        In::All => all,
        In::Plain => !all,
    }
}
