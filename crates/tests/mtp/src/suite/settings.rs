//! The settings of a run: the options of the command line merged over those of `runtap.toml`.

use std::sync::Arc;
use std::time::Duration;

use runtap_test::plan::{Flaky, Limit, Options};

use crate::suite::plan::{Planned, Selection};
use crate::suite::rules::{RequiredFacts, Rules};
use crate::{Mode, RunSpec, TestRules, Timeouts};

/// The default time after which a running test is reported as slow.
const DEFAULT_SLOW: Duration = Duration::from_secs(30);

/// The settings of a run.
#[derive(Debug)]
pub struct Settings {
    options: Options,
}

impl Settings {
    /// Merges the options of the command line over those of the configuration. Options of the command line apply to all tests,
    /// so they replace the configured exceptions for some tests too.
    pub fn new(command_line: Options, mut configured: Options) -> Self {
        for one in &mut configured.overrides {
            one.retries = one.retries.filter(|_| command_line.retries.is_none());
            one.slow = one.slow.filter(|_| command_line.slow.is_none());
            one.timeout_per_test = one.timeout_per_test.filter(|_| command_line.timeout_per_test.is_none());
        }
        Self { options: command_line.over(configured) }
    }

    /// Returns the selection with these options. Ids exclude a filter. For a list, tests are neither split nor discovered
    /// before.
    #[must_use]
    pub fn complete(&self, selection: Selection, is_list: bool) -> Selection {
        Selection {
            filter: self.options.filter.clone().filter(|_| selection.uids.is_empty()),
            split: !is_list && self.options.split.unwrap_or_default(),
            discover: !is_list && RequiredFacts::of(&self.options) == RequiredFacts::Discovery,
            ..selection
        }
    }

    /// Applies the settings that are common to all tests.
    pub fn apply(&self, spec: &mut RunSpec) {
        let Options {
            parallel,
            retries,
            max_fail,
            slow,
            timeout_per_test,
            minimum_expected_tests,
            flaky,
            ..
        } = &self.options;
        if let Some(parallel) = parallel {
            spec.parallel = parallel.get();
        }
        spec.retries = retries.unwrap_or_default();
        spec.max_failed = limit(*max_fail).map(|it| u64::from(it.get()));
        spec.minimum_expected = minimum_expected_tests.unwrap_or_default().into();
        spec.timeouts = Timeouts {
            slow: slow.map_or(Some(DEFAULT_SLOW), |it| limit(Some(it))),
            test: limit(*timeout_per_test),
            ..Timeouts::default()
        };
        spec.flaky_fails = *flaky == Some(Flaky::Fail);
    }

    /// Returns the rules for individual tests; `None` if there are none.
    pub fn rules(&self, spec: &RunSpec, planned: &Planned) -> Option<Arc<dyn TestRules>> {
        if spec.mode != Mode::Run || RequiredFacts::of(&self.options) == RequiredFacts::NoRules {
            return None;
        }
        Some(Arc::new(Rules::new(self.options.clone(), &spec.modules, planned.known.iter().cloned())))
    }
}

fn limit<T>(limit: Option<Limit<T>>) -> Option<T> {
    match limit {
        Some(Limit::At(limit)) => Some(limit),
        Some(Limit::None) | None => None,
    }
}
