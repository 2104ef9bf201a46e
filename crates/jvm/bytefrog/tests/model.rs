//! Small traces made by hand, valid and invalid.

#[path = "common/shown.rs"]
mod shown;

use runtap_bytefrog::{Fate, Limits, Model, Report};
use runtap_bytefrog_proto::{Dialect, Exit, JavaStr, Message, Rule, Stamp};

use crate::shown::tree;

/// A trace built event by event; ids and times increase by themselves.
struct Trace {
    model: Model,
    sequence: u32,
    time: u32,
}

fn trace() -> Trace {
    Trace { model: Model::new(Dialect::V1, &Limits::default(), 0), sequence: 0, time: 0 }
}

impl Trace {
    fn at(&mut self, thread: u32) -> Stamp {
        let at = Stamp { time: self.time.into(), sequence: self.sequence.into(), thread };
        self.sequence = self.sequence.wrapping_add(1);
        at
    }

    fn wait(&mut self, ms: u32) -> &mut Self {
        self.time = self.time.wrapping_add(ms);
        self
    }

    fn enter(&mut self, method: u32) -> &mut Self {
        let at = self.at(0);
        self.model.take(&Message::Entry { at, method });
        self
    }

    fn exit(&mut self, method: u32) -> &mut Self {
        let at = self.at(0);
        self.model.take(&Message::Exit { at, method, exit: Exit::Line(1) });
        self
    }

    fn throw(&mut self, method: u32, exception: u32, line: u16) -> &mut Self {
        let at = self.at(0);
        self.model.take(&Message::Exception { at, method, exception, line });
        self
    }

    fn bubble(&mut self, method: u32, exception: u32) -> &mut Self {
        let at = self.at(0);
        self.model.take(&Message::Bubble { at, method, exception });
        self
    }

    fn marker(&mut self, key: &'static str, value: &'static str) -> &mut Self {
        let Stamp { time, sequence, .. } = self.at(0);
        let (key, value) = (text(key), text(value));
        self.model.take(&Message::Marker { time, sequence, thread: None, key, value });
        self
    }

    fn report(&mut self) -> Report {
        self.model.finish();
        self.model.report()
    }

    /// Returns lines `depth method calls/inclusive/own`, with `cut` and `open` where they apply.
    fn tree(&self) -> Vec<String> {
        tree(&self.model)
    }
}

