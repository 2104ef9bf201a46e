//! `cargo xtask fuzz`: builds the fuzz targets on stable Rust and runs each for some seconds or a number of inputs.
//!
//! Sets the compiler flags that libFuzzer needs (those that cargo-fuzz passes with `-s none`) and reads the settings of
//! a target in `[package.metadata.targets]` of `fuzz/Cargo.toml`: the maximum length of inputs, and the corpus to start
//! with. The checked-in corpus is not changed; new inputs go below the target folder, and crashing inputs to
//! `fuzz/artifacts`. A target that changes any other file fails.

mod confined;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{fs, slice, thread};

use anyhow::{Context as _, Result, bail};

use self::confined::Confined;
use crate::args::Args;
use crate::output;
use crate::process::{self, Tool};
use crate::step::Outcome;
use crate::workspace::Workspace;

const DEFAULT_SECONDS: u64 = 10;

/// Coverage for libFuzzer without a sanitizer, which requires a nightly compiler.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Clink-dead-code -Ccodegen-units=1 -Cdebug-assertions";

/// Duration of each target in a smoke run in seconds, unless there are too many targets.
const SMOKE_SECONDS_EACH: u64 = 8;

/// Maximum duration of a smoke run of all targets in seconds.
const SMOKE_SECONDS: u64 = 480;

/// When to stop running a target.
#[derive(Debug, Clone, Copy)]
enum Until {
    Seconds(u64),
    Runs(u64),
}

/// A target, as declared in the manifest.
struct Target {
    name: String,
    /// Maximum length of an input in bytes.
    max_len: Option<u64>,
    /// The target whose corpus is used at the start.
    seeds: String,
}

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    let until = match args.number("--runs") {
        Some(runs) => Until::Runs(runs),
        None => Until::Seconds(args.number("--seconds").unwrap_or(DEFAULT_SECONDS)),
    };
    match run(ws, build(ws)?, |_, _| until)? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(why) | Outcome::Told(why) => bail!(why),
    }
}

/// The step of `cargo xtask ci --all`: runs every target for some seconds.
pub(crate) fn smoke(ws: &Workspace) -> Result<Outcome> {
    run(ws, build_quickly(ws)?, |targets, at_a_time| {
        Until::Seconds(SMOKE_SECONDS_EACH.min(SMOKE_SECONDS * at_a_time / targets).max(1))
    })
}

/// `until` receives the number of targets and the number of targets that run in parallel.
fn run(ws: &Workspace, (build, built): Build, until: impl Fn(u64, u64) -> Until) -> Result<Outcome> {
    if let Some(why) = missing(ws) {
        return Ok(Outcome::Skipped(why));
    }
    let targets = targets(ws)?;
    if targets.is_empty() {
        bail!("{} has no targets", ws.fuzz_manifest().display());
    }
    build.run()?;
    let confined = Confined::find(ws)?;
    // A target keeps one processor busy.
    let at_a_time = thread::available_parallelism().map_or(1, NonZero::get);
    let until = until(targets.len() as u64, at_a_time as u64);
    let waiting = Mutex::new(targets.iter());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(target) = next(&waiting) {
                    if let Err(error) =
                        run_one(ws, confined.as_ref(), &built.join(&target.name), target, until)
                    {
                        output::error(&format!("{}: {error:#}", target.name));
                        locked(&failed).push(target.name.as_str());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("{} (see the inputs in fuzz/artifacts)", failed.join(", "));
    }
    output::note(&format!("{} fuzz targets", targets.len()));
    Ok(Outcome::Passed)
}

/// Returns what is missing to build the targets. `None` if nothing is missing.
fn missing(ws: &Workspace) -> Option<String> {
    if !ws.fuzz_manifest().is_file() {
        return Some("there is no fuzz workspace".to_owned());
    }
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let is_there = process::find(ws.root(), &compiler).is_some();
    (!is_there).then(|| {
        format!("building libFuzzer needs a C++ compiler ({compiler} not found; CXX specifies another)")
    })
}

/// Builds all targets.
pub(crate) fn targets_built(ws: &Workspace) -> Result<Outcome> {
    if let Some(why) = missing(ws) {
        return Ok(Outcome::Skipped(why));
    }
    build_quickly(ws)?.0.run()?;
    Ok(Outcome::Passed)
}

/// The command that builds all targets, and the folder of the results.
type Build = (Tool, PathBuf);

/// Builds for a smoke run, for which optimizing takes longer than it saves.
pub(crate) fn build_quickly(ws: &Workspace) -> Result<Build> {
    let (tool, built) = build(ws)?;
    Ok((tool.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"), built))
}

fn build(ws: &Workspace) -> Result<Build> {
    // With a target triple, the flags do not apply to build scripts and proc macros.
    let triple = host(ws)?;
    let folder = ws.target().join("fuzz");
    let build = ws.cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &triple]);
    let built = folder.join(&triple).join("release");
    Ok((build.arg("--target-dir").arg(&folder).env("RUSTFLAGS", FLAGS), built))
}

fn next<'a>(waiting: &Mutex<slice::Iter<'a, Target>>) -> Option<&'a Target> {
    locked(waiting).next()
}

