//! Counts, coverage, a slow HQ, pauses and suspensions, threads of all kinds.

use runtap_bytefrog::Report;
use runtap_bytefrog::hq::{AgentId, Event, Options};
use runtap_bytefrog_proto::hq::Settings;
use runtap_bytefrog_proto::{
    ClassOutcome, Configuration, Dialect, Extension, JavaString, Mode, RecordMode, WhenSlow,
};
use runtap_testkit::{Jdk, Skip, eventually, require};

use crate::common::{Listening, demo, run_both, traced};
use crate::counts::expected;
use crate::gate::{Gate, MANY, Turns};

fn extended(extension: Extension) -> Configuration {
    Configuration { extension, ..demo() }
}

pub(crate) fn calls(report: &Report, method: &str) -> u64 {
    let found = report.methods.iter().find(|one| one.signature.starts_with(&format!("demo/{method};")));
    found.map_or(0, |method| method.entries)
}

#[test]
fn counts_are_exact() {
    for jdk in require!(Jdk::all()) {
        let extension =
            Extension { record: RecordMode::Counts, snapshot_interval: 20, ..Extension::default() };
        let hq = Listening::with(extended(extension));
        require!(run_both(&jdk, hq.hq.address().port(), "", &["demo.Counts", "3", "400"]));
        let report = hq.report();
        let expected = expected(3, 400);
        for method in &report.methods {
            if let Some((calls, _, bubbles)) = expected.get(&method.signature) {
                assert_eq!(method.counted, Some((*calls, *bubbles, 0)), "{}", method.signature);
            }
        }
        assert!(report.methods.iter().filter(|method| expected.contains_key(&method.signature)).count() > 10);
        assert_eq!((report.counters.entries, report.findings), (0, Vec::new()));
    }
}

#[test]
fn coverage_is_what_has_run() {
    for jdk in require!(Jdk::all()) {
        let hq = Listening::with(demo());
        let options = ",mode=coverage";
        require!(run_both(&jdk, hq.hq.address().port(), options, &["demo.Counts", "2", "1"]));
        let report = hq.report();
        let run = |name: &str| {
            let method = report.methods.iter().find(|method| method.signature.contains(name));
            method.is_some_and(|method| method.has_run)
        };
        assert!(run(".fib;") && run("$Shape.sides;") && run("$Node.<init>;"), "{:?}", report.methods);
        // The only round is round 0: no number is odd, and no object of Counts is created.
        assert!(!run(".twice;") && !run("demo/Counts.<init>"), "{:?}", report.methods);
    }
}

/// Missing events are reported: received and dropped events add up to all.
#[test]
fn drops_are_told() {
    for jdk in require!(Jdk::all()) {
        let extension = Extension { when_slow: WhenSlow::Drop, coarse_clock: true, ..Extension::default() };
        let hq = Listening::with(extended(extension));
        let gate = Gate::before(hq.hq.address().port());
        let mut turns = require!(Turns::start(&jdk, gate.port, ""));
        turns.turn(&format!("run {MANY}"));
        turns.turn(&format!("run {MANY}"));
        gate.open();
        turns.turn("mark");
        turns.end();
        let counters = hq.report().counters;
        // Calls of `leaf`, its caller and the lambda, twice; `mark` and `main`.
        let calls = 2 * (MANY + 2) + 2;
        assert_eq!(counters.entries + counters.exits + counters.dropped, 2 * calls, "{counters:?}");
        assert!(counters.dropped > MANY && counters.drops > 0, "{counters:?}");
        assert_eq!(counters.orphans, 0);
    }
}

/// Versions 1 to 4 reuse the id of a thread that has ended. If the ends of its calls are missing, that is reported as well;
/// otherwise the next thread's calls would appear below the open ones.
#[test]
fn drops_at_the_end_of_a_thread_are_told_to_an_old_hq() {
    let jdk = require!(Jdk::with_compiler());
    for dialect in [Dialect::V1, Dialect::V4] {
        let protocol = Settings { dialects: vec![dialect], ..Settings::default() };
        let hq = Listening::new(Options { configuration: demo(), protocol, ..Options::default() });
        let gate = Gate::before(hq.hq.address().port());
        let options = format!(",when-slow=drop,version={dialect}");
        let mut turns = require!(Turns::start(&jdk, gate.port, &options));
        turns.turn(&format!("run {MANY}"));
        gate.open();
        // Events sent after the first has arrived are read after the thread's end was handled.
        for marks in 1..=2 {
            turns.turn("mark");
            eventually("what is left has come", || {
                hq.hq.report(AgentId(0)).ok().filter(|report| calls(report, "Turns.mark") == marks).map(drop)
            });
        }
        // The break is sent on another connection, and may arrive after the events that follow it.
        eventually("it has come that the thread's calls are over", || {
            let tree = hq.hq.call_tree(AgentId(0), None).ok()?;
            let of_thread = |signature: &str| ["leaf", "outer"].iter().any(|name| signature.contains(name));
            let mut open = tree.rows.iter().filter(|row| row.open > 0);
            open.all(|row| !of_thread(&tree.signatures[row.signature])).then_some(())
        });
        turns.turn("run 5");
        turns.end();
        let report = hq.report();
        assert!(calls(&report, "Turns.leaf") < MANY, "{dialect}: nothing was dropped");
        assert!(report.counters.data_breaks > 0, "{dialect}");
        let tree = hq.hq.call_tree(AgentId(0), None).unwrap();
        let outer = tree.rows.iter().filter(|row| tree.signatures[row.signature].contains("Turns.outer;"));
        let depths: Vec<_> = outer.map(|row| row.depth).collect();
        let first = depths.first().copied().unwrap();
        assert_eq!(depths, vec![first; depths.len()], "{dialect}: a thread is called by another one");
        assert_eq!(calls(&report, "Turns.outer"), 2);
    }
}

