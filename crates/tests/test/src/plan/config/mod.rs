//! What `runtap.toml` says about running tests.
//!
//! Owns: the options as values, and what takes precedence: the command line over a profile over `[test]`. Refuses to:
//! read the file; know which formats of reports there are. `docs/test-config.md` describes every key for users.

mod duration;
mod read;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use thiserror::Error;

use crate::plan::filter::{Filter, FilterError};
use crate::plan::nearest::nearest;
use crate::plan::test::Test;

/// A configuration file: the options of `[test]`, and those of each `[test.profile.NAME]`.
///
/// ```
/// use runtap_test::plan::Config;
///
/// let config: Config = r#"
///     [test]
///     retries = 1
///     slow = "30s"
///
///     [test.profile.ci]
///     retries = 3
/// "#.parse()?;
/// let ci = config.options(Some("ci")).unwrap();
/// assert_eq!((ci.retries, ci.slow), (Some(3), config.options(None).unwrap().slow));
///
/// let wrong = "[test]\nretry = 1".parse::<Config>().unwrap_err();
/// assert_eq!(wrong.to_string(), "line 2, column 1: there is no key 'retry' in [test]; is it 'retries'?");
/// # Ok::<(), runtap_test::plan::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    default: Options,
    profiles: BTreeMap<String, Options>,
}

/// The options of a run. What is `None` was not said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// How many processes run at the same time.
    pub parallel: Option<NonZeroUsize>,
    /// How often a test that failed is run again.
    pub retries: Option<u32>,
    /// After how many failed tests the run is stopped.
    pub max_fail: Option<Limit<NonZeroU32>>,
    /// After how much time a test is reported as slow.
    pub slow: Option<Limit<Duration>>,
    /// After how much time a test is ended.
    pub timeout_per_test: Option<Limit<Duration>>,
    /// Whether a slow module may be run by several processes at the same time.
    pub split: Option<bool>,
    /// With fewer tests the run fails.
    pub minimum_expected_tests: Option<u32>,
    /// Which tests run.
    pub filter: Option<Filter>,
    /// Tests whose failures are reported and do not count.
    pub quarantine: Option<Vec<Filter>>,
    /// Reports to write.
    pub reports: Option<Vec<Report>>,
    /// What a test is that passed only when it was run again.
    pub flaky: Option<Flaky>,
    /// Exceptions for some tests; of those that match a test, the first one that says something counts.
    pub overrides: Vec<Override>,
}

/// A limit that can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit<T> {
    /// There is none.
    None,
    /// It is reached here.
    At(T),
}

/// What a test is that passed only when it was run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaky {
    /// It passed.
    Pass,
    /// It failed.
    Fail,
}

/// A report to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The name of the format, as it was written.
    pub format: String,
    /// Where to write it; `None` where the format has a place of its own.
    pub path: Option<String>,
}

/// Exceptions for some tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// For which tests.
    pub filter: Filter,
    /// How often such a test is run again.
    pub retries: Option<u32>,
    /// After how much time such a test is ended.
    pub timeout_per_test: Option<Limit<Duration>>,
    /// After how much time such a test is reported as slow.
    pub slow: Option<Limit<Duration>>,
}

/// The options of one test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerTest {
    /// How often it is run again.
    pub retries: Option<u32>,
    /// After how much time it is ended.
    pub timeout_per_test: Option<Limit<Duration>>,
    /// After how much time it is reported as slow.
    pub slow: Option<Limit<Duration>>,
}

/// What is wrong with a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
#[non_exhaustive]
pub struct ConfigError {
    /// What is wrong.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The character of that line, from 1.
    pub column: usize,
    /// The filter that is wrong, if it is one; [`FilterError::caret`] shows where.
    pub filter: Option<FilterError>,
}

/// There is no profile of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no profile '{name}' in the configuration{}", hint(nearest.as_deref(), known))]
#[non_exhaustive]
pub struct ProfileError {
    /// The name.
    pub name: String,
    /// The profile that was probably meant.
    pub nearest: Option<String>,
    /// All profiles.
    pub known: Vec<String>,
}

fn hint(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(near) => format!("; is it '{near}'?"),
        None if known.is_empty() => "; it has none".to_owned(),
        None => format!("; there are {}", known.join(", ")),
    }
}

impl std::str::FromStr for Config {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        read::read(text)
    }
}

impl Config {
    /// The names of the profiles, sorted.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// The options of a profile over those of `[test]`; without a profile, or with `default`, those of `[test]`.
    ///
    /// # Errors
    /// If there is no such profile.
    pub fn options(&self, profile: Option<&str>) -> Result<Options, ProfileError> {
        let Some(name) = profile.filter(|name| *name != DEFAULT_PROFILE) else {
            return Ok(self.default.clone());
        };
        let Some(options) = self.profiles.get(name) else {
            let known: Vec<String> = self.profiles().map(str::to_owned).collect();
            let nearest = nearest(name, self.profiles()).map(str::to_owned);
            return Err(ProfileError { name: name.to_owned(), nearest, known });
        };
        Ok(options.clone().over(self.default.clone()))
    }
}

/// What people call the options of `[test]`.
const DEFAULT_PROFILE: &str = "default";

impl Options {
    /// These options, and what they do not say from `base`. A list replaces the other one; only the overrides of both
    /// count, these first.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        let mut overrides = self.overrides;
        overrides.extend(base.overrides);
        Self {
            parallel: self.parallel.or(base.parallel),
            retries: self.retries.or(base.retries),
            max_fail: self.max_fail.or(base.max_fail),
            slow: self.slow.or(base.slow),
            timeout_per_test: self.timeout_per_test.or(base.timeout_per_test),
            split: self.split.or(base.split),
            minimum_expected_tests: self.minimum_expected_tests.or(base.minimum_expected_tests),
            filter: self.filter.or(base.filter),
            quarantine: self.quarantine.or(base.quarantine),
            reports: self.reports.or(base.reports),
            flaky: self.flaky.or(base.flaky),
            overrides,
        }
    }

    /// What holds for a test: for each option, the first override that matches the test and says something, else these
    /// options.
    pub fn for_test(&self, test: &Test<'_>) -> PerTest {
        let mut result = PerTest::default();
        for one in self.overrides.iter().filter(|one| one.filter.matches(test)) {
            result.retries = result.retries.or(one.retries);
            result.timeout_per_test = result.timeout_per_test.or(one.timeout_per_test);
            result.slow = result.slow.or(one.slow);
        }
        PerTest {
            retries: result.retries.or(self.retries),
            timeout_per_test: result.timeout_per_test.or(self.timeout_per_test),
            slow: result.slow.or(self.slow),
        }
    }

    /// Whether a failure of this test does not count.
    pub fn is_quarantined(&self, test: &Test<'_>) -> bool {
        self.quarantine.iter().flatten().any(|filter| filter.matches(test))
    }
}
