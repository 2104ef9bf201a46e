//! The results of the original agents' recordings, which do not depend on the order in which connections are read.

use runtap_bytefrog::{CallTree, Fate, Limits, Model, Report};
use runtap_bytefrog_proto::{Channel, Decoder, Dialect, Message, Rule, Side, Stream};
use runtap_testkit::{jvm_recordings, require, shared_data};

fn file(name: &str) -> Vec<u8> {
    shared_data(format!("bytefrog/{name}")).expect("the folder is there")
}

fn there() -> Result<(), runtap_testkit::Skip> {
    shared_data("bytefrog/v1_basic.json").map(drop)
}

fn dialect(scenario: &str) -> Dialect {
    if scenario.starts_with("v4") { Dialect::V4 } else { Dialect::V1 }
}

fn feed(model: &mut Model, scenario: &str, stream: &str) {
    let channel = if stream.starts_with("ctl") { Channel::Control } else { Channel::Data };
    let dialect = Some(dialect(scenario));
    let mut decoder = Decoder::new(Stream { channel, from: Side::Agent, dialect });
    let read = decoder.feed(&file(&format!("{scenario}.{stream}.a2h.bin")), |_, message| {
        model.take(&message);
        None
    });
    read.expect("a good stream");
}

fn model(scenario: &str, streams: &[&str]) -> Model {
    let mut model = Model::new(dialect(scenario), &Limits::default(), 1_000_000);
    for stream in streams {
        feed(&mut model, scenario, stream);
    }
    assert_eq!(model.waiting(), 0, "{scenario}");
    model.finish();
    model
}

fn method<'a>(report: &'a Report, name: &str) -> &'a runtap_bytefrog::MethodReport {
    report.methods.iter().find(|method| method.signature.starts_with(name)).expect(name)
}

/// Returns rows as `depth name calls`, without the rest of signatures.
fn rows(tree: &CallTree) -> Vec<String> {
    let name = |row: &runtap_bytefrog::TreeRow| {
        tree.signatures[row.signature].split(';').next().unwrap_or_default().to_owned()
    };
    tree.rows.iter().map(|row| format!("{} {} {}", row.depth, name(row), row.calls)).collect()
}

#[test]
fn every_recording_comes_to_what_its_answer_says() {
    for recording in require!(jvm_recordings()) {
        let scenario = &*recording.name;
        let streams: Vec<&str> = recording.data().collect();
        // Two agents end before they have sent any event.
        if streams.is_empty() {
            assert_eq!(recording.count("methodEntry"), 0, "{scenario}");
            continue;
        }
        let count = |name: &str| recording.count(name);
        let mut first = Vec::new();
        // The second connection before the first, and the break before or after everything.
        for order in [streams.clone(), streams.iter().rev().copied().collect()] {
            for control_first in [true, false] {
                let mut all = order.clone();
                all.insert(if control_first { 0 } else { all.len() }, "ctl");
                let model = model(scenario, &all);
                let report = model.report();
                assert_eq!(report.counters.entries, count("methodEntry"), "{scenario}");
                let ends = count("methodExit") + count("exceptionBubble");
                assert_eq!(report.counters.exits + report.counters.bubbles, ends, "{scenario}");
                assert_eq!(report.counters.exceptions, count("exception"), "{scenario}");
                assert_eq!(report.counters.visits, count("methodVisit"), "{scenario}");
                assert_eq!((report.counters.missing, report.counters.repeated), (0, 0), "{scenario}");
                let tree = model.call_tree(None);
                let calls: u64 = tree.rows.iter().map(|row| row.calls).sum();
                assert_eq!(calls, report.counters.entries, "{scenario}");
                let rules: Vec<Rule> = report.findings.iter().map(|finding| finding.rule).collect();
                let breaks = scenario.ends_with("suspend");
                assert_eq!(report.counters.data_breaks, u64::from(breaks));
                match &rules[..] {
                    [] => {}
                    [Rule::LateBreak] if breaks && !control_first => {}
                    other => panic!("{scenario}: {other:?}"),
                }
                if control_first || !breaks {
                    first.push((report, tree));
                }
            }
        }
        assert!(first.windows(2).all(|pair| pair[0] == pair[1]), "{scenario}");
    }
}

