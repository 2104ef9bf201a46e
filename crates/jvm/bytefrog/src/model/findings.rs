//! Broken rules, counted.
//!
//! Owns: [`Findings`]: a rule may be broken a billion times; how often is kept, and the first few in words.

use runtap_bytefrog_proto::Rule;

/// How many of a rule are kept in words.
const WORDS: usize = 5;

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which one.
    pub rule: Rule,
    /// How often.
    pub count: u64,
    /// The first ones in words.
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
            if finding.first.len() < WORDS {
                finding.first.push(detail());
            }
        }
    }

    /// By the ids of the rules.
    pub(crate) fn each(&self) -> &[Finding] {
        &self.0
    }

    /// A copy of them.
    pub(crate) fn all(&self) -> Vec<Finding> {
        self.0.clone()
    }
}
