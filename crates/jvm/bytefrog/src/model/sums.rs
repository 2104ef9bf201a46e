//! What several agents have come to together: the JVMs of one test run, say.
//!
//! Owns: [`Sums`], which takes reports one after the other, so that no two of them are held. Methods, exceptions and counters
//! are added up. Refuses to: add what is an agent's own (segments and lines); grow without a bound: what has no room is in
//! [`Report::beyond`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use runtap_bytefrog_proto::Dialect;

use super::counters::Counters;
use super::exceptions::Fate;
use super::findings::Finding;
use super::report::{ExceptionReport, MethodReport, Report, SlowCall, ThreadReport};

/// Bytes of signatures of different methods, and of the names at places of exceptions.
const MOST_TEXT: usize = 128 << 20;
/// Different methods: as many as an agent may have.
const MOST_METHODS: usize = 1 << 20;
/// Places of exceptions.
const MOST_PLACES: usize = 1 << 16;
/// Threads, which are kept without their names.
const MOST_THREADS: usize = 1 << 18;
/// Slow calls: the longest stay.
const MOST_SLOW: usize = 1_000;
/// Bytes of the names in their paths: each call may keep those of an agent of its own.
const MOST_SLOW_TEXT: usize = 64 << 20;
/// Broken rules in words, of each rule.
const WORDS: usize = 5;

/// Exception, method, line, and what became of it.
type Place = (Arc<str>, Arc<str>, Option<u16>, Fate);

/// Reports that are added up.
#[derive(Debug, Default)]
pub struct Sums {
    agents: u64,
    dialect: Option<Dialect>,
    counters: Counters,
    methods: HashMap<String, MethodReport>,
    text: usize,
    threads: Vec<ThreadReport>,
    exceptions: BTreeMap<Place, u64>,
    slow_calls: Vec<SlowCall>,
    findings: Vec<Finding>,
    untold: u64,
    beyond: u64,
    too_deep: u64,
    unsent: bool,
}

impl Sums {
    /// How many reports were added.
    pub fn agents(&self) -> u64 {
        self.agents
    }

    /// Adds what an agent has come to.
    pub fn add(&mut self, report: Report) {
        self.agents += 1;
        self.dialect = self.dialect.or(Some(report.dialect));
        self.counters.add(&report.counters);
        for method in report.methods {
            self.method(method);
        }
        let room = MOST_THREADS.saturating_sub(self.threads.len());
        let threads = report.threads.into_iter().filter(|thread| thread.entries > 0).take(room);
        self.threads.extend(threads.map(|thread| ThreadReport { name: None, ..thread }));
        for found in report.exceptions {
            let place = (found.exception, found.signature, found.line, found.fate);
            if let Some(known) = self.exceptions.get_mut(&place) {
                add(known, found.count);
                continue;
            }
            let text = self.text.saturating_add(place.0.len() + place.1.len());
            if text > MOST_TEXT || self.exceptions.len() >= MOST_PLACES {
                add(&mut self.beyond, found.count);
                continue;
            }
            self.text = text;
            self.exceptions.insert(place, found.count);
        }
        self.slow_calls.extend(report.slow_calls);
        self.slow_calls.sort_by_key(|call| std::cmp::Reverse(call.took));
        self.slow_calls.truncate(MOST_SLOW);
        let mut text = 0usize;
        self.slow_calls.retain(|call| {
            text = call.path.iter().fold(text, |text, name| text.saturating_add(name.len()));
            text <= MOST_SLOW_TEXT
        });
        for finding in report.findings {
            let at = self.findings.partition_point(|known| known.rule < finding.rule);
            match self.findings.get_mut(at).filter(|known| known.rule == finding.rule) {
                Some(known) => {
                    add(&mut known.count, finding.count);
                    let room = WORDS.saturating_sub(known.first.len());
                    known.first.extend(finding.first.into_iter().take(room));
                }
                None => self.findings.insert(at, finding),
            }
        }
        add(&mut self.untold, report.untold);
        add(&mut self.beyond, report.beyond);
        add(&mut self.too_deep, report.too_deep);
        self.unsent |= report.unsent;
    }

    fn method(&mut self, method: MethodReport) {
        if let Some(known) = self.methods.get_mut(&method.signature) {
            known.add(&method);
            return;
        }
        let text = self.text.saturating_add(method.signature.len());
        if text > MOST_TEXT || self.methods.len() >= MOST_METHODS {
            add(&mut self.beyond, method.calls().max(method.has_run.into()));
            return;
        }
        self.text = text;
        self.methods.insert(method.signature.clone(), method);
    }

