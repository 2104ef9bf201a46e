//! Real applications under `runtap test` and under `dotnet test`: equal totals, and the duration of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runtap_testkit::{DotnetTest, RealRuntime, Skip, test_application};

use super::seconds;
use crate::output::{Table, bar, line, median};

const RUNS: usize = 3;
const PARALLEL: &str = "2";
/// Parallel modules of the run in which the slowest of unequal modules are split.
const MANY: &str = "8";
/// Minimum speed-up by splitting.
const MIN_SPEEDUP: f64 = 1.8;
const SIX: [&str; 6] = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"];
const TWENTY: usize = 20;
/// Clock noise, since both runners wait for equal sleeps.
const TOLERANCE: f64 = 1.02;

/// Totals of both runners: total, failed, succeeded, skipped.
type Totals = [u64; 4];

pub(super) fn run(runtap: &Path) -> Result<()> {
    let (sdk, runtime, six, one) = match available() {
        Ok(all) => all,
        Err(skip) => {
            line(skip);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir_in(runtap_testkit::workspace_root().join("target"))?;
    link_all(&six, &folder.path().join("six"))?;
    for number in 0..TWENTY {
        link_all(&one, &folder.path().join(format!("m{number:02}")))?;
    }
    let list = |paths: Vec<String>| paths.join(";");
    let subjects = [
        ("1 module", list(vec!["m00/orchard.dll".to_owned()])),
        ("6 modules (six)", list(SIX.iter().map(|name| format!("six/{name}.dll")).collect())),
        ("20 modules", list((0..TWENTY).map(|number| format!("m{number:02}/orchard.dll")).collect())),
    ];
    let mut table = Table::new(&[
        "",
        "dotnet test",
        "runtap, no history",
        "runtap, history",
        "ratio",
        "ratio with history",
    ]);
    let mut worst: f64 = 0.0;
    for (name, modules) in &subjects {
        let (mut theirs, mut first, mut later) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let home = tempfile::tempdir_in(folder.path())?;
            let (time, expected) =
                timed(their_command(&sdk, folder.path(), modules, PARALLEL), parse_dotnet_totals)?;
            theirs.push(time);
            for times in [&mut first, &mut later] {
                let command = our_command(runtap, &runtime, folder.path(), home.path(), modules, PARALLEL);
                let (time, totals) = timed(command, parse_runtap_totals)?;
                if totals != expected {
                    bail!(
                        "{name}: total, failed, succeeded, skipped are {totals:?} here, {expected:?} there"
                    );
                }
                times.push(time);
            }
        }
        let (theirs, first, later) = (median(theirs), median(first), median(later));
        let ratio = |ours: Duration| ours.as_secs_f64() / theirs.as_secs_f64();
        worst = worst.max(ratio(first)).max(ratio(later));
        table.row(&[
            (*name).to_owned(),
            seconds(theirs),
            seconds(first),
            seconds(later),
            format!("{:.2}", ratio(first)),
            format!("{:.2}", ratio(later)),
        ]);
    }
    table.print(&format!("The same modules, {PARALLEL} at a time, same totals, medians of {RUNS} runs"));
    bar("never slower than dotnet test", worst <= TOLERANCE, &format!("{worst:.2}"));
    let [_, (_, six), _] = &subjects;
    split(runtap, &sdk, &runtime, folder.path(), six)
}

/// Modules of which some are much slower than the others, with a slot for each of them: splitting them ends the run
/// earlier.
fn split(runtap: &Path, sdk: &DotnetTest, runtime: &RealRuntime, folder: &Path, modules: &str) -> Result<()> {
    let home = tempfile::tempdir_in(folder)?;
    let ours = |options: &[&str]| {
        let mut command = our_command(runtap, runtime, folder, home.path(), modules, MANY);
        command.args(options);
        timed(command, parse_runtap_totals)
    };
    // This run records the durations.
    ours(&[])?;
    let (mut theirs, mut whole, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (time, expected) = timed(their_command(sdk, folder, modules, MANY), parse_dotnet_totals)?;
        theirs.push(time);
        for (options, times) in [(&[][..], &mut whole), (&["--split"][..], &mut parts)] {
            let (time, totals) = ours(options)?;
            if totals != expected {
                bail!(
                    "total, failed, succeeded, skipped are {totals:?} with {options:?}, {expected:?} there"
                );
            }
            times.push(time);
        }
    }
    let (theirs, whole, parts) = (median(theirs), median(whole), median(parts));
    let times = theirs.as_secs_f64() / parts.as_secs_f64();
    let mut table = Table::new(&["", "dotnet test", "runtap", "runtap --split", "dotnet test / split"]);
    table.row(&["six".to_owned(), seconds(theirs), seconds(whole), seconds(parts), format!("{times:.2}")]);
    table.print(&format!("The same six modules, {MANY} at a time"));
    bar("1.8 times as fast as dotnet test by splitting", times >= MIN_SPEEDUP, &format!("{times:.2}"));
    Ok(())
}

fn available() -> Result<(DotnetTest, RealRuntime, std::path::PathBuf, std::path::PathBuf), Skip> {
    let runtime = RealRuntime::available(10)?;
    Ok((DotnetTest::available()?, runtime, test_application("six")?, test_application("orchard-2.5.2")?))
}

fn their_command(sdk: &DotnetTest, folder: &Path, modules: &str, parallel: &str) -> Command {
    let mut command = sdk.command(folder, modules);
    command.args(["--max-parallel-test-modules", parallel, "--no-progress"]);
    command.env("DOTNET_ROLL_FORWARD", "Major");
    command
}

fn our_command(
    runtap: &Path,
    runtime: &RealRuntime,
    folder: &Path,
    home: &Path,
    modules: &str,
    parallel: &str,
) -> Command {
    let mut command = Command::new(runtap);
    command.args(["test", "--format", "json", "-j", parallel, "--test-modules", modules]);
    command.arg("--dotnet").arg(runtime.root().join("dotnet")).current_dir(folder);
    // The history of runs is stored below one of these directories.
    for name in ["HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
        command.env(name, home);
    }
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").env("DOTNET_ROLL_FORWARD", "Major");
    command
}

fn timed(mut command: Command, totals: fn(&str) -> Result<Totals>) -> Result<(Duration, Totals)> {
    command.stdin(Stdio::null());
    let since = Instant::now();
    let output = command.output()?;
    let took = since.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    let totals = totals(&text).with_context(|| format!("{command:?} said {text}"))?;
    Ok((took, totals))
}

/// Parses the summary at the end: `total: 27`, possibly followed by more text.
fn parse_dotnet_totals(text: &str) -> Result<Totals> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, value)) = line.trim().split_once(": ") {
            let number: String = value.chars().take_while(char::is_ascii_digit).collect();
            if let Ok(number) = number.parse() {
                found.insert(name, number);
            }
        }
    }
    let of = |name| found.get(name).copied().with_context(|| format!("no {name}"));
    Ok([of("total")?, of("failed")?, of("succeeded")?, of("skipped")?])
}

/// Parses the last line.
fn parse_runtap_totals(text: &str) -> Result<Totals> {
    let last: serde_json::Value = serde_json::from_str(text.lines().next_back().context("no line")?)?;
    let of =
        |name: &str| last.get(name).and_then(serde_json::Value::as_u64).with_context(|| format!("no {name}"));
    let failed = of("failed")? + of("error")? + of("timeout")? + of("cancelled")?;
    Ok([of("passed")? + of("skipped")? + failed, failed, of("passed")?, of("skipped")?])
}

fn link_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link_all(&entry.path(), &target)?;
        } else if fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
