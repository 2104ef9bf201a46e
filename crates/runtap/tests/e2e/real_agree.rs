//! All outputs of a run of tests agree: text, JSON, every kind of report, and the exit code. For all applications with
//! known outcomes and some that caused problems before, complete and in parts, with and without retries.
//!
//! The daily tests cover each kind of difference once; `cargo xtask sweep tests` runs all combinations, in a part for
//! each number of retries, without a time limit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_testkit::{REPORTED, RealRuntime, Running, Skip, reported_application, test_application};
use serde_json::Value;

use crate::common::command;

/// Selections of tests. The last one runs after another run in the same place.
const SELECTIONS: [&[&str]; 5] = [
    &[],
    &["--filter", "name ~ '[aeiou]'"],
    &["--partition", "count:1/2"],
    &["--partition", "count:2/2"],
    &["--rerun"],
];
const RETRIES: [&str; 3] = ["0", "1", "2"];

/// The search for ids that terminate an adapter starts many processes, each once per attempt.
const TIME_LIMIT: Duration = Duration::from_mins(15);
/// There is no earlier run to repeat.
const USAGE: i32 = 5;

/// The application: an assembly, its arguments, and variables.
struct Application {
    assembly: PathBuf,
    arguments: &'static [&'static str],
    crash: &'static str,
}

fn applications() -> Result<Vec<Application>, Skip> {
    let mut all = Vec::new();
    let orchard = test_application("orchard-2.5.2")?.join("orchard.dll");
    let suites: [&[&str]; 6] = [
        &["--suite", "core"],
        &["--suite", "odd"],
        &["--suite", "dups"],
        &["--suite", "flaky:1"],
        &["--suite", "flaky:2"],
        &["--suite", "fast:0"],
    ];
    for arguments in suites {
        all.push(Application { assembly: orchard.clone(), arguments, crash: "" });
    }
    for name in ["library-mstest-4.5.2", "library-nunit-5.0.0", "library-xunit-3.2.2"] {
        let (library, _) = name.rsplit_once('-').expect("a version");
        let assembly = test_application(name)?.join(library).with_extension("dll");
        all.push(Application { assembly, arguments: &[], crash: "" });
    }
    for name in REPORTED {
        let assembly = reported_application(name)?;
        let crashes: &[&str] = if name.ends_with("crash") { &["exit", "exit0", "kill"] } else { &[] };
        for crash in [""].iter().chain(crashes) {
            all.push(Application { assembly: assembly.clone(), arguments: &[], crash });
        }
    }
    Ok(all)
}

