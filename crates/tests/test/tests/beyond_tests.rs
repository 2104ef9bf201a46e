//! What fails beside tests is told beside them: a suite's hook, a package, a target, and results that are promised and not there.

mod told;

use runtap_test::TestOutcome;
use runtap_test::formats::{Event, Format};

use told::{cases, problems, read, told};

use TestOutcome::{Error, Failed, Passed, Skipped};

#[track_caller]
fn message<'a>(events: &'a [Event], uid: &str) -> &'a str {
    let case = cases(events).into_iter().find(|case| case.uid == uid);
    &case.and_then(|case| case.detail.as_ref()).unwrap_or_else(|| panic!("{uid}: {events:#?}")).message
}

#[test]
fn a_hook_of_a_suite() {
    let events = read(Format::Tap, include_bytes!("fixtures/node-hook.tap"));
    assert_eq!(told(&events), [("q", Failed), ("after fails > a2", Passed), ("after fails", Error)]);
    assert_eq!(message(&events, "after fails"), "after boom");
    let groups: Vec<_> = cases(&events).iter().map(|case| case.is_group).collect();
    assert_eq!(groups, [false, false, true]);
    // A suite whose tests have failed has no reason of its own, nor has one that passes or is planned.
    let suite = |line: &str, why: &str| {
        let text = format!("{line}\n  ---\n  type: 'suite'\n{why}  ...\n1..1\n");
        read(Format::Tap, text.as_bytes())
    };
    let failed = suite("    not ok 1 - t\n    1..1\nnot ok 1 - s", "  failureType: 'subtestsFailed'\n");
    assert_eq!(told(&failed), [("t", Failed)]);
    assert_eq!(told(&suite("ok 1 - s", "")), []);
    assert_eq!(told(&suite("not ok 1 - s # TODO later", "  failureType: 'hookFailed'\n")), []);
    assert_eq!(told(&suite("not ok 1 - s", "  failureType: 'testTimeoutFailure'\n")), [("s", Error)]);
}

