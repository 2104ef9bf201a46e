//! What the schema `junit-10.xsd` of Jenkins' xUnit plugin allows, as rules: of each element its attributes, those that it must
//! have, and its children.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use runtap_test_report::{Format, Location, Memory, Source as _};

use crate::{run, written};

const RESULTS: [&str; 4] = ["rerunFailure", "rerunError", "flakyFailure", "flakyError"];

/// The attributes of an element and how many of them it must have: the first ones.
fn attributes(element: &str) -> (&'static [&'static str], usize) {
    match element {
        "testsuites" => (&["name", "time", "tests", "failures", "errors"], 0),
        "testsuite" => (
            &[
                "name",
                "tests",
                "failures",
                "errors",
                "group",
                "time",
                "skipped",
                "timestamp",
                "hostname",
                "id",
                "package",
                "file",
                "log",
                "url",
            ],
            4,
        ),
        "testcase" => (&["name", "time", "classname", "group"], 1),
        "property" => (&["name", "value"], 2),
        "failure" | "error" | "skipped" => (&["type", "message"], 0),
        _ if RESULTS.contains(&element) => (&["type", "message"], 1),
        _ => (&[], 0),
    }
}

fn may_contain(parent: &str, child: &str) -> bool {
    match parent {
        "" => child == "testsuites" || child == "testsuite",
        "testsuites" => child == "testsuite",
        "testsuite" => ["testsuite", "properties", "testcase", "system-out", "system-err"].contains(&child),
        "properties" => child == "property",
        "testcase" => {
            RESULTS.contains(&child)
                || ["skipped", "error", "failure", "system-out", "system-err"].contains(&child)
        }
        _ if RESULTS.contains(&parent) => ["stackTrace", "system-out", "system-err"].contains(&child),
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    [seconds, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn name(start: &BytesStart<'_>) -> String {
    String::from_utf8(start.name().0.to_vec()).unwrap()
}

/// Panics if the rules forbid something.
fn obeys(xml: &str) {
    let mut reader = Reader::from_str(xml);
    let mut open: Vec<String> = vec![String::new()];
    // The children of the open elements so far.
    let mut children: Vec<Vec<String>> = vec![Vec::new()];
    loop {
        let event = reader.read_event().unwrap();
        match &event {
            Event::Start(start) | Event::Empty(start) => {
                let (element, parent) = (name(start), open.last().unwrap());
                assert!(may_contain(parent, &element), "<{element}> in <{parent}>");
                let (allowed, required) = attributes(&element);
                let has: Vec<_> = start.attributes().map(|it| it.unwrap()).collect();
                let names: Vec<_> = has.iter().map(|it| std::str::from_utf8(it.key.0).unwrap()).collect();
                assert!(names.iter().all(|name| allowed.contains(name)), "<{element}> has {names:?}");
                assert!(
                    allowed[..required].iter().all(|name| names.contains(name)),
                    "<{element}> has {names:?}"
                );
                if element.starts_with("testsuite") {
                    let time = has.iter().find(|it| it.key.0 == b"time").unwrap();
                    assert!(is_time(std::str::from_utf8(&time.value).unwrap()), "{time:?}");
                }
                children.last_mut().unwrap().push(element.clone());
                if matches!(event, Event::Start(_)) {
                    open.push(element);
                    children.push(Vec::new());
                }
            }
            Event::End(_) => {
                let (element, children) = (open.pop().unwrap(), children.pop().unwrap());
                if RESULTS.contains(&element.as_str()) {
                    let order = ["stackTrace", "system-out", "system-err"];
                    let places: Vec<_> =
                        children.iter().map(|it| order.iter().position(|name| name == it)).collect();
                    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{element}: {children:?}");
                }
            }
            Event::Text(text) => {
                let mixed = ["failure", "error", "skipped", "system-out", "system-err", "stackTrace"];
                let parent = open.last().unwrap();
                let is_blank = text.trim_ascii().is_empty();
                assert!(is_blank || mixed.contains(&parent.as_str()), "text in <{parent}>");
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, [""]);
}

#[test]
fn a_report_for_the_xunit_plugin_obeys_its_schema() {
    obeys(&written(Format::Junit10, &run::sample()));
    // One without results, with an error of the run.
    obeys(&written(Format::Junit10, &Memory::new(run::sample().run().clone(), [])));
}

#[test]
fn it_has_all_results_of_the_other_one() {
    let (full, strict) = (written(Format::Junit, &run::sample()), written(Format::Junit10, &run::sample()));
    let others = [
        "<testcase ",
        "<failure ",
        "<error ",
        "<skipped",
        "<rerunFailure ",
        "<flakyFailure ",
        "<system-out>",
    ];
    for element in others {
        let count = full.matches(element).count();
        assert!(count > 0, "{element}");
        assert_eq!(strict.matches(element).count(), count, "{element}");
    }
    assert!(strict.contains("<property name=\"framework\" value=\"net10.0\"/>"), "those of a suite stay");
}

#[test]
fn a_suite_has_the_file_that_all_of_its_tests_are_in() {
    let sample = run::sample();
    let result = |file: Option<&str>| {
        let mut result = sample.result(0, 0).unwrap().into_owned();
        result.location = file.map(|file| Location { file: file.to_owned(), line: Some(7) });
        result
    };
    let suite = |files: &[Option<&str>]| {
        let results = files.iter().copied().map(result).collect();
        let run = Memory::new(sample.run().clone(), [(sample.modules()[0].clone(), results)]);
        let xml = written(Format::Junit10, &run);
        obeys(&xml);
        let suites = xml.lines().filter(|line| line.contains("<testsuite ") && line.contains("PickingTests"));
        suites.map(|line| line.contains(" file=\"/src/A.cs\"")).collect::<Vec<_>>()
    };
    assert_eq!(suite(&[Some("/src/A.cs"), Some("/src/A.cs")]), [true]);
    assert_eq!(suite(&[Some("/src/A.cs"), Some("/src/B.cs")]), [false]);
    assert_eq!(suite(&[Some("/src/A.cs"), None]), [false]);
    assert_eq!(suite(&[None, Some("/src/A.cs")]), [false]);
}