/// Makes a run in this place and returns its exit code, and the disagreements between its outputs.
fn disagreements(
    place: &Path,
    runtime: &RealRuntime,
    application: &Application,
    options: &[&str],
) -> Result<(), String> {
    let mut command = command(["test"]);
    command.arg(&application.assembly).arg("--dotnet").arg(runtime.root().join("dotnet")).args(options);
    for report in ["junit=r.xml", "trx=r.trx", "ctrf=r.json", "html=r.html", "jsonl=r.jsonl"] {
        command.args(["--report", report]);
    }
    if !application.arguments.is_empty() {
        command.arg("--").args(application.arguments);
    }
    command.env("CRASH", application.crash).env("MARK", place.join("mark"));
    command.env("XDG_STATE_HOME", place).current_dir(place);
    let text = |name: &str| fs::read_to_string(place.join(name)).map_err(|error| format!("{name}: {error}"));
    let reports = ["r.xml", "r.trx", "r.json", "r.html", "r.jsonl"];
    let before = reports.map(text);
    let told = Running::start(command).wait_within(TIME_LIMIT);
    let code = told.code().ok_or("it was killed")?;
    if options.contains(&"--rerun") && (code == USAGE || told.stderr.contains("nothing to run again")) {
        // Nothing was run: the reports are still those of the previous run.
        return if reports.map(text) == before { Ok(()) } else { Err("an older report is gone".to_owned()) };
    }
    let lines = text("r.jsonl")?;
    let end: Value =
        serde_json::from_str(lines.lines().last().ok_or("no line of JSON")?).map_err(|e| e.to_string())?;
    let counted = Totals::of_totals(&end);
    let mut wrong = Vec::new();
    let mut same = |who: &str, theirs: String, ours: String| {
        if theirs != ours {
            wrong.push(format!("{who}: {theirs}, not {ours}"));
        }
    };
    same("exit code in JSON", end["exit_code"].to_string(), code.to_string());
    same("lines of JSON", Totals::of_lines(&lines).show(), counted.show());
    same("the person", totals_for_people(told.text()), counted.for_people());
    // A problem other than a failed test is one more error in reports that have only tests.
    let other = u64::from(code != 0 && counted.bad() == 0);
    let junit = text("r.xml")?;
    let failures = junit.matches("<failure").count() as u64;
    let errors = junit.matches("<error").count() as u64;
    let head = junit.lines().find(|line| line.starts_with("<testsuites")).unwrap_or_default();
    let numbers = ["tests", "failures", "errors", "skipped"].map(|name| attribute(head, name));
    let elements = [
        junit.matches("<testcase").count() as u64,
        failures,
        errors,
        junit.matches("<skipped").count() as u64,
    ];
    same("JUnit's own sums", format!("{numbers:?}"), format!("{elements:?}"));
    let more = elements[0].saturating_sub(counted.total);
    let expected = [counted.total + more, counted.bad() + more, counted.skipped];
    same("JUnit", format!("{:?}", [elements[0], failures + errors, elements[3]]), format!("{expected:?}"));
    if other > more || (code == 0 && more > 0) {
        same("JUnit's errors of the run", more.to_string(), other.to_string());
    }
    let trx = text("r.trx")?;
    let counters = trx.lines().find(|line| line.contains("<Counters")).unwrap_or_default();
    let sum = attribute(counters, "failed") + attribute(counters, "error") + attribute(counters, "timeout");
    // Problems other than tests: one row for each such application, or for the run.
    let modules = end["modules"].as_array().map_or(&[][..], Vec::as_slice);
    let broken = modules.iter().filter(|module| !module["error_message"].is_null()).count() as u64;
    same("what JUnit adds", more.to_string(), if broken > 0 { broken } else { other }.to_string());
    let expected = [counted.total + more, counted.passed, counted.bad() + more, counted.skipped];
    let numbers = [
        attribute(counters, "total"),
        attribute(counters, "passed"),
        sum,
        attribute(counters, "notExecuted"),
    ];
    same("TRX", format!("{numbers:?}"), format!("{expected:?}"));
    let outcome = |outcome: &str| {
        let rows = trx.split("<UnitTestResult ").skip(1);
        rows.filter(|row| row.split('>').next().is_some_and(|row| row.contains(outcome))).count() as u64
    };
    let rows = ["outcome=\"Passed\"", "outcome=\"Failed\"", "outcome=\"NotExecuted\""].map(outcome);
    same("rows of TRX", format!("{rows:?}"), format!("{:?}", &expected[1..]));
    let summary = if trx.contains("<ResultSummary outcome=\"Failed\">") { "failed" } else { "fine" };
    same("TRX as a whole", summary.into(), if code == 0 { "fine" } else { "failed" }.into());
    let ctrf: Value = serde_json::from_str(&text("r.json")?).map_err(|error| error.to_string())?;
    let summary = &ctrf["results"]["summary"];
    let number = |name: &str| summary[name].as_u64().unwrap_or(u64::MAX);
    let expected = [counted.passed, counted.bad() + more, counted.skipped];
    same("CTRF", format!("{:?}", ["passed", "failed", "skipped"].map(number)), format!("{expected:?}"));
    let listed = ctrf["results"]["tests"].as_array().map_or(0, Vec::len) as u64;
    same("tests of CTRF", listed.to_string(), number("tests").to_string());
    let html = text("r.html")?;
    let head =
        html.split("id=\"head\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap_or("{}");
    let head: Value = serde_json::from_str(head).map_err(|error| error.to_string())?;
    same("the page", Totals::of_totals(&head["totals"]).show(), counted.show());
    same("the page's exit code", head["exit_code"].to_string(), code.to_string());
    // The exit code alone shows whether everything succeeded.
    same("fine", (code == 0).to_string(), (counted.bad() == 0 && code == 0).to_string());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// The numbers of a run.
#[derive(Default)]
struct Totals {
    total: u64,
    passed: u64,
    skipped: u64,
    failed: u64,
    error: u64,
    timeout: u64,
    cancelled: u64,
}

impl Totals {
    fn of_totals(value: &Value) -> Self {
        let of = |name: &str| value[name].as_u64().unwrap_or(u64::MAX);
        Self {
            total: of("total"),
            passed: of("passed"),
            skipped: of("skipped"),
            failed: of("failed"),
            error: of("error"),
            timeout: of("timeout"),
            cancelled: of("cancelled"),
        }
    }

    /// Counts the last result of each row of each test; rows of one test are distinguished by name, then by order.
    fn of_lines(lines: &str) -> Self {
        let mut tests: BTreeMap<(String, String), Vec<Row>> = BTreeMap::new();
        for line in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line["type"] != "test-result" {
                continue;
            }
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let row = Row {
                name: text("name"),
                state: text("state"),
                attempt: line["attempt"].as_u64().unwrap_or(0),
            };
            let rows = tests.entry((text("module"), text("uid"))).or_default();
            let by_name = rows.iter().position(|old| old.name == row.name && old.attempt < row.attempt);
            match by_name.or_else(|| rows.iter().position(|old| old.attempt + 1 == row.attempt)) {
                Some(old) => rows[old] = row,
                None => rows.push(row),
            }
        }
        let mut counted = Self::default();
        for rows in tests.values_mut() {
            // A row that failed and is missing in a passed attempt belongs to an earlier attempt.
            let last = rows.iter().map(|row| row.attempt).max().unwrap_or(0);
            if rows.iter().all(|row| row.attempt < last || row.state == "passed") {
                rows.retain(|row| row.attempt == last || row.state == "passed");
            }
        }
        for row in tests.values().flatten() {
            counted.total += 1;
            match row.state.as_str() {
                "passed" => counted.passed += 1,
                "skipped" => counted.skipped += 1,
                "failed" => counted.failed += 1,
                "error" => counted.error += 1,
                "timeout" => counted.timeout += 1,
                "cancelled" => counted.cancelled += 1,
                other => panic!("a state that is none: {other}"),
            }
        }
        counted
    }

    fn bad(&self) -> u64 {
        self.failed + self.error + self.timeout + self.cancelled
    }

    fn show(&self) -> String {
        format!("{} tests, {} passed, {} bad, {} skipped", self.total, self.passed, self.bad(), self.skipped)
    }

    /// Formats the numbers as in the last lines of the text output: zeros are omitted, except for passed tests.
    fn for_people(&self) -> String {
        let tests = if self.total == 1 { "test" } else { "tests" };
        let parts = [
            (self.failed, "failed"),
            (self.error, "error"),
            (self.timeout, "timed out"),
            (self.cancelled, "cancelled"),
            (self.skipped, "skipped"),
        ];
        let mut all = vec![format!("{} {tests}", self.total), format!("{} passed", self.passed)];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        all.extend(parts.map(|(count, what)| format!("{count} {what}")));
        all.join(", ")
    }
}

struct Row {
    name: String,
    state: String,
    attempt: u64,
}

/// Returns the totals in the text output.
fn totals_for_people(text: &str) -> String {
    let sum = text.lines().rev().find(|line| line.contains(" passed") && line.contains(": "));
    let sum = sum.and_then(|line| line.split_once(": ")).map_or(text, |(_, sum)| sum);
    // Times and repetitions are irrelevant here.
    let parts = sum.split(", ").filter(|part| !part.contains("flaky") && !part.contains("retried"));
    let parts: Vec<&str> = parts.map(|part| part.split(" (").next().unwrap_or(part)).collect();
    parts.join(", ")
}

fn attribute(tag: &str, name: &str) -> u64 {
    let value = tag.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|value| value.parse().ok()).unwrap_or(u64::MAX)
}

