//! What TAP says of its own completeness holds at each level of subtests.

mod told;

use runtap_test::TestOutcome;
use runtap_test::formats::Format;

use told::{problems, read, told};

use TestOutcome::{Failed, Passed, Skipped};

/// What is wrong with a text.
fn problem(text: &str) -> String {
    problems(&read(Format::Tap, text)).join("; ")
}

/// A subtest `p` of these lines, by a comment and in braces.
#[track_caller]
fn of_subtest(lines: &[&str]) -> String {
    let inner = lines.iter().fold(String::new(), |text, line| text + "    " + line + "\n");
    let announced = problem(&format!("1..1\n# Subtest: p\n{inner}ok 1 - p\n"));
    let braced = problem(&format!("1..1\nok 1 - p {{\n{inner}}}\n"));
    let deeper = inner.replace("    ", "        ");
    let nested =
        problem(&format!("# Subtest: o\n    # Subtest: p\n{deeper}    ok 1 - p\n    1..1\nok 1 - o\n1..1\n"));
    assert_eq!(announced, braced);
    assert_eq!(announced, nested.replace("o > p", "p"));
    announced
}

#[test]
fn plans_and_numbers_of_subtests() {
    assert_eq!(of_subtest(&["1..2", "ok 1 - a", "ok 2 - b"]), "");
    assert_eq!(of_subtest(&["ok 1 - a", "1..3"]), "the subtest p ended after 1 of 3 tests");
    assert_eq!(
        of_subtest(&["1..1", "ok - a", "ok - b"]),
        "there were 2 tests of the subtest p, but the plan is 1"
    );
    assert_eq!(
        of_subtest(&["ok 1 - a"]),
        "the plan of the subtest p is missing: the output may be truncated"
    );
    assert_eq!(of_subtest(&["1..2", "ok 1", "ok 1"]), "several tests of the subtest p have the number 1");
    assert_eq!(
        of_subtest(&["1..2", "ok 1", "ok 3"]),
        "a test of the subtest p has the number 3, but the plan is 1..2"
    );
    assert_eq!(of_subtest(&["1..2", "ok 1", "1..1"]), "the subtest p ended after 1 of 2 tests");
    assert_eq!(of_subtest(&["1..1", "ok 1", "1..9"]), "there are two plans of the subtest p: 1..1 and 1..9");
    assert_eq!(
        of_subtest(&["1..1", "ok 1", "# pass 0", "# fail 1", "# cancelled 1"]),
        "the summary of the subtest p counts 2 failures, but there are 0"
    );
}

#[test]
fn a_failed_point_explains_its_subtest() {
    // Perl.
    let text = "# Subtest: bad\n    1..3\n    ok 1\nnot ok 1 - bad\n1..1\n";
    let events = read(Format::Tap, text);
    assert_eq!((told(&events), problems(&events)), (vec![("bad > test 1", Passed), ("bad", Failed)], vec![]));
}

#[test]
fn subtests_without_a_point() {
    let missing = |name: &str| format!("the subtest {name} has no test point of its own");
    assert_eq!(problem("1..1\nok 1 - p\n# Subtest: q\n    ok 1 - c\n    1..1\n"), missing("q"));
    assert_eq!(problem("1..1\nok 1 - p\n# Subtest: q\n"), missing("q"));
    let between =
        "1..1\n# Subtest: q\n    1..5\n    ok 1 - c\n# Subtest: p\n    1..1\n    ok 1 - d\nok 1 - p\n";
    assert_eq!(problem(between), missing("q"));
    let within = "1..1\n# Subtest: p\n    # Subtest: q\n        1..1\n        ok 1 - c\n    1..0\nok 1 - p\n";
    assert_eq!(problem(within), missing("p > q"));
    let bare = "1..1\nok 1 - p\n    ok 1 - c\n    1..1\n";
    assert_eq!(problem(bare), "an indented subtest has no test point of its own");
    assert_eq!(
        problem("1..1\n    1..2\n# Subtest: p\nok 1 - p\n"),
        "an indented subtest has no test point of its own"
    );
    let printed =
        "# Subtest: p\nok 1 - p\n# Subtest: printed\n# Subtest: q\nok 2 - q\n# Subtest: printed\n1..2\n";
    assert_eq!(problem(printed), "", "a test may print such a line");
    assert_eq!(problem(&printed.replace("1..2", "1..3")), "the command ended after 2 of 3 tests");
    assert_eq!(problem("1..1\n    ok then\nok 1 - p\n"), "", "text that is no subtest");
}