#[test]
fn methods_have_the_calls_that_another_tool_has_counted() {
    let mut compared = 0;
    for recording in require!(jvm_recordings()) {
        let Some(oracle) = recording.oracle() else { continue };
        let model = model(&recording.name, &["data0", "ctl"]);
        let report = model.report();
        let lines: Vec<String> = report
            .methods
            .iter()
            .map(|method| {
                format!("{}\t{}\t{}\t{}", method.signature, method.entries, method.exits, method.bubbles)
            })
            .collect();
        assert_eq!(lines, oracle, "{}", recording.name);
        compared += 1;
    }
    assert_eq!(compared, 3);
}

/// The calls that the traced program makes: loops of ten, threads of two, fib of 15.
#[test]
fn the_tree_is_that_of_the_program() {
    require!(there());
    for scenario in ["v1_basic", "v1_jdk25", "v4_basic"] {
        let model = model(scenario, &["data0", "ctl"]);
        let report = model.report();
        assert_eq!(report.threads.len(), 3);
        let main = report.threads.iter().position(|thread| thread.entries > 1000).expect("main");
        let tree = rows(&model.call_tree(Some(main)));
        assert!(tree.contains(&"0 demo/Counts.main 1".to_owned()), "{tree:#?}");
        for row in [
            "1 demo/Counts.fib 1",
            "2 demo/Counts.fib 2",
            "3 demo/Counts.fib 4",
            "1 demo/Counts$Sub.<init> 10",
            // A constructor is entered when its parent's is done: `Sub` does not call `Node`.
            "1 demo/Counts$Node.<init> 20",
            "1 demo/Counts.catcher 10",
            "2 demo/Counts.thrower 10",
            "1 demo/Counts.finCatch 10",
            "2 demo/Counts.fin 10",
            "3 demo/Counts.noop 10",
            "1 demo/Counts.deep1 10",
            "2 demo/Counts.deep2 10",
            "3 demo/Counts.deep3 10",
            "1 demo/Worker.<init> 2",
        ] {
            assert!(tree.contains(&row.to_owned()), "{scenario}: {row} in {tree:#?}");
        }
        for worker in (0..3).filter(|thread| *thread != main) {
            let tree = rows(&model.call_tree(Some(worker)));
            assert_eq!(tree, ["0 demo/Worker.run 1", "1 demo/Counts.work 2", "2 demo/Counts.noop 200"]);
        }
        let whole = model.call_tree(None);
        assert!(whole.rows.iter().all(|row| row.open == 0 && row.cut == 0), "{scenario}");
        // Own times add up to what the outermost calls took, and recursion is not counted twice.
        let own: u64 = whole.rows.iter().map(|row| row.own).sum();
        let outermost: u64 = whole.rows.iter().filter(|row| row.depth == 0).map(|row| row.inclusive).sum();
        assert_eq!(own, outermost);
        let fib = method(&report, "demo/Counts.fib");
        let top = whole.rows.iter().find(|row| whole.signatures[row.signature] == fib.signature);
        assert_eq!(Some(fib.inclusive), top.map(|row| row.inclusive));
    }
}