#[test]
fn a_go_package_after_its_tests() {
    let text = include_str!("fixtures/go-after-tests.json");
    let events = read(Format::GoJson, text.as_bytes());
    let tests = [("example.org/f.TestQ", Failed), ("example.org/f.TestGood", Passed)];
    assert_eq!(told(&events), [&tests[..], &[("example.org/f", Error)]].concat());
    assert_eq!(
        message(&events, "example.org/f"),
        "the package failed, and printed this after the verdict about its tests\nleak check failed: 3 goroutines"
    );
    // What go prints of a package in which tests have failed is no other reason.
    for usual in ["exit status 1", "coverage: 50.0% of statements", ""] {
        let text = text.replace("leak check failed: 3 goroutines", usual);
        let events = read(Format::GoJson, text.as_bytes());
        assert_eq!((told(&events), problems(&events)), (tests.to_vec(), Vec::new()), "{usual}");
    }
    let other = text.replace("leak check failed: 3 goroutines", "exit status 3");
    assert_eq!(told(&read(Format::GoJson, other.as_bytes())).last(), Some(&("example.org/f", Error)));
    let died = text.replace(r#""Output":"FAIL\n""#, r#""Output":"panic: boom\n""#);
    assert_eq!(
        problems(&read(Format::GoJson, died.as_bytes())),
        ["the package example.org/f ended without a verdict about its tests: some may not have run"]
    );
}

#[test]
fn a_go_command_that_is_ended_after_a_failure() {
    let whole = include_str!("fixtures/go-after-tests.json");
    let cut: Vec<_> = whole.lines().take(5).collect();
    let events = read(Format::GoJson, cut.join("\n").as_bytes());
    assert_eq!(told(&events), [("example.org/f.TestQ", Failed)]);
    assert_eq!(problems(&events), ["the package example.org/f has no end"]);
}

#[test]
fn a_target_of_cargo_that_dies_after_its_tests() {
    let text = include_str!("fixtures/libtest-target-dies.txt");
    let events = read(Format::Libtest, text.as_bytes());
    let tests = [
        ("crt::good", Passed),
        ("crt::known_bad", Failed),
        ("z::leaves_a_crash_at_exit", Passed),
        ("z", Error),
    ];
    assert_eq!((told(&events), problems(&events)), (tests.to_vec(), Vec::new()));
    let why = message(&events, "z");
    assert!(why.starts_with("error: test failed, to rerun pass `--test z`\n"), "{why}");
    assert!(why.ends_with("(signal: 6, SIGABRT: process abort signal)"), "{why}");
    // One that dies after a failed test has two reasons; one that has ended with 101 is explained.
    let (one, other) = text.split_once("     Running tests/z.rs").unwrap();
    assert_eq!(told(&read(Format::Libtest, one.as_bytes())), tests[..2]);
    let cause = other.split_once("`--test z`\n").unwrap().1.replace("2 targets", "1 target");
    let both = read(Format::Libtest, format!("{one}{cause}").as_bytes());
    assert_eq!(told(&both), [&tests[..2], &[("crt", Error)]].concat());
    // A target of which nothing is known, as in output that is not complete.
    let (list, _) = text.split_once("error: test failed, to rerun pass `--test z`").unwrap();
    let list = format!("{list}error: 2 targets failed:\n    `--lib`\n    `--test z`\n");
    assert_eq!(
        problems(&read(Format::Libtest, list.as_bytes())),
        ["cargo reports 2 failed targets, but only 1 of them are known"]
    );
}

#[test]
fn a_summary_of_libtest_that_says_more_than_its_lines() {
    let of = |lines: &str, summary: &str| {
        let text = format!("running 2 tests\n{lines}\ntest result: {summary}; finished in 0.00s\n");
        let events = read(Format::Libtest, text.as_bytes());
        problems(&events).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let both = "test a ... ok\ntest b ... ok";
    let counts = "0 ignored; 0 measured; 7 filtered out";
    assert_eq!(
        of(both, &format!("ok. 3 passed; 0 failed; {counts}")),
        ["the binary reported 3 tests, but only 2 of them have a line"]
    );
    for summary in ["FAILED. 1 passed; 1 failed; ", "FAILED. 2 passed; 0 failed; "] {
        assert_eq!(
            of(both, &format!("{summary}{counts}")),
            ["the binary reported 1 failed tests, but only 0 of them have a line"]
        );
    }
    assert_eq!(of(both, &format!("ok. 2 passed; 0 failed; {counts}")), [""; 0]);
    let other = "test a ... ignored\ntest b ... bench: 1 ns/iter (+/- 0)";
    assert_eq!(of(other, "ok. 0 passed; 0 failed; 1 ignored; 1 measured; 7 filtered out"), [""; 0]);
}

#[test]
fn go_tests_whose_ends_are_behind_other_text() {
    let events = read(Format::GoJson, include_bytes!("fixtures/go-no-newline-passes.json"));
    let mut all = told(&events);
    all.sort_unstable_by_key(|(uid, _)| *uid);
    let passed = ["Four", "One", "Three", "Two"].map(|name| format!("example.org/e.Test{name}"));
    assert_eq!(all, passed.each_ref().map(|uid| (uid.as_str(), Passed)));
    assert_eq!(problems(&events), [""; 0]);
    let one = cases(&events).into_iter().find(|case| case.name == "TestOne").unwrap();
    assert_eq!(one.stdout, "no newline at end\n");

    let events = read(Format::GoJson, include_bytes!("fixtures/go-no-newline.json"));
    let mut all = told(&events);
    all.sort_unstable_by_key(|(uid, _)| *uid);
    let mut expected = Vec::new();
    let failed = ["ExampleFoo", "TestFailNoNl", "TestSub", "TestSub/é#x"];
    let passed = ["ExampleBar", "FuzzZ", "FuzzZ/seed#0", "TestChild", "TestNoNewline"];
    let within = ["", "/p1", "/p2"].map(|name| format!("TestPar{name}"));
    let same = ["#00", "a/b", "a_b", "same", "same#01"].map(|name| format!("TestSub/{name}"));
    expected.extend(failed.map(|name| (format!("example.org/a.{name}"), Failed)));
    expected.extend(passed.map(|name| (format!("example.org/a.{name}"), Passed)));
    expected.extend(within.iter().chain(&same).map(|name| (format!("example.org/a.{name}"), Passed)));
    expected.push(("example.org/a.TestSkipX".to_owned(), Skipped));
    expected.sort_unstable_by(|(uid, _), (other, _)| uid.cmp(other));
    assert_eq!(all, expected.iter().map(|(uid, outcome)| (uid.as_str(), *outcome)).collect::<Vec<_>>());
    assert_eq!(problems(&events), [""; 0]);
    assert_eq!(message(&events, "example.org/a.TestSub/é#x"), "bad");
    let failed = cases(&events).into_iter().find(|case| case.name == "TestSub/é#x").unwrap();
    assert_eq!(failed.place, Some(("a_test.go".into(), 6)));
}

#[test]
fn a_go_test_without_an_end_is_never_left_out() {
    let line = |fields: &str| format!("{{\"Package\":\"p\",{fields}}}\n");
    let begun = line(r#""Action":"run","Test":"TestA""#) + &line(r#""Action":"run","Test":"TestB""#);
    let passes = line(r#""Action":"pass","Test":"TestB""#) + &line(r#""Action":"pass""#);
    let events = read(Format::GoJson, (begun.clone() + &passes).as_bytes());
    assert_eq!(told(&events), [("p.TestB", Passed), ("p.TestA", Error)]);
    assert_eq!(message(&events, "p.TestA"), "the package ended while the test ran");
    // Another test may print such a line: only tests without an event of their end are meant, and no panic passes.
    let says = line(r#""Action":"output","Test":"TestB","Output":"x--- FAIL: TestB (0.00s)\n""#);
    let events = read(Format::GoJson, (begun.clone() + &says + &passes).as_bytes());
    assert_eq!(told(&events), [("p.TestB", Passed), ("p.TestA", Error)]);
    let panics = line(r#""Action":"output","Test":"TestA","Output":"x--- PASS: TestA (0.00s)\n""#)
        + &line(r#""Action":"output","Test":"TestA","Output":"panic: boom\n""#)
        + &line(r#""Action":"fail""#);
    assert_eq!(told(&read(Format::GoJson, (begun.clone() + &panics).as_bytes()))[0], ("p.TestA", Failed));
    // Of go 1.20 and later no event is missing: a test prints that.
    let start = line(r#""Action":"start""#);
    let prints = line(r#""Action":"output","Test":"TestA","Output":"x--- PASS: TestA (0.00s)\n""#)
        + &line(r#""Action":"output","Test":"TestA","Output":"x=== RUN   TestC\n""#);
    let events = read(Format::GoJson, (start + &begun + &prints + &passes).as_bytes());
    assert_eq!(told(&events), [("p.TestB", Passed), ("p.TestA", Error)]);
}

#[test]
fn errors_and_counts_of_junit_suites() {
    let of = |text: &str| {
        let events = read(Format::Junit, text.as_bytes());
        let told: Vec<_> =
            told(&events).into_iter().map(|(uid, outcome)| (uid.to_owned(), outcome)).collect();
        (told, problems(&events).join("|"), events)
    };
    let (told, problem, events) = of("<testsuite name='s' tests='3' failures='1' errors='2'>\
         <error message='suite setup failed'/><testcase name='a' classname='c'/></testsuite>");
    assert_eq!(told, [("s".to_owned(), Error), ("c.a".to_owned(), Passed)]);
    assert_eq!(problem, "the suite s counts 3 tests, but the document has 1");
    assert_eq!(message(&events, "s"), "suite setup failed");
    assert!(cases(&events)[0].is_group);

    let (told, problem, events) = of("<testsuites><testsuite name='S' tests='1' errors='1' failures='0'>\
         <testcase name='a' classname='S'/><error type='Fatal'>beforeAll failed: db down</error></testsuite></testsuites>");
    assert_eq!(told, [("S.a".to_owned(), Passed), ("S".to_owned(), Error)]);
    assert_eq!(problem, "");
    assert_eq!(message(&events, "S"), "beforeAll failed: db down");

    let (_, problem, _) =
        of("<testsuites tests='5' failures='2'><testsuite name='o'><testsuite name='i' errors='1'>\
         <testcase name='a'/></testsuite></testsuite></testsuites>");
    assert_eq!(
        problem, "the suite i counts 1 failures and errors, but the document has 0",
        "each is told once"
    );
    // pytest counts subtests as tests, and has a test with a failure and an error once.
    let (told, problem, _) =
        of("<testsuites name='pytest tests'><testsuite name='mine' tests='4' failures='1' errors='1'>\
         <testcase name='a'><failure/><error/></testcase></testsuite></testsuites>");
    assert_eq!((told, problem.as_str()), (vec![("mine.a".to_owned(), Failed)], ""));
    let many = "<testsuite name='n' tests='1'/>".repeat(12);
    let (_, problem, _) = of(&format!("<testsuites>{many}</testsuites>"));
    assert!(problem.ends_with("; 2 more incomplete suites"), "{problem}");
}

#[test]
fn tests_of_googletest_that_are_not_run() {
    let text = "<testsuites tests='4' failures='0' disabled='2' errors='0' name='AllTests'>\
        <testsuite name='Foo' tests='4' failures='0' disabled='2' skipped='1' errors='0'>\
        <testcase name='Runs' status='run' result='completed' classname='Foo'/>\
        <testcase name='DISABLED_Broken' status='notrun' result='suppressed' classname='Foo'/>\
        <testcase name='NotSelected' status='notrun' classname='Foo'/>\
        <testcase name='Skips' status='run' result='skipped' classname='Foo'><skipped message='x'/></testcase>\
        </testsuite></testsuites>";
    let events = read(Format::Junit, text.as_bytes());
    let expected = [
        ("Foo.Runs", Passed),
        ("Foo.DISABLED_Broken", Skipped),
        ("Foo.NotSelected", Skipped),
        ("Foo.Skips", Skipped),
    ];
    assert_eq!((told(&events), problems(&events)), (expected.to_vec(), Vec::new()));
}

#[test]
fn documents_that_are_not_utf_8() {
    let of = |encoding: &str| {
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"{encoding}\"?><testsuite name='s'><testcase name='@'/></testsuite>"
        );
        let bytes: Vec<_> = text.bytes().map(|byte| if byte == b'@' { 0xe9 } else { byte }).collect();
        let events = read(Format::Junit, &bytes);
        (cases(&events)[0].name.clone(), problems(&events).join("|"))
    };
    assert_eq!(of("ISO-8859-1"), ("é".to_owned(), String::new()));
    assert_eq!(of("UTF-8"), ("\u{fffd}".to_owned(), String::new()));
    let (_, problem) = of("KOI8-R");
    assert_eq!(problem, "the JUnit document declares the encoding koi8-r, which is not supported; use UTF-8");
}

#[test]
fn subtests_of_node_tap_in_braces() {
    let text = "TAP version 14\nok 1 - opens {\nnot ok 2 - my subtest # time=5ms {\n    ok 1 - child\n    not ok 2 - inner {\n\
                \x20       not ok 1 - deep\n        1..1\n    }\n    1..2\n}\nok 3 - after\n1..3\n";
    let events = read(Format::Tap, text.as_bytes());
    let expected = [
        ("opens {", Passed),
        ("my subtest", Failed),
        ("my subtest > child", Passed),
        ("my subtest > inner", Failed),
        ("my subtest > inner > deep", Failed),
        ("after", Passed),
    ];
    assert_eq!((told(&events), problems(&events)), (expected.to_vec(), Vec::new()));
}

#[test]
fn an_error_after_the_end_of_a_node_test() {
    let text = include_str!("fixtures/node-late.tap");
    let events = read(Format::Tap, text.as_bytes());
    assert_eq!(told(&events), [("late", Passed), ("wait", Passed), ("/src/f.test.js", Failed)]);
    let why = message(&events, "/src/f.test.js");
    let reason = "Test \"late\" at f.test.js:2:1 generated asynchronous activity after the test ended. ";
    assert!(why.starts_with(&format!("test failed\n{reason}")) && why.contains("late uncaught"), "{why}");
    // With a failed test in the file, node has no point for the file.
    let (_, comment) = text.split_once("# Error: ").unwrap();
    let (comment, _) = comment.split_once('\n').unwrap();
    let alone = format!("not ok 1 - a\nok 2 - late\n# Error: {comment}\n1..2\n");
    let events = read(Format::Tap, alone.as_bytes());
    let name = "after the end of Test \"late\" at f.test.js:2:1";
    assert_eq!(told(&events), [("a", Failed), ("late", Passed), (name, Error)]);
    assert_eq!(message(&events, name), comment);
}

#[test]
fn a_target_that_dies_and_a_torn_line_in_the_json_of_libtest() {
    let suite = |test: &str, counts: &str| {
        format!(
            "{{\"type\":\"suite\",\"event\":\"started\"}}\n{test}\n{{\"type\":\"suite\",\"event\":\"ok\",{counts}}}\n"
        )
    };
    let failed = suite(r#"{"type":"test","event":"failed","name":"a"}"#, r#""passed":0,"failed":1"#);
    let passed = suite(r#"{"type":"test","event":"ok","name":"b"}"#, r#""passed":1,"failed":0"#);
    let text = include_str!("fixtures/libtest-target-dies.txt");
    let (_, end) = text.split_once("error: test failed, to rerun pass `--test z`").unwrap();
    let first = "     Running unittests src/lib.rs (target/debug/deps/crt-bd4320a1ed4935a6)\n";
    let second = "     Running tests/z.rs (target/debug/deps/z-8f45318cf33500f4)\n";
    let text = format!(
        "{first}{failed}error: test failed, to rerun pass `--lib`\n{second}{passed}error: test failed, to rerun pass `--test z`{end}"
    );
    let events = read(Format::LibtestJson, text.as_bytes());
    assert_eq!(told(&events), [("a", Failed), ("b", Passed), ("z", Error)]);
    assert_eq!(problems(&events), [""; 0]);
    assert!(message(&events, "z").ends_with("(signal: 6, SIGABRT: process abort signal)"), "{events:#?}");
    let torn = failed.replace(r#"{"type":"test""#, r#"oops{"type":"test""#);
    let events = read(Format::LibtestJson, torn.as_bytes());
    assert_eq!(problems(&events), ["the suite reported 1 tests, but only 0 of them have a line"]);
}
