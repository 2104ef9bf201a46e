//! `cargo xtask ci`: runs every check, the most informative first.
//!
//! Plain `ci` needs cargo, rustfmt and clippy; missing optional tools are reported and their checks skipped. `ci
//! --all`, which `.ci/run` calls after installing the tools, fails if one is missing. All steps run even if earlier
//! ones failed.

mod outside;

use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use self::outside::Outside;
use crate::args::Args;
use crate::cmd::{
    advisories, bench, book, conformance, cross, doc, extras, fmt, fuzz, layers, licenses, lint, packages,
    peers, qemu, size, test, wine, words,
};
use crate::output;
use crate::process;
use crate::step::{self, Missing, Outcome};
use crate::workspace::Workspace;

type Check = fn(&Workspace) -> Result<Outcome>;

const STEPS: &[(&str, Check)] = &[
    ("fmt", fmt::check),
    ("tombi", extras::tombi),
    ("typos", extras::typos),
    ("files", lint::files),
    ("book", book::check),
    ("clippy", lint::clippy),
    ("cross", cross::check),
    ("layers", layers::check),
    ("words", words::check),
    ("licenses", licenses::check),
    ("machete", extras::machete),
    ("deny", extras::deny),
    // Never fails.
    ("advisories", advisories::tell),
    ("doc", doc::check),
    ("doctest", test::doctests),
    ("packages", packages::check),
    // Started at the beginning; these steps wait for it.
    ("release", test::build),
    ("fuzz targets", fuzz::targets_built),
    // Programs of other systems that this machine can run.
    ("wine", wine::check),
    ("qemu", qemu::check),
    // Compared with the result of the release build for the same recording.
    ("peers", peers::from_here),
    ("conformance", conformance::check),
    ("viewer", extras::viewer),
    ("another user", test::as_another::run),
    // The last step that runs tests, so that its count is at the end of the log.
    ("test", test::run),
    ("size", size::size),
    ("linking", size::linking),
    ("start-up", size::start_up),
    ("bench", bench::check),
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
        ("release", Ok(test::building(ws))),
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

/// Duration of each fuzz target in seconds.
const FUZZ_SECONDS: u64 = 8;

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    let start = Instant::now();
    let missing = if args.has("--all") { Missing::Fail } else { Missing::Skip };
    let outside = Outside::plant(ws)?;
    let mut reports = vec![step::run("agent", missing, || agent(ws))];
    thread::scope(|scope| {
        scope.spawn(|| ahead(ws));
        reports.extend(STEPS.iter().map(|(name, check)| step::run(name, missing, || check(ws))));
    });
    reports.push(step::run("fuzz", missing, || fuzz::smoke(ws, FUZZ_SECONDS)));
    // Covers all earlier steps.
    reports.push(step::run("outside", missing, || outside.check()));
    output::summary(&reports, start.elapsed());
    let failed: Vec<&str> =
        reports.iter().filter(|report| report.outcome.is_err()).map(|report| report.name).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}
