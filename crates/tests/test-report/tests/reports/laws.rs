//! Whatever a test calls itself and writes: files stay readable, and nothing breaks out of them.

use std::collections::BTreeMap;

use crate::{run, written};
use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;
use runtap_test_report::events::Events;
use runtap_test_report::{
    Artifact, Attempt, Exception, Format, Location, Memory, Source as _, TestOutcome, TestResult, Trait,
    github, trouble,
};
use serde_json::Value;

/// Any text, and often one made of what formats have special meanings for.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<",
        ">",
        "&",
        "]]>",
        "<!--",
        "-->",
        "</script>",
        "</pre>",
        "</details>",
        "\"",
        "'",
        "\\",
        "\\u003c",
        "\0",
        "\x1b[0m",
        "\x1b]0;",
        "\u{9b}",
        "\r\n",
        "\r",
        "\n\n",
        "\t",
        "\u{fffe}",
        "\u{ffff}",
        "\u{2028}",
        "|",
        "`",
        "%0A",
        "::",
        ",",
        "é",
        "𝄞",
        "#",
        "##[error]",
        "\u{202e}",
        "\u{2066}",
        "\u{200f}",
        "www.",
        "\n::error::",
    ]);
    prop_oneof![any::<String>(), prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())]
}

fn any_attempt() -> impl Strategy<Value = Attempt> {
    let state = prop::sample::select(TestOutcome::ALL.to_vec());
    let exception = prop::array::uniform3(any_text()).prop_map(|[message, type_name, stack]| Exception {
        message,
        type_name,
        stack,
    });
    let texts = prop::array::uniform4(prop::option::of(any_text()));
    (state, any::<Option<i64>>(), prop::collection::vec(exception, 0..3), texts).prop_map(
        |(state, duration_ns, exceptions, [reason, expected, actual, output])| {
            let stdout = output.unwrap_or_default();
            let stderr = reason.clone().unwrap_or_default();
            Attempt {
                state,
                duration_ns,
                exceptions,
                reason,
                expected,
                actual,
                stdout,
                stderr,
                started: None,
            }
        },
    )
}

fn any_result() -> impl Strategy<Value = TestResult> {
    let earlier = prop::collection::vec(any_attempt(), 0..3);
    (prop::array::uniform8(any_text()), any_attempt(), earlier, any::<(bool, bool)>()).prop_map(
        |(
            [uid, name, namespace, type_name, method, file, key, value],
            last,
            earlier,
            (known, quarantined),
        )| TestResult {
            uid,
            name,
            namespace: known.then_some(namespace),
            type_name: known.then_some(type_name),
            method: known.then_some(method),
            location: known.then(|| Location { file: file.clone(), line: Some(7) }),
            traits: vec![
                Trait { key: key.clone(), value: value.clone() },
                Trait { key, value: String::new() },
            ],
            quarantined,
            last,
            earlier,
            artifacts: vec![Artifact { path: file, name: value, description: String::new() }],
        },
    )
}

fn any_run() -> impl Strategy<Value = Memory> {
    let results = prop::collection::vec(any_result(), 0..4);
    (results, prop::array::uniform3(any_text()), prop::option::of(any_text())).prop_map(
        |(results, texts, error)| {
            let sample = run::sample();
            let (mut run, mut module) = (sample.run().clone(), sample.modules()[0].clone());
            run.interrupted.clone_from(&error);
            [module.path, module.framework, module.stderr] = texts;
            module.name.clone_from(&module.path);
            run.machine.clone_from(&module.path);
            run.command.push(module.path.clone());
            module.error = error;
            Memory::new(run, [(module, results)])
        },
    )
}

