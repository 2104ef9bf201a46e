//! Traces made by hand, in any version, of calls with the lines that ran in them.

use std::collections::{BTreeMap, BTreeSet};

use runtap_bytefrog::{Limits, Model, Report};
use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Hit, HitRows, Rows};
use runtap_bytefrog_proto::{Dialect, Exit, JavaStr, Location, Message, Stamp};

/// A trace built call by call.
pub(crate) struct Trace {
    dialect: Dialect,
    model: Model,
    sequence: u64,
    methods: BTreeMap<String, u32>,
    locations: BTreeMap<(u32, u32, u32), u32>,
}

impl Trace {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let model = Model::new(dialect, &Limits::default(), u64::MAX);
        Self { dialect, model, sequence: 0, methods: BTreeMap::new(), locations: BTreeMap::new() }
    }

    /// Returns the id of a method, which is mapped when it is first used.
    pub(crate) fn method(&mut self, signature: &str) -> u32 {
        let next = u32::try_from(self.methods.len()).unwrap();
        let id = *self.methods.entry(signature.to_owned()).or_insert(next);
        if id == next {
            let signature = JavaStr::from_bytes(signature.as_bytes());
            self.model.take(&Message::MapMethod { method: id, signature });
        }
        id
    }

    fn location(&mut self, method: u32, start_line: u32, end_line: u32) -> u32 {
        let next = u32::try_from(self.locations.len()).unwrap();
        let location = *self.locations.entry((method, start_line, end_line)).or_insert(next);
        if location == next {
            let (start_char, end_char) = (u16::MAX, u16::MAX);
            let place = Location { location, method, start_line, end_line, start_char, end_char };
            self.model.take(&Message::MapLocation(place));
        }
        location
    }

    fn at(&mut self) -> Stamp {
        self.sequence += 1;
        Stamp { time: self.sequence, sequence: self.sequence - 1, thread: 0 }
    }

    fn batch(&mut self, kind: BatchKind, method: u32) {
        let at = self.at();
        let rows = [BatchEvent { kind, method, delta: 0 }.to_bytes()];
        let (thread, sequence, base) = (at.thread, at.sequence, at.time);
        self.model.take(&Message::Batch(Batch { thread, sequence, base, rows: Rows::new(&rows) }));
    }

    pub(crate) fn enter(&mut self, signature: &str) {
        let method = self.method(signature);
        if self.dialect == Dialect::F1 {
            return self.batch(BatchKind::Entry, method);
        }
        let at = self.at();
        self.model.take(&Message::Entry { at, method });
    }

    /// Ends a call and reports the lines that ran in it, if the version supports that.
    pub(crate) fn leave(&mut self, signature: &str, lines: &BTreeSet<(u32, u32)>) {
        let method = self.method(signature);
        for (start, end) in lines {
            match self.dialect {
                Dialect::V1 => {}
                Dialect::F1 => {
                    // An agent reports each line once.
                    if self.locations.contains_key(&(method, *start, *end)) {
                        continue;
                    }
                    let location = self.location(method, *start, *end);
                    let rows = [Hit { method, location: Some(location) }.to_bytes()];
                    self.model.take(&Message::Coverage(HitRows { time: 0, rows: Rows::new(&rows) }));
                }
                _ => {
                    let location = self.location(method, *start, *end);
                    let at = self.at();
                    self.model.take(&Message::Visit { at, method, location });
                }
            }
        }
        if self.dialect == Dialect::F1 {
            return self.batch(BatchKind::Exit, method);
        }
        let at = self.at();
        let exit = if self.dialect == Dialect::V1 { Exit::Line(u16::MAX) } else { Exit::Thrown(0) };
        self.model.take(&Message::Exit { at, method, exit });
    }

    /// Adds a call in which these lines ran.
    pub(crate) fn call(&mut self, signature: &str, lines: &[u32]) {
        self.enter(signature);
        self.leave(signature, &lines.iter().map(|line| (*line, *line)).collect());
    }

    /// Drops events.
    pub(crate) fn lose(&mut self, count: u64) {
        self.sequence += count;
    }

    pub(crate) fn take(&mut self, message: &Message<'_>) {
        self.model.take(message);
    }

    pub(crate) fn report(mut self) -> Report {
        self.model.finish();
        self.model.report()
    }
}
