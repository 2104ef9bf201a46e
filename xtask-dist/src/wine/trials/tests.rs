//! Test applications. They are written in Rust, because .NET for Windows is not available here.

use std::fs;

use anyhow::{Result, bail};

use super::contains;
use crate::wine::program::{Said, Wine};

/// The example of `runtap-mtp-host`, with tests of every outcome.
const APPLICATION: &str = "../harness.exe";
/// The exit code when some of its tests fail.
const FAILED: Option<i32> = Some(2);

fn failed(said: &Said, what: &str) -> Result<()> {
    if said.code == FAILED { Ok(()) } else { bail!("{what}: {:?}, {}{}", said.code, said.out, said.err) }
}

pub(super) fn tests(wine: &Wine) -> Result<()> {
    let said = wine.runtap(&["test", APPLICATION, "--format", "json", "--report", "junit=results.xml"])?;
    failed(&said, "test")?;
    contains(&said, &["\"passed\"", "math::adds"])?;
    let report = fs::read_to_string(wine.files().join("results.xml"))?;
    for word in ["math::overflows", "it wraps", "there is no tape drive"] {
        if !report.contains(word) {
            bail!("the report lacks `{word}`: {report}");
        }
    }
    contains(&wine.works(&["test", APPLICATION, "--list-tests"])?, &["io::needs_a_tape", "takes_long"])?;
    let said = wine.works(&["test", APPLICATION, "--filter", "math::adds", "--format", "json"])?;
    contains(&said, &["math::adds"])?;
    if said.out.contains("it wraps") {
        bail!("a test that was filtered out ran: {}", said.out);
    }
    Ok(())
}

pub(super) fn played(wine: &Wine) -> Result<()> {
    failed(&wine.runtap(&["mtp", "record", "-o", "tests.jsonl", "--", APPLICATION])?, "mtp record")?;
    contains(&wine.works(&["mtp", "inspect", "tests.jsonl"])?, &["Handshake", "math::adds"])?;
    wine.works(&["mtp", "lint", "tests.jsonl"])?;
    wine.works(&["mtp", "replay", "tests.jsonl", "--write-module", "played.cmd"])?;
    let said = wine.runtap(&["test", "played.cmd", "--format", "json"])?;
    failed(&said, "test of what was recorded")?;
    contains(&said, &["math::adds", "it wraps"])
}

/// The application as a test command whose output is parsed.
pub(super) fn hosted(wine: &Wine) -> Result<()> {
    wine.works(&["mtp", "host", "--from", "libtest", "--write-module", "hosted.cmd", "--", APPLICATION])?;
    let said = wine.runtap(&["test", "hosted.cmd", "--format", "json"])?;
    failed(&said, "test of a command")?;
    contains(&said, &["math::adds", "it wraps"])
}
