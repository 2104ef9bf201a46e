//! What a command prints once is not kept for each of its tests, and what it prints without end is kept up to a limit.

use std::fmt::Write as _;
use std::sync::Arc;

use runtap_test::TestOutcome;
use runtap_test::formats::{Case, Event, Format, MAX_NAME_BYTES, MAX_SUITE_BYTES, Parser};

const LONG: usize = 1 << 20;
const TESTS: usize = 2000;

fn read(format: Format, text: &str) -> (Vec<Case>, Vec<String>) {
    let mut parser = Parser::new(format);
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    let pieces = text.as_bytes().chunks(64 << 10);
    let mut events: Vec<_> = pieces.flat_map(|piece| parser.feed(piece)).collect();
    events.extend(parser.finish());
    for event in events {
        match event {
            Event::Ended(case) => cases.push(*case),
            Event::Problem(text) | Event::Unreadable(text) => problems.push(text),
            _ => {}
        }
    }
    (cases, problems)
}

/// The text before, as many tests as there are, and the text behind.
fn around(before: &str, test: impl Fn(usize) -> String, behind: &str) -> String {
    (0..TESTS).fold(before.to_owned(), |text, number| text + &test(number)) + behind
}

#[test]
fn a_long_name_of_a_suite_is_shortened_and_shared() {
    let long = "a".repeat(LONG);
    let libtest = around(
        &format!("     Running unittests src (target/{long}-0123456789abcdef)\nrunning {TESTS} tests\n"),
        |number| format!("test t{number} ... ok\n"),
        "test result: ok.\n",
    );
    let tap = around(
        &format!("# Subtest: {long}\n    # Subtest: {long}\n"),
        |_| "        ok\n".to_owned(),
        &format!(
            "        1..{TESTS}\n    ok\n      ---\n      type: suite\n      ...\n    1..1\nok\n  ---\n  type: suite\n  ...\n1..1\n"
        ),
    );
    let junit = around(
        &format!("<testsuites><testsuite name='{long}'>"),
        |number| format!("<testcase name='{number}'/>"),
        "</testsuite></testsuites>",
    );
    for (format, text) in [(Format::Libtest, libtest), (Format::Tap, tap), (Format::Junit, junit)] {
        let (cases, problems) = read(format, &text);
        assert_eq!((cases.len(), problems), (TESTS, Vec::<String>::new()), "{format}");
        for case in &cases {
            assert_eq!(case.suite.len(), MAX_SUITE_BYTES, "{format}");
            assert!(Arc::ptr_eq(&case.suite, &cases[0].suite), "{format}: one text for all");
            assert!(case.uid.len() < MAX_SUITE_BYTES + 20, "{format}");
        }
    }
}

#[test]
fn long_names_of_tests_and_suites_stay_different() {
    let long = "a".repeat(LONG);
    let text = around(
        "1..2000\n",
        |number| format!("ok {} - {long}{number}\n", number + 1).repeat(usize::from(number < 3)),
        "",
    );
    let (cases, _) = read(Format::Tap, &text);
    let mut names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    assert!(names.iter().all(|name| name.len() == MAX_NAME_BYTES));
    names.dedup();
    assert_eq!(names.len(), 3);
    assert!(cases.iter().all(|case| case.uid == case.name), "no uid has come twice");

    let suites = ["x", "y"].map(|end| {
        let (cases, _) = read(
            Format::LibtestJson,
            &format!("{{\"type\":\"test\",\"event\":\"ok\",\"name\":\"{long}{end}$a\"}}\n"),
        );
        cases[0].suite.clone()
    });
    assert_eq!(suites.each_ref().map(|suite| suite.len()), [MAX_SUITE_BYTES; 2]);
    assert_ne!(suites[0], suites[1]);
}

fn printed(cases: &[Case]) -> usize {
    let of = |case: &Case| {
        let detail = case.detail.clone().unwrap_or_default();
        case.stdout.len() + case.stderr.len() + detail.message.len() + detail.stack.len()
    };
    cases.iter().map(of).sum()
}

