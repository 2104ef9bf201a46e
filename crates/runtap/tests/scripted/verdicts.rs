//! One verdict: the exit code, the text output and every report agree, for all selections and repetitions.

use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use runtap_testkit::run;
use serde_json::Value;

use crate::harness::Test;
use crate::reports::Folder;

pub(crate) fn all() -> Vec<Test> {
    let tests: [(&str, fn()); 14] = [
        ("rows_of_one_test_are_counted_alike_everywhere", rows),
        ("a_test_that_is_skipped_after_a_failure_has_failed", skipped_again),
        ("a_selected_test_without_a_result_is_an_error", chosen),
        ("a_started_test_without_a_result_is_an_error", begun),
        ("a_row_that_fails_while_its_process_is_stopped_stays_failed", disturbed),
        ("a_process_that_exits_with_2_and_has_no_failed_row_is_an_error", exits_by_tests),
        ("tests_after_an_id_that_hides_them_are_run_separately", lost),
        ("a_killed_run_is_repeated_completely", killed),
        ("an_explicit_test_selected_among_others_is_skipped", explicit),
        ("an_incomplete_list_has_no_number_of_tests", listed),
        ("errors_outside_tests_are_in_every_report", errors),
        ("an_application_without_tests_fails_only_if_the_run_has_none", no_tests),
        ("a_crash_without_a_single_responsible_test_is_an_error", unexplained),
        ("failures_repaired_by_a_retry_are_not_failures", mended),
    ];
    tests.map(|(name, test)| Test::new(format!("verdicts::{name}"), test)).into()
}

const FILE_REPORTS: [&str; 8] = [
    "--report",
    "junit=r.xml",
    "--report",
    "trx=r.trx",
    "--report",
    "ctrf=r.json",
    "--report",
    "jsonl=r.jsonl",
];

/// Checks the numbers of a run in all outputs: all tests, passed tests, failed tests.
pub(crate) fn readers_agree(
    folder: &Folder,
    applications: &[&std::path::Path],
    options: &[&str],
    expected: [u64; 3],
    code: i32,
) {
    let told = folder.run(applications, &[options, &FILE_REPORTS[..]].concat());
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
    // A run that failed for another reason than a test has one failed test more in reports that have only tests.
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
    // The first row always fails, whatever the other rows do.
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
    // A test selected by id may be in any application, so no application has failed.
    readers_agree(&folder, &[&forgets], &["--filter-uid", "t1", "t2"], [1, 1, 0], 1);
    assert!(folder.text("r.trx").contains("no result in any application: t2"));
}

/// A test that starts but does not end, in a process that exits on its own with code 0.
fn begun() {
    let folder = Folder::new();
    let forgets = folder.application("forgets", "handshake\nstart\npass t1\nbegin t2\nend\n");
    let said = "1 started test has no result: t2";
    for options in [&[][..], &["--filter-uid", "t1", "t2"], &["--retries", "1"]] {
        readers_agree(&folder, &[&forgets], options, [1, 1, 0], 1);
        assert!(folder.text("r.trx").contains(said), "{options:?}");
    }
    let only = folder.application("only", "handshake\nstart\nbegin t2\nend\n");
    readers_agree(&folder, &[&only], &["--filter-uid", "t2"], [0, 0, 0], 1);
    assert!(folder.text("r.trx").contains(said));
    // Another row of the test has a result.
    let rows = "handshake\nstart\nbegin b name=x\npass b name=x\nbegin b name=y\nend\n";
    let rows = folder.application("rows", rows);
    readers_agree(&folder, &[&rows], &[], [1, 1, 0], 1);
    assert!(folder.text("r.trx").contains("1 started test has no result: y"));
    // The order in which rows end does not matter.
    let rows = "handshake\nstart\nbegin b name=x\nbegin b name=y\npass b name=y\nend\n";
    let rows = folder.application("first", rows);
    readers_agree(&folder, &[&rows], &[], [1, 1, 0], 1);
    assert!(folder.text("r.trx").contains("1 started test has no result: x"));
    // The other row of the test has two results.
    let twice = "handshake\nstart\nbegin b name=x\nbegin b name=y\nfail b name=y try=1 superseded\npass b name=y try=2\nend\n";
    let twice = folder.application("second", twice);
    readers_agree(&folder, &[&twice], &[], [1, 1, 0], 1);
    assert!(folder.text("r.trx").contains("1 started test has no result: x"));
    // A started test in the list of failed results.
    let wrong = "handshake\nstart\npass t1\nbegin t2 list=failed\nend\n";
    let wrong = folder.application("wrong", wrong);
    let told = folder.run(&[&wrong], &[]);
    assert!(told.expect_code(1).text().contains(said), "{told:?}");
    // A test that started twice and ended once has a result.
    let twice = folder.application("twice", "handshake\nstart\nbegin t1\nbegin t1\npass t1\nend\n");
    readers_agree(&folder, &[&twice], &[], [1, 1, 0], 0);
    // The application's own limit of failures: its exit code explains the missing result.
    let limited = "handshake\nstart\nfail t1\nbegin t2\nend\nexit 13\n";
    let limited = folder.application("limited", limited);
    let told = folder.run(&[&limited], &[]);
    assert!(!told.expect_code(2).text().contains("has no result"), "{told:?}");
}

