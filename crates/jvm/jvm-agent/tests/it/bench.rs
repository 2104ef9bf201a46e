//! The cost of a traced call, compared with the JDK's own method timing and tracing (JEP 520, JDK 25). Not part of the tests:
//! `cargo xtask bench jvm` runs it with the shipped library, and docs/performance.md has the results.

#![expect(clippy::print_stdout, reason = "it is read by people")]

use std::time::Duration;

use runtap_bytefrog::hq::Options;
use runtap_bytefrog_proto::{Configuration, Extension, JavaString, Mode, RecordMode, WhenSlow};
use runtap_testkit::{Finished, Jdk, Running, Skip, require};

use crate::common::{Listening, demo, programs, traced};

/// The time limit of a run, on a busy machine.
const LIMIT: Duration = Duration::from_mins(15);
/// Calls of each thread in a round; there are five.
const CALLS: &str = "3000000";

struct Case {
    what: &'static str,
    record: RecordMode,
    coarse_clock: bool,
    when_slow: WhenSlow,
    mode: Mode,
    /// The target in nanoseconds per pair: for one thread, and for each of two.
    bar: Option<[f64; 2]>,
}

impl Case {
    const fn new(what: &'static str, record: RecordMode, coarse_clock: bool, bar: Option<[f64; 2]>) -> Self {
        Self { what, record, coarse_clock, when_slow: WhenSlow::Block, mode: Mode::Suspended, bar }
    }

    /// Adds an HQ that reads the events.
    const fn told(self, when_slow: WhenSlow) -> Self {
        Self { when_slow, mode: Mode::Tracing, ..self }
    }
}

const CASES: [Case; 8] = [
    Case::new("coverage", RecordMode::Coverage, true, Some([1.0, 1.0])).told(WhenSlow::Block),
    Case::new("counts", RecordMode::Counts, true, None).told(WhenSlow::Block),
    Case::new("full, ms, discarded", RecordMode::Full, true, Some([25.0, 40.0])),
    Case::new("full, ns, discarded", RecordMode::Full, false, Some([110.0, 160.0])),
    Case::new("full, ms, to HQ, block", RecordMode::Full, true, None).told(WhenSlow::Block),
    Case::new("full, ns, to HQ, block", RecordMode::Full, false, None).told(WhenSlow::Block),
    Case::new("full, ms, to HQ, drop", RecordMode::Full, true, None).told(WhenSlow::Drop),
    Case::new("full, ns, to HQ, drop", RecordMode::Full, false, None).told(WhenSlow::Drop),
];

/// JFR's recordings of the traced methods. A threshold of 0 makes it record every call.
const RIVALS: [(&str, &str); 3] = [
    ("JFR, method timing", "jdk.MethodTiming#filter=demo.Bench"),
    (
        "JFR, method trace, no stacks",
        "jdk.MethodTrace#filter=demo.Bench,jdk.MethodTrace#threshold=0ns,jdk.MethodTrace#stackTrace=false",
    ),
    ("JFR, method trace", "jdk.MethodTrace#filter=demo.Bench,jdk.MethodTrace#threshold=0ns"),
];

#[test]
#[ignore = "it measures"]
fn bench() {
    println!("processor time of a call's entry and exit, in each thread; elapsed time for the rate");
    for jdk in require!(Jdk::all()).iter().filter(|jdk| [17, 25].contains(&jdk.major())) {
        for threads in [1, 2] {
            row(jdk, threads, "without an agent", &require!(alone(jdk, threads, None)), None, "");
            for case in &CASES {
                require!(ours(jdk, threads, case));
            }
            if jdk.major() >= 25 {
                for (what, settings) in RIVALS {
                    let folder = tempfile::tempdir().unwrap();
                    let file = folder.path().join("recording.jfr");
                    let recording = format!("{settings},filename={}", file.display());
                    let finished = require!(alone(jdk, threads, Some(&recording)));
                    let bytes = std::fs::metadata(&file).unwrap().len();
                    row(
                        jdk,
                        threads,
                        what,
                        &finished,
                        None,
                        &format!("a recording of {} MB", bytes / 1_000_000),
                    );
                }
            }
        }
    }
}

/// Runs the program without the agent.
fn alone(jdk: &Jdk, threads: usize, recording: Option<&str>) -> Result<Finished, Skip> {
    let mut java = jdk.java();
    if let Some(recording) = recording {
        java.arg(format!("-XX:StartFlightRecording:{recording}")).arg("-Xlog:jfr*=off");
    }
    java.arg("-cp").arg(programs()?).args(["demo.Bench", &threads.to_string(), CALLS]);
    let finished = Running::start(java).wait_within(LIMIT);
    finished.expect_code(0);
    Ok(finished)
}

fn ours(jdk: &Jdk, threads: usize, case: &Case) -> Result<(), Skip> {
    let Case { record, coarse_clock, when_slow, .. } = *case;
    let extension = Extension { record, coarse_clock, when_slow, ..Extension::default() };
    let inclusions = vec![JavaString::from("^demo/Bench$")];
    let configuration = Configuration { extension, inclusions, ..demo() };
    let hq = Listening::new(Options { configuration, initial_mode: Some(case.mode), ..Options::default() });
    let java = traced(jdk, hq.hq.address().port(), "", &["demo.Bench", &threads.to_string(), CALLS])?;
    let finished = Running::start(java).wait_within(LIMIT);
    finished.expect_code(0);
    assert!(finished.stderr.is_empty(), "{finished}");
    let counters = hq.report().counters;
    let told = if case.mode == Mode::Tracing && record == RecordMode::Full {
        format!("HQ: {} pairs, {} events told as dropped", counters.entries, counters.dropped)
    } else {
        String::new()
    };
    row(jdk, threads, case.what, &finished, case.bar, &told);
    Ok(())
}

/// Prints `5.1 5.2 ns a pair; 12.34 million pairs a second`, with the target.
fn row(jdk: &Jdk, threads: usize, what: &str, finished: &Finished, bar: Option<[f64; 2]>, more: &str) {
    let said = finished.text().trim();
    let costs = said.split_once(" ns").map_or(said, |(costs, _)| costs).split(' ');
    let most = costs.map(|cost| cost.parse::<f64>().unwrap()).fold(0.0, f64::max);
    let bar = bar.map_or_else(String::new, |[one, two]| {
        let bar = if threads == 1 { one } else { two };
        format!("wanted: {bar}, {}", if most <= bar { "reached" } else { "MISSED" })
    });
    println!("JDK {} {threads} thread(s)  {what:28}  {said}  {bar}{more}", jdk.major());
}
