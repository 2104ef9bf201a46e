//! Counts of an application's results.

use std::collections::BTreeMap;

use runtap_mtp_proto::server::{Event, Output};
use runtap_mtp_proto::{Message, Rule, Severity, TestState};

use crate::event::Totals;
use crate::launch::translate::outcome;

/// The numbers of tests by outcome, and of broken rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The numbers of results that count.
    pub totals: Totals,
    /// The number of tests that were listed.
    pub discovered: u64,
    /// The number of violations of each broken rule.
    pub violations: BTreeMap<Rule, u64>,
}

impl Tally {
    /// Returns the number of violations of rules with this severity.
    pub fn broken(&self, severity: Severity) -> u64 {
        self.violations.iter().filter(|(rule, _)| rule.severity() == severity).map(|(_, count)| count).sum()
    }

    pub(crate) fn take(&mut self, output: &Output) {
        for event in &output.events {
            match event {
                Event::Message(Message::TestResults(results)) => {
                    let passed =
                        results.successful.iter().flatten().map(|test| (test.state, test.is_superseded));
                    let failed = results.failed.iter().flatten().map(|test| (test.state, test.is_superseded));
                    // A result that a later attempt supersedes does not count.
                    for (state, _) in passed.chain(failed).filter(|(_, superseded)| *superseded != Some(true))
                    {
                        self.count(state);
                    }
                }
                Event::Message(Message::DiscoveredTests(found)) => {
                    self.discovered += found.tests.iter().flatten().count() as u64;
                }
                Event::Violation(violation) => *self.violations.entry(violation.rule).or_default() += 1,
                _ => {}
            }
        }
    }

    fn count(&mut self, state: Option<TestState>) {
        if let Some(state) = outcome(state) {
            *self.totals.count_mut(state) += 1;
        }
    }
}