/// Creates an application whose first process is killed because `a` times out, and its later processes.
fn ended_around(folder: &Folder, name: &str, first: &str, later: &str) -> std::path::PathBuf {
    let script = format!(
        "handshake\ncontrol\nignore sigint\nstart\nif discover\ndiscover a\ndiscover b\nelse\nif filtered\n{later}\nelse\n\
         {first}\nfi\nfi\nend\nif filtered\nexit 0\nfi\nif run\nexit 3\nfi\n"
    );
    folder.application(name, &script)
}

fn disturbed() {
    let folder = Folder::new();
    let options = |retries| ["--timeout-per-test", "1s", "--grace", "10s", "--retries", retries];
    let first =
        "begin a\nsleep 500ms\nbegin b name=x\nbegin b name=y\nawait cancel\nfail b name=x\npass b name=y";
    let rows = ended_around(&folder, "rows", first, "pass a\npass b name=y");
    readers_agree(&folder, &[&rows], &options("1"), [3, 2, 1], 2);
    let again = ended_around(&folder, "again", first, "pass a\npass b name=y\npass b name=x");
    readers_agree(&folder, &[&again], &options("1"), [3, 3, 0], 0);
    assert!(!folder.text("r.trx").contains("process was being stopped"));
    // No later process runs the test.
    let lost = ended_around(&folder, "lost", first, "pass a");
    let told = folder.run(&[&lost], &options("1"));
    assert!(told.expect_code(2).text().contains("3 tests, 2 passed, 1 failed"), "{told}");
    // A row that the process did not run, of a test that has a result for another row.
    let unrun = "handshake\ncontrol\nignore sigint\nstart\nif discover\ndiscover a\ndiscover b name=x\ndiscover b name=y\nelse\n\
        if filtered\npass a\nelse\nbegin a\npass b name=x\nawait cancel\nfi\nfi\nend\nif filtered\nexit 0\nfi\nif run\nexit 3\nfi\n";
    let unrun = folder.application("unrun", unrun);
    readers_agree(&folder, &[&unrun], &options("1"), [2, 2, 0], 1);
    assert!(
        folder.text("r.trx").contains("1 row has no result, of tests that have results for other rows: y")
    );
    // A list without the tests that have run does not include the others.
    let unlisted = "handshake\ncontrol\nignore sigint\nstart\nif discover\nelse\nif filtered\npass a\nelse\nbegin a\nawait cancel\nfi\nfi\n\
        end\nif filtered\nexit 0\nfi\nif run\nexit 3\nfi\n";
    let told = folder.run(&[&folder.application("unlisted", unlisted)], &options("1"));
    assert!(
        told.expect_code(1).text().contains("the list has none of the tests that have results"),
        "{told}"
    );
    // The test is repeated, so another process may run the missing row.
    let repeated = fs::read_to_string(folder.path("unrun.mtp")).unwrap();
    let repeated = repeated
        .replace("pass b name=x\nawait", "fail b name=x\nawait")
        .replace("pass a\nelse", "pass a\npass b name=x\npass b name=y\nelse");
    readers_agree(&folder, &[&folder.application("repeated", &repeated)], &options("1"), [3, 3, 0], 0);
    // A row of the test itself times out: only the late result of that row is omitted.
    let own = "begin a name=x\nawait cancel\ncancelled a name=x\nfail a name=y";
    let own = ended_around(&folder, "own", own, "pass a name=x\npass b");
    readers_agree(&folder, &[&own], &options("1"), [3, 2, 1], 2);
    // The test times out in a second attempt of the application, in another process or in the same one.
    for late in ["pass", "fail"] {
        let second = format!(
            "if discover\nhandshake\nstart\ndiscover t\nend\nexit 0\nfi\nignore sigint\n\
             o: handshake type=TestHostOrchestrator feature=RetryOrchestrator\nspawn fails attempt=1\nwait\n\
             spawn slow attempt=2\nwait\nexit 0\n\npart fails\nhandshake\nstart uid=s-{{a}}\nfail t session=s-{{a}}\n\
             end uid=s-{{a}}\nexit 2\n\npart slow\nignore sigint\nhandshake\nstart uid=s-{{a}}\nbegin t session=s-{{a}}\n\
             sleep 3s\n{late} t session=s-{{a}}\nend uid=s-{{a}}\nexit 0\n"
        );
        let inside = format!(
            "ignore sigint\nhandshake\nstart\nfail t try=1 superseded\nbegin t\nsleep 3s\n{late} t try=2\nend\nexit 0\n"
        );
        // Reported together, as MSTest's Retry does.
        let together = format!(
            "ignore sigint\nhandshake\nstart\nbegin t\nsleep 3s\nfail t try=1 superseded\n{late} t try=2\nend\nexit 0\n"
        );
        for (name, script) in [("second", second), ("inside", inside), ("together", together)] {
            let application = folder.application(&format!("{name}-{late}"), &script);
            let told = folder.run(&[&application], &[&options("0")[..], &FILE_REPORTS].concat());
            assert!(told.expect_code(2).text().contains(": 1 test, 0 passed, 1 timed out"), "{told}");
            assert!(
                folder.text("r.xml").contains("tests=\"1\" failures=\"0\" errors=\"1\""),
                "{name} {late}"
            );
        }
    }
}