#[test]
fn who_is_too_fast_is_counted() {
    let jdk = require!(Jdk::with_compiler());
    let extension = Extension { when_slow: WhenSlow::Counts, coarse_clock: true, ..Extension::default() };
    let hq = Listening::with(extended(extension));
    let gate = Gate::before(hq.hq.address().port());
    let mut turns = require!(Turns::start(&jdk, gate.port, ""));
    turns.turn(&format!("run {MANY}"));
    turns.turn(&format!("run {MANY}"));
    gate.open();
    turns.turn("mark");
    turns.end();
    let report = hq.report();
    let leaf = report.methods.iter().find(|one| one.signature.starts_with("demo/Turns.leaf;")).unwrap();
    let (counted, ..) = leaf.counted.unwrap();
    assert_eq!(leaf.entries + counted, 2 * MANY);
    assert!(counted > MANY / 2 && report.counters.degraded > 0, "{:?}", report.counters);
}

#[test]
fn a_suspended_program_runs_and_is_not_recorded() {
    for dialect in [Dialect::F1, Dialect::V1] {
        let jdk = require!(Jdk::with_compiler());
        let protocol = Settings { dialects: vec![dialect], ..Settings::default() };
        let hq = Listening::new(Options {
            configuration: demo(),
            protocol,
            initial_mode: Some(Mode::Suspended),
            ..Options::default()
        });
        require!(run_both(&jdk, hq.hq.address().port(), "", &["demo.Counts", "2", "100"]));
        let report = hq.report();
        assert_eq!(report.counters.entries, 0, "{dialect}");
    }
}

#[test]
fn pauses_lose_nothing_and_suspensions_are_told() {
    let jdk = require!(Jdk::with_compiler());
    let hq = Listening::with(demo());
    let mut java = require!(traced(&jdk, hq.hq.address().port(), "", &["demo.Forever"]));
    java.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = java.spawn().unwrap();
    let agent = AgentId(0);
    let entries = || hq.hq.report(agent).map_or(0, |report| report.counters.entries);
    eventually("it traces", || (entries() > 100_000).then_some(()));
    hq.hq.change_mode(agent, Mode::Paused).unwrap();
    // The events in its ring arrive, and then none.
    let mut before = 0;
    eventually("it stands still", || {
        let now = entries();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let still = std::mem::replace(&mut before, now) == now;
        still.then_some(())
    });
    hq.hq.change_mode(agent, Mode::Tracing).unwrap();
    eventually("it goes on", || (entries() > before + 100_000).then_some(()));
    hq.hq.change_mode(agent, Mode::Suspended).unwrap();
    let (mut before, mut still) = (0, 0);
    eventually("nothing is recorded", || {
        let now = entries();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let said = hq.hq.agents().first()?.reported_mode?.mode();
        let stands = said == Some(Mode::Suspended) && std::mem::replace(&mut before, now) == now;
        // The thread may only have been waiting for a processor.
        still = if stands { still + 1 } else { 0 };
        (still == 5).then_some(())
    });
    hq.hq.change_mode(agent, Mode::Tracing).unwrap();
    eventually("it records again", || (entries() > before + 100_000).then_some(()));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let report = hq.report();
    let counters = &report.counters;
    assert!(counters.suspensions > 0 && counters.suspended > 0, "{counters:?}");
    assert_eq!((counters.drops, counters.dropped), (0, 0), "{counters:?}");
    assert_eq!((report.counters.orphans, report.findings), (0, Vec::new()), "{:?}", report.counters);
}

#[test]
fn virtual_threads_keep_their_stacks() {
    for jdk in require!(Jdk::all()).iter().filter(|jdk| jdk.major() >= 21) {
        for clock in ["ns", "ms"] {
            let hq = Listening::with(demo());
            let options = format!(",clock={clock}");
            require!(run_both(jdk, hq.hq.address().port(), &options, &["demo.Virtual", "50", "100"]));
            let report = hq.report();
            assert_eq!((calls(&report, "Virtual.step"), calls(&report, "Virtual.inner")), (5000, 5000));
            assert_eq!(
                (report.counters.orphans, &report.findings),
                (0, &Vec::new()),
                "{:?}",
                report.counters
            );
            // Each has a thread of its own: `step` calls `inner` fifty times, a hundred times.
            let busy = report.threads.iter().filter(|thread| thread.entries >= 201).count();
            assert_eq!(busy, 50, "JDK {}", jdk.major());
        }
    }
}

