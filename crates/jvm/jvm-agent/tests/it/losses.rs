//! Events during pauses and suspensions, losses of carriers, and remains of an earlier trace are reported correctly.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use runtap_bytefrog::hq::{AgentId, Event};
use runtap_bytefrog_proto::{ClassOutcome, Configuration, Extension, JavaString, Mode, RecordMode, WhenSlow};
use runtap_testkit::{Jdk, Skip, eventually, require};

use crate::common::{Listening, demo, library, programs, traced};
use crate::gate::{Gate, Turns};
use crate::modes::calls;

const AGENT: AgentId = AgentId(0);

fn extended(extension: Extension) -> Configuration {
    Configuration { extension, ..demo() }
}

/// Commands a mode and waits until the agent reports it.
fn go(hq: &Listening, mode: Mode) {
    hq.hq.change_mode(AGENT, mode).unwrap();
    eventually("the agent follows", || {
        let said = hq.hq.agents().first()?.reported_mode?;
        (said.mode() == Some(mode)).then_some(())
    });
}

/// With `drop` or `counts`, a pause loses no events when it ends, since there was no lack of room.
#[test]
fn the_end_of_a_pause_loses_nothing() {
    let jdk = require!(Jdk::with_compiler());
    for when_slow in [WhenSlow::Block, WhenSlow::Drop, WhenSlow::Counts] {
        let hq = Listening::with(extended(Extension { when_slow, ..Extension::default() }));
        let mut turns = require!(Turns::start(&jdk, hq.hq.address().port(), ""));
        let pauses = 25;
        for _ in 0..pauses {
            turns.turn("mark");
            go(&hq, Mode::Paused);
            turns.say("mark");
            // The thread usually gets to its next call; the result does not depend on it.
            std::thread::sleep(Duration::from_millis(20));
            go(&hq, Mode::Tracing);
            turns.hear("mark");
        }
        turns.end();
        let report = hq.report();
        assert_eq!(calls(&report, "Turns.mark"), 2 * pauses, "{when_slow:?}");
        let counters = &report.counters;
        assert_eq!((counters.drops, counters.dropped, counters.drops_unknown), (0, 0, 0), "{counters:?}");
        assert_eq!((counters.orphans, report.findings), (0, Vec::new()), "{when_slow:?}");
    }
}

/// Counts made while recording is suspended are not reported.
#[test]
fn suspended_counts_are_left_out() {
    let jdk = require!(Jdk::with_compiler());
    let extension = Extension { record: RecordMode::Counts, snapshot_interval: 10, ..Extension::default() };
    let hq = Listening::with(extended(extension));
    let mut turns = require!(Turns::start(&jdk, hq.hq.address().port(), ""));
    let counted = |name: &str| {
        let report = hq.hq.report(AGENT).unwrap();
        let found = report.methods.into_iter().find(|one| one.signature.starts_with(name));
        found.and_then(|method| method.counted).map_or(0, |(calls, ..)| calls)
    };
    turns.turn("run 5");
    eventually("it counts", || (counted("demo/Turns.leaf;") == 5).then_some(()));
    go(&hq, Mode::Suspended);
    let mut marks = 0;
    // The agent has confirmed the mode; its counts follow within a round.
    let before = eventually("nothing is counted", || {
        let before = counted("demo/Turns.mark;");
        turns.turn("mark");
        marks += 1;
        std::thread::sleep(Duration::from_millis(100));
        (counted("demo/Turns.mark;") == before).then_some(before)
    });
    turns.turn("run 1000");
    go(&hq, Mode::Tracing);
    eventually("it counts again", || {
        turns.turn("mark");
        marks += 1;
        (counted("demo/Turns.mark;") > before).then_some(())
    });
    turns.turn("run 7");
    turns.end();
    let report = hq.report();
    let leaf = report.methods.iter().find(|one| one.signature.starts_with("demo/Turns.leaf;")).unwrap();
    assert_eq!(leaf.counted, Some((12, 0, 0)));
    let mark = counted("demo/Turns.mark;");
    assert!(mark > before && mark < marks, "{before} {mark} {marks}");
}

/// If a full carrier loses events of an unknown virtual thread, no call is ended by another call's end, and there is no call
/// without a start.
#[test]
fn what_carriers_lose_is_told_to_virtual_threads() {
    let jdks = require!(Jdk::all());
    let Some(jdk) = jdks.iter().rfind(|jdk| jdk.major() >= 21) else {
        return Skip::because("there is no JDK with virtual threads").report();
    };
    for when_slow in [WhenSlow::Drop, WhenSlow::Counts] {
        let hq = Listening::with(extended(Extension { when_slow, ..Extension::default() }));
        let gate = Gate::before(hq.hq.address().port());
        let (threads, rounds) = ("50", "10000");
        let mut java = require!(traced(jdk, gate.port, "", &["demo.Virtual", threads, rounds, "again"]));
        let mut child = java.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "once\n");
        gate.open();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(child.wait().unwrap().success());
        let report = hq.report();
        let counters = &report.counters;
        assert!(counters.dropped > 0 || counters.drops_unknown > 0, "{when_slow:?}: {counters:?}");
        assert_eq!((counters.orphans, &report.findings), (0, &Vec::new()), "{when_slow:?}: {counters:?}");
        let tree = hq.hq.call_tree(AGENT, None).unwrap();
        let of = |name: &str| {
            tree.rows
                .iter()
                .filter(|row| tree.signatures[row.signature].contains(name))
                .max_by_key(|row| row.depth)
        };
        let deepest = of("Virtual.step;").unwrap();
        // The lambda, `work`, `step`; a call whose end was lost would be the caller of the next.
        assert!(deepest.depth <= 3, "{when_slow:?}: {}", deepest.depth);
    }
}