/// A panicking thread leaves a valid list.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_one(
    ws: &Workspace,
    confined: Option<&Confined>,
    program: &Path,
    target: &Target,
    until: Until,
) -> Result<()> {
    let Target { name, max_len, seeds } = target;
    let found = ws.target().join("fuzz-corpus").join(name);
    let artifacts = ws.root().join("fuzz/artifacts").join(name);
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let run = match confined {
        Some(confined) => confined.tool(ws, &[&found, &artifacts], program),
        None => ws.tool(&program.to_string_lossy()),
    };
    let mut run = run
        .arg(match until {
            Until::Seconds(seconds) => format!("-max_total_time={seconds}"),
            Until::Runs(runs) => format!("-runs={runs}"),
        })
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(&["-print_final_stats=1", "-rss_limit_mb=1024", "-timeout=10"]);
    if let Some(bytes) = max_len {
        run = run.arg(format!("-max_len={bytes}"));
    }
    run = run.arg(&found);
    let seeds = ws.root().join("fuzz/corpus").join(seeds);
    if seeds.is_dir() {
        run = run.arg(seeds);
    }
    let log = ws.target().join("fuzz-corpus").join(format!("{name}.log"));
    let start = Instant::now();
    run.run_logged(&log)?;
    let seconds = start.elapsed().as_secs_f64();
    let said = fs::read_to_string(&log).unwrap_or_default();
    let runs = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    // `#10000000	DONE   cov: 1655 ft: 5794 corp: 1078/353Kb lim: 512 exec/s: 31847 rss: 32Mb`
    let end = said.lines().rev().find_map(|line| Some(line.split_once("DONE")?.1.trim())).unwrap_or_default();
    // Otherwise a target that runs nothing would pass.
    match runs.and_then(|runs| runs.trim().parse::<u64>().ok()) {
        Some(runs) if runs > 0 => output::note(&format!("{name}: {runs} inputs in {seconds:.0} s; {end}")),
        _ => bail!("it ran no input ({})", log.display()),
    }
    Ok(())
}

fn targets(ws: &Workspace) -> Result<Vec<Target>> {
    let metadata = ws.metadata(&ws.fuzz_manifest())?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut found = Vec::new();
    for package in packages {
        let targets = package["targets"].as_array().into_iter().flatten();
        let bins = targets.filter(|target| {
            target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
        });
        for name in bins.filter_map(|target| target["name"].as_str()) {
            let of_itself = &package["metadata"]["targets"][name];
            let seeds = of_itself["seeds"].as_str().unwrap_or(name).to_owned();
            found.push(Target { name: name.to_owned(), max_len: of_itself["max_len"].as_u64(), seeds });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn host(ws: &Workspace) -> Result<String> {
    let text = ws.tool("rustc").arg("-vV").quiet().capture()?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}