/// The part of all combinations that CI runs: each kind of difference that outputs had once. An application by its name
/// and arguments, the index in [`CHOSEN`], and a number of retries.
const SAMPLE: [(&str, usize, &str); 13] = [
    // All states; unusual names; rows that share an id, selected by a partition; repeated by retries and by `--rerun`.
    ("orchard --suite core", 0, "1"),
    ("orchard --suite odd", 0, "0"),
    ("orchard --suite dups", 2, "2"),
    ("orchard --suite flaky:1", 0, "1"),
    ("orchard --suite flaky:2", 4, "1"),
    // No tests at all, and none in a part.
    ("orchard --suite fast:0", 0, "0"),
    ("mzero", 3, "1"),
    // Rows with one id in real adapters, and tests that are not found by their ids.
    ("mfold", 0, "1"),
    ("xdup", 0, "2"),
    ("nback2", 1, "0"),
    ("library-nunit", 1, "1"),
    // A process that exits during a test, alone and beside others.
    ("mcrash exit", 0, "0"),
    ("xpar", 0, "0"),
];

impl Application {
    fn name(&self) -> String {
        let name = self.assembly.file_stem().unwrap_or_default().to_string_lossy();
        let words = [name.as_ref()].into_iter().chain(self.arguments.iter().copied());
        words.chain((!self.crash.is_empty()).then_some(self.crash)).collect::<Vec<_>>().join(" ")
    }
}

