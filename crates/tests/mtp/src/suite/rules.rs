//! Rules for single tests: the overrides of `runtap.toml`, and the quarantine.

use std::collections::HashMap;

use crate::{Module, ModuleId, TestInfo, TestRule, TestRules};
use runtap_test::plan::{Filter, Limit, Options, Test};

use crate::suite::facts;

/// The rules of a run.
#[derive(Debug)]
pub struct Rules {
    options: Options,
    modules: Vec<String>,
    known: HashMap<(ModuleId, String), TestInfo>,
}

/// The properties of tests that are needed to apply the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredFacts {
    /// There are no rules for single tests.
    NoRules,
    /// The ids and names of tests are sufficient.
    Names,
    /// Classes, traits or other properties are needed, so tests must be discovered.
    Discovery,
}

impl RequiredFacts {
    /// Returns the properties that these options need.
    pub fn of(options: &Options) -> Self {
        let overrides = options.overrides.iter().map(|one| &one.filter);
        let mut filters = overrides.chain(options.quarantine.iter().flatten()).peekable();
        if filters.peek().is_none() {
            Self::NoRules
        } else if filters.all(Filter::needs_names_only) {
            Self::Names
        } else {
            Self::Discovery
        }
    }
}

impl Rules {
    /// Creates the rules of these options. `known` are the tests that were discovered.
    pub fn new(
        options: Options,
        modules: &[Module],
        known: impl IntoIterator<Item = (ModuleId, TestInfo)>,
    ) -> Self {
        let known = known.into_iter().map(|(module, test)| ((module, test.uid.clone()), test)).collect();
        Self { options, modules: facts::paths(modules), known }
    }
}

impl TestRules for Rules {
    fn rule(&self, module: ModuleId, uid: &str, name: &str, usual: TestRule) -> TestRule {
        let path = self.modules.get(module.0).map(String::as_str).unwrap_or_default();
        let known = self.known.get(&(module, uid.to_owned()));
        let test = known.map_or_else(
            || Test { module: Some(path.into()), ..Test::new(uid, name) },
            |test| facts::discovered(test, path),
        );
        let own = self.options.for_test(&test);
        let time = |own, usual| match own {
            Some(Limit::At(time)) => Some(time),
            Some(Limit::None) => None,
            None => usual,
        };
        TestRule {
            retries: own.retries.unwrap_or(usual.retries),
            slow: time(own.slow, usual.slow),
            limit: time(own.timeout_per_test, usual.limit),
            quarantined: usual.quarantined || self.options.is_quarantined(&test),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runtap_test::plan::Config;

    use super::*;

    fn options(text: &str) -> Options {
        text.parse::<Config>().unwrap().options(None).unwrap()
    }

    #[test]
    fn overrides_and_quarantine_apply_only_to_their_tests() {
        let options = options(
            "[test]\nquarantine = ['class = Bad']\n[[test.overrides]]\nfilter = 'name ^= Long'\nretries = 3\n\
             timeout-per-test = 'none'\nslow = '2m'",
        );
        assert_eq!(RequiredFacts::of(&options), RequiredFacts::Discovery);
        let modules = [Module::new("/a/Shop.dll")];
        let bad = TestInfo { uid: "1".into(), type_name: Some("Bad".into()), ..TestInfo::default() };
        let rules = Rules::new(options, &modules, [(ModuleId(0), bad)]);
        let usual = TestRule { retries: 1, limit: Some(Duration::from_secs(9)), ..TestRule::default() };
        assert_eq!(rules.rule(ModuleId(0), "2", "Short", usual), usual);
        assert_eq!(rules.rule(ModuleId(0), "1", "Short", usual), TestRule { quarantined: true, ..usual });
        let long =
            TestRule { retries: 3, limit: None, slow: Some(Duration::from_mins(2)), quarantined: false };
        assert_eq!(rules.rule(ModuleId(0), "2", "Long one", usual), long);
    }

    #[test]
    fn names_need_no_discovery() {
        assert_eq!(RequiredFacts::of(&options("[test]\nretries = 1")), RequiredFacts::NoRules);
        assert_eq!(
            RequiredFacts::of(&options("[test]\nquarantine = ['name = A', 'uid = b']")),
            RequiredFacts::Names
        );
        assert_eq!(
            RequiredFacts::of(&options("[test]\nquarantine = ['name = A', 'category = Slow']")),
            RequiredFacts::Discovery
        );
    }
}
