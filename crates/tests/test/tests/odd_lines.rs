//! Lines of TAP and of JSON that are not as they have to be: no result in or behind them is lost without a word.

mod told;

use runtap_test::TestOutcome;
use runtap_test::formats::Format;

use told::{cases, problems, read, told};

use TestOutcome::{Failed, Passed, Skipped};

#[test]
fn only_two_words_are_directives_of_tap() {
    for (directive, outcome) in [
        ("TODO", Skipped),
        ("todo later", Skipped),
        ("Skip", Skipped),
        ("SKIP: no disk", Skipped),
        ("todos are bad", Failed),
        ("skipping things", Failed),
        ("TODO_LIST", Failed),
        ("time=5ms", Failed),
        ("", Failed),
    ] {
        let events = read(Format::Tap, format!("1..1\nnot ok 1 - a # {directive}\n"));
        assert_eq!((told(&events), problems(&events)), (vec![("a", outcome)], vec![]), "{directive}");
    }
    let events = read(Format::Tap, "1..2\nok 1 - a # skip: no disk\nok 2 - b # SKIP issue \\#7 # and \\\\\n");
    let reasons: Vec<&str> = cases(&events).iter().map(|case| case.reason.as_str()).collect();
    assert_eq!(reasons, ["no disk", "issue #7 # and \\"]);
}

#[test]
fn numbers_of_tap_points_are_those_of_the_plan() {
    let problem = |text: &str| problems(&read(Format::Tap, text)).concat();
    assert_eq!(problem("1..2\nok 1 - a\nok 1 - b\n"), "several tests have the number 1");
    assert_eq!(problem("ok 1 - a\nok 5 - b\n1..2\n"), "a test has the number 5, but the plan is 1..2");
    assert_eq!(problem("1..1\nok 0 - a\n"), "a test has the number 0, but the plan is 1..1");
    assert_eq!(problem("1..3\nok 2 - a\nok - b\nnot ok 1 - c\n"), "", "any order, and some without");
    let nested = "1..2\n    ok 1 - a\n    1..1\nok 1 - b\n    ok 1 - a\n    1..1\nok 2 - c\n";
    assert_eq!(problem(nested), "");
    assert_eq!(problem("1..2\nok 1 - a\nBAIL OUT! no disk\n"), "the tests were aborted: no disk");
}

#[test]
fn diagnostics_of_tap_without_an_end_swallow_no_results() {
    let text = "1..3\nok 1 - a\n  ---\n  x: |-\n    ok 7 - text\n\nok then\nnot ok 2 - b\n  ...\nok 3 - c\n";
    let events = read(Format::Tap, text);
    assert_eq!(told(&events), [("a", Passed), ("b", Failed), ("c", Passed)]);
    assert_eq!(problems(&events), [""; 0]);
    let events = read(Format::Tap, "1..1\nok 1 - a\n  ---\n  x: 1\n");
    assert_eq!(told(&events), [("a", Passed)]);
    assert_eq!(problems(&events), ["the output ended within the diagnostics of a test"]);
}

#[test]
fn summaries_of_tap_are_compared() {
    let problem = |summary: &str| {
        let text = format!("1..2\nok 1 - a\n# fail 9\nnot ok 2 - b # TODO\n# tests 2\n{summary}");
        problems(&read(Format::Tap, &text)).concat()
    };
    assert_eq!(problem("# pass 0\n# fail 2\n"), "the summary counts 2 failures, but there are 1");
    assert_eq!(problem("# pass  1\n# fail  1\n# cancelled 0\n"), "");
    assert_eq!(problem("# fail 2\n"), "", "a test may print such a line");
}

const SUITE: &str = "{\"type\":\"suite\",\"event\":\"started\",\"test_count\":2}\n";
const BOTH: &str = "{\"type\":\"test\",\"name\":\"a\",\"event\":\"ok\"}\n{\"type\":\"test\",\"name\":\"b\",\"event\":\"ok\"}\n";

