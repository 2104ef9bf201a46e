//! `cargo xtask ci`: every check, in the order in which they are worth knowing.
//!
//! Owns: the order, and what is an extra. Plain `ci` needs cargo, rustfmt and clippy; an extra that is
//! missing is named and passed over. `ci --all` is what `.ci/run` calls after it installed the extras: there a missing
//! one fails. Every step runs, whatever came of the ones before.

mod outside;

use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use self::outside::Outside;
use crate::args::Args;
use crate::cmd::{
    advisories, bench, book, conformance, cross, doc, extras, fmt, fuzz, layers, licenses, lint, packages,
    peers, qemu, size, test, wine,
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
    ("licenses", licenses::check),
    ("machete", extras::machete),
    ("deny", extras::deny),
    // Decides nothing.
    ("advisories", advisories::tell),
    ("doc", doc::check),
    ("doctest", test::doctests),
    ("packages", packages::check),
    // Begun at the start: these wait for it.
    ("release", test::build),
    ("fuzz targets", fuzz::targets_built),
    // What this machine can start of other systems' programs.
    ("wine", wine::check),
    ("qemu", qemu::check),
    // Compared with what the release makes of the same recording.
    ("peers", peers::from_here),
    ("conformance", conformance::check),
    ("viewer", extras::viewer),
    ("another user", test::as_another::run),
    // Of all that run tests the last: whoever reads the end of the log finds its count.
    ("test", test::run),
    ("size", size::size),
    ("linking", size::linking),
    ("start-up", size::start_up),
    ("bench", bench::check),
];

/// The agent for JVMs, once for all programs that carry it.
fn agent(ws: &Workspace) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Passed);
    }
    ws.cargo(&["build", "--profile", "agent", "--package", "runtap-jvm-agent", "--lib"]).run()?;
    let library = ws.target().join("agent/libruntap_jvm_agent.so");
    // Somebody's own configuration may have it elsewhere: then each program gets its own.
    if library.is_file() {
        process::give_agent(library);
    }
    Ok(Outcome::Passed)
}

/// Optimized builds, while others check what is not: the linker's work on a whole program is that of one processor. A step
/// that needs one builds it once more, waits for cargo's lock until it is there, and says what is wrong with it.
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

/// Each fuzz target runs for so long.
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
    // Of every step before.
    reports.push(step::run("outside", missing, || outside.check()));
    output::summary(&reports, start.elapsed());
    let failed: Vec<&str> =
        reports.iter().filter(|report| report.outcome.is_err()).map(|report| report.name).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}
