//! The protocol rules that an agent has broken, on its connections and in the order of its events.
//!
//! Owns: [`BrokenRules`], which has one entry per rule, with the number of violations and descriptions of the first few.

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog::{Finding, Report};
use runtap_bytefrog_proto::{Rule, Violation};

/// The number of violations described per rule.
const MAX_DESCRIPTIONS: usize = 5;

/// Broken rules, sorted by their ids.
#[derive(Debug, Clone, Default)]
pub struct BrokenRules(Vec<Finding>);

impl BrokenRules {
    /// Records a violation, and returns the number of violations of its rule so far. `describe` describes the violation.
    pub fn add(&mut self, rule: Rule, describe: impl FnOnce() -> String) -> u64 {
        let finding = self.entry(rule);
        finding.count = finding.count.saturating_add(1);
        if finding.first.len() < MAX_DESCRIPTIONS {
            finding.first.push(describe());
        }
        finding.count
    }

    /// Adds the violations found by a report.
    #[must_use]
    pub fn with_report(mut self, report: &Report) -> Self {
        for found in &report.findings {
            let finding = self.entry(found.rule);
            finding.count = finding.count.saturating_add(found.count);
            let room = MAX_DESCRIPTIONS.saturating_sub(finding.first.len());
            finding.first.extend(found.first.iter().take(room).cloned());
        }
        self
    }

    fn entry(&mut self, rule: Rule) -> &mut Finding {
        let at = self.0.partition_point(|finding| finding.rule < rule);
        if self.0.get(at).is_none_or(|finding| finding.rule != rule) {
            self.0.insert(at, Finding { rule, count: 0, first: Vec::new() });
        }
        &mut self.0[at]
    }

    /// Returns the broken rules, sorted by their ids.
    pub fn rules(&self) -> &[Finding] {
        &self.0
    }

    /// Returns whether a violation has caused a loss of data.
    pub fn has_losses(&self) -> bool {
        self.0.iter().any(|finding| finding.rule.causes_loss())
    }
}

/// Describes a violation, with its connection and offset if known.
pub fn describe_violation(connection: Option<Connection>, violation: &Violation) -> String {
    let offset = violation.offset.map(|offset| format!("at offset {offset}"));
    let place: Vec<String> =
        connection.map(|connection| connection.to_string()).into_iter().chain(offset).collect();
    if place.is_empty() {
        violation.detail.clone()
    } else {
        format!("{}: {}", place.join(" "), violation.detail)
    }
}