#[test]
fn subtests_in_braces_that_are_cut() {
    let whole = "1..1\nok 1 - a {\n    1..1\n    not ok 1 - b {\n        1..2\n        ok 1 - x\n        ok 2 - y\n    }\n}\n";
    assert_eq!(problem(whole), "");
    let cut_at = |end: &str| problem(whole.split_once(end).unwrap().0);
    assert_eq!(
        cut_at("}\n}\n"),
        "the subtest a > b has no closing brace; the subtest a has no closing brace"
    );
    assert_eq!(
        cut_at("        ok 2"),
        "the subtest a > b ended after 1 of 2 tests; the subtest a has no closing brace"
    );
    assert_eq!(problem("1..2\nok 1 - f {\n    text\nok 2 - g\n"), "", "a name and text");
}

#[test]
fn forms_of_subtests_in_use() {
    let node = "TAP version 13\n# Subtest: s\n    # Subtest: a\n    ok 1 - a\n      ---\n      duration_ms: 1\n      ...\n    # Subtest: empty\n\
                \x20       1..0\n    ok 2 - empty\n    1..2\nok 1 - s\n# Subtest: gone\nnot ok 2 - gone\n  ---\n\
                \x20 failureType: 'cancelledByParent'\n  ...\n1..2\n# tests 3\n# suites 1\n# pass 2\n# fail 0\n# cancelled 1\n";
    let perl = "1..3\nok 1 - a\n# Subtest: skipped\n    1..0 # SKIP no\nok 2 # skip no\n# Subtest: dn\n    ok 1\n    # Subtest: deep\n\
                \x20       ok 1\n        1..1\n    ok 2 - deep\n    1..2\nok 3 - dn\n";
    // The comment is a line of the subtest.
    let old = "    # Subtest: a\n    ok 1 - x\n        # Subtest: in\n        1..0 # SKIP no\n    ok 2 # skip no\n    1..2\nok 1 - a\n\
               \x20   # Subtest: b\n    ok 1 - y\n    1..1\nok 2 - b\n1..2\n";
    for text in [node, perl, old] {
        assert_eq!(problem(text), "", "{text}");
    }
    let events = read(Format::Tap, old);
    let expected =
        [("a > x", Passed), ("a > test 2", Skipped), ("a", Passed), ("b > y", Passed), ("b", Passed)];
    assert_eq!(told(&events), expected);
    assert_eq!(problem(&old.replace("1..1", "1..3")), "the subtest b ended after 1 of 3 tests");
    assert_eq!(problem(&old.replace("ok 2 - b\n", "")), "the command ended after 1 of 2 tests");
}

/// Its diagnostics are four columns further in than their point.
#[test]
fn vitest() {
    let text = "TAP version 13\n1..2\nnot ok 1 - a.test.ts # time=5.00ms {\n    1..1\n    not ok 1 - s # time=4.00ms {\n\
                \x20       1..2\n        ok 1 - x # time=1.00ms\n        not ok 2 - y # time=1.00ms\n            ---\n\
                \x20           error:\n                name: \"AssertionError\"\n                message: \"no\"\n            at: \"a.test.ts:1:2\"\n            ...\n\
                \x20   }\n}\nok 2 - b.test.ts # time=1.00ms {\n    1..1\n    ok 1 - z # time=1.00ms\n}\n";
    let events = read(Format::Tap, text);
    let expected = [
        ("a.test.ts", Failed),
        ("a.test.ts > s", Failed),
        ("a.test.ts > s > x", Passed),
        ("a.test.ts > s > y", Failed),
        ("b.test.ts", Passed),
        ("b.test.ts > z", Passed),
    ];
    assert_eq!((told(&events), problem(text)), (expected.to_vec(), String::new()));
    let cut = text.replace("    1..1\n    ok 1 - z # time=1.00ms\n}\n", "    1..2\n    ok 1 - z\n");
    assert_eq!(problem(&cut), "the subtest b.test.ts ended after 1 of 2 tests");
}