fn exits_by_tests() {
    let folder = Folder::new();
    let application = |name: &str, results: &str, code: u32| {
        folder.application(name, &format!("handshake\nstart\n{results}\nend\nexit {code}\n"))
    };
    // A failure that the application itself has repeated successfully does not explain the exit code.
    let repeated = "fail b name=x try=1\npass b name=x try=2";
    readers_agree(&folder, &[&application("repeated", repeated, 0)], &[], [1, 1, 0], 0);
    readers_agree(&folder, &[&application("repeated-2", repeated, 2)], &[], [1, 1, 0], 2);
    assert!(folder.text("r.trx").contains("exited with 2: tests failed, but no test"));
    // A clean-up that fails after the last attempt explains the exit code, whatever the outcome of its test.
    let cleaned =
        "fail b name=x try=1 superseded\npass b name=x try=2\nfail b name=\"[Test Cleanup Failure (x)]\"";
    readers_agree(&folder, &[&application("cleaned", cleaned, 2)], &[], [2, 1, 1], 2);
    // A failure of another row of the test explains the exit code.
    let other = format!("{repeated}\nfail b name=y try=1");
    folder.run(&[&application("other", &other, 2)], &[]).expect_code(2);
    // A failure in quarantine explains the exit code.
    let known = application("known", "fail b name=known\npass c", 2);
    folder.run(&[&known], &["--quarantine", "name = known"]).expect_code(0);
    // Of several attempts of the runner, the last one counts.
    let better = "handshake\nstart\nif attempt 1\nfail b\nelse\npass b\nfi\nend\nif attempt 1\nexit 2\nfi\n";
    readers_agree(&folder, &[&folder.application("better", better)], &["--retries", "1"], [1, 1, 0], 0);
    // Each attempt of the runner may contain attempts of the application.
    let both = "handshake\nstart\nfail b name=x try=1\nif attempt 1\nfail b name=x try=2\nelse\npass b name=x try=2\nfi\nend\n\
        if attempt 1\nexit 2\nfi\n";
    readers_agree(&folder, &[&folder.application("both", both)], &["--retries", "1"], [1, 1, 0], 0);
}