fn text(text: &'static str) -> JavaStr<'static> {
    JavaStr::from_bytes(text.as_bytes())
}

fn rules(report: &Report) -> Vec<(Rule, u64)> {
    report.findings.iter().map(|finding| (finding.rule, finding.count)).collect()
}

#[test]
fn times_of_calls_and_recursion() {
    let mut trace = trace();
    trace.enter(1).wait(2).enter(2).wait(3).enter(2).wait(5).exit(2).exit(2).wait(1).enter(3).exit(3).exit(1);
    trace.enter(1);
    let report = trace.report();
    assert_eq!(
        trace.tree(),
        ["0 (method 1) 2/11/3 open 1", "1 (method 2) 1/8/3", "2 (method 2) 1/5/5", "1 (method 3) 1/0/0",]
    );
    let method = &report.methods[1];
    assert_eq!((method.entries, method.own, method.inclusive), (2, 8_000_000, 8_000_000));
    assert_eq!(rules(&report), [(Rule::UnknownMethod, 3)]);
}

#[test]
fn a_signature_may_come_late_and_have_several_ids() {
    let mut trace = trace();
    trace.enter(1).wait(1).enter(2).wait(1).exit(2).exit(1).enter(9).exit(9);
    for (method, signature) in [(9, "a"), (1, "a"), (2, "b"), (2, "b"), (2, "c")] {
        trace.model.take(&Message::MapMethod { method, signature: text(signature) });
    }
    let report = trace.report();
    assert_eq!(trace.tree(), ["0 a 2/2/1", "1 c 1/1/1"]);
    assert_eq!(report.methods.len(), 2);
    assert_eq!(rules(&report), [(Rule::Remapped, 1)]);
    assert_eq!(report.findings[0].first, ["id 2, now \"c\""]);
}

#[test]
fn missing_events_cut_stacks_and_open_none() {
    let mut trace = trace();
    trace.enter(1).wait(1).enter(2);
    trace.sequence += 3;
    trace.wait(10).exit(2).exit(1).enter(3).wait(1).exit(3);
    let report = trace.report();
    // The truncated call had taken a millisecond by then: it is sorted by that, but not included in sums of ended calls.
    assert_eq!(trace.tree(), ["0 (method 1) 1/0/0 cut 1", "1 (method 2) 1/0/0 cut 1", "0 (method 3) 1/1/1"]);
    assert_eq!((report.counters.missing, report.counters.orphans), (3, 0));
    assert_eq!(rules(&report)[0], (Rule::SequenceGap, 3));
    // If no events are missing, an exit without entry is invalid.
    let mut trace = self::trace();
    trace.enter(1).exit(7).exit(1).exit(1);
    let report = trace.report();
    assert_eq!(trace.tree(), ["0 (method 1) 1/0/0"]);
    assert_eq!((report.counters.orphans, rules(&report)[1]), (2, (Rule::ExitWithoutEntry, 2)));
    // An exit whose callees have not ended ends them.
    let mut trace = self::trace();
    trace.enter(1).enter(2).enter(3).wait(4).exit(1);
    assert_eq!(trace.tree(), ["0 (method 1) 1/4/4", "1 (method 2) 1/0/0 cut 1", "2 (method 3) 1/0/0 cut 1"]);
}

#[test]
fn events_out_of_order_repeated_and_too_late() {
    let mut trace = trace();
    trace.enter(1).wait(1);
    let (second, third) = (trace.at(0), trace.at(0));
    let exit = |at| Message::Exit { at, method: 1, exit: Exit::Line(1) };
    trace.model.take(&exit(third));
    trace.model.take(&exit(third));
    assert_eq!(trace.model.waiting(), 1);
    trace.model.take(&Message::Entry { at: second, method: 2 });
    trace.model.take(&exit(second));
    assert_eq!(trace.model.waiting(), 0);
    let report = trace.report();
    assert_eq!(report.counters.repeated, 2);
    assert_eq!(trace.tree(), ["0 (method 1) 1/1/1", "1 (method 2) 1/0/0 cut 1"]);
}

#[test]
fn ids_and_clocks_wrap() {
    let mut trace = trace();
    // To 2^32 - 2 in two jumps, which no real trace makes; the time likewise.
    for _ in 0..2 {
        trace.sequence = trace.sequence.wrapping_add(0x7fff_ff00);
        trace.time = trace.time.wrapping_add(0x7fff_ff00);
        trace.enter(1).exit(1);
        trace.model.finish();
    }
    trace.sequence = 0xffff_fffe;
    trace.time = 0xffff_fff0;
    let missing = trace.report().counters.missing;
    trace.enter(2).wait(0x20).enter(3).wait(1).exit(3).exit(2);
    let report = trace.report();
    assert_eq!(report.counters.repeated, 0);
    assert!(report.counters.missing >= missing && missing > 0xffff_0000);
    assert!(trace.tree().contains(&"0 (method 2) 1/33/32".to_owned()), "{:?}", trace.tree());
}

#[test]
fn a_clock_that_goes_back_takes_no_time() {
    let mut trace = trace();
    trace.wait(100).enter(1).wait(0_u32.wrapping_sub(50)).exit(1).wait(60).enter(2).wait(1).exit(2);
    let report = trace.report();
    assert_eq!(trace.tree(), ["0 (method 2) 1/1/1", "0 (method 1) 1/0/0"]);
    assert!(rules(&report).contains(&(Rule::ClockBackwards, 1)));
}

#[test]
fn breaks_before_and_after_their_events() {
    let mut trace = trace();
    trace.model.take(&Message::DataBreak { sequence: 2 });
    trace.enter(1).enter(2).enter(3).exit(3).exit(2).exit(1);
    assert_eq!(trace.tree(), ["0 (method 1) 1/0/0 cut 1", "1 (method 2) 1/0/0 cut 1", "0 (method 3) 1/0/0"]);
    trace.enter(4);
    trace.model.take(&Message::DataBreak { sequence: 3 });
    trace.enter(5).exit(5);
    let report = trace.report();
    assert!(trace.tree().contains(&"0 (method 5) 1/0/0".to_owned()), "{:?}", trace.tree());
    assert!(rules(&report).contains(&(Rule::LateBreak, 1)));
    assert_eq!((report.counters.data_breaks, report.counters.orphans), (2, 0));
}

#[test]
fn fates_of_exceptions() {
    let mut trace = trace();
    // Thrown in 3, passed through 2, caught in 1, which then throws another exception that is never caught.
    trace.enter(1).enter(2).enter(3).throw(3, 10, 33).bubble(3, 10).bubble(2, 10);
    trace.throw(1, 11, 65_535).bubble(1, 11);
    // From the JVM, caught where it was seen next.
    trace.enter(4).enter(5).bubble(5, 12).enter(6).exit(6).exit(4);
    let report = trace.report();
    let places: Vec<_> = report
        .exceptions
        .iter()
        .map(|place| (&*place.exception, &*place.signature, place.line, place.fate, place.count))
        .collect();
    assert_eq!(
        places,
        [
            ("(exception 10)", "(method 1)", None, Fate::Handled, 1),
            ("(exception 10)", "(method 3)", Some(33), Fate::Thrown, 1),
            ("(exception 11)", "(method 1)", None, Fate::Thrown, 1),
            ("(exception 11)", "(method 1)", None, Fate::Escaped, 1),
            ("(exception 12)", "(method 4)", None, Fate::Handled, 1),
            ("(exception 12)", "(method 5)", None, Fate::Raised, 1),
        ]
    );
    assert!(trace.tree().contains(&"1 (method 2) 1/0/0 thrown 1".to_owned()), "{:?}", trace.tree());
    assert!(rules(&report).contains(&(Rule::UnknownException, 3)));
}

#[test]
fn markers_are_segments() {
    let mut trace = trace();
    trace.enter(1).marker("request", "S").wait(5).enter(2).exit(2).enter(2).exit(2).marker("request", "E");
    trace.enter(3).marker("phase", "a").enter(3).marker("phase", "b").wait(1);
    let report = trace.report();
    let segments: Vec<String> = report
        .segments
        .iter()
        .map(|at| {
            let segment = &at.segment;
            format!("{} {} {}-{:?} {:?}", segment.key, segment.value, segment.start, segment.end, at.calls)
        })
        .collect();
    assert_eq!(
        segments,
        [
            "request S 0-Some(5000000) [(\"(method 2)\", 2)]",
            "phase a 5000000-Some(5000000) [(\"(method 3)\", 1)]",
            "phase b 5000000-None []",
        ]
    );
    assert_eq!(report.counters.markers, 4);
}

#[test]
fn slow_calls_have_their_path() {
    let mut model = Model::new(Dialect::V1, &Limits { slow_calls: 2, ..Limits::default() }, 3_000_000);
    let mut trace = trace();
    std::mem::swap(&mut trace.model, &mut model);
    trace.enter(1).enter(2).wait(3).exit(2).enter(2).wait(2).exit(2).enter(3).wait(9).exit(3).exit(1);
    let report = trace.report();
    let slow: Vec<_> =
        report.slow_calls.iter().map(|call| (call.took, call.start, call.path.join(" "))).collect();
    assert_eq!(
        slow,
        [
            (14_000_000, 0, "(method 1)".to_owned()),
            (9_000_000, 5_000_000, "(method 1) (method 3)".to_owned()),
        ]
    );
}

#[test]
fn what_has_no_room_is_counted() {
    let limits =
        Limits { nodes: 3, methods: 3, threads: 2, depth: 2, slow_calls: 0, names: 10, ..Limits::default() };
    let mut model = Model::new(Dialect::V1, &limits, 0);
    let mut trace = trace();
    std::mem::swap(&mut trace.model, &mut model);
    trace.enter(1).enter(2).enter(2).exit(2).exit(2).enter(3).exit(3).exit(1).enter(4).exit(4);
    let (at, next) = (trace.at(1), trace.at(2));
    trace.model.take(&Message::Entry { at, method: 1 });
    trace.model.take(&Message::Entry { at: next, method: 1 });
    trace.model.take(&Message::MapMethod { method: 1, signature: text("a") });
    let report = trace.report();
    assert_eq!((report.without_node, report.too_deep, report.beyond), (2, 1, 3));
    assert_eq!(report.methods.iter().map(|method| method.entries).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(report.counters.entries, 7);
}

#[test]
fn all_ids_of_threads() {
    let mut trace = trace();
    for thread in 0..65_536 {
        let at = trace.at(thread);
        trace.model.take(&Message::Entry { at, method: 1 });
        if thread == 65_534 {
            assert!(
                trace.model.report().findings.iter().all(|finding| finding.rule != Rule::ThreadsExhausted)
            );
        }
    }
    let report = trace.report();
    assert_eq!(report.findings.last().map(|finding| finding.rule), Some(Rule::ThreadsExhausted));
    assert_eq!((report.threads.len(), report.counters.entries, report.beyond), (65_536, 65_536, 0));
}
