//! One verdict: the exit code, what people read and every report agree, whatever was chosen and repeated.

use runtap_testkit::run;
use serde_json::Value;

use crate::harness::Test;
use crate::reports::Folder;

pub(crate) fn all() -> Vec<Test> {
    let tests: [(&str, fn()); 7] = [
        ("rows_of_one_test_are_counted_alike_everywhere", rows),
        ("a_test_that_is_skipped_after_a_failure_has_failed", skipped_again),
        ("a_chosen_test_without_a_result_is_an_error", chosen),
        ("a_list_that_is_not_complete_has_no_number_of_tests", listed),
        ("errors_beside_results_are_in_every_report", errors),
        ("an_application_without_tests_is_judged_with_the_run", no_tests),
        ("a_process_that_ends_by_no_single_test_is_an_error", unexplained),
    ];
    tests.map(|(name, test)| Test::new(format!("verdicts::{name}"), test)).into()
}

const ALL: [&str; 8] = [
    "--report",
    "junit=r.xml",
    "--report",
    "trx=r.trx",
    "--report",
    "ctrf=r.json",
    "--report",
    "jsonl=r.jsonl",
];

/// The numbers of a run: all tests, those that passed, those that failed.
fn readers_agree(
    folder: &Folder,
    applications: &[&std::path::Path],
    options: &[&str],
    expected: [u64; 3],
    code: i32,
) {
    let told = folder.run(applications, &[options, &ALL[..]].concat());
    let text = told.expect_code(code).text();
    let [all, passed, failed] = expected;
    let tests = if all == 1 { "test" } else { "tests" };
    assert!(text.contains(&format!(": {all} {tests}, {passed} passed")), "{options:?}: {text}");
    let end: Value = serde_json::from_str(folder.text("r.jsonl").lines().last().unwrap()).unwrap();
    assert_eq!(
        ["total", "passed", "failed"].map(|name| end[name].as_u64().unwrap()),
        expected,
        "{options:?}"
    );
    assert_eq!(end["exit_code"], code);
    // A run that failed by something else than a test has one failed test more in reports that know nothing else.
    let others = u64::from(code != 0 && failed == 0);
    let trx = folder.text("r.trx");
    let rows = all + others;
    let counters =
        format!("total=\"{rows}\" executed=\"{rows}\" passed=\"{passed}\" failed=\"{}\"", failed + others);
    assert!(trx.contains(&counters), "{options:?}: {trx}");
    assert_eq!(
        trx.matches(" outcome=\"Failed\" testListId").count() as u64,
        failed + others,
        "{options:?}: {trx}"
    );
    let outcome = if code == 0 { "Completed" } else { "Failed" };
    assert!(trx.contains(&format!("<ResultSummary outcome=\"{outcome}\">")), "{options:?}: {trx}");
    let junit = folder.text("r.xml");
    let head = format!("tests=\"{}\" failures=\"{failed}\" errors=\"{others}\"", all + others);
    assert!(junit.lines().any(|line| line.starts_with("<testsuites") && line.contains(&head)), "{junit}");
    let ctrf: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    assert_eq!(ctrf["results"]["summary"]["failed"], failed + others, "{options:?}");
}

fn rows() {
    let folder = Folder::new();
    // The first row always fails, whatever its neighbours do.
    let first = "handshake\nstart\nfail t1 name=\"row a\"\npass t1 name=\"row b\"\npass t1 name=\"row c\"\nend\nexit 2\n";
    let first = folder.application("first", first);
    // All rows have one name, and the second fails.
    let alike = "handshake\nstart\npass t1 name=row\nfail t1 name=row\npass t1 name=row\nend\nexit 2\n";
    let alike = folder.application("alike", alike);
    for application in [&first, &alike] {
        for retries in ["0", "1", "2"] {
            readers_agree(&folder, &[application], &["--retries", retries], [3, 2, 1], 2);
        }
    }
    let better = "handshake\nstart\npass t1 name=row\nif attempt 1\nfail t1 name=row\nelse\npass t1 name=row\nfi\nend\n\
        if attempt 1\nexit 2\nfi\n";
    let better = folder.application("better", better);
    readers_agree(&folder, &[&better], &["--retries", "1"], [2, 2, 0], 0);
}

fn skipped_again() {
    let folder = Folder::new();
    let script = "handshake\nstart\nif attempt 1\nfail t1\nelse\nskip t1 reason=moody\nfi\npass t2\nend\nif attempt 1\nexit 2\nfi\n";
    let application = folder.application("moody", script);
    for retries in ["1", "2"] {
        readers_agree(&folder, &[&application], &["--retries", retries], [2, 1, 1], 2);
        let junit = folder.text("r.xml");
        assert!(junit.contains("<failure ") && !junit.contains("<flaky"), "{junit}");
        let ctrf: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
        let test = &ctrf["results"]["tests"][0];
        assert_eq!((&test["status"], &test["flaky"]), (&"failed".into(), &false.into()));
        assert_eq!(test["retryAttempts"][0]["status"], "skipped");
        let events = folder.text("r.jsonl");
        let attempts = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let states: Vec<_> = attempts
            .filter(|event| event["type"] == "test-result" && event["uid"] == "t1")
            .map(|event| (event["state"].clone(), event["attempt"].clone()))
            .collect();
        assert_eq!(states, [("failed".into(), 1.into()), ("skipped".into(), 2.into())]);
    }
}