/// How often each element occurs. Panics if the XML is not well formed, or has a character that XML 1.0 does not.
fn elements(xml: &str) -> BTreeMap<String, usize> {
    let allowed =
        |c: char| !matches!(c, '\0'..='\x08' | '\x0b'..='\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    assert!(xml.chars().all(allowed));
    let mut reader = Reader::from_str(xml);
    let mut counts = BTreeMap::new();
    let mut open = 0;
    loop {
        let event = reader.read_event().expect("well formed");
        if let Event::Start(start) | Event::Empty(start) = &event {
            *counts.entry(String::from_utf8(start.name().0.to_vec()).unwrap()).or_default() += 1;
            for attribute in start.attributes() {
                let attribute = attribute.expect("an attribute");
                let value = std::str::from_utf8(&attribute.value).unwrap();
                assert!(!value.contains('<'));
                quick_xml::escape::unescape(value).expect("known escapes");
            }
        }
        match event {
            Event::Start(_) => open += 1,
            Event::End(_) => open -= 1,
            Event::Text(text) => {
                let text = text.into_inner();
                assert!(open > 0 || text.trim_ascii().is_empty());
                assert!(!std::str::from_utf8(&text).unwrap().contains("]]>"));
            }
            Event::Comment(_) | Event::CData(_) | Event::PI(_) | Event::DocType(_) => panic!("{event:?}"),
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0);
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn junit_and_trx_are_well_formed(run in any_run()) {
        let tests = run.count(0);
        let broken = usize::from(run.modules()[0].error.is_some() || trouble(&run).unwrap().is_some());
        let junit = elements(&written(Format::Junit, &run));
        prop_assert_eq!(junit.get("testcase").copied().unwrap_or(0), tests + broken);
        let by_schema = elements(&written(Format::Junit10, &run));
        prop_assert_eq!(by_schema.get("testcase").copied().unwrap_or(0), tests + broken);
        let trx = elements(&written(Format::Trx, &run));
        prop_assert_eq!(trx.get("UnitTestResult").copied().unwrap_or(0), tests + broken);
        prop_assert_eq!(trx.get("TestEntry").copied().unwrap_or(0), tests + broken);
    }

    #[test]
    fn ctrf_is_json_and_its_numbers_are_those_of_its_tests(run in any_run()) {
        let report: Value = serde_json::from_str(&written(Format::Ctrf, &run)).unwrap();
        let tests = report["results"]["tests"].as_array().unwrap();
        let summary = &report["results"]["summary"];
        prop_assert_eq!(summary["tests"].as_u64(), Some(tests.len() as u64));
        for status in ["passed", "failed", "skipped", "other"] {
            let count = tests.iter().filter(|test| test["status"] == status).count();
            prop_assert_eq!(summary[status].as_u64(), Some(count as u64), "{}", status);
        }
        prop_assert!(tests.iter().all(|test| test["name"].as_str().is_some_and(|name| !name.is_empty())));
    }

    #[test]
    fn nothing_leaves_the_data_of_the_page(run in any_run()) {
        let page = written(Format::Html, &run);
        let of_sample = written(Format::Html, &Memory::new(run.run().clone(), []));
        let tags = |page: &str, tag: &str| page.matches(tag).count();
        // One more element of data if there are tests, and its end.
        let more = usize::from(run.count(0) > 0);
        prop_assert_eq!(tags(&page, "</script"), tags(&of_sample, "</script") + more);
        prop_assert_eq!(tags(&page, "<script"), tags(&of_sample, "<script") + more);
        prop_assert_eq!(tags(&page, "<!--"), 0);
        for part in page.split("<script type=\"application/json\" id=\"").skip(1) {
            let json = part.split_once('>').unwrap().1.split("</script>").next().unwrap();
            prop_assert!(serde_json::from_str::<Value>(json).is_ok());
            prop_assert!(!json.contains('<'));
        }
    }

    #[test]
    fn nothing_that_acts_is_in_any_report(run in any_run()) {
        let mut reports = Format::ALL.map(|format| written(format, &run)).to_vec();
        let mut github = Vec::new();
        github::annotations(&run, &mut github, &github::Options::new("/src")).unwrap();
        github::summary(&run, &mut github).unwrap();
        let mut events = Events::new(Vec::new());
        for index in 0..run.count(0) {
            events.test_result(0, &run.modules()[0], &run.result(0, index).unwrap()).unwrap();
        }
        let lines = events.into_inner();
        prop_assert!(!String::from_utf8(lines.clone()).unwrap().contains("##"));
        reports.extend([github, lines].map(|bytes| String::from_utf8(bytes).unwrap()));
        for report in &reports {
            let acts = |c: char| {
                c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{200f}' | '\u{202e}' | '\u{2066}')
            };
            prop_assert!(!report.contains(acts), "{:?}", report.find(acts).map(|at| report.split_at(at)));
        }
    }

    #[test]
    fn github_gets_lines_and_tags_of_ours_only(run in any_run()) {
        let mut lines = Vec::new();
        github::annotations(&run, &mut lines, &github::Options::new("/src")).unwrap();
        for line in String::from_utf8(lines).unwrap().lines() {
            let ours = ["::error ", "::warning ", "::notice::"].iter().any(|start| line.starts_with(start));
            prop_assert!(ours, "{}", line);
        }
        let mut summary = Vec::new();
        github::summary(&run, &mut summary).unwrap();
        let summary = String::from_utf8(summary).unwrap();
        for tag in summary.split('<').skip(1) {
            let name = tag.trim_start_matches('/').split('>').next().unwrap();
            prop_assert!(["details", "summary", "code", "pre"].contains(&name), "{}", name);
        }
    }
}