    /// All of them as one report. Its sequences, segments and lines are empty.
    pub fn report(&self) -> Report {
        let mut methods: Vec<MethodReport> = self.methods.values().cloned().collect();
        methods.sort_by(|a, b| a.signature.cmp(&b.signature));
        let exceptions = self.exceptions.iter().map(|((exception, signature, line, fate), count)| {
            let (exception, signature) = (Arc::clone(exception), Arc::clone(signature));
            ExceptionReport { exception, signature, line: *line, fate: *fate, count: *count }
        });
        Report {
            dialect: self.dialect.unwrap_or(Dialect::F1),
            counters: self.counters,
            sequences: None,
            signatures: methods.len(),
            methods,
            threads: self.threads.clone(),
            exceptions: exceptions.collect(),
            segments: Vec::new(),
            slow_calls: self.slow_calls.clone(),
            lines: Vec::new(),
            findings: self.findings.clone(),
            untold: self.untold,
            beyond: self.beyond,
            too_deep: self.too_deep,
            unsent: self.unsent,
        }
    }
}

fn add(to: &mut u64, more: u64) {
    *to = to.saturating_add(more);
}

impl MethodReport {
    fn add(&mut self, other: &Self) {
        add(&mut self.entries, other.entries);
        add(&mut self.exits, other.exits);
        add(&mut self.bubbles, other.bubbles);
        add(&mut self.throws, other.throws);
        add(&mut self.own, other.own);
        add(&mut self.inclusive, other.inclusive);
        add(&mut self.so_far, other.so_far);
        add(&mut self.own_so_far, other.own_so_far);
        if let Some((calls, thrown, time)) = other.counted {
            let known = self.counted.get_or_insert_default();
            add(&mut known.0, calls);
            add(&mut known.1, thrown);
            add(&mut known.2, time);
        }
        self.has_run |= other.has_run;
    }
}

impl Counters {
    fn add(&mut self, other: &Self) {
        let Self {
            entries,
            exits,
            exceptions,
            bubbles,
            visits,
            markers,
            data_breaks,
            missing,
            gaps,
            repeated,
            drops,
            dropped,
            drops_unknown,
            suspensions,
            suspended,
            orphans,
            flagged,
            counted,
            degraded,
        } = self;
        for (to, more) in [
            (entries, other.entries),
            (exits, other.exits),
            (exceptions, other.exceptions),
            (bubbles, other.bubbles),
            (visits, other.visits),
            (markers, other.markers),
            (data_breaks, other.data_breaks),
            (missing, other.missing),
            (gaps, other.gaps),
            (repeated, other.repeated),
            (drops, other.drops),
            (dropped, other.dropped),
            (drops_unknown, other.drops_unknown),
            (suspensions, other.suspensions),
            (suspended, other.suspended),
            (orphans, other.orphans),
            (flagged, other.flagged),
            (counted, other.counted),
            (degraded, other.degraded),
        ] {
            add(to, more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Model};

    /// Names of 64 KiB at 65,536 places, or in the paths of slow calls, of as many agents as connect one after the other.
    #[test]
    fn texts_of_many_agents_are_bounded() {
        let mut sums = Sums::default();
        let empty = Model::new(Dialect::F1, &Limits::default(), 1).report();
        let (agents, length) = (300usize, 1usize << 20);
        let name: Arc<str> = "x".repeat(length).into();
        for agent in 0..agents {
            let exception = ExceptionReport {
                exception: Arc::clone(&name),
                signature: Arc::from(""),
                line: u16::try_from(agent).ok(),
                fate: Fate::Thrown,
                count: 1,
            };
            let path = vec![Arc::clone(&name)];
            let slow = SlowCall { took: agent as u64, start: 0, thread: 0, path, depth: 1 };
            sums.add(Report { exceptions: vec![exception], slow_calls: vec![slow], ..empty.clone() });
        }
        let report = sums.report();
        assert_eq!(report.exceptions.len(), MOST_TEXT / length);
        assert_eq!(report.beyond, (agents - MOST_TEXT / length) as u64);
        // The longest stay.
        assert_eq!(report.slow_calls.len(), MOST_SLOW_TEXT / length);
        assert_eq!(report.slow_calls.first().map(|call| call.took), Some(agents as u64 - 1));
    }
}