/// Starts a program into which an agent can be loaded.
fn turns(jdk: &Jdk) -> Result<Turns, Skip> {
    let mut java = jdk.java();
    if jdk.major() >= 21 {
        java.arg("-XX:+EnableDynamicAgentLoading");
    }
    java.arg("-cp").arg(programs()?).arg("demo.Turns");
    Ok(Turns::spawn(java))
}

/// Calls that run when an agent is loaded started without probes. They are reported for each class, and not as
/// recorded calls. Loaded classes that are not traced are reported as well.
#[test]
fn what_runs_before_the_trace_is_told() {
    let tools = require!(Jdk::with_compiler());
    for record in [RecordMode::Full, RecordMode::Counts, RecordMode::Coverage] {
        let mut turns = require!(turns(&tools));
        turns.turn("hold");
        // Without `boot=yes`, which would trace the second one.
        let inclusions = ["^demo/", "^java/lang/String$"].map(JavaString::from).to_vec();
        let extension = Extension { record, ..Extension::default() };
        let hq = Listening::with(Configuration { extension, inclusions, ..demo() });
        let loaded = load(&tools, turns.id(), &format!("host=127.0.0.1,port={}", hq.hq.address().port()));
        assert!(loaded.contains("return code: 0"), "{loaded}");
        turns.turn("mark");
        turns.turn("free");
        turns.end();
        let report = hq.report();
        let ran = |name: &str| {
            let name = format!("demo/Turns.{name};");
            report.methods.iter().any(|one| {
                let is_called = one.entries > 0 || one.counted.is_some() || one.has_run;
                one.signature.starts_with(&name) && is_called
            })
        };
        assert!(ran("mark") && !ran("held") && !ran("main"), "{record:?}: {:?}", report.methods);
        let heard = hq.heard.lock().unwrap();
        let failed: Vec<String> = heard
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Class { outcome: ClassOutcome::Failed, name } => Some(name.to_string()),
                _ => None,
            })
            .collect();
        let ignored =
            Event::Class { outcome: ClassOutcome::Ignored, name: JavaString::from("java/lang/String") };
        assert!(heard.iter().any(|(_, event)| *event == ignored), "{record:?}");
        let [turns] = &failed[..] else { panic!("{record:?}: {failed:?}") };
        let list = turns.strip_prefix("demo/Turns (").and_then(|list| list.strip_suffix(')')).unwrap();
        let methods: Vec<&str> = list
            .split("; ")
            .map(|one| one.strip_suffix(": already running when the trace began").unwrap())
            .collect();
        let [held, lambda, main] = &methods[..] else { panic!("{record:?}: {methods:?}") };
        assert!(held.starts_with("held(Ljava/util/concurrent/CountDownLatch;"), "{held}");
        assert!(lambda.starts_with("lambda$main$"), "{lambda}");
        assert_eq!(*main, "main([Ljava/lang/String;)V");
    }
}

/// Loads the agent and returns the JVM's answer.
pub(crate) fn load(tools: &Jdk, id: u32, options: &str) -> String {
    let mut command = std::process::Command::new(tools.home().join("bin/jcmd"));
    command.arg(id.to_string()).arg("JVMTI.agent_load").arg(library()).arg(format!("\"{options}\""));
    String::from_utf8_lossy(&runtap_testkit::run(command).stdout).into_owned()
}

/// A call made during an earlier trace has its probes until it ends: its end does not belong to the new trace.
#[test]
fn what_an_earlier_trace_has_left_is_not_told() {
    let tools = require!(Jdk::with_compiler());
    let mut turns = require!(turns(&tools));
    turns.turn("run 1");
    let id = turns.id();
    let load = |options: &str| {
        let loaded = load(&tools, id, options);
        assert!(loaded.contains("return code: 0"), "{loaded}");
    };
    let attach = || {
        let hq = Listening::with(demo());
        load(&format!("host=127.0.0.1,port={}", hq.hq.address().port()));
        hq
    };
    let first = attach();
    turns.turn("hold");
    load("detach");
    assert_eq!(calls(&first.report(), "Turns.held"), 1);
    let second = attach();
    turns.turn("mark");
    turns.turn("free");
    load("detach");
    let report = second.report();
    assert_eq!((calls(&report, "Turns.held"), calls(&report, "Turns.mark")), (0, 1));
    assert_eq!((report.counters.orphans, report.findings), (0, Vec::new()), "{:?}", report.counters);
    turns.end();
}
