//! The combined report of several agents, such as the JVMs of one test run.
//!
//! [`CombinedReport`] adds reports one by one, so that no two of them are held. Methods, exceptions and counters
//! are added up; segments and lines, which are specific to an agent, are left out. The size is bounded: what
//! exceeds a limit is counted in [`Report::beyond`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use runtap_bytefrog_proto::Dialect;
use runtap_model::order;

use super::counters::Counters;
use super::exceptions::Fate;
use super::findings::Finding;
use super::report::{ExceptionReport, MethodReport, Report, SlowCall, ThreadReport};

/// The maximum total size of the signatures of methods and of the names at exception sites, in bytes.
const MAX_TEXT: usize = 128 << 20;
/// The maximum number of distinct methods.
const MAX_METHODS: usize = 1 << 20;
/// The maximum number of exception sites.
const MAX_SITES: usize = 1 << 16;
/// The maximum number of threads, which are kept without their names.
const MAX_THREADS: usize = 1 << 18;
/// The maximum number of slow calls; the longest are kept.
const MAX_SLOW_CALLS: usize = 1_000;
/// The maximum total size of the names in the paths of slow calls, in bytes: each call may come from a different
/// agent.
const MAX_SLOW_TEXT: usize = 64 << 20;
/// The maximum number of details that are kept per broken rule.
const MAX_DETAILS: usize = 5;

/// The exception, method, line and fate.
type ExceptionSite = (Arc<str>, Arc<str>, Option<u16>, Fate);

/// The combined report of several agents.
#[derive(Debug, Default)]
pub struct CombinedReport {
    agents: u64,
    dialect: Option<Dialect>,
    counters: Counters,
    methods: HashMap<String, MethodReport>,
    text: usize,
    threads: Vec<ThreadReport>,
    exceptions: BTreeMap<ExceptionSite, u64>,
    slow_calls: Vec<SlowCall>,
    findings: Vec<Finding>,
    without_node: u64,
    beyond: u64,
    too_deep: u64,
    unsent: bool,
}

impl CombinedReport {
    /// Returns the number of reports that were added.
    pub fn agents(&self) -> u64 {
        self.agents
    }

    /// Adds the report of an agent.
    pub fn add(&mut self, report: Report) {
        self.agents += 1;
        self.dialect = self.dialect.or(Some(report.dialect));
        self.counters.add(&report.counters);
        for method in report.methods {
            self.method(method);
        }
        let room = MAX_THREADS.saturating_sub(self.threads.len());
        let threads = report.threads.into_iter().filter(|thread| thread.entries > 0).take(room);
        self.threads.extend(threads.map(|thread| ThreadReport { name: None, ..thread }));
        for found in report.exceptions {
            let site = (found.exception, found.signature, found.line, found.fate);
            if let Some(known) = self.exceptions.get_mut(&site) {
                add(known, found.count);
                continue;
            }
            let text = self.text.saturating_add(site.0.len() + site.1.len());
            if text > MAX_TEXT || self.exceptions.len() >= MAX_SITES {
                add(&mut self.beyond, found.count);
                continue;
            }
            self.text = text;
            self.exceptions.insert(site, found.count);
        }
        self.slow_calls.extend(report.slow_calls);
        order::sort_by_key(&mut self.slow_calls, |call| std::cmp::Reverse(call.took));
        self.slow_calls.truncate(MAX_SLOW_CALLS);
        let mut text = 0usize;
        self.slow_calls.retain(|call| {
            text = call.path.iter().fold(text, |text, name| text.saturating_add(name.len()));
            text <= MAX_SLOW_TEXT
        });
        for finding in report.findings {
            let at = self.findings.partition_point(|known| known.rule < finding.rule);
            match self.findings.get_mut(at).filter(|known| known.rule == finding.rule) {
                Some(known) => {
                    add(&mut known.count, finding.count);
                    let room = MAX_DETAILS.saturating_sub(known.first.len());
                    known.first.extend(finding.first.into_iter().take(room));
                }
                None => self.findings.insert(at, finding),
            }
        }
        add(&mut self.without_node, report.without_node);
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
        if text > MAX_TEXT || self.methods.len() >= MAX_METHODS {
            add(&mut self.beyond, method.calls().max(method.has_run.into()));
            return;
        }
        self.text = text;
        self.methods.insert(method.signature.clone(), method);
    }

    /// Returns the combined report. Its sequences, segments and lines are empty.
    pub fn report(&self) -> Report {
        let mut methods: Vec<MethodReport> = self.methods.values().cloned().collect();
        order::sort_by(&mut methods, |a, b| a.signature.cmp(&b.signature));
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
            without_node: self.without_node,
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

    /// Names of 64 KiB at 65,536 sites, or in the paths of slow calls, of any number of agents that connect one
    /// after another.
    #[test]
    fn texts_of_many_agents_are_bounded() {
        let mut combined = CombinedReport::default();
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
            combined.add(Report { exceptions: vec![exception], slow_calls: vec![slow], ..empty.clone() });
        }
        let report = combined.report();
        assert_eq!(report.exceptions.len(), MAX_TEXT / length);
        assert_eq!(report.beyond, (agents - MAX_TEXT / length) as u64);
        // The longest calls are kept.
        assert_eq!(report.slow_calls.len(), MAX_SLOW_TEXT / length);
        assert_eq!(report.slow_calls.first().map(|call| call.took), Some(agents as u64 - 1));
    }
}