/// An application that omits an explicit test if another one is selected, as `NUnit`'s adapter does.
const EXPLICIT: &str = "handshake\nstart\nif discover\ndiscover a trait=Explicit\ndiscover b\ndiscover c\nelse\n\
    pass b\npass c\nif filtered\nif wants b\nelse\nif wants c\nelse\npass a\nfi\nfi\nelse\nskip a\nfi\nfi\nend\n";

fn explicit() {
    let folder = Folder::new();
    let application = folder.application("explicit", EXPLICIT);
    // Returns the numbers of passed and skipped tests.
    let counts = |options: &[&str], code: i32| {
        let told = folder.run(&[&application], &[&["--format", "json"], options].concat());
        let text = told.expect_code(code).text();
        let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        [&end["passed"], &end["skipped"]].map(|count| count.as_u64().unwrap())
    };
    assert_eq!(counts(&["--filter", "not name = c"], 0), [1, 1]);
    assert_eq!(counts(&["--filter", "name != nothing"], 0), [2, 1]);
    // If only explicit tests are selected, they run.
    assert_eq!(counts(&["--filter", "name ^= a"], 0), [1, 0]);
    // The test is in exactly one of the parts, and no part runs it.
    for kind in ["hash", "count", "slice"] {
        let part = |index| {
            let partition = format!("{kind}:{index}/3");
            counts(&["--partition", &partition], 0)
        };
        let all = [part(1), part(2), part(3)];
        assert_eq!(
            all.iter().fold([0, 0], |sum, part| [sum[0] + part[0], sum[1] + part[1]]),
            [2, 1],
            "{kind}: {all:?}"
        );
    }
    // The process crashes before the explicit test, which another process runs or none does.
    for (dies, left) in [("pass b\nkill SIGKILL", "another"), ("pass b\npass c\nkill SIGKILL", "none")] {
        let dies = EXPLICIT
            .replace("else\nskip a", &format!("else\n{dies}"))
            .replace("else\npass b\npass c", "else\nif filtered\npass b\npass c\nfi");
        let dies = folder.application(left, &dies);
        let told = folder.run(&[&dies], &[]);
        assert!(told.expect_code(137).text().contains("2 passed, 1 skipped"), "{told}");
    }
}

fn lost() {
    let folder = Folder::new();
    // The characters after an id with a backslash are lost, as with NUnit's adapter, and with them the test.
    let script = r#"handshake
start
if discover
discover a
discover "b\\"
discover c
discover "d d"
else
pass a
if filtered
if wants "b\\"
else
pass c
pass "d d"
fi
else
pass c
pass "d d"
fi
fi
end
"#;
    let application = folder.application("loses", script);
    readers_agree(&folder, &[&application], &["--filter", "not name = nothing"], [3, 3, 0], 1);
    assert!(
        folder.text("r.trx").contains("1 of 1 chosen tests has no result: b\\"),
        "{}",
        folder.text("r.trx")
    );
    readers_agree(&folder, &[&application], &["--filter", "name !~ b"], [3, 3, 0], 0);
}