#[test]
fn exceptions_are_followed_from_where_they_begin_to_where_they_end() {
    require!(there());
    let report = model("v1_basic", &["data0", "ctl"]).report();
    let places: Vec<String> = report
        .exceptions
        .iter()
        .map(|place| {
            let method = place.signature.split([';', '.']).nth(1).unwrap_or_default();
            format!(
                "{} {method} {:?} {}",
                place.exception.rsplit('.').next().unwrap_or_default(),
                place.fate,
                place.count
            )
        })
        .collect();
    for place in [
        "IllegalStateException thrower Thrown 10",
        "IllegalStateException catcher Handled 10",
        "IOException selfCatch Thrown 10",
        "IOException selfCatch Handled 10",
        "NullPointerException npe Raised 10",
        "NullPointerException npeCatch Handled 10",
        "ArithmeticException deep1 Handled 10",
        "RuntimeException finCatch Handled 10",
    ] {
        assert!(places.contains(&place.to_owned()), "{place} in {places:#?}");
    }
    assert!(report.exceptions.iter().all(|place| place.fate != Fate::Escaped));
    let thrown: u64 =
        report.exceptions.iter().filter(|place| place.fate == Fate::Thrown).map(|place| place.count).sum();
    assert_eq!(thrown, report.counters.exceptions);
    let names: Vec<_> = report.threads.iter().map(|thread| thread.name.as_deref()).collect();
    assert!(names.iter().all(Option::is_some), "{names:?}");
}

#[test]
fn a_break_cuts_what_is_open_and_invents_nothing() {
    require!(there());
    let model = model("v1_suspend", &["ctl", "data0"]);
    let tree = rows(&model.call_tree(None));
    // `main` was left open by the break; later calls have no caller.
    assert!(tree.contains(&"0 demo/Ticker.main 1".to_owned()), "{tree:?}");
    let ticks: u64 =
        model.call_tree(None).rows.iter().filter(|row| row.depth <= 1).map(|row| row.calls).sum();
    assert_eq!(ticks, 195, "{tree:?}");
    assert_eq!(model.call_tree(None).rows.iter().map(|row| row.cut).sum::<u64>(), 1, "{tree:?}");
    let report = model.report();
    assert_eq!((report.counters.orphans, report.counters.exits), (0, 195));
}

#[test]
fn lines_of_version_4() {
    require!(there());
    let report = model("v4_basic", &["data0", "ctl"]).report();
    assert_eq!(report.lines.iter().map(|line| line.count).sum::<u64>(), 2554);
    assert!(report.lines.iter().all(|line| line.location.is_some()));
    assert!(report.lines.len() <= 32 && report.lines.len() >= 20, "{}", report.lines.len());
}

/// Dealing the events of one connection to four, as an agent with four senders may do, gives an equal trace.
#[test]
fn connections_may_be_heard_in_any_order() {
    require!(there());
    let bytes = file("v1_basic.data0.a2h.bin");
    let expected = model("v1_basic", &["data0"]).report();
    for seed in 1..6u64 {
        let mut dealt: [Vec<u8>; 4] = Default::default();
        let mut random = seed;
        let mut decoder = Decoder::new(Stream::data_from_agent(Some(Dialect::V1)));
        let mut last = 0;
        let read = decoder.feed(&bytes, |offset, _| {
            let (from, to) = (usize::try_from(last).unwrap_or(0), usize::try_from(offset).unwrap_or(0));
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            dealt[usize::try_from(random >> 62).unwrap_or(0)].extend(&bytes[from..to]);
            last = offset;
            None
        });
        read.expect("a good stream");
        dealt[0].extend(&bytes[usize::try_from(last).unwrap_or(0)..]);
        let mut model = Model::new(Dialect::V1, &Limits::default(), 1_000_000);
        for part in &dealt {
            let mut decoder = Decoder::new(Stream::data_from_agent(Some(Dialect::V1)));
            let read = decoder.feed(part, |_, message: Message<'_>| {
                model.take(&message);
                None
            });
            read.expect("whole messages");
        }
        model.finish();
        let report = model.report();
        // A thread's last name may differ: these messages have no sequence number.
        assert_eq!(
            (report.methods, report.exceptions),
            (expected.methods.clone(), expected.exceptions.clone())
        );
        assert_eq!((report.counters, report.slow_calls), (expected.counters, expected.slow_calls.clone()));
    }
}
