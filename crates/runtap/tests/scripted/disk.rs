//! Full disks: a report that can't be written affects neither the others nor the run.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use runtap_testkit::{Finished, Running, run};
use serde_json::Value;

use crate::harness::Test;
use crate::reports::Folder;

pub(crate) fn all() -> Vec<Test> {
    let tests: [(&str, fn()); 5] = [
        ("a_report_of_events_that_fails_ends_nothing_else", events_fail),
        ("a_report_that_fails_at_the_end_is_named", report_fails),
        ("standard_output_that_fails_costs_no_report", output_fails),
        ("a_summary_has_the_exit_code_of_the_process", summary_code),
        ("results_that_can_not_be_kept_end_no_run", results_fail),
    ];
    tests.map(|(name, test)| Test::new(format!("disk::{name}"), test)).into()
}

const FULL: &str = "No space left on device";

/// Returns an application that passes, and one that fails, each with the exit code of a run whose report fails.
fn applications(folder: &Folder) -> [(PathBuf, i32); 2] {
    let passes = folder.application("passes", "handshake\nstart\npass t1\npass t2\nend\n");
    let fails = folder.application("fails", "handshake\nstart\npass t1\nfail t2\nend\nexit 2\n");
    [(passes, 1), (fails, 2)]
}

/// Checks that the text is printed exactly once.
fn says_once(told: &Finished, text: &str) {
    assert_eq!(told.stderr.matches(text).count(), 1, "{text:?} in {told}");
}

fn events_fail() {
    let folder = Folder::new();
    for (application, code) in applications(&folder) {
        let reports = ["--report", "jsonl=/dev/full", "--report", "junit=r.xml", "--report", "jsonl=r.jsonl"];
        let told = folder.run(&[&application], &reports);
        told.expect_code(code);
        says_once(&told, &format!("cannot write the jsonl report /dev/full any further: {FULL}"));
        assert!(told.text().contains(": 2 tests"), "{told}");
        assert!(told.text().contains(&format!("exit code {code}\n")), "{told}");
        assert!(folder.text("r.xml").contains("<testsuites name=\"runtap\" tests=\"2\""));
        let last: Value = serde_json::from_str(folder.text("r.jsonl").lines().last().unwrap()).unwrap();
        assert_eq!((&last["type"], &last["exit_code"]), (&"run-end".into(), &code.into()));
    }
}

fn report_fails() {
    let folder = Folder::new();
    for (application, code) in applications(&folder) {
        let told = folder.run(&[&application], &["--report", "junit=/dev/full", "--report", "trx=r.trx"]);
        told.expect_code(code);
        says_once(&told, &format!("cannot write the junit report /dev/full: {FULL}"));
        assert_eq!(told.text().contains("exit code"), code == 2, "{told}");
        assert!(!told.text().contains("exit code 1"), "{told}");
        assert!(folder.text("r.trx").contains("<TestRun"));
    }
}

fn output_fails() {
    let folder = Folder::new();
    for (application, code) in applications(&folder) {
        let mut command = folder.command(&[&application], &["--report", "junit=r.xml"]);
        command.stdout(File::options().write(true).open("/dev/full").unwrap());
        let told = Running::start_as_it_is(command).wait();
        told.expect_code(code);
        says_once(&told, FULL);
        assert!(folder.text("r.xml").contains("<testsuites"));
    }
}

fn summary_code() {
    let folder = Folder::new();
    for (application, code) in applications(&folder) {
        let options = ["--format", "json", "--summary", "--report", "junit=/dev/full"];
        let told = folder.run(&[&application], &options);
        let summary = told.expect_code(code).json();
        assert_eq!((&summary["exit_code"], &summary["total"]), (&code.into(), &2.into()), "{summary}");
    }
}

fn results_fail() {
    let folder = Folder::new();
    let long = "x".repeat(3000);
    let tests: Vec<_> = (0..40).map(|number| format!("pass t{number} stdout={long}")).collect();
    let scenario = format!("handshake\nstart\n{}\nfail f\nend\nexit 2\n", tests.join("\n"));
    let prints = folder.application("prints", &scenario);
    let reports = ["--report", "jsonl=-", "--report", "junit=r.xml"];
    let wanted = folder.command(&[&prints], &reports);
    // Files are limited to 32 KiB; standard output is a pipe.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"]).arg(wanted.get_program());
    command.args(wanted.get_args()).current_dir(wanted.get_current_dir().unwrap());
    let told = run(command);
    told.expect_code(2).says("failed: 41 tests, 40 passed, 1 failed").says("exit code 2");
    says_once(&told, "cannot keep results in");
    says_once(&told, "File too large");
    says_once(&told, "/r.xml: results of the run are lost");
    let events: Vec<Value> = told.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.iter().filter(|event| event["type"] == "test-result").count(), 41);
    let last = events.last().unwrap();
    assert_eq!((&last["passed"], &last["failed"], &last["exit_code"]), (&40.into(), &1.into(), &2.into()));
}
