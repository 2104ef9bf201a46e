//! `cargo xtask fuzz`: builds the fuzz targets on stable Rust and runs each for a few seconds.
//!
//! Owns: the compiler flags that libFuzzer needs (what cargo-fuzz passes with `-s none`). Refuses to: write into the
//! checked-in corpus; new inputs go below the target folder, inputs that crash to `fuzz/artifacts`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::output;
use crate::process;
use crate::step::Outcome;
use crate::workspace::Workspace;

const DEFAULT_SECONDS: u64 = 10;

/// Coverage for libFuzzer without a sanitizer, which only a nightly compiler has.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Clink-dead-code -Ccodegen-units=1 -Cdebug-assertions";

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    match smoke(ws, args.number("--seconds").unwrap_or(DEFAULT_SECONDS))? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(why) => bail!(why),
    }
}

pub(crate) fn smoke(ws: &Workspace, seconds: u64) -> Result<Outcome> {
    let manifest = ws.fuzz_manifest();
    if !manifest.is_file() {
        return Ok(Outcome::Skipped("there is no fuzz workspace".to_owned()));
    }
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if process::find(ws.root(), &compiler).is_none() {
        bail!("a C++ compiler is needed to build libFuzzer ({compiler} is not there; CXX names another)");
    }
    let targets = targets(ws)?;
    if targets.is_empty() {
        bail!("{} has no targets", manifest.display());
    }
    // With a target triple the flags stay away from build scripts and proc macros.
    let triple = host(ws)?;
    let folder = ws.target().join("fuzz");
    let build = ws.cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &triple]);
    build.arg("--target-dir").arg(&folder).env("RUSTFLAGS", FLAGS).run()?;
    let built = folder.join(&triple).join("release");
    let mut failed = Vec::new();
    for target in &targets {
        if let Err(error) = run_one(ws, &built, target, seconds) {
            output::error(&format!("{target}: {error:#}"));
            failed.push(target.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("{} (the inputs are in fuzz/artifacts)", failed.join(", "));
    }
    output::note(&format!("{} fuzz targets, {seconds} s each", targets.len()));
    Ok(Outcome::Passed)
}

fn run_one(ws: &Workspace, built: &Path, target: &str, seconds: u64) -> Result<()> {
    let found = ws.target().join("fuzz-corpus").join(target);
    let artifacts = ws.root().join("fuzz/artifacts").join(target);
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut run = ws
        .tool(&built.join(target).to_string_lossy())
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(&["-print_final_stats=1", "-verbosity=0", "-rss_limit_mb=1024", "-timeout=10"])
        .arg(&found);
    let seeds = ws.root().join("fuzz/corpus").join(target);
    if seeds.is_dir() {
        run = run.arg(seeds);
    }
    let log = ws.target().join("fuzz-corpus").join(format!("{target}.log"));
    run.run_logged(&log)?;
    let said = fs::read_to_string(&log).unwrap_or_default();
    let runs = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    // A target that runs nothing would pass as well.
    match runs.and_then(|runs| runs.trim().parse::<u64>().ok()) {
        Some(runs) if runs > 0 => output::note(&format!("{target}: {runs} inputs")),
        _ => bail!("it tried no input ({})", log.display()),
    }
    Ok(())
}

fn targets(ws: &Workspace) -> Result<Vec<String>> {
    let metadata = ws.metadata(&ws.fuzz_manifest())?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let all = packages.iter().filter_map(|package| package["targets"].as_array()).flatten();
    let bins = all.filter(|target| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
    });
    let mut names: Vec<String> =
        bins.filter_map(|target| target["name"].as_str()).map(str::to_owned).collect();
    names.sort();
    Ok(names)
}

fn host(ws: &Workspace) -> Result<String> {
    let text = ws.tool("rustc").arg("-vV").quiet().capture()?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}