/// More threads than are remembered without an open call, and than version 1 has ids for: each is in a call, and
/// none is lost.
#[test]
fn seventy_thousand_virtual_threads_are_in_a_call() {
    let jdks = require!(Jdk::all());
    let Some(jdk) = jdks.iter().rfind(|jdk| jdk.major() >= 21) else {
        return Skip::because("there is no JDK with virtual threads").report();
    };
    let hq = Listening::with(demo());
    require!(run_both(jdk, hq.hq.address().port(), "", &["demo.Herd", "70000"]));
    let report = hq.report();
    let of = |name: &str| {
        let name = format!("demo/Herd.{name};");
        let method = report.methods.iter().find(|one| one.signature.starts_with(&name)).unwrap();
        (method.entries, method.exits)
    };
    assert_eq!((of("hold"), of("step")), ((70_000, 70_000), (70_000, 70_000)));
    assert_eq!((report.counters.orphans, &report.findings), (0, &Vec::new()), "{:?}", report.counters);
}

#[test]
fn more_threads_than_version_1_can_name() {
    let jdks = require!(Jdk::all());
    let Some(jdk) = jdks.iter().rfind(|jdk| jdk.major() >= 21) else {
        return Skip::because("there is no JDK with virtual threads").report();
    };
    let hq = Listening::new(Options {
        configuration: demo(),
        protocol: Settings { dialects: vec![Dialect::V1], ..Settings::default() },
        ..Options::default()
    });
    require!(run_both(jdk, hq.hq.address().port(), "", &["demo.Threads", "70000", "100"]));
    let report = hq.report();
    assert_eq!(calls(&report, "Threads.work"), 70_000);
    assert_eq!(report.counters.orphans, 0);
}

#[test]
fn who_runs_out_of_stack_is_balanced() {
    for jdk in require!(Jdk::all()) {
        let hq = Listening::with(demo());
        require!(run_both(&jdk, hq.hq.address().port(), "", &["demo.Deep", "20"]));
        let report = hq.report();
        let method = |name: &str| {
            report
                .methods
                .iter()
                .find(|one| one.signature.starts_with(&format!("demo/Deep.{name};")))
                .unwrap()
        };
        let (down, once) = (method("down"), method("once"));
        assert_eq!((once.entries, once.exits, once.bubbles), (20, 20, 0));
        assert_eq!((down.exits, down.entries), (0, down.bubbles), "JDK {}", jdk.major());
        assert_eq!(report.counters.orphans, 0);
    }
}

/// Calls after a caught stack overflow are not callees of the overflowing calls. Interpreted, because frames of
/// compiled callers differ in size, so that a probe can fail after another has had stack space.
#[test]
fn who_goes_on_after_a_full_stack_is_where_it_was() {
    for jdk in require!(Jdk::all()) {
        let hq = Listening::with(demo());
        require!(run_both(&jdk, hq.hq.address().port(), "", &["-Xint", "demo.Overflow", "10"]));
        let report = hq.report();
        assert_eq!(report.counters.orphans, 0);
        let tree = hq.hq.call_tree(AgentId(0), None).unwrap();
        let signature = |row: &runtap_bytefrog::TreeRow| tree.signatures[row.signature].clone();
        let rows: Vec<_> =
            tree.rows.iter().filter(|row| signature(row).contains("Overflow.after;")).collect();
        let places: Vec<_> = rows.iter().map(|row| (row.depth, row.calls)).collect();
        assert_eq!(places, [(1, 20)], "JDK {}", jdk.major());
        let tops: u64 = tree.rows.iter().filter(|row| row.depth == 1).map(|row| row.calls).sum();
        assert_eq!(tops, 30, "JDK {}", jdk.major());
    }
}

#[test]
fn classes_are_reported() {
    let jdk = require!(Jdk::with_compiler());
    let hq = Listening::with(demo());
    require!(run_both(&jdk, hq.hq.address().port(), "", &["demo.Counts", "1", "1"]));
    hq.report();
    let heard = hq.heard.lock().unwrap();
    let named = |outcome: ClassOutcome, name: &str| {
        let class = Event::Class { outcome, name: JavaString::from(name) };
        heard.contains(&(Some(AgentId(0)), class))
    };
    assert!(
        named(ClassOutcome::Transformed, "demo/Counts")
            && named(ClassOutcome::Transformed, "demo/Counts$Node")
    );
    let ignored = heard
        .iter()
        .filter(|(_, event)| matches!(event, Event::Class { outcome: ClassOutcome::Ignored, .. }));
    assert!(ignored.count() > 0);
    assert!(
        !heard.iter().any(|(_, event)| matches!(event, Event::Class { outcome: ClassOutcome::Failed, .. }))
    );
}
