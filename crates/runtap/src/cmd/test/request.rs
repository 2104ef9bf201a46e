//! The options of the command line and a profile of `runtap.toml`, as values of the libraries.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use runtap_mtp::suite::config::{Configuration, ReportPathError};
use runtap_mtp::suite::history::Store;
use runtap_mtp::suite::plan::Selection;
use runtap_mtp::suite::settings::Settings;
use runtap_test::plan::{Filter, FilterError, Flaky, Limit, Options, Partition};
use runtap_text::Output;

use super::usage;
use crate::cli::{FlakyResult, Rerun, Test};
use crate::exit::{TEST_USAGE, with_list};

/// What the command line and the configuration request.
#[derive(Debug)]
pub(super) struct Request {
    /// The root directory of patterns and the history.
    pub(super) root: PathBuf,
    pub(super) selection: Selection,
    /// The names of reports, with absolute paths if given.
    pub(super) reports: Vec<(String, Option<PathBuf>)>,
    /// The history of runs; `None` if none is kept.
    pub(super) store: Option<Store>,
    pub(super) settings: Settings,
}

impl Request {
    pub(super) fn of(test: &Test, output: Output) -> anyhow::Result<Self> {
        let root = std::path::absolute(test.root_directory.as_deref().unwrap_or_else(|| Path::new(".")))?;
        let found = match &test.config {
            Some(path) => Configuration::at(path),
            None => Configuration::find(&root),
        };
        let found = found.map_err(|error| usage(error.to_string(), None))?;
        if let Some((path, user)) = &found.ignored {
            output.warning(format_args!(
                "ignoring {}: the file belongs to user {user}, or others can write to it (chmod go-w); use it with --config {0}",
                path.display()
            ));
        }
        let configured = found.config.options(test.profile.as_deref()).map_err(|error| {
            let hint = found
                .path
                .is_none()
                .then(|| "Profiles are in runtap.toml; specify the file with --config FILE.".to_owned());
            usage(error.to_string(), hint)
        })?;
        let configured_reports = configured.reports.as_deref().unwrap_or_default();
        let reports = found.reports(&test.report, configured_reports);
        let reports = reports.map_err(|error| match error {
            ReportPathError::Io(error) => error.into(),
            ReportPathError::Configured(error) => usage(error.to_string(), None),
        })?;
        let settings = Settings::new(command_line_options(test)?, configured);
        let selection = settings.complete(selection(test)?, test.list_tests.is_some());
        let store = match &test.history {
            _ if test.no_history => None,
            Some(path) => Some(Store::at(path.clone())),
            None => match Store::of_directory(&root) {
                Ok(store) => Some(store),
                Err(error) => {
                    if test.list_tests.is_none() && !test.help {
                        output.note(format_args!(
                            "{error}; choose another directory with --history DIR, or use --no-history"
                        ));
                    }
                    None
                }
            },
        };
        Ok(Self { root, selection, reports, store, settings })
    }
}

/// Returns the options of the command line.
fn command_line_options(test: &Test) -> anyhow::Result<Options> {
    let quarantine: Result<Vec<_>, _> =
        test.quarantine.iter().map(|text| filter("--quarantine", text)).collect();
    let quarantine = Some(quarantine?).filter(|filters| !filters.is_empty());
    Ok(Options {
        parallel: test.max_parallel_test_modules,
        retries: test.retries,
        max_fail: test.max_fail.map(|it| NonZeroU32::new(it).map_or(Limit::None, Limit::At)),
        slow: test.slow,
        timeout_per_test: test.limit_of_each,
        minimum_expected_tests: test.minimum_expected_tests,
        filter: test.filter.as_deref().map(|text| filter("--filter", text)).transpose()?,
        quarantine,
        flaky: test.flaky.map(|it| match it {
            FlakyResult::Pass => Flaky::Pass,
            FlakyResult::Fail => Flaky::Fail,
        }),
        split: test.split.then_some(true),
        ..Options::default()
    })
}

fn selection(test: &Test) -> anyhow::Result<Selection> {
    let partition = test
        .partition
        .as_deref()
        .map(|text| text.parse::<Partition>().map_err(|error| usage(format!("--partition: {error}"), None)));
    let partition = partition.transpose()?;
    if test.no_history && partition.is_some_and(|it| it.needs_durations()) {
        let hint = "Use count, hash or slice, which need no history.".to_owned();
        return Err(usage(
            "--partition timing uses the durations of earlier runs, and --no-history disables them",
            hint,
        ));
    }
    if test.no_history && test.rerun.is_some() {
        return Err(usage("--rerun uses the outcomes of earlier runs, and --no-history disables them", None));
    }
    Ok(Selection {
        uids: test.filter_uid.clone(),
        partition,
        failed_only: test.rerun == Some(Rerun::Latest),
        ..Selection::default()
    })
}

fn filter(option: &str, text: &str) -> anyhow::Result<Filter> {
    text.parse().map_err(|error: FilterError| {
        let marked = error.caret().lines().map(str::to_owned).collect();
        with_list(TEST_USAGE, format!("{option}: {error}"), marked, None)
    })
}
