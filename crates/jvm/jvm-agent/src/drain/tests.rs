//! Virtual threads change carriers, some of which are full at times: the calls that HQ sees must have happened.

use std::sync::Arc;

use proptest::prelude::*;
use runtap_bytefrog::{Limits, Model};
use runtap_bytefrog_proto::{Decoder, Dialect, Stream as Direction, WhenSlow};

use super::read::Reading;
use crate::names::Names;
use crate::ring::{CAPACITY, EventKind, RawEvent, Ring};
use crate::room::put;
use crate::stream::Stream;

const CARRIERS: usize = 3;
const VIRTUAL: usize = 4;
/// Each depth has a method of its own, so that a wrong caller is visible.
const DEPTH: u32 = 6;

#[derive(Debug, Clone)]
enum Step {
    Call(usize),
    Return(usize),
    Move(usize, usize),
    /// A carrier becomes full, or has room again.
    Full(usize),
    Room(usize),
    /// The reader reads the heads of all rings.
    Heads,
    /// The reader reads the rings up to these heads.
    Read,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..VIRTUAL).prop_map(Step::Call),
        8 => (0..VIRTUAL).prop_map(Step::Return),
        4 => (0..VIRTUAL, 0..CARRIERS).prop_map(|(thread, carrier)| Step::Move(thread, carrier)),
        2 => (0..CARRIERS).prop_map(Step::Full),
        2 => (0..CARRIERS).prop_map(Step::Room),
        2 => Just(Step::Heads),
        2 => Just(Step::Read),
    ];
    prop::collection::vec(step, 0..150)
}

struct Program {
    when_slow: WhenSlow,
    rings: Vec<Arc<Ring>>,
    reading: Reading,
    /// The depth of each virtual thread, and the carrier it runs on.
    threads: [(u32, usize); VIRTUAL],
    time: u64,
    /// The time when a round began, and the heads.
    round: Option<(u64, Vec<u64>)>,
    written: u64,
    lost: u64,
}

impl Program {
    fn new(when_slow: WhenSlow) -> Self {
        let methods = Names::default();
        for depth in 0..DEPTH {
            methods.id(format!("C.m{depth};1;()V").as_bytes(), 100);
        }
        let stream = Stream::new(Dialect::F1, 0, 1, Arc::new(methods), Arc::default(), Arc::default());
        let mut reading = Reading::new(stream);
        let carrier =
            |number: usize| Arc::new(Ring::new(number as u64 + 1, b"carrier".to_vec(), CAPACITY).unwrap());
        let rings: Vec<_> = (0..CARRIERS).map(carrier).collect();
        for ring in &rings {
            reading.adopt(Arc::clone(ring), false);
        }
        let threads = [(0, 0); VIRTUAL];
        Self { when_slow, rings, reading, threads, time: 0, round: None, written: 0, lost: 0 }
    }

    fn event(&mut self, thread: usize, kind: EventKind, method: u32) {
        self.time += 1;
        let ring = &self.rings[self.threads[thread].1];
        let before = ring.head();
        let event = RawEvent { time: self.time, word: kind.word() | u64::from(method) };
        put(|| Some(self.when_slow), ring, 100 + thread as u64, &[event]);
        if ring.head() > before {
            self.written += 1;
        } else {
            self.lost += 1;
        }
    }

    fn heads(&mut self) {
        self.round = Some((self.time, self.reading.heads()));
    }

    fn read(&mut self) {
        let Some((until, heads)) = self.round.take() else { return };
        self.reading.take_losses();
        let carriers: Vec<usize> = (0..CARRIERS).collect();
        self.reading.merge(&carriers, &heads, until);
        self.reading.stream.end_round(false);
        self.reading.report_degraded();
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Call(thread) if self.threads[thread].0 < DEPTH => {
                self.event(thread, EventKind::Entry, self.threads[thread].0);
                self.threads[thread].0 += 1;
            }
            Step::Return(thread) if self.threads[thread].0 > 0 => {
                self.threads[thread].0 -= 1;
                self.event(thread, EventKind::Exit, self.threads[thread].0);
            }
            Step::Call(_) | Step::Return(_) => {}
            Step::Move(thread, carrier) => self.threads[thread].1 = carrier,
            // Not 0, which means a pause.
            Step::Full(carrier) => self.rings[carrier].set_limit(self.rings[carrier].head().max(1)),
            Step::Room(carrier) => self.rings[carrier].set_limit(self.rings[carrier].head() + CAPACITY),
            Step::Heads => self.heads(),
            Step::Read => self.read(),
        }
    }

    /// Runs the last rounds and returns HQ's model of all events.
    fn end(mut self) -> (Model, u64, u64) {
        self.read();
        for _ in 0..2 {
            self.heads();
            self.read();
        }
        self.reading.stream.end_round(true);
        let mut model = Model::new(Dialect::F1, &Limits::default().small(), u64::MAX);
        let mut decoder = Decoder::new(Direction::data_from_agent(Some(Dialect::F1)));
        let bytes = self.reading.stream.buffers().concat();
        decoder
            .feed(&bytes, |_, message| {
                model.take(&message);
                None
            })
            .unwrap();
        (model, self.written, self.lost)
    }
}

fn check(steps: &[Step], when_slow: WhenSlow) -> Result<(), TestCaseError> {
    let mut program = Program::new(when_slow);
    for step in steps {
        program.step(step);
    }
    let (model, written, lost) = program.end();
    let report = model.report();
    prop_assert_eq!((report.counters.orphans, &report.findings), (0, &Vec::new()));
    if when_slow == WhenSlow::Drop {
        prop_assert_eq!((report.counters.dropped, report.counters.drops_unknown), (lost, 0));
    }
    let mut entries = 0;
    let tree = model.call_tree(None);
    let mut path: Vec<u32> = Vec::new();
    for row in &tree.rows {
        let name = &tree.signatures[row.signature];
        let depth = (0..DEPTH).find(|depth| name.starts_with(&format!("C.m{depth}"))).unwrap();
        path.truncate(row.depth);
        if let Some(caller) = path.last() {
            prop_assert_eq!(caller + 1, depth, "m{} has not called {}", caller, name);
        }
        path.push(depth);
        entries += row.calls;
    }
    prop_assert!(entries <= written);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn calls_are_those_that_were_made_whatever_carriers_drop(steps in steps()) {
        check(&steps, WhenSlow::Drop)?;
    }

    #[test]
    fn calls_are_those_that_were_made_whatever_carriers_count(steps in steps()) {
        check(&steps, WhenSlow::Counts)?;
    }
}
