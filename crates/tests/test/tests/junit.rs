//! What documents of JUnit's form say in other ways than most: attributes, several failures, counts, entities.

mod told;

use runtap_test::TestOutcome;
use runtap_test::formats::{Event, Format};

use told::{cases, problems, read, told};

#[track_caller]
fn message<'a>(events: &'a [Event], uid: &str) -> &'a str {
    let case = cases(events).into_iter().find(|case| case.uid == uid);
    &case.and_then(|case| case.detail.as_ref()).unwrap_or_else(|| panic!("{uid}: {events:#?}")).message
}

fn junit(tests: &str) -> Vec<Event> {
    read(Format::Junit, format!("<testsuite name=\"s\">{tests}</testsuite>").as_bytes())
}

#[test]
fn attributes_of_junit_tests_say_that_they_failed() {
    let outcomes = [
        ("status=\"failed\"", TestOutcome::Failed),
        ("result=\"Failed\"", TestOutcome::Failed),
        ("status=\"run\" result=\"FAIL\"", TestOutcome::Failed),
        ("status=\"skipped\" result=\"error\"", TestOutcome::Error),
        ("status=\"timeout\"", TestOutcome::Timeout),
        ("status=\"NotRun\"", TestOutcome::Skipped),
        ("status=\"run\" result=\"completed\"", TestOutcome::Passed),
        ("status=\"passed\"", TestOutcome::Passed),
    ];
    for (attributes, outcome) in outcomes {
        let events = junit(&format!("<testcase name=\"a\" {attributes}/>"));
        assert_eq!((told(&events), problems(&events)), (vec![("s.a", outcome)], vec![]), "{attributes}");
        let is_bad = !matches!(outcome, TestOutcome::Passed | TestOutcome::Skipped);
        assert_eq!(cases(&events)[0].detail.is_some(), is_bad, "{attributes}");
    }
    let events = junit("<testcase name=\"a\" status=\"failed\"><failure message=\"why\"/></testcase>");
    assert_eq!(message(&events, "s.a"), "why");
    let events = junit("<testcase name=\"a\" status=\"failed\"><skipped/></testcase>");
    assert_eq!(told(&events), [("s.a", TestOutcome::Failed)]);
    let text = "<testsuite failures=\"1\"><testcase name=\"a\" status=\"failed\"/></testsuite>";
    assert_eq!(problems(&read(Format::Junit, text.as_bytes())), [""; 0]);
}

#[test]
fn later_failures_of_a_junit_test_keep_their_text() {
    let events = junit(
        "<testcase name=\"a\"><failure message=\"one\">at 1</failure><error message=\"two\">at 2</error>\
         <failure>three\nat 3</failure><failure type=\"Four\"/></testcase>",
    );
    assert_eq!(told(&events), [("s.a", TestOutcome::Failed)]);
    let detail = cases(&events)[0].detail.clone().unwrap();
    assert_eq!(detail.message, "one\ntwo\nthree\nFour");
    assert_eq!(detail.stack, "at 1\n\nat 2\n\nthree\nat 3");
}

#[test]
fn counts_of_junit_suites_in_other_forms() {
    let problem = |failures: &str| {
        let text =
            format!("<testsuite name=\"s\" failures=\"{failures}\"><testcase name=\"a\"/></testsuite>");
        problems(&read(Format::Junit, text.as_bytes())).concat()
    };
    for none in ["", "0", "0.0", "+0", " 0 "] {
        assert_eq!(problem(none), "");
    }
    for some in ["1.0", "+1", " 1 ", "1.00"] {
        assert_eq!(problem(some), "the suite s counts 1 failures and errors, but the document has 0");
    }
    for unreadable in ["99999999999999999999999", "many", "1.5", "-1", ".", "NaN"] {
        let expected = format!("the suite s has failures=\"{unreadable}\", which is not a number");
        assert_eq!(problem(unreadable), expected);
    }
}

#[test]
fn junit_documents_with_entities_or_text_behind_them() {
    let suite = "<testsuite name=\"s\"><testcase name=\"a\">&f;</testcase></testsuite>";
    let events = read(Format::Junit, format!("<!DOCTYPE t [<!ENTITY f \"<failure/>\">]>{suite}").as_bytes());
    assert_eq!(events.len(), 1);
    assert_eq!(problems(&events), ["the JUnit document declares entities, which are not read"]);
    let events = read(Format::Junit, format!("<!DOCTYPE t SYSTEM \"t.dtd\">{suite}").as_bytes());
    assert_eq!(problems(&events), ["the JUnit document has the unknown entity &f;"]);
    let suite = suite.replace("&f;", "");
    for behind in ["garbage", "\n\0\n", "<![CDATA[x]]>"] {
        let events = read(Format::Junit, format!("{suite}{behind}").as_bytes());
        assert_eq!(problems(&events), ["text follows the end of the JUnit document"], "{behind:?}");
        assert_eq!(told(&events), [("s.a", TestOutcome::Passed)]);
    }
    for fine in ["\n\n", "<!-- end -->\n", "<?end?>"] {
        let events = read(Format::Junit, format!("<!DOCTYPE testsuite>{suite}{fine}").as_bytes());
        assert_eq!(problems(&events), [""; 0], "{fine:?}");
    }
}