#[expect(clippy::print_stderr, reason = "a sweep is watched by people")]
fn show(text: &str) {
    eprintln!("{text}");
}

/// Compares the wanted combinations of application, selection and number of retries.
fn compare(wanted: impl Fn(&str, usize, &str) -> bool) -> Result<usize, Skip> {
    let runtime = RealRuntime::available(10)?;
    let (mut runs, mut wrong) = (0, Vec::new());
    for application in applications()? {
        let place = tempfile::tempdir().expect("a directory");
        let name = application.name();
        for (chosen, options) in SELECTIONS.iter().enumerate() {
            for count in RETRIES.into_iter().filter(|count| wanted(&name, chosen, count)) {
                if options == &["--rerun"] {
                    // The run to be repeated.
                    let _ = disagreements(place.path(), &runtime, &application, &[]);
                }
                let options = [*options, &["--retries", count]].concat();
                runs += 1;
                let said = disagreements(place.path(), &runtime, &application, &options);
                let said = said.err().map(|text| format!("{name} {options:?}: {text}"));
                // A sweep takes long, so intermediate results are shown.
                show(&format!("{runs}: {}", said.as_deref().unwrap_or(&name)));
                wrong.extend(said);
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong.join("\n"));
    Ok(runs)
}

#[test]
fn all_readers_of_a_run_read_the_same() {
    let is_sampled = |name: &str, chosen, retries: &str| SAMPLE.contains(&(name, chosen, retries));
    match compare(is_sampled) {
        Ok(runs) => assert_eq!(runs, SAMPLE.len(), "a sample names no application"),
        Err(skip) => skip.report(),
    }
}

/// Compares every combination with this number of retries.
fn compare_all(retries: &str) {
    let runs = compare(|_, _, count| count == retries).unwrap_or_else(|skip| panic!("{skip:?}"));
    show(&format!("{runs} runs with {retries} retries: all readers agree"));
}

#[test]
#[ignore = "every combination: cargo xtask sweep tests"]
fn all_readers_of_every_run_without_retries_read_the_same() {
    compare_all("0");
}

#[test]
#[ignore = "every combination: cargo xtask sweep tests"]
fn all_readers_of_every_run_with_one_retry_read_the_same() {
    compare_all("1");
}

#[test]
#[ignore = "every combination: cargo xtask sweep tests"]
fn all_readers_of_every_run_with_two_retries_read_the_same() {
    compare_all("2");
}
