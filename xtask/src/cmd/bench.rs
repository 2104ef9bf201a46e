//! `cargo xtask bench [NAME]`: measures the cost of runtap.
//!
//! `decode` limits the instructions per sample. Each stage of `runtap-benches` runs on a short and on a long recording, and
//! the difference excludes the start and the names. Times are only reported (docs/performance.md): `decode`, `heap`, `capture`
//! and `ps` with real runtimes, `ports` with simulated ones, `tests` with test applications and `dotnet test`, `jvm` with the
//! agent in real JVMs, and the server's `clients`, `events`, `instruments` and `samples`.

mod jvm;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::args::Args;
use crate::callgrind;
use crate::cmd::size;
use crate::output;
use crate::process::Tool;
use crate::step::Outcome;
use crate::workspace::{SHIPPED, Workspace};

/// Maximum number of instructions per result received over the pipe of a test application, with 32 results per message.
/// It was 2,480 when the limit was set.
const RESULT_LIMIT: u64 = 2_750;

/// Maximum number of instructions per event of a Java agent of version 1, from its bytes to the call tree. It was 311
/// when the limit was set.
const CALL_LIMIT: u64 = 345;

/// The stages with their maximum numbers of instructions per sample with 24 frames: about a tenth more than measured
/// when the limits were set (360, 117, 217, 176, 907). Lower a limit when the code improves; explain a raised limit in
/// the commit message.
const LIMITS: [(&str, u64); 5] =
    [("decode", 400), ("count", 130), ("fields", 240), ("stacks", 195), ("profile", 1_000)];

const SHORT: u64 = 10_000;
const LONG: u64 = 30_000;

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    if args.word() == Some("jvm") {
        return jvm::run(ws);
    }
    if let Some(alone @ ("clients" | "events" | "instruments")) = args.word() {
        return ws.tool(&build(ws)?.to_string_lossy()).arg(alone).run();
    }
    if args.word() == Some("samples") {
        building(ws).args(&["--package", "axum-service"]).run()?;
        let [program, service] = ["runtap-benches", "axum-service"].map(|name| ws.shipped(name));
        return ws.tool(&program.to_string_lossy()).arg("samples").arg(service).run();
    }
    if let Some(name @ ("bytefrog" | "heap")) = args.word() {
        let mut tool = ws.tool(&build(ws)?.to_string_lossy()).arg(name);
        if let Some(count) = args.number(if name == "heap" { "--objects" } else { "--events" }) {
            tool = tool.arg(count.to_string());
        }
        if let Some(shared) = ws.shared()? {
            tool = tool.env("RUNTAP_SHARED", shared);
        }
        return tool.run();
    }
    let Some(live @ ("capture" | "host" | "nettrace" | "ports" | "ps" | "tests")) = args.word() else {
        if let Outcome::Skipped(why) = check(ws)? {
            output::note(&format!("skipped: {why}"));
        }
        return ws.tool(&build(ws)?.to_string_lossy()).arg("speed").run();
    };
    size::build(ws)?;
    let mut tool = ws.tool(&build(ws)?.to_string_lossy()).arg(live).arg(ws.shipped("runtap"));
    // A relative path is relative to the root of the workspace.
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    tool.run()
}

/// Returns the command that builds the benchmark program.
pub(crate) fn building(ws: &Workspace) -> Tool {
    ws.cargo(&["build", "--profile", SHIPPED, "--package", "runtap-benches"])
}

fn build(ws: &Workspace) -> Result<PathBuf> {
    building(ws).run()?;
    Ok(ws.shipped("runtap-benches"))
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    if !callgrind::is_there(ws) {
        return Ok(Outcome::Skipped(callgrind::MISSING.to_owned()));
    }
    let program = build(ws)?;
    let mut files = Vec::new();
    for samples in [SHORT, LONG] {
        let file = ws.target().join(format!("bench-{samples}.nettrace")).to_string_lossy().into_owned();
        ws.tool(&program.to_string_lossy()).args(&["make", &file, &samples.to_string()]).quiet().run()?;
        files.push(file);
    }
    let mut above = Vec::new();
    for (stage, what, limit) in [("results", "a result", RESULT_LIMIT), ("calls", "an event", CALL_LIMIT)] {
        let each = made(ws, &program, stage)?;
        output::note(&format!("{stage:<8} {each:>6} instructions {what} (limit {limit})"));
        if each > limit {
            above.push(stage);
        }
    }
    for (stage, limit) in LIMITS {
        let mut counted = Vec::new();
        for file in &files {
            counted.push(callgrind::instructions(ws, &program, &[stage, file])?);
        }
        let each = counted.last().zip(counted.first()).map_or(0, |(long, short)| long.saturating_sub(*short));
        let each = each / (LONG - SHORT);
        output::note(&format!("{stage:<8} {each:>6} instructions per sample (limit {limit})"));
        if each > limit {
            above.push(stage);
        }
    }
    if !above.is_empty() {
        bail!("limit exceeded: {}", above.join(", "));
    }
    Ok(Outcome::Passed)
}

/// Returns the number of instructions per item of a stage, without those of the start.
fn made(ws: &Workspace, program: &Path, stage: &str) -> Result<u64> {
    let mut counted = Vec::new();
    for size in [SHORT, LONG] {
        let file = ws.target().join(format!("bench-{size}.{stage}")).to_string_lossy().into_owned();
        ws.tool(&program.to_string_lossy())
            .args(&[&format!("make-{stage}"), &file, &size.to_string()])
            .quiet()
            .run()?;
        counted.push(callgrind::instructions(ws, program, &[stage, &file])?);
    }
    let more = counted.last().zip(counted.first()).map_or(0, |(long, short)| long.saturating_sub(*short));
    Ok(more / (LONG - SHORT))
}
