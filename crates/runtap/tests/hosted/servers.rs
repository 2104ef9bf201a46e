//! The runners of the applications, the real `dotnet test` and `runtap test`, and their totals.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use runtap_mtp_host::harness::Outcome;
use runtap_testkit::{DotnetTest, Finished, RealRuntime, Skip, run};
use serde_json::Value;

/// Total, failed, succeeded, skipped, as `dotnet test` counts: every test that did not pass has failed.
pub(crate) type Sums = [u64; 4];

/// Converts the result of a test that may be unable to run here.
pub(crate) fn or_skip(test: impl FnOnce() -> Result<(), Skip>) -> Outcome {
    match test() {
        Ok(()) => Outcome::Passed,
        Err(skip) => {
            skip.report();
            Outcome::Skipped(skip.to_string())
        }
    }
}

/// Returns `runtap` with these arguments.
pub(crate) fn runtap<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runtap"));
    command.args(arguments);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR")).env("RUST_BACKTRACE", "0");
    command
}

/// Puts files of tests into the folder, which is removed with them; go's compiled packages are kept.
pub(crate) fn with_own_places(command: &mut Command, folder: &Path) {
    let temporary = folder.join("tmp");
    std::fs::create_dir_all(&temporary).expect("a folder within");
    command.env("TMPDIR", temporary).env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"));
}

/// Returns the real server in `folder`, with modules of it.
pub(crate) fn dotnet_test(folder: &Path, modules: &str, options: &[&str]) -> Result<Command, Skip> {
    let mut command = DotnetTest::available()?.command(folder, modules);
    with_own_places(&mut command, folder);
    command.args(["--no-progress", "--no-ansi"]).args(options).env("RUST_BACKTRACE", "0");
    // Sets the width of lines without a terminal: 80 columns.
    command.env("TERM", "dumb");
    // Modules that wrap cargo, go or node need files in the user's home directory.
    for (name, value) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        if let Some(home) = std::env::var_os("HOME").filter(|_| std::env::var_os(name).is_none()) {
            command.env(name, Path::new(&home).join(value));
        }
    }
    Ok(command)
}

/// Returns the totals of the real server.
#[track_caller]
pub(crate) fn sums(told: &Finished) -> Sums {
    let text = told.text();
    let of = |word: &str| -> u64 {
        let line = text.lines().rev().find_map(|line| line.trim().strip_prefix(word));
        let line = line.unwrap_or_else(|| panic!("{told}"));
        line.trim()
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("{told}"))
    };
    [of("total:"), of("failed:"), of("succeeded:"), of("skipped:")]
}

/// Returns the totals of `runtap test` for modules, and its exit code.
#[track_caller]
pub(crate) fn our_sums(
    folder: &Path,
    modules: &[&Path],
    options: &[&str],
) -> Result<(Sums, Option<i32>), Skip> {
    let runtime = RealRuntime::available(10)?;
    let mut command = runtap(["test", "--format", "json", "--summary", "--no-history", "--dotnet"]);
    command.arg(runtime.root().join("dotnet")).args(modules).args(options).current_dir(folder);
    with_own_places(&mut command, folder);
    let told = run(command);
    let document: Value = told.json();
    let of = |name: &str| document[name].as_u64().unwrap_or_else(|| panic!("{told}"));
    let failed = ["failed", "error", "timeout", "cancelled"].map(of).iter().sum();
    Ok(([of("total"), failed, of("passed"), of("skipped")], told.code()))
}

/// Returns the text without parts that differ between runs: times, the folder.
pub(crate) fn masked(told: &Finished, folder: &Path) -> String {
    let text = told.text().replace(folder.to_str().expect("the path is UTF-8"), "FOLDER");
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.contains("workload")) {
        let line = match line.trim_start().strip_prefix("duration: ") {
            Some(_) => "  duration: TIME".to_owned(),
            None => without_time(line),
        };
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Replaces `(12ms)` and `(1s 229ms)` by `(TIME)`.
fn without_time(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('(') {
        out.push_str(before);
        let (inner, end) = after.split_once(')').unwrap_or((after, ""));
        let is_time = inner.ends_with('s') && inner.starts_with(|c: char| c.is_ascii_digit());
        out.extend(["(", if is_time { "TIME" } else { inner }, ")"]);
        rest = end;
    }
    out.push_str(rest);
    out
}

/// Sorts results by name, since timing determines which of them share a message, successes first. Removes process ids.
pub(crate) fn in_order(text: &str) -> String {
    let mut out = String::new();
    let mut results: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = without_pid(without_pid(line.to_owned(), "runtap-harness-", "."), "' (", ") panicked");
        // Rust before 1.91 does not print it.
        let line = line.replace("' (PID) panicked", "' panicked");
        if ["passed ", "failed ", "skipped "].iter().any(|word| line.starts_with(word)) {
            results.push(String::new());
        } else if line.starts_with("FOLDER/") {
            results.sort_unstable();
            out.extend(results.drain(..));
        }
        let to = results.last_mut().unwrap_or(&mut out);
        to.extend([&line, "\n"]);
    }
    out
}

/// Replaces a number between these texts by `PID`.
fn without_pid(line: String, before: &str, after: &str) -> String {
    let number =
        line.split_once(before).and_then(|(_, rest)| rest.split_once(after)).map(|(number, _)| number);
    match number {
        Some(number) if !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) => {
            line.replace(&format!("{before}{number}{after}"), &format!("{before}PID{after}"))
        }
        _ => line,
    }
}
