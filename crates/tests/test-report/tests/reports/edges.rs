//! Empty runs, very long texts, many tests, and limits.

use crate::{run, written};
use runtap_test_report::{
    Attempt, Exception, Format, Memory, Module, Source as _, TestOutcome, TestResult, github, html,
};

fn failed(uid: usize, message: &str) -> TestResult {
    let exceptions = vec![Exception { message: message.to_owned(), ..Exception::default() }];
    let last = Attempt { state: TestOutcome::Failed, exceptions, ..Attempt::default() };
    TestResult { uid: uid.to_string(), name: format!("Test{uid}"), last, ..TestResult::default() }
}

fn with(results: Vec<TestResult>) -> Memory {
    Memory::new(run::sample().run().clone(), [(Module::new("/bin/a.dll"), results)])
}

#[test]
fn a_run_without_modules_is_a_report() {
    let none = Memory::new(run::sample().run().clone(), []);
    for format in Format::ALL {
        assert!(!written(format, &none).is_empty());
        assert_eq!(Format::from_name(format.name()), Some(format));
    }
    assert!(
        written(Format::Junit, &none).contains("tests=\"1\" failures=\"0\" errors=\"1\""),
        "its exit code is 2"
    );
    assert!(written(Format::Html, &none).contains("test run ended with 2"));
    assert_eq!(Format::from_name("pdf"), None);
}

#[test]
fn long_names_stay_whole_in_files_and_are_cut_for_github() {
    let name = "ä".repeat(5000);
    let mut result = failed(1, "no");
    result.name.clone_from(&name);
    let run = with(vec![result]);
    for format in Format::ALL {
        assert!(written(format, &run).contains(&name), "{}", format.name());
    }
    let mut lines = Vec::new();
    github::annotations(&run, &mut lines, &github::Options::new("/")).unwrap();
    assert_eq!(
        String::from_utf8(lines).unwrap().lines().next().unwrap().len(),
        "::error title=::no".len() + 249
    );
}

#[test]
fn a_summary_has_at_most_the_bytes_that_github_takes_and_says_what_is_missing() {
    let long = "<&>".repeat(4000);
    let run = with((0..300).map(|uid| failed(uid, &long)).collect());
    let mut summary = Vec::new();
    github::summary(&run, &mut summary).unwrap();
    assert!(summary.len() <= github::MAX_BYTES && summary.len() > github::MAX_BYTES / 2, "{}", summary.len());
    let summary = String::from_utf8(summary).unwrap();
    let shown = summary.matches("<details><summary><code>Test").count();
    assert!(summary.contains(&format!("… and {} more.", 300 - shown)), "{shown}");
    assert!(summary.contains("Slowest tests"), "the sections after them are there");
}

#[test]
fn the_page_keeps_to_its_budget_and_failures_come_first() {
    let mut passed = failed(1, "");
    passed.last = Attempt { stdout: "p".repeat(600), ..Attempt::default() };
    let run = with(vec![passed.clone(), failed(2, &"f".repeat(600)), passed]);
    let options = html::Options { passed: 500, failed: 1000, total: 1000 };
    let mut page = Vec::new();
    html::write(&run, &mut page, &options).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains(&"f".repeat(600)));
    // 400 of 1000 are left, for one test.
    let kept = format!("\"o\":\"{}\\n[200 more bytes are not in this page]\"", "p".repeat(400));
    assert_eq!(page.matches(&kept).count(), 1);
    assert!(page.contains("\"o\":\"\\n[600 more bytes are not in this page]\""));
}

#[test]
fn ids_are_those_of_the_last_run_and_no_two_results_have_the_same() {
    let run = run::sample();
    let (first, second) = (written(Format::Trx, &run), written(Format::Trx, &run));
    assert_eq!(first, second);
    let values = |name: &str| -> Vec<&str> {
        let parts = first.split("<UnitTestResult ").skip(1);
        parts
            .map(|part| part.split_once(&format!("{name}=\"")).unwrap().1.split('"').next().unwrap())
            .collect()
    };
    let mut executions = values("executionId");
    let mut tests = values("testId");
    executions.sort_unstable();
    tests.sort_unstable();
    tests.dedup();
    let count = executions.len();
    executions.dedup();
    assert_eq!((count, executions.len(), tests.len()), (16, 16, 15), "the two rows are one test");
    assert_eq!(first.matches("<UnitTest ").count(), 15);
}

#[test]
fn a_result_that_is_not_there_is_an_error() {
    let error = run::sample().result(0, 99).unwrap_err();
    assert_eq!(error.to_string(), "there is no result 99 of module 0");
    assert_eq!(run::sample().count(7), 0);
}