fn killed() {
    let folder = Folder::new();
    let application = folder.application("app", "");
    let run_with = |script: &str, more: &[&str]| {
        fs::write(folder.path("app.mtp"), script).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_runtap"));
        command.current_dir(folder.path(".")).arg("test").arg(&application);
        command.args(["--history", "known"]).args(more);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let green = "handshake\nstart\npass t1\nend\n";
    assert_eq!(run_with(green, &[]).status().unwrap().code(), Some(0));
    let mut running = run_with("handshake\nstart\nhang\n", &[]).spawn().unwrap();
    let is_marked = || {
        let names = fs::read_dir(folder.path("known")).unwrap().map(|entry| entry.unwrap().path());
        names.into_iter().any(|path| path.extension().is_some_and(|it| it == "begun"))
    };
    while !is_marked() {
        thread::sleep(Duration::from_millis(10));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    // The test that failed in the killed run is unknown.
    let red = "handshake\nstart\nfail t1\nend\nexit 2\n";
    assert_eq!(run_with(red, &["--rerun"]).status().unwrap().code(), Some(2));
    assert_eq!(run_with(green, &["--rerun"]).status().unwrap().code(), Some(0));
    assert!(!is_marked());
    assert_eq!(run_with(red, &["--rerun"]).status().unwrap().code(), Some(0), "the last run had no failures");
}

fn unexplained() {
    let folder = Folder::new();
    // Two tests that crash their process only if both run at the same time.
    let together = "handshake\nstart\nif run\nbegin t1\nbegin t2\nif wants t1\nif wants t2\nkill SIGKILL\nfi\nfi\nfi\n\
        pass t1\npass t2\nend\n";
    let together = folder.application("together", together);
    for retries in ["0", "2"] {
        readers_agree(&folder, &[&together], &["--retries", retries], [2, 2, 0], 137);
        assert!(folder.text("r.trx").contains("while it ran t1, t2"));
    }
    // A test that crashes its process only if another test is selected too, with and without a result of one of its rows.
    let beside = "handshake\nstart\nif run\nif wants t1\nif wants t2\nbegin t2\nkill SIGKILL\nfi\nfi\nfi\npass t1\npass t2\nend\n";
    let beside = folder.application("beside", beside);
    let rows = "handshake\nstart\npass t1 name=\"row a\"\nif run\nif wants t1\nif wants t2\nbegin t1 name=\"row b\"\n\
        kill SIGKILL\nfi\nfi\nfi\npass t1 name=\"row b\"\npass t2\nend\n";
    let rows = folder.application("rows", rows);
    for (application, all, running) in [(&beside, 2, "t2"), (&rows, 3, "row b")] {
        readers_agree(&folder, &[application], &[], [all, all, 0], 137);
        assert!(folder.text("r.trx").contains(&format!("while it ran {running}")));
    }
    // A crash while no test runs; the remaining tests pass in another process.
    let between = "handshake\nstart\npass t1\nif run\nif wants t1\nkill SIGKILL\nfi\nfi\npass t2\nend\n";
    readers_agree(&folder, &[&folder.application("between", between)], &[], [2, 2, 0], 137);
    // A test that terminates its process was not running when another process exited.
    let chosen = "if filtered\nif wants c\nif attempt 1\nbegin c\nkill SIGKILL\nfi\nfi\n";
    let list = "if discover\ndiscover a\ndiscover b\ndiscover c\nelse\n";
    for (name, first) in [("two", "begin a\nbegin b"), ("none", "pass a")] {
        let script = format!(
            "handshake\nstart\n{list}{chosen}pass a\npass b\npass c\nelse\n{first}\nkill SIGKILL\nfi\nfi\nend\n"
        );
        let application = folder.application(name, &script);
        let told = folder.run(&[&application], &["--retries", "1", "--report", "junit=r.xml"]);
        let text = told.expect_code(137).text();
        assert!(text.contains("1 flaky") && text.contains("\nbroken applications:\n"), "{text}");
        assert!(folder.text("r.xml").contains(" errors=\"1\""));
    }
    // That test does not explain the crash of a part of the search that does not run it either, even if it fails permanently
    // in quarantine.
    let four = list.replace("else", "discover d\nelse");
    let part = "if wants a\nif wants b\nbegin a\nbegin b\nkill SIGKILL\nfi\nfi\n";
    let script = format!(
        "handshake\nstart\n{four}{chosen}{part}if wants a\npass a\nfi\nif wants b\npass b\nfi\nif wants c\npass c\nfi\n\
         if wants d\npass d\nfi\nelse\nbegin a\nbegin b\nbegin c\nbegin d\nkill SIGKILL\nfi\nfi\nend\n"
    );
    folder.run(&[&folder.application("part", &script)], &["--retries", "1"]).expect_code(137);
    let script = format!(
        "handshake\nstart\n{list}{chosen}if wants a\npass a\nfi\nif wants b\npass b\nfi\nif wants c\nfail c\nfi\nelse\n\
         begin a\nbegin b\nkill SIGKILL\nfi\nfi\nend\nif run\nif wants c\nexit 2\nfi\nfi\n"
    );
    let options = ["--retries", "1", "--quarantine", "name = c"];
    folder.run(&[&folder.application("quarantine", &script)], &options).expect_code(137);
    // Every part of the tests crashes its process, and the search for the responsible test ends.
    let never =
        "handshake\nstart\nif discover\nrepeat 40\ndiscover t{n}\ndone\nelse\nkill SIGKILL\nfi\nend\n";
    let never = folder.application("never", never);
    readers_agree(&folder, &[&never], &[], [0, 0, 0], 137);
    assert!(folder.text("r.trx").contains("the process exits when these tests are run: "));
}

/// An attempt that passed in a retry is not a failure in any report.
fn mended() {
    let folder = Folder::new();
    let crashes = "handshake\nstart\nif discover\ndiscover c\ndiscover d\nelse\nif wants c\nif attempt 1\nbegin c\n\
        kill SIGKILL\nfi\nfi\npass d\npass c\nfi\nend\n";
    let crashes = folder.application("crashes", crashes);
    readers_agree(&folder, &[&crashes], &["--retries", "1"], [2, 2, 0], 0);
    assert!(!folder.run(&[&crashes], &["--retries", "1"]).text().contains("broken"));
    // An application with its own attempts, in each of which the row has another name.
    let own = "handshake type=TestHostOrchestrator feature=RetryOrchestrator\nspawn child attempt=1\nwait\n\
        spawn child attempt=2\nwait\nexit 0\n\npart child\nhandshake\nstart uid=s-{a}\nif attempt 1\n\
        pass t1 session=s-{a}\nfail t2 session=s-{a} name=\"t2 at {a}\"\nelse\n\
        pass t2 session=s-{a} name=\"t2 at {a}\"\nfi\nend uid=s-{a}\nif attempt 1\nexit 2\nfi\nexit 0\n";
    let own = folder.application("own", own);
    for retries in ["0", "1"] {
        readers_agree(&folder, &[&own], &["--retries", retries], [2, 2, 0], 0);
    }
    let host = "o: handshake type=TestHostOrchestrator feature=RetryOrchestrator\n";
    let fails = "part fails\nhandshake\nstart uid=s-{a}\nfail t session=s-{a}\nend uid=s-{a}\nexit 2\n\n";
    let passes = "part passes\nhandshake\nstart uid=s-{a}\npass t session=s-{a}\nend uid=s-{a}\nexit 0\n\n";
    // The application's second attempt passes in the runner's second attempt: nothing is left to repeat.
    let second = format!(
        "{host}spawn fails attempt=1\nwait\nif attempt 2\nspawn passes attempt=2\nwait\nexit 0\nfi\n\
         spawn fails attempt=2\nwait\nexit 2\n\n{fails}{passes}"
    );
    let second = folder.application("second", &second);
    for retries in ["1", "3"] {
        readers_agree(&folder, &[&second], &["--retries", retries], [1, 1, 0], 0);
    }
    // The application's second attempt crashes, and the runner's second attempt passes: one row.
    let dies = format!(
        "if discover\nhandshake\nstart\ndiscover t\nend\nexit 0\nfi\n{host}if attempt 1\nspawn fails attempt=1\nwait\n\
         spawn dies attempt=2\nwait\nexit 7\nfi\nspawn passes attempt=1\nwait\nexit 0\n\n{fails}{passes}\
         part dies\nhandshake\nstart uid=s-{{a}}\nbegin t session=s-{{a}}\nkill SIGKILL\n"
    );
    let told = folder.run(&[&folder.application("dies", &dies)], &["--retries", "1"]);
    assert!(told.text().contains(": 1 test, 1 passed, 1 flaky"), "{told}");
}

fn errors() {
    let folder = Folder::new();
    let script = "handshake\nstart\npass t1\nmessage \"TearDown failed\" level=2\nend\n";
    let application = folder.application("clean-up", script);
    let told = folder.run(&[&application], &[&FILE_REPORTS[..], &["--report", "junit10=s.xml"]].concat());
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
        assert!(told.text().contains(&format!(": {count}")), "{name}: {}", told.text());
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
