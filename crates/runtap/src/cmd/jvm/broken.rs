//! The rules that an agent has broken: on its connections, and in what its events say when they are put in order.
//!
//! Owns: [`Broken`], which has each rule once, with how often it was broken and the first few times in words.

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog::{Finding, Report};
use runtap_bytefrog_proto::{Rule, Violation};

/// How many of a rule are kept in words.
const WORDS: usize = 5;

/// Rules that were broken, by their ids.
#[derive(Debug, Clone, Default)]
pub(in crate::cmd) struct Broken(Vec<Finding>);

impl Broken {
    /// Takes what was seen on a connection, in these words. How often that rule was broken by now.
    pub(in crate::cmd::jvm) fn add(&mut self, rule: Rule, words: impl FnOnce() -> String) -> u64 {
        let finding = self.of(rule);
        finding.count = finding.count.saturating_add(1);
        if finding.first.len() < WORDS {
            finding.first.push(words());
        }
        finding.count
    }

    /// With those that a report has.
    pub(in crate::cmd::jvm) fn and(mut self, report: &Report) -> Self {
        for found in &report.findings {
            let finding = self.of(found.rule);
            finding.count = finding.count.saturating_add(found.count);
            let room = WORDS.saturating_sub(finding.first.len());
            finding.first.extend(found.first.iter().take(room).cloned());
        }
        self
    }

    fn of(&mut self, rule: Rule) -> &mut Finding {
        let at = self.0.partition_point(|finding| finding.rule < rule);
        if self.0.get(at).is_none_or(|finding| finding.rule != rule) {
            self.0.insert(at, Finding { rule, count: 0, first: Vec::new() });
        }
        &mut self.0[at]
    }

    /// Each rule, by its id.
    pub(in crate::cmd::jvm) fn rules(&self) -> &[Finding] {
        &self.0
    }

    /// Whether something is missing because of one.
    pub(in crate::cmd::jvm) fn loses(&self) -> bool {
        self.0.iter().any(|finding| finding.rule.loses())
    }
}

/// A violation in words, with the place where it was, as far as it is known.
pub(in crate::cmd::jvm) fn words(connection: Option<Connection>, violation: &Violation) -> String {
    let offset = violation.offset.map(|offset| format!("at offset {offset}"));
    let place: Vec<String> =
        connection.map(|connection| connection.to_string()).into_iter().chain(offset).collect();
    if place.is_empty() {
        violation.detail.clone()
    } else {
        format!("{}: {}", place.join(" "), violation.detail)
    }
}
