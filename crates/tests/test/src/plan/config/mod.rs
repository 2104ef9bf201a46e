//! The options in `runtap.toml` for running tests.
//!
//! Defines the options, and their precedence: the command line over a profile over `[test]`. Reading the file and
//! interpreting report formats is left to the caller. `docs/test-config.md` describes every key for users.

mod duration;
mod read;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use thiserror::Error;

use crate::plan::filter::{Filter, FilterError};
use crate::plan::test::Test;
use runtap_wire::nearest;

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
/// assert_eq!(wrong.to_string(), "line 2, column 1: unknown key 'retry' in [test]; did you mean 'retries'?");
/// # Ok::<(), runtap_test::plan::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    default: Options,
    profiles: BTreeMap<String, Options>,
}

/// The options of a run. `None` if not specified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The number of processes that run at the same time.
    pub parallel: Option<NonZeroUsize>,
    /// The maximum number of retries of a failed test.
    pub retries: Option<u32>,
    /// The number of failed tests after which the run is stopped.
    pub max_fail: Option<Limit<NonZeroU32>>,
    /// The time after which a running test is reported as slow.
    pub slow: Option<Limit<Duration>>,
    /// The time after which a running test is stopped.
    pub timeout_per_test: Option<Limit<Duration>>,
    /// Whether a slow module may be run by several processes at the same time.
    pub split: Option<bool>,
    /// The minimum number of tests; fewer tests make the run fail.
    pub minimum_expected_tests: Option<u32>,
    /// The filter of the tests that run.
    pub filter: Option<Filter>,
    /// The tests whose failures are reported but do not count.
    pub quarantine: Option<Vec<Filter>>,
    /// The reports to write.
    pub reports: Option<Vec<Report>>,
    /// The outcome of a test that passed only after a retry.
    pub flaky: Option<Flaky>,
    /// Exceptions for some tests. For each option, the first matching override that specifies it applies.
    pub overrides: Vec<Override>,
}

/// A limit that can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit<T> {
    /// No limit.
    None,
    /// A limit.
    At(T),
}

/// The outcome of a test that passed only after a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaky {
    /// The test passed.
    Pass,
    /// The test failed.
    Fail,
}

/// A report to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The name of the format, as written in the file.
    pub format: String,
    /// The path, or `None` for the default path of the format.
    pub path: Option<String>,
}

/// Exceptions for some tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The filter of the tests.
    pub filter: Filter,
    /// The maximum number of retries of such a test.
    pub retries: Option<u32>,
    /// The time after which such a test is stopped.
    pub timeout_per_test: Option<Limit<Duration>>,
    /// The time after which such a test is reported as slow.
    pub slow: Option<Limit<Duration>>,
}

/// The options of one test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerTest {
    /// The maximum number of retries.
    pub retries: Option<u32>,
    /// The time after which the test is stopped.
    pub timeout_per_test: Option<Limit<Duration>>,
    /// The time after which the test is reported as slow.
    pub slow: Option<Limit<Duration>>,
}

/// An error in a configuration, with its location.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
#[non_exhaustive]
pub struct ConfigError {
    /// The message.
    pub message: String,
    /// The line, starting at 1.
    pub line: usize,
    /// The column in characters, starting at 1.
    pub column: usize,
    /// The error of a filter, if the error is in a filter; [`FilterError::caret`] shows its location.
    pub filter: Option<FilterError>,
}

/// An error that occurs when a profile does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no profile '{name}' in the configuration{}", hint(nearest.as_deref(), known))]
#[non_exhaustive]
pub struct ProfileError {
    /// The name of the profile.
    pub name: String,
    /// The most similar profile, if any.
    pub nearest: Option<String>,
    /// The names of all profiles.
    pub known: Vec<String>,
}

fn hint(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(near) => format!("; did you mean '{near}'?"),
        None if known.is_empty() => "; it has none".to_owned(),
        None => format!("; valid profiles: {}", known.join(", ")),
    }
}

impl std::str::FromStr for Config {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        read::read(text)
    }
}

impl Config {
    /// Returns the names of the profiles, sorted.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// Returns the options of a profile, with those of `[test]` as defaults. Without a profile, or with `default`,
    /// returns those of `[test]`.
    ///
    /// # Errors
    /// Returns an error if the profile does not exist.
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

/// The name of the options of `[test]`.
const DEFAULT_PROFILE: &str = "default";

impl Options {
    /// Returns these options, with unspecified options taken from `base`. Lists are replaced, except that the overrides
    /// of both apply, these first.
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

    /// Returns the options of a test: for each option, the first matching override that specifies it, or else these
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

    /// Returns whether failures of this test do not count.
    pub fn is_quarantined(&self, test: &Test<'_>) -> bool {
        self.quarantine.iter().flatten().any(|filter| filter.matches(test))
    }
}
