//! Applications that can't list their tests: their output is shown.

use crate::harness::Test;
use crate::reports::Folder;

pub(crate) fn all() -> Vec<Test> {
    let tests: [(&str, fn()); 3] = [
        ("a_list_that_fails_shows_what_was_printed", printed),
        ("a_list_of_the_rest_that_fails_shows_what_was_printed", rest),
        ("the_only_test_is_named_if_it_ends_its_process_before_it_begins", only_test),
    ];
    tests.map(|(name, test)| Test::new(format!("listing::{name}"), test)).into()
}

const REASON: &str = "UTA007: the method has a wrong signature";

fn printed() {
    let folder = Folder::new();
    let dies = |scenario: &str| format!("stdout \"a banner\\n\"\nstderr \"{REASON}\\n\"\n{scenario}\n");
    let ways = [
        ("at-once", dies("handshake\nstart\nkill SIGABRT"), "crashed (exit code 134, SIGABRT)", 134),
        (
            "later",
            dies("handshake\nstart\ndiscover t1\nkill SIGSEGV"),
            "crashed (exit code 139, SIGSEGV)",
            139,
        ),
        ("code", dies("handshake\nexit 10"), "exited with 10: its test framework could not", 10),
    ];
    for (name, scenario, how, code) in ways {
        let application = folder.application(name, &scenario);
        let filters = [["--filter", "class = A"], ["--partition", "count:1/2"]];
        for options in filters.iter().map(|it| &it[..]).chain([&["--list-tests"][..], &["--list-tests=json"]])
        {
            let told = folder.run(&[&application], options);
            told.expect_code(code).says(how).says("error output:").says(REASON).says("a banner");
            assert!(!told.stderr.contains("after its tests"), "{told}");
            assert_eq!(told.stderr.matches(REASON).count(), 1, "{told}");
        }
    }
}

fn rest() {
    let folder = Folder::new();
    let dies = format!(
        "handshake\nstart\nif discover\nstderr \"{REASON}\\n\"\nkill SIGABRT\nfi\npass t1\nbegin t2\nkill SIGKILL\n"
    );
    let application = folder.application("dies", &dies);
    let told = folder.run(&[&application], &[]);
    assert!(told.text().contains("because the application cannot list them: exit code 134"), "{told}");
    assert!(told.text().contains(REASON), "{told}");
}

fn only_test() {
    let folder = Folder::new();
    for (name, how) in [("zero", "exit 0"), ("three", "exit 3"), ("dies", "kill SIGABRT")] {
        let scenario =
            format!("handshake\nstart\nif run\n{how}\nfi\ndiscover 1a2b name=DiesByExit\nend\nexit 0\n");
        let application = folder.application(name, &scenario);
        let told = folder.run(&[&application], &["--report", "junit=r.xml"]);
        told.expect_code(2);
        assert!(told.text().contains("error DiesByExit"), "{told}");
        assert!(told.text().contains("when only this test was run"), "{told}");
        assert!(told.text().contains("failed: 1 test, 0 passed, 1 error"), "{told}");
        assert!(!told.text().contains("were not run"), "{told}");
        assert!(folder.text("r.xml").contains("<testcase name=\"DiesByExit\""));
        // The test has a result in each attempt.
        let told = folder.run(&[&application], &["--retries", "1"]);
        assert!(told.expect_code(2).text().contains("error (try 2) DiesByExit"), "{told}");
        assert!(told.text().contains("failed: 1 test, 0 passed, 1 error, 1 retried"), "{told}");
    }
}
