//! Parsing of `runtap.toml`, with the types of all keys and the locations of errors.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Config, ConfigError, DEFAULT_PROFILE, Flaky, Limit, Options, Override, Report, duration};
use crate::plan::filter::{Filter, FilterError};
use runtap_model::order;
use runtap_wire::nearest;

type Value<'t> = Spanned<DeValue<'t>>;

pub(super) fn read(text: &str) -> Result<Config, ConfigError> {
    let reader = Reader { text };
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(text.len(), |span| span.start);
        reader.error(offset, error.message().to_owned())
    })?;
    let mut config = Config::default();
    for (key, at, value) in entries(table.get_ref()) {
        match key {
            "test" => reader.test(value, &mut config)?,
            _ => return Err(reader.unknown(at, key, "the file", &["test"])),
        }
    }
    Ok(config)
}

/// Returns the entries of a table in text order, so that the first error is reported first.
fn entries<'a, 't>(table: &'a DeTable<'t>) -> Vec<(&'a str, usize, &'a Value<'t>)> {
    let entry = |(key, value): (&'a Spanned<_>, &'a Value<'t>)| {
        let name: &std::borrow::Cow<'t, str> = key.get_ref();
        (&**name, key.span().start, value)
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    order::sort_by_key(&mut entries, |(_, at, _)| *at);
    entries
}

const PROFILE: &str = "profile";

/// The keys of a profile, sorted.
const KEYS: [&str; 12] = [
    "filter",
    "flaky",
    "max-fail",
    "minimum-expected-tests",
    "overrides",
    "parallel",
    "quarantine",
    "reports",
    "retries",
    "slow",
    "split",
    "timeout-per-test",
];

struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    fn test(&self, value: &Value<'_>, config: &mut Config) -> Result<(), ConfigError> {
        for (key, at, value) in entries(self.table(value, "test")?) {
            if key != PROFILE {
                self.option(&mut config.default, "[test]", key, at, value)?;
                continue;
            }
            for (name, at, value) in entries(self.table(value, PROFILE)?) {
                if name == DEFAULT_PROFILE {
                    let message = "the options of the profile 'default' are those of [test]".to_owned();
                    return Err(self.error(at, message));
                }
                let place = format!("[test.profile.{name}]");
                let mut options = Options::default();
                for (key, at, value) in entries(self.table(value, name)?) {
                    self.option(&mut options, &place, key, at, value)?;
                }
                config.profiles.insert(name.to_owned(), options);
            }
        }
        Ok(())
    }

    fn option(
        &self,
        options: &mut Options,
        place: &str,
        key: &str,
        at: usize,
        value: &Value<'_>,
    ) -> Result<(), ConfigError> {
        match key {
            "parallel" => {
                let number =
                    NonZeroUsize::new(usize::try_from(self.number(value, key, 1)?).unwrap_or(usize::MAX));
                options.parallel = number;
            }
            "retries" => options.retries = Some(self.number(value, key, 0)?),
            "max-fail" => {
                let limit = limit(value, |value| {
                    let number = self.number(value, key, 1)?;
                    Ok(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
                });
                options.max_fail = Some(limit?);
            }
            "slow" => options.slow = Some(self.timeout(value, key)?),
            "split" => {
                let split = value.get_ref().as_bool();
                options.split = Some(split.ok_or_else(|| self.other_type(value, key, "true or false"))?);
            }
            "timeout-per-test" => options.timeout_per_test = Some(self.timeout(value, key)?),
            "minimum-expected-tests" => options.minimum_expected_tests = Some(self.number(value, key, 0)?),
            "filter" => options.filter = Some(self.filter(value, key)?),
            "quarantine" => {
                let filters = self.array(value, key)?.iter().map(|value| self.filter(value, key));
                options.quarantine = Some(filters.collect::<Result<_, _>>()?);
            }
            "reports" => {
                let reports = self.array(value, key)?.iter().map(|value| self.report(value));
                options.reports = Some(reports.collect::<Result<_, _>>()?);
            }
            "flaky" => options.flaky = Some(self.flaky(value)?),
            "overrides" => {
                let overrides = self.array(value, key)?.iter().map(|value| self.one_override(value));
                options.overrides = overrides.collect::<Result<_, _>>()?;
            }
            _ => {
                let mut known = KEYS.to_vec();
                if place == "[test]" {
                    known.push(PROFILE);
                    order::sort(&mut known);
                }
                return Err(self.unknown(at, key, place, &known));
            }
        }
        Ok(())
    }

    fn report(&self, value: &Value<'_>) -> Result<Report, ConfigError> {
        let (mut format, mut path) = (None, None);
        for (key, at, value) in entries(self.table(value, "reports")?) {
            match key {
                "format" => format = Some(self.filled(value, key)?.to_owned()),
                "path" => path = Some(self.filled(value, key)?.to_owned()),
                _ => return Err(self.unknown(at, key, "a report", &["format", "path"])),
            }
        }
        let missing = || self.error(value.span().start, "this report has no 'format'".to_owned());
        Ok(Report { format: format.ok_or_else(missing)?, path })
    }

    fn one_override(&self, value: &Value<'_>) -> Result<Override, ConfigError> {
        const KEYS: [&str; 4] = ["filter", "retries", "slow", "timeout-per-test"];
        let (mut filter, mut retries, mut timeout_per_test, mut slow) = (None, None, None, None);
        for (key, at, value) in entries(self.table(value, "overrides")?) {
            match key {
                "filter" => filter = Some(self.filter(value, key)?),
                "retries" => retries = Some(self.number(value, key, 0)?),
                "timeout-per-test" => timeout_per_test = Some(self.timeout(value, key)?),
                "slow" => slow = Some(self.timeout(value, key)?),
                _ => return Err(self.unknown(at, key, "an override", &KEYS)),
            }
        }
        let missing = || self.error(value.span().start, "this override has no 'filter'".to_owned());
        Ok(Override { filter: filter.ok_or_else(missing)?, retries, timeout_per_test, slow })
    }

    fn flaky(&self, value: &Value<'_>) -> Result<Flaky, ConfigError> {
        match self.string(value, "flaky")? {
            "pass" => Ok(Flaky::Pass),
            "fail" => Ok(Flaky::Fail),
            other => Err(self.wrong(value, format!("'flaky' must be \"pass\" or \"fail\", not \"{other}\""))),
        }
    }

    fn timeout(&self, value: &Value<'_>, key: &str) -> Result<Limit<Duration>, ConfigError> {
        limit(value, |value| {
            duration::parse(self.string(value, key)?).map_err(|message| self.wrong(value, message))
        })
    }

    fn filter(&self, value: &Value<'_>, key: &str) -> Result<Filter, ConfigError> {
        let text = self.string(value, key)?;
        text.parse().map_err(|error: FilterError| ConfigError {
            filter: Some(error.clone()),
            ..self.wrong(value, format!("in the filter '{text}': {error}"))
        })
    }

    fn number(&self, value: &Value<'_>, key: &str, least: u32) -> Result<u32, ConfigError> {
        let Some(integer) = value.get_ref().as_integer() else {
            return Err(self.other_type(value, key, "a whole number"));
        };
        // The text has neither prefix nor underscores.
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        number.filter(|number| *number >= least).ok_or_else(|| {
            self.wrong(value, format!("'{key}' must be a whole number from {least} to {}", u32::MAX))
        })
    }

    fn string<'a>(&self, value: &'a Value<'_>, key: &str) -> Result<&'a str, ConfigError> {
        value.get_ref().as_str().ok_or_else(|| self.other_type(value, key, "a text in quotes"))
    }

    fn filled<'a>(&self, value: &'a Value<'_>, key: &str) -> Result<&'a str, ConfigError> {
        let text = self.string(value, key)?;
        if text.is_empty() { Err(self.wrong(value, format!("'{key}' is empty"))) } else { Ok(text) }
    }

    fn array<'a, 't>(&self, value: &'a Value<'t>, key: &str) -> Result<&'a [Value<'t>], ConfigError> {
        let array = value.get_ref().as_array();
        array.map(|array| &**array).ok_or_else(|| self.other_type(value, key, "a list in [ ]"))
    }

    fn table<'a, 't>(&self, value: &'a Value<'t>, key: &str) -> Result<&'a DeTable<'t>, ConfigError> {
        value.get_ref().as_table().ok_or_else(|| self.other_type(value, key, "a table"))
    }

    fn other_type(&self, value: &Value<'_>, key: &str, wanted: &str) -> ConfigError {
        self.wrong(
            value,
            format!("'{key}' must be {wanted}, but has the type {}", value.get_ref().type_str()),
        )
    }

    fn unknown(&self, at: usize, key: &str, place: &str, known: &[&str]) -> ConfigError {
        let message = match (nearest(key, known.iter().copied()), known) {
            (Some(near), _) => format!("unknown key '{key}' in {place}; did you mean '{near}'?"),
            (None, [others @ .., last]) if !others.is_empty() => {
                format!("unknown key '{key}' in {place}; valid keys: {}, {last}", others.join(", "))
            }
            (None, known) => format!("unknown key '{key}' in {place}; valid key: {}", known.join(", ")),
        };
        self.error(at, message)
    }

    fn wrong(&self, value: &Value<'_>, message: String) -> ConfigError {
        self.error(value.span().start, message)
    }

    fn error(&self, offset: usize, message: String) -> ConfigError {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let start_of_line = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before.get(start_of_line..).unwrap_or_default().chars().count() + 1;
        ConfigError { message, line: before.matches('\n').count() + 1, column, filter: None }
    }
}

/// Parses `"none"`, or a limit with `read`.
fn limit<T>(
    value: &Value<'_>,
    read: impl Fn(&Value<'_>) -> Result<T, ConfigError>,
) -> Result<Limit<T>, ConfigError> {
    if value.get_ref().as_str() == Some("none") { Ok(Limit::None) } else { read(value).map(Limit::At) }
}