fn chosen() {
    let folder = Folder::new();
    let forgets = "handshake\nstart\nif discover\ndiscover t1\ndiscover t2\nelse\npass t1\nfi\nend\n";
    let forgets = folder.application("forgets", forgets);
    for options in [["--filter", "name ^= t"], ["--partition", "count:1/1"]] {
        readers_agree(&folder, &[&forgets], &options, [1, 1, 0], 1);
        assert!(folder.text("r.trx").contains("1 of 2 chosen tests has no result: t2"), "{options:?}");
    }
    // By ids that were given, no application is to blame.
    readers_agree(&folder, &[&forgets], &["--filter-uid", "t1", "t2"], [1, 1, 0], 1);
    assert!(folder.text("r.trx").contains("no result in any application: t2"));
}

fn unexplained() {
    let folder = Folder::new();
    // Both tests run at the same time, and only together they end their process.
    let together = "handshake\nstart\nif run\nbegin t1\nbegin t2\nif wants t1\nif wants t2\nkill SIGKILL\nfi\nfi\nfi\n\
        pass t1\npass t2\nend\n";
    let together = folder.application("together", together);
    for retries in ["0", "2"] {
        readers_agree(&folder, &[&together], &["--retries", retries], [2, 2, 0], 137);
        assert!(folder.text("r.trx").contains("while it ran t1, t2"));
    }
    // So does a single one that is running, only beside others, whether or not a row of it has a result.
    let beside = "handshake\nstart\nif run\nif wants t1\nif wants t2\nbegin t2\nkill SIGKILL\nfi\nfi\nfi\npass t1\npass t2\nend\n";
    let beside = folder.application("beside", beside);
    let rows = "handshake\nstart\npass t1 name=\"row a\"\nif run\nif wants t1\nif wants t2\nbegin t1 name=\"row b\"\n\
        kill SIGKILL\nfi\nfi\nfi\npass t1 name=\"row b\"\npass t2\nend\n";
    let rows = folder.application("rows", rows);
    for (application, all, running) in [(&beside, 2, "t2"), (&rows, 3, "row b")] {
        readers_agree(&folder, &[application], &[], [all, all, 0], 137);
        assert!(folder.text("r.trx").contains(&format!("while it ran {running}")));
    }
    // No test is running, and the others pass in another process.
    let between = "handshake\nstart\npass t1\nif run\nif wants t1\nkill SIGKILL\nfi\nfi\npass t2\nend\n";
    readers_agree(&folder, &[&folder.application("between", between)], &[], [2, 2, 0], 137);
    // No part of the tests can be run, and the search for the reason ends.
    let never =
        "handshake\nstart\nif discover\nrepeat 40\ndiscover t{n}\ndone\nelse\nkill SIGKILL\nfi\nend\n";
    let never = folder.application("never", never);
    readers_agree(&folder, &[&never], &[], [0, 0, 0], 137);
    assert!(folder.text("r.trx").contains("its process ends if these tests are run: "));
}

fn errors() {
    let folder = Folder::new();
    let script = "handshake\nstart\npass t1\nmessage \"TearDown failed\" level=2\nend\n";
    let application = folder.application("clean-up", script);
    let told = folder.run(&[&application], &[&ALL[..], &["--report", "junit10=s.xml"]].concat());
    let text = told.expect_code(0).text();
    assert!(text.contains("\npassed, but an application reported errors: 1 test, 1 passed"), "{text}");
    for report in ["r.xml", "s.xml"] {
        let junit = folder.text(report);
        assert!(junit.contains("<system-err>TearDown failed</system-err>"), "{junit}");
        assert!(junit.contains("tests=\"1\" failures=\"0\" errors=\"0\""), "{junit}");
    }
    for report in ["r.trx", "r.json"] {
        assert!(folder.text(report).contains("TearDown failed"), "{report}");
    }
    let mut command = folder.command(&[&application], &["--report", "github"]);
    command.env("GITHUB_STEP_SUMMARY", folder.path("summary.md"));
    run(command).expect_code(0);
    let summary = folder.text("summary.md");
    assert!(summary.contains(" reported errors\n\n<pre>TearDown failed</pre>"), "{summary}");
}

fn listed() {
    let folder = Folder::new();
    for (name, script, count) in [
        ("never", "kill SIGKILL\n", "tests unknown\n"),
        ("begun", "handshake\nstart\ndiscover t1\nkill SIGKILL\n", "1 test or more\n"),
        ("none", "handshake\nstart\nend\nexit 8\n", "0 tests\n"),
    ] {
        let told = folder.run(&[&folder.application(name, script)], &["--list-tests"]);
        assert!(told.text().contains(&format!("): {count}")), "{name}: {}", told.text());
    }
    let all = folder.application("all", "handshake\nstart\ndiscover t1\nend\n");
    folder.run(&[&all], &["--list-tests", "--filter", "name = nothing"]).expect_code(0);
}

fn no_tests() {
    let folder = Folder::new();
    let none = folder.application("a-none", "handshake\nstart\nend\nexit 8\n");
    let some = folder.application("b-some", "handshake\nstart\npass t1\nend\n");
    readers_agree(&folder, &[&none, &some], &[], [1, 1, 0], 0);
    readers_agree(&folder, &[&none], &[], [0, 0, 0], 8);
    readers_agree(&folder, &[&none], &["--minimum-expected-tests", "0"], [0, 0, 0], 8);
    readers_agree(&folder, &[&none], &["--no-tests", "pass"], [0, 0, 0], 0);
    readers_agree(&folder, &[&none], &["--no-tests", "warn"], [0, 0, 0], 0);
    readers_agree(&folder, &[&none], &["--ignore-exit-code", "2;8"], [0, 0, 0], 0);
}
