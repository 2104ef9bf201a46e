//! Broken rules with their counts.
//!
//! A rule may be broken a billion times, so [`Findings`] keeps the count, and only the first few details.

use runtap_bytefrog_proto::Rule;

/// The number of details that are kept per rule.
const MAX_DETAILS: usize = 5;

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The number of times that the rule was broken.
    pub count: u64,
    /// The details of the first few times.
    pub first: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    #[cold]
    pub(crate) fn add(&mut self, rule: Rule, detail: impl FnOnce() -> String) {
        self.add_many(rule, 1, detail);
    }

    pub(crate) fn add_many(&mut self, rule: Rule, count: u64, detail: impl FnOnce() -> String) {
        let at = self.0.partition_point(|finding| finding.rule < rule);
        if self.0.get(at).is_none_or(|finding| finding.rule != rule) {
            self.0.insert(at, Finding { rule, count: 0, first: Vec::new() });
        }
        if let Some(finding) = self.0.get_mut(at) {
            finding.count = finding.count.saturating_add(count);
            if finding.first.len() < MAX_DETAILS {
                finding.first.push(detail());
            }
        }
    }

    /// Returns the findings, sorted by the IDs of their rules.
    pub(crate) fn each(&self) -> &[Finding] {
        &self.0
    }

    /// Returns a copy of the findings.
    pub(crate) fn all(&self) -> Vec<Finding> {
        self.0.clone()
    }
}
