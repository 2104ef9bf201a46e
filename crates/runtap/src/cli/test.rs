//! The options of `runtap test`, which include those of `dotnet test`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use runtap_test::plan::Limit;
use runtap_text::test::Detail;

use super::ResultFormat;
use super::choices::choice;
use crate::cmd::complete;
use runtap_text::units::{parse_limit, parse_positive, parse_time_limit};

/// The format of a list of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Test names, grouped by application
    Text,
    /// One JSON document
    Json,
}

/// The transport by which applications send their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TestTransport {
    /// A local socket
    #[default]
    Pipe,
    /// HTTP requests to a local port; requires platform 2.4 or later
    Http,
}

/// The earlier run to repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rerun {
    /// The failed tests of the latest run
    Latest,
}

/// The result of a run without tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum NoTests {
    /// The run passes
    Pass,
    /// The run passes, with a warning
    Warn,
    /// The run fails
    #[default]
    Fail,
}

/// The result of a test that passed only when it was repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlakyResult {
    /// The test passes
    Pass,
    /// The test fails
    Fail,
}

#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
PATH is a program, a .dll (run by a dotnet host), or a pattern ('*', '**', '?') that matches only \
test applications. Arguments after '--' are passed to each application. Exit codes are those of \
Microsoft.Testing.Platform: 2 tests failed, 3 stopped, 5 wrong usage, 7 an application crashed, \
8 no tests, 9 fewer tests than expected, 13 stopped by --max-fail.

