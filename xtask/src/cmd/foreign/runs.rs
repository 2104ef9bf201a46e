//! What the program for aarch64 is asked to do.
//!
//! Owns: the commands, and what each has to leave. What it makes of a recording is compared with what the program for
//! the host makes of it: bytes do not depend on the processor.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::cmd::foreign::ARM_MUSL;
use crate::process::Tool;
use crate::workspace::Workspace;

/// Formats that `convert` writes, by the end of the file's name.
const FORMATS: [(&str, &str); 7] = [
    ("speedscope", "speedscope.json"),
    ("folded", "folded"),
    ("flamegraph", "svg"),
    ("chrome", "chrome.json"),
    ("perfetto", "perfetto"),
    ("firefox", "firefox.json"),
    ("pprof", "pprof"),
];

/// A program, and the folder in which it works.
#[derive(Clone, Copy)]
struct Runner<'a> {
    ws: &'a Workspace,
    program: &'a Path,
    folder: &'a Path,
}

impl Runner<'_> {
    fn tool(&self, words: &[&str]) -> Tool {
        self.ws.tool(&self.program.to_string_lossy()).args(words).folder(self.folder)
    }

    fn says(&self, words: &[&str]) -> Result<String> {
        self.tool(words).capture()
    }

    fn json(&self, words: &[&str]) -> Result<Value> {
        let text = self.says(words)?;
        serde_json::from_str(&text).with_context(|| format!("`{}` printed no JSON", words.join(" ")))
    }
}

/// Runs all of it in `folder`; gives what it was.
pub(super) fn all(ws: &Workspace, program: &Path, host: &Path, folder: &Path) -> Result<Vec<String>> {
    let arm = Runner { ws, program, folder };
    let host = Runner { program: host, ..arm };
    let version = arm.json(&["version", "--format", "json"])?;
    if version["target"] != ARM_MUSL {
        bail!("`runtap version` names another target: {version}");
    }
    let mut rows = vec!["`runtap version`".to_owned()];
    if !arm.json(&["ps", "--format", "json"])?["processes"].is_array() {
        bail!("`ps` lists no processes");
    }
    rows.push("`runtap ps`".to_owned());
    arm.tool(&["demo", "jvm", "--plain", "--duration", "2s"]).run()?;
    rows.push("`runtap demo jvm`: starts itself as a target, and collects what that calls".to_owned());
    // Made by the host: the emulator has no `process_vm_readv`, by which the built-in program samples its threads.
    host.tool(&["demo", "--quiet", "--duration", "2s", "-o", "demo"]).run()?;
    files(&arm)?;
    compare(&arm, &host)?;
    rows.push(
        "`events`, `report`, `inspect`, `diff`, `repair`, `convert` to every format: the files are the host's, byte for byte"
            .to_owned(),
    );
    Ok(rows)
}

fn filled(file: &Path) -> Result<()> {
    let length = fs::metadata(file).with_context(|| format!("cannot look at {}", file.display()))?.len();
    if length == 0 {
        bail!("{} is empty", file.display());
    }
    Ok(())
}

/// Verbs on recordings.
fn files(arm: &Runner<'_>) -> Result<()> {
    let counts = arm.json(&["events", "demo.nettrace", "--count", "--format", "json"])?;
    if !counts["partial"].is_null() || counts["counts"].as_array().is_none_or(Vec::is_empty) {
        bail!("the recording of the demo is not whole, or has no events: {counts}");
    }
    let report = arm.says(&["report", "demo.nettrace", "cpu"])?;
    if !report.contains("hot_work") {
        bail!("the report does not name the function that takes the time:\n{report}");
    }
    let inspected = arm.json(&["inspect", "demo.nettrace", "--format", "json"])?;
    if inspected["blocks"].as_array().is_none_or(Vec::is_empty) {
        bail!("`inspect` found no blocks: {inspected}");
    }
    arm.says(&["diff", "demo.nettrace", "demo.nettrace"]).map(drop)?;
    let whole = fs::read(arm.folder.join("demo.nettrace")).context("cannot read the recording")?;
    fs::write(arm.folder.join("cut.nettrace"), whole.get(..whole.len() * 4 / 5).unwrap_or_default())?;
    arm.says(&["repair", "cut.nettrace", "-o", "repaired.nettrace"]).map(drop)?;
    let repaired = arm.json(&["events", "repaired.nettrace", "--count", "--format", "json"])?;
    if !repaired["partial"].is_null() {
        bail!("the repaired recording is not whole: {repaired}");
    }
    converted(arm, "arm")
}

/// Every format, below a name of their own.
fn converted(runner: &Runner<'_>, name: &str) -> Result<()> {
    for (format, ending) in FORMATS {
        let file = format!("{name}.{ending}");
        runner.says(&["convert", "demo.nettrace", "--to", format, "-o", &file]).map(drop)?;
        filled(&runner.folder.join(&file))?;
    }
    Ok(())
}

/// What the program for the host makes of the same recording; a difference is an error.
fn compare(arm: &Runner<'_>, host: &Runner<'_>) -> Result<()> {
    converted(host, "host")?;
    for (format, ending) in FORMATS {
        let [ours, theirs] =
            ["arm", "host"].map(|name| fs::read(arm.folder.join(format!("{name}.{ending}"))));
        if ours? != theirs? {
            bail!(
                "{format}: the file is another one than on the host (target/qemu/arm.{ending}, host.{ending})"
            );
        }
    }
    Ok(())
}
