//! The lines that have run, in coverage.

use std::collections::BTreeSet;

use runtap_bytefrog::Report;
use runtap_bytefrog::hq::Options;
use runtap_bytefrog_proto::{Configuration, Extension, RecordMode};
use runtap_testkit::{Jdk, require};

use crate::common::{Listening, demo, run_both};

const SOURCE: &str = include_str!("../java/demo/Lines.java");

fn coverage() -> Options {
    let extension = Extension { record: RecordMode::Coverage, ..Extension::default() };
    Options { configuration: Configuration { extension, ..demo() }, ..Options::default() }
}

/// Returns the numbers of the lines that have run.
fn lines(report: &Report, class: &str) -> BTreeSet<u32> {
    let lines = report.lines.iter().filter(|line| line.signature.starts_with(class));
    let places = lines.map(|line| line.location.expect("each line has a place"));
    places
        .inspect(|place| assert_eq!(place.start_line, place.end_line))
        .map(|place| place.start_line)
        .collect()
}

/// Returns the numbers of the source lines with a mark.
fn marked(mark: &str) -> BTreeSet<u32> {
    let marked = (1..).zip(SOURCE.lines()).filter(|(_, line)| line.ends_with(mark));
    marked.map(|(number, _)| number).collect()
}

#[test]
fn lines_are_told_that_have_run_and_no_others() {
    for jdk in require!(Jdk::all()) {
        let hq = Listening::new(coverage());
        let finished = require!(run_both(&jdk, hq.hq.address().port(), "", &["demo.Lines"]));
        assert_eq!(finished.stderr, "", "{finished}");
        let report = hq.report();
        let ran = lines(&report, "demo/Lines");
        let (told, silent) = (marked(" //+"), marked(" //-"));
        assert_eq!(told.difference(&ran).collect::<Vec<_>>(), Vec::<&u32>::new(), "JDK {}", jdk.major());
        assert_eq!(silent.intersection(&ran).collect::<Vec<_>>(), Vec::<&u32>::new(), "JDK {}", jdk.major());
        assert_eq!(report.findings, [], "JDK {}", jdk.major());
        // A constructor that ended before `super()` returned was called nevertheless; code that never ran was not.
        let has_run = |name: &str| {
            report.methods.iter().any(|method| method.signature.starts_with(name) && method.has_run)
        };
        assert!(has_run("demo/Lines$Derived.<init>;"), "JDK {}", jdk.major());
        assert!(!has_run("demo/Lines.fail;"), "JDK {}", jdk.major());
    }
}