#[test]
fn points_that_a_tab_indents() {
    let events = read(Format::Tap, "1..1\n\tnot ok 1 - c\n\t1..1\nok 1 - p\n\tok then\n\t\tat x\n");
    assert_eq!((told(&events), problems(&events)), (vec![("c", Failed), ("p", Passed)], vec![]));
}

#[test]
fn numbers_above_all_plans() {
    assert_eq!(
        problem("1..1\nok 18446744073709551617 - a\n"),
        "a test has the number 18446744073709551617, but the plan is 1..1"
    );
}

#[test]
fn cancelled_tests_of_a_summary_are_failures() {
    let summary = |counts: &str| problem(&format!("1..2\nok 1 - a\nnot ok 2 - b\n# pass 1\n{counts}"));
    assert_eq!(summary("# fail 0\n# cancelled 1\n"), "");
    assert_eq!(summary("# fail 1\n# cancelled 0\n"), "");
    assert_eq!(summary("# fail 1\n# cancelled 1\n"), "the summary counts 2 failures, but there are 1");
    assert_eq!(summary("# cancelled 9\n"), "", "a test may print such a line");
}

/// A suite of node that is not ok, with these lines in it.
fn suite(inner: &str, why: &str) -> String {
    let inner = inner.lines().fold(String::new(), |text, line| text + "    " + line + "\n");
    format!(
        "# Subtest: s\n{inner}    1..1\nnot ok 1 - s\n  ---\n  type: 'suite'\n  failureType: '{why}'\n  ...\n1..1\n"
    )
}

#[track_caller]
fn outcomes(text: &str, expected: &[TestOutcome]) {
    let outcomes: Vec<_> = told(&read(Format::Tap, text)).into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, expected, "{text}");
}

#[test]
fn a_suite_that_failed_by_its_tests_has_one_that_failed() {
    outcomes(&suite("not ok 1 - a", "subtestsFailed"), &[Failed]);
    outcomes(&suite("ok 1 - a", "subtestsFailed"), &[Passed, TestOutcome::Error]);
    outcomes(&suite("not ok 1 - a # TODO", "subtestsFailed"), &[Skipped, TestOutcome::Error]);
    let nested = suite("not ok 1 - a", "subtestsFailed").replace("# Subtest: s", "# Subtest: q");
    outcomes(&suite(nested.trim_end_matches("1..1\n"), "subtestsFailed"), &[Failed]);
}

/// What a test has cancelled itself is nothing that its suite was cancelled by.
#[test]
fn a_subtest_that_its_test_cancels_explains_no_suite() {
    let test = "    not ok 1 - x\n      ---\n      failureType: 'cancelledByParent'\n      ...\n    1..1\nnot ok 1 - known\n  ---\n  \
                failureType: 'subtestsFailed'\n  ...";
    outcomes(&suite(test, "cancelledByParent"), &[Failed, Failed, TestOutcome::Error]);
}

/// A hook that never ends cancels its suite, and the suites around it.
#[test]
fn a_suite_that_is_cancelled_has_something_that_was() {
    let cancelled = "cancelledByParent";
    let test = format!("not ok 1 - a\n  ---\n  failureType: '{cancelled}'\n  ...");
    outcomes(&suite(&test, cancelled), &[Failed]);
    for (inner, outcome) in [("ok 1 - a", Passed), ("not ok 1 - a", Failed), ("not ok 1 - a # TODO", Skipped)]
    {
        outcomes(&suite(inner, cancelled), &[outcome, TestOutcome::Error]);
        let nested = suite(inner, cancelled);
        outcomes(&suite(nested.trim_end_matches("1..1\n"), cancelled), &[outcome, TestOutcome::Error]);
    }
}

#[test]
fn a_failure_that_is_too_deep_is_told() {
    let text = format!("{}not ok 1 - c\nok 1 - p\n1..1\n", "    ".repeat(101));
    assert_eq!(problem(&text), "a failed test is nested in more than 100 subtests");
}
