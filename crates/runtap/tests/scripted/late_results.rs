//! Tests that time out, and what their processes report about them afterwards.

use crate::harness::Test;
use crate::reports::Folder;
use crate::verdicts::readers_agree;

const TIMEOUT: [&str; 4] = ["--timeout-per-test", "1s", "--grace", "10s"];

pub(crate) fn all() -> Vec<Test> {
    let tests: [(&str, fn()); 3] = [
        ("attempts_of_a_process_after_a_time_out_are_parts_of_it", attempts),
        ("rows_of_a_folded_test_are_parts_of_its_time_out", folded),
        ("a_test_in_its_second_attempt_beside_a_time_out_is_run_again", beside),
    ];
    tests.map(|(name, test)| Test::new(format!("late_results::{name}"), test)).into()
}

/// Returns an application with one test, which ends late in the first process and passes in later ones.
fn late(name: &str, late: &str, later: &str) -> String {
    format!(
        "handshake\ncontrol\nignore sigint\nstart\nif discover\ndiscover t name={name}\nelse\nbegin t name={name}\n\
         if attempt 1\nawait cancel\n{late}\nelse\n{later}\nfi\nfi\nend\nif run\nif attempt 1\nexit 2\nfi\nfi\n"
    )
}

fn attempts() {
    let folder = Folder::new();
    for (index, results) in [
        "fail t try=1\npass t try=2",
        "pass t try=2\nfail t try=1 superseded",
        "fail t try=1 superseded\nbegin t\nfail t try=2",
        "fail t try=1 superseded\nbegin t\npass t try=2",
        "cancelled t try=1 superseded\nbegin t\ncancelled t try=2 superseded\nbegin t\ncancelled t try=3",
    ]
    .into_iter()
    .enumerate()
    {
        let application = folder.application(&format!("late-{index}"), &late("t", results, "pass t"));
        let told = folder.run(&[&application], &TIMEOUT);
        assert!(told.expect_code(2).text().contains(": 1 test, 0 passed, 1 timed out"), "{results}: {told}");
        let retried = [&TIMEOUT[..], &["--retries", "1"]].concat();
        readers_agree(&folder, &[&application], &retried, [1, 1, 0], 0);
    }
}

/// `MSTest` starts a folded test under the name of its method, and reports its rows under other names.
fn folded() {
    let folder = Folder::new();
    let rows = "pass t name=\"T (1)\"\ncancelled t name=\"T (2)\"";
    let application =
        folder.application("folded", &late("T", rows, "pass t name=\"T (1)\"\npass t name=\"T (2)\""));
    let told = folder.run(&[&application], &TIMEOUT);
    assert!(told.expect_code(2).text().contains(": 1 test, 0 passed, 1 timed out"), "{told}");
    let retried = [&TIMEOUT[..], &["--retries", "1"]].concat();
    readers_agree(&folder, &[&application], &retried, [2, 2, 0], 0);
}

fn beside() {
    let folder = Folder::new();
    let application = "handshake\ncontrol\nstart\nif discover\ndiscover a\ndiscover b\nelse\nif wants a\nbegin a\n\
        sleep 600ms\nfail b try=1 superseded\nbegin b\nawait cancel\ncancelled a\ncancelled b try=2\nelse\n\
        fail b try=1 superseded\nbegin b\npass b try=2\nfi\nfi\nend\nif run\nexit 0\nfi\n";
    let application = folder.application("beside", application);
    let told = folder.run(&[&application], &[&TIMEOUT[..], &["--quarantine", "name = a"]].concat());
    assert!(told.expect_code(0).text().contains(": 2 tests, 1 passed"), "{told}");
}