Examples:
  runtap test bin/Release/net10.0/Shop.Tests.dll
  runtap test 'artifacts/**/*.Tests.dll' '!artifacts/**/ref/**' --retries 2 -j 4
  runtap test Shop.Tests.dll --list-tests=json
  runtap test Shop.Tests.dll --timeout-per-test 30s --slow 5s -- --coverage
  runtap test Shop.Tests.dll --rerun
  runtap test Shop.Tests.dll --format json"
)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct Test {
    /// Test applications: files or patterns; '!PATTERN' excludes applications
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) paths: Vec<String>,
    /// Test applications as in PATH, separated by ';'
    #[arg(long = "test-modules", value_name = "PATTERNS", help_heading = "Applications")]
    pub(crate) patterns: Option<String>,
    /// Directory to which patterns are relative [default: the current directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Applications")]
    pub(crate) root_directory: Option<PathBuf>,
    /// The dotnet host for .dll files [default: searched as dotnet itself does]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Applications")]
    pub(crate) dotnet: Option<PathBuf>,
    /// Set an environment variable for the applications
    #[arg(short, long = "environment", value_name = "NAME=VALUE", help_heading = "Applications")]
    pub(crate) environment: Vec<String>,
    /// Directory for the files that applications write
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Applications")]
    pub(crate) results_directory: Option<PathBuf>,
    /// Copy the artifacts of tests and applications to a directory per application [default: test-artifacts in
    /// --results-directory]
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        // Empty means the default directory, which depends on other options.
        default_missing_value = "",
        value_hint = ValueHint::DirPath,
        help_heading = "Output"
    )]
    pub(crate) collect_artifacts: Option<String>,
    /// A testconfig.json for all applications
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Applications")]
    pub(crate) config_file: Option<PathBuf>,
    /// Directory for the platform's diagnostic logs
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Applications")]
    pub(crate) diagnostic_output_directory: Option<PathBuf>,
    /// How applications send their results
    #[arg(long, value_name = "HOW", default_value = "pipe", help_heading = "Applications")]
    pub(crate) transport: TestTransport,
    /// Options for each application
    #[arg(last = true, value_name = "APP-OPTIONS", help_heading = "Applications")]
    pub(crate) arguments: Vec<OsString>,

    /// Run only the tests with these ids
    #[arg(long, value_name = "UID", num_args = 1.., help_heading = "Tests")]
    pub(crate) filter_uid: Vec<String>,
    /// Run only tests that match, such as "class = Cart and not category = Slow"; also accepts filters of dotnet test
    #[arg(long, value_name = "EXPR", help_heading = "Tests", conflicts_with = "filter_uid")]
    pub(crate) filter: Option<String>,
    /// Run only a part of the tests, to distribute them over machines: count:1/3, hash:1/3, slice:1/3, timing:1/3
    #[arg(long, value_name = "PART", help_heading = "Tests")]
    pub(crate) partition: Option<String>,
    /// Run only the tests that failed in their latest run
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "latest",
        help_heading = "Tests"
    )]
    pub(crate) rerun: Option<Rerun>,
    /// Report failures of tests that match, but do not count them
    #[arg(long, value_name = "EXPR", help_heading = "Tests")]
    pub(crate) quarantine: Vec<String>,
    /// List the tests instead of running them
    #[arg(
        long,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text",
        help_heading = "Tests"
    )]
    pub(crate) list_tests: Option<ListFormat>,

    /// Number of applications to run in parallel [default: the number of processors]
    #[arg(
        short = 'j',
        long,
        alias = "parallel",
        value_name = "N",
        value_parser = parse_positive,
        help_heading = "Running"
    )]
    pub(crate) max_parallel_test_modules: Option<NonZeroUsize>,
    /// Run slow applications in several processes, based on durations of earlier runs
    #[arg(long, help_heading = "Running")]
    pub(crate) split: bool,
    /// Run failed tests again, up to N times
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Running")]
    pub(crate) retries: Option<u32>,
    /// Result of tests that pass only on a retry [default: pass]
    #[arg(long, value_name = "RESULT", help_heading = "Running")]
    pub(crate) flaky: Option<FlakyResult>,
    /// Stop after N failed tests; 0 for no limit
    #[arg(
        long,
        alias = "maximum-failed-tests",
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Running"
    )]
    pub(crate) max_fail: Option<u32>,
    /// Fail if fewer than N tests run
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Running")]
    pub(crate) minimum_expected_tests: Option<u32>,
    /// Result of a run without tests
    #[arg(long, value_name = "RESULT", default_value = "fail", help_heading = "Running")]
    pub(crate) no_tests: NoTests,
    /// Exit codes to treat as success, separated by ';', as in dotnet test
    #[arg(long, value_name = "CODES", value_delimiter = ';', help_heading = "Running")]
    pub(crate) ignore_exit_code: Vec<i32>,
    /// Stop the run after this time: 90s, 10m, 500ms, or plain seconds
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Running")]
    pub(crate) timeout: Option<Duration>,
    /// Terminate the process of a test that takes longer; none for no limit
    #[arg(long = "timeout-per-test", value_name = "TIME", value_parser = parse_limit, help_heading = "Running")]
    pub(crate) limit_of_each: Option<Limit<Duration>>,
    /// Kill an application that does not complete the handshake within this time [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Running")]
    pub(crate) start_timeout: Option<Duration>,
    /// Kill an application that does not exit within this time after a request to stop [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Running")]
    pub(crate) grace: Option<Duration>,
    /// Kill an application that does not exit within this time after its session ends; none for no limit [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_limit, help_heading = "Running")]
    pub(crate) exit_timeout: Option<Limit<Duration>>,
    /// Report running tests that take longer; none to report no tests [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_limit, help_heading = "Running")]
    pub(crate) slow: Option<Limit<Duration>>,
    /// Use the options of this profile in runtap.toml
    #[arg(long, value_name = "NAME", help_heading = "Running")]
    pub(crate) profile: Option<String>,
    /// Configuration file [default: runtap.toml in the current directory or the nearest parent that has one]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Running")]
    pub(crate) config: Option<PathBuf>,
    /// Directory with the results of earlier runs [default: one per working directory, in ~/.local/state/runtap]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Running")]
    pub(crate) history: Option<PathBuf>,
    /// Do not read or store results of earlier runs
    #[arg(long, conflicts_with = "history", help_heading = "Running")]
    pub(crate) no_history: bool,

    /// Tests to show
    #[arg(
        long,
        value_name = "DETAIL",
        ignore_case = true,
        default_value = "normal",
        value_parser = choice::<Detail>(),
        help_heading = "Output"
    )]
    pub(crate) output: Detail,
    /// Do not show progress
    #[arg(long, help_heading = "Output")]
    pub(crate) no_progress: bool,
    /// Show no progress and no colors
    #[arg(long, help_heading = "Output")]
    pub(crate) no_ansi: bool,
    /// Write a report: junit, junit10, trx, ctrf, html, jsonl or github; '-' is stdout; repeatable [default file:
    /// test-results.EXT in --results-directory]
    #[arg(long, value_name = "FORMAT[=FILE]", add = ArgValueCompleter::new(complete::test_reports), help_heading = "Output")]
    pub(crate) report: Vec<String>,
    /// With --format json: print one document at the end instead of one line per event
    #[arg(long, help_heading = "Output")]
    pub(crate) summary: bool,
    /// Option of dotnet test that has no effect in runtap
    #[arg(long = "option-of-dotnet-test", require_equals = true, hide = true)]
    pub(crate) without_meaning: Vec<String>,
    /// Print help; with PATH, also the options of the applications
    #[arg(short, long)]
    pub(crate) help: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

impl Test {
    /// Moves `json` of `--list-tests json` and `latest` of `--rerun latest` from the paths to these options. clap accepts their
    /// values only after `=`, because it would take paths for values otherwise.
    pub(crate) fn with_words_of_options(mut self) -> Self {
        if self.list_tests == Some(ListFormat::Text) {
            self.list_tests = self.remove_from_paths("json").then_some(ListFormat::Json).or(self.list_tests);
            self.remove_from_paths("text");
        }
        if self.rerun.is_some() {
            self.remove_from_paths("latest");
        }
        self
    }

    /// Removes a word from the paths and returns whether it was there, unless a file with this name exists.
    fn remove_from_paths(&mut self, word: &str) -> bool {
        let found = self.paths.iter().position(|path| path == word && !Path::new(word).exists());
        found.map(|place| self.paths.remove(place)).is_some()
    }
}
