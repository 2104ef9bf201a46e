//! The commands that a program for another system must run, if this machine can run it, and their results. The results
//! for a recording are compared with those of the host's program, because they must not depend on the processor.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use xtask::process::Tool;
use xtask::workspace::Workspace;

/// The formats that `convert` writes, with their file name extensions.
const FORMATS: [(&str, &str); 7] = [
    ("speedscope", "speedscope.json"),
    ("folded", "folded"),
    ("flamegraph", "svg"),
    ("chrome", "chrome.json"),
    ("perfetto", "perfetto"),
    ("firefox", "firefox.json"),
    ("pprof", "pprof"),
];

/// A program and its working directory.
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

/// Runs all commands in `folder` and returns what was run.
pub(crate) fn all(
    ws: &Workspace,
    target: &str,
    [program, host]: [&Path; 2],
    folder: &Path,
) -> Result<Vec<String>> {
    let other = Runner { ws, program, folder };
    let host = Runner { program: host, ..other };
    let version = other.json(&["version", "--format", "json"])?;
    if version["target"] != target {
        bail!("`runtap version` names another target: {version}");
    }
    let mut rows = vec!["`runtap version`".to_owned()];
    if !other.json(&["ps", "--format", "json"])?["processes"].is_array() {
        bail!("`ps` lists no processes");
    }
    rows.push("`runtap ps`".to_owned());
    other.tool(&["demo", "jvm", "--plain", "--duration", "2s"]).run()?;
    rows.push("`runtap demo jvm`: starts itself as a target, and collects its calls".to_owned());
    other.tool(&["demo", "--quiet", "--duration", "2s", "-o", "demo"]).run()?;
    rows.push("`runtap demo`: records itself, with the stacks of its threads".to_owned());
    files(&other)?;
    compare(&other, &host)?;
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

/// Runs the verbs for recordings.
fn files(other: &Runner<'_>) -> Result<()> {
    let counts = other.json(&["events", "demo.nettrace", "--count", "--format", "json"])?;
    if !counts["partial"].is_null() || counts["counts"].as_array().is_none_or(Vec::is_empty) {
        bail!("the recording of the demo is not whole, or has no events: {counts}");
    }
    let report = other.says(&["report", "demo.nettrace", "cpu"])?;
    if !report.contains("hot_work") {
        bail!("the report does not name the function that takes the time:\n{report}");
    }
    let inspected = other.json(&["inspect", "demo.nettrace", "--format", "json"])?;
    if inspected["blocks"].as_array().is_none_or(Vec::is_empty) {
        bail!("`inspect` found no blocks: {inspected}");
    }
    other.says(&["diff", "demo.nettrace", "demo.nettrace"]).map(drop)?;
    let whole = fs::read(other.folder.join("demo.nettrace")).context("cannot read the recording")?;
    fs::write(other.folder.join("cut.nettrace"), whole.get(..whole.len() * 4 / 5).unwrap_or_default())?;
    other.says(&["repair", "cut.nettrace", "-o", "repaired.nettrace"]).map(drop)?;
    let repaired = other.json(&["events", "repaired.nettrace", "--count", "--format", "json"])?;
    if !repaired["partial"].is_null() {
        bail!("the repaired recording is not whole: {repaired}");
    }
    converted(other, "other")
}

/// Converts to every format, with `name` as the base name.
fn converted(runner: &Runner<'_>, name: &str) -> Result<()> {
    for (format, ending) in FORMATS {
        let file = format!("{name}.{ending}");
        runner.says(&["convert", "demo.nettrace", "--to", format, "-o", &file]).map(drop)?;
        filled(&runner.folder.join(&file))?;
    }
    Ok(())
}

/// Compares with the files of the host's program.
fn compare(other: &Runner<'_>, host: &Runner<'_>) -> Result<()> {
    converted(host, "host")?;
    for (format, ending) in FORMATS {
        let [ours, theirs] =
            ["other", "host"].map(|name| fs::read(other.folder.join(format!("{name}.{ending}"))));
        if ours? != theirs? {
            bail!("{format}: the file differs from the host's (other.{ending}, host.{ending})");
        }
    }
    Ok(())
}