#[test]
fn results_of_libtest_json_that_are_counted_or_torn() {
    let problem = |lines: &str, event: &str, passed: u64| {
        let end = format!("{{\"type\":\"suite\",\"event\":\"{event}\",\"passed\":{passed},\"failed\":0}}\n");
        let both = [Format::LibtestJson, Format::Nextest]
            .map(|format| problems(&read(format, format!("{SUITE}{lines}{end}"))).join("; "));
        assert_eq!(both[0], both[1]);
        both[0].clone()
    };
    assert_eq!(problem(BOTH, "ok", 2), "");
    assert_eq!(
        problem(BOTH, "failed", 2),
        "the suite reported 1 failed tests, but only 0 of them have a line"
    );
    let (one, _) = BOTH.split_once('\n').unwrap();
    let one = format!("{one}\n");
    assert_eq!(problem(&one, "ok", 1), "the suite has 2 tests, but only 1 of them have a line");
    for torn in ["\"name\":5", "\"name\":\"b\",\"exec_time\":\"x\"", "\"name\":\"b\\ud800\""] {
        let line = format!("{one}{{\"type\":\"test\",\"event\":\"failed\",{torn}}}\n");
        assert!(problem(&line, "failed", 1).starts_with("a line about a test is not readable: "), "{torn}");
    }
    let nameless = format!("{BOTH}{{\"type\":\"test\",\"event\":\"failed\"}}\n");
    assert_eq!(problem(&nameless, "ok", 2), "a line about a test has no name");
    let printed = format!("{BOTH}{{\"type\":\"car\",\"name\":5}}\n{{\n");
    assert_eq!(problem(&printed, "ok", 2), "", "tests print what they like");
}

#[test]
fn suites_of_nextest_count_failures_together() {
    let suite = |event: &str| format!("{{\"type\":\"suite\",\"event\":\"{event}\",\"failed\":0}}\n");
    let tests = BOTH.replace("\"a\"", "\"c::c$a\"");
    let text = format!("{SUITE}{tests}{}", suite("failed"));
    let told = problems(&read(Format::Nextest, &text)).concat();
    assert_eq!(told, "the suites reported 1 failed tests, but only 0 of them have a line");
    assert_eq!(problems(&read(Format::Nextest, format!("{SUITE}{tests}{}", suite("ok")))), [""; 0]);
}

#[test]
fn events_of_go_that_are_torn_or_side_by_side() {
    let event = |action: &str, more: &str| format!("{{\"Action\":\"{action}\",\"Package\":\"p\"{more}}}");
    let (start, pass) = (event("start", ""), event("pass", ""));
    let (a, b) = (event("fail", ",\"Test\":\"A\""), event("pass", ",\"Test\":\"B\""));
    for lines in [format!("{b}{a}"), format!(" {b} {a}"), format!("text{b}\n{a}text")] {
        let events = read(Format::GoJson, format!("{start}\n{lines}\n{pass}\n"));
        assert_eq!(
            (told(&events), problems(&events)),
            (vec![("p.B", Passed), ("p.A", Failed)], vec![]),
            "{lines}"
        );
    }
    for torn in
        [",\"Test\":\"A\",\"Elapsed\":\"x\"", ",\"Test\":\"A\\ud800\"", ",\"Test\":\"A\",\"Output\":5"]
    {
        let torn = event("fail", torn);
        let events = read(Format::GoJson, format!("{start}\n{b}{torn}\n{pass}\n"));
        assert_eq!(told(&events), [("p.B", Passed)]);
        assert_eq!(problems(&events), [format!("an event of go is not readable: {torn}")]);
    }
    let events = read(Format::GoJson, format!("{start}\n{{\"Action\":\"fail\",\"Test\":\"A\"}}\n{pass}\n"));
    assert_eq!(problems(&events), ["an event fail of go names no package"]);
    let events = read(Format::GoJson, format!("{start}\n{{\"a\":1}}\n{{\n{b}\n{pass}\n"));
    assert_eq!(problems(&events), [""; 0]);
}

#[test]
fn tests_without_a_name() {
    let junit = "<testsuite name='s'><testcase classname='c'/><testcase name=' '/></testsuite>";
    assert_eq!(told(&read(Format::Junit, junit)), [("c.(unnamed)", Passed), ("s.(unnamed)", Passed)]);
    let names: Vec<_> = cases(&read(Format::Junit, junit)).iter().map(|case| case.name.clone()).collect();
    assert_eq!(names, ["(unnamed)"; 2]);
    let go =
        "{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"\"}\n{\"Action\":\"pass\",\"Package\":\"p\"}\n";
    assert_eq!(told(&read(Format::GoJson, go)), [("p.(unnamed)", Passed)]);
    let json = "{\"type\":\"test\",\"name\":\"\",\"event\":\"ok\"}\n";
    assert_eq!(told(&read(Format::LibtestJson, json)), [("(unnamed)", Passed)]);
}