#[test]
fn the_output_of_a_go_package_is_attached_once() {
    let line = |fields: &str| format!("{{\"Package\":\"p\",{fields}}}\n");
    for output in ["x".repeat(LONG), format!("panic: {}", "x".repeat(LONG))] {
        let text = around(
            &line(&format!("\"Action\":\"output\",\"Output\":\"{output}\"")),
            |number| line(&format!("\"Action\":\"run\",\"Test\":\"T{number:04}\"")),
            &line("\"Action\":\"fail\""),
        );
        let (cases, _) = read(Format::GoJson, &text);
        assert_eq!(cases.len(), TESTS);
        assert_eq!(cases[0].stdout, output);
        let expected = if output.starts_with("panic") { TestOutcome::Failed } else { TestOutcome::Error };
        assert!(cases.iter().all(|case| case.outcome == expected && case.detail.is_some()));
        assert!(printed(&cases) < 2 * LONG + TESTS * 300, "{} bytes", printed(&cases));

        let text = around(
            &(line(&format!("\"Action\":\"build-output\",\"Output\":\"{output}\""))
                + &line("\"Action\":\"build-fail\"")),
            |number| format!("{{\"Package\":\"p{number}\",\"Action\":\"fail\",\"FailedBuild\":\"p\"}}\n"),
            "",
        );
        let (cases, _) = read(Format::GoJson, &text);
        assert!(cases.len() == TESTS && printed(&cases) < 2 * LONG, "{} bytes", printed(&cases));
    }
}

#[test]
fn output_without_end_is_kept_up_to_a_limit() {
    let output = format!(
        "{{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"{}\"}}\n",
        "x".repeat(LONG)
    );
    let end = "{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"T\"}\n";
    let mut parser = Parser::new(Format::GoJson);
    for _ in 0..40 {
        assert_eq!(parser.feed(output.as_bytes()), []);
    }
    let [Event::Ended(case)] = &parser.feed(end.as_bytes())[..] else { panic!("it has ended") };
    assert_eq!(case.stdout.bytes().filter(|byte| *byte == b'x').count(), 16 * LONG);
    assert!(case.stdout.ends_with("\n[the output was longer, and is truncated here]\n"));
}

#[test]
fn the_files_of_a_test_are_named_once_each_and_not_without_end() {
    let mut text = "<testsuite name='s'><testcase name='t'><system-out>".to_owned();
    for number in 0..100_000 {
        writeln!(text, "[[ATTACHMENT|{number:08}]]").unwrap();
    }
    text += "</system-out><system-err>[[ATTACHMENT|00000000]]</system-err></testcase></testsuite>";
    let (cases, problems) = read(Format::Junit, &text);
    assert_eq!((cases[0].artifacts.len(), cases[0].stdout.as_str()), (1000, ""));
    assert_eq!(problems, ["the JUnit document names more than 1000 files of a test; 99000 were omitted"]);
}

#[test]
fn failures_beyond_the_limit_are_told_without_their_output() {
    let mut text = "running 40000 tests\n".to_owned();
    (0..40_000).for_each(|number| writeln!(text, "test t{number:05} ... FAILED").unwrap());
    text += "\nfailures:\n\n";
    for number in (0..40_000).rev() {
        writeln!(text, "---- t{number:05} stdout ----\nprinted by {number}\n").unwrap();
    }
    text += "\nfailures:\n";
    (0..40_000).for_each(|number| writeln!(text, "    t{number:05}").unwrap());
    text += "\ntest result: FAILED.\nrunning 1 test\ntest a ... ok\ntest result: ok.\n";
    let (cases, problems) = read(Format::Libtest, &text);
    assert_eq!((cases.len(), problems), (40_001, Vec::new()));
    let mut messages = std::collections::BTreeMap::new();
    for case in &cases {
        let Some(detail) = &case.detail else { continue };
        assert_eq!(case.outcome, TestOutcome::Failed);
        let own = format!("printed by {}", case.name.strip_prefix("t").unwrap().parse::<u32>().unwrap());
        *messages.entry(if detail.message == own { "its own" } else { &detail.message }).or_insert(0) += 1;
    }
    let expected =
        [("its own", 10_000), ("the output was skipped because 10000 tests had failed before", 30_000)];
    assert_eq!(Vec::from_iter(messages), expected);
}
