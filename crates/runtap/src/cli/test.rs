//! `runtap test`, as clap sees it: the names of `dotnet test` and more.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use runtap_test::plan::Limit;

use super::ResultFormat;
use crate::cmd::complete;
use crate::units::{parse_limit, parse_parallel, parse_time_limit};

/// How tests are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Names, by application
    Text,
    /// One document
    Json,
}

/// How applications send their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TestTransport {
    /// A local socket
    #[default]
    Pipe,
    /// Requests to a port of this machine, for version 2.4 of the platform and later
    Http,
}

/// How much is said of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Detail {
    /// Failed tests only
    Minimal,
    /// Failed and skipped tests
    #[default]
    Normal,
    /// Every test
    Detailed,
}

/// Which earlier run is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rerun {
    /// The failed tests of the last one
    Latest,
}

/// What a run without a test is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum NoTests {
    /// It passed
    Pass,
    /// It passed, with a warning
    Warn,
    /// It failed
    #[default]
    Fail,
}

/// What a test is that has passed only when it was run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlakyResult {
    /// It passed
    Pass,
    /// It failed
    Fail,
}

#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
A path is a .dll, run by a dotnet host, or a program; a pattern ('*', '**', '?') matches only \
test applications. What follows '--' goes to each of them. Exit codes are those of \
Microsoft.Testing.Platform: 2 tests failed, 3 stopped, 5 wrong usage, 7 an application died, \
8 no tests, 9 fewer than expected, 13 stopped by --max-fail.

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
    /// Test applications: files, patterns, '!PATTERN' to leave some out
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) paths: Vec<String>,
    /// The same, separated by ';'
    #[arg(long = "test-modules", value_name = "PATTERNS", help_heading = "Applications")]
    pub(crate) patterns: Option<String>,
    /// The directory to which patterns are relative [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Applications")]
    pub(crate) root_directory: Option<PathBuf>,
    /// The dotnet host for .dll files [default: found as dotnet itself is]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Applications")]
    pub(crate) dotnet: Option<PathBuf>,
    /// Set a variable for the applications
    #[arg(short, long = "environment", value_name = "NAME=VALUE", help_heading = "Applications")]
    pub(crate) environment: Vec<String>,
    /// Where applications put their files
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Applications")]
    pub(crate) results_directory: Option<PathBuf>,
    /// Copy the files that tests and applications leave into a directory for each application [default: test-artifacts in
    /// --results-directory]
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        // Where that is depends on other options.
        default_missing_value = "",
        value_hint = ValueHint::DirPath,
        help_heading = "Output"
    )]
    pub(crate) collect_artifacts: Option<String>,
    /// A testconfig.json for all applications
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Applications")]
    pub(crate) config_file: Option<PathBuf>,
    /// Where the platform logs to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Applications")]
    pub(crate) diagnostic_output_directory: Option<PathBuf>,
    /// How applications send their results
    #[arg(long, value_name = "HOW", default_value = "pipe", help_heading = "Applications")]
    pub(crate) transport: TestTransport,
    /// Options for each application
    #[arg(last = true, value_name = "APP-OPTIONS", help_heading = "Applications")]
    pub(crate) arguments: Vec<OsString>,

    /// Only these tests, by their ids
    #[arg(long, value_name = "UID", num_args = 1.., help_heading = "Tests")]
    pub(crate) filter_uid: Vec<String>,
    /// Only tests for which this holds, such as "class = Cart and not category = Slow"; or as for dotnet test
    #[arg(long, value_name = "EXPR", help_heading = "Tests", conflicts_with = "filter_uid")]
    pub(crate) filter: Option<String>,
    /// Only a part of the tests, for one of several machines: count:1/3, hash:1/3, slice:1/3, timing:1/3
    #[arg(long, value_name = "PART", help_heading = "Tests")]
    pub(crate) partition: Option<String>,
    /// Only the tests that failed when they were last run
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "latest",
        help_heading = "Tests"
    )]
    pub(crate) rerun: Option<Rerun>,
    /// Report failures of these tests, but do not count them
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

    /// As many applications at a time [default: the number of processors]
    #[arg(
        short = 'j',
        long,
        alias = "parallel",
        value_name = "N",
        value_parser = parse_parallel,
        help_heading = "Running"
    )]
    pub(crate) max_parallel_test_modules: Option<NonZeroUsize>,
    /// Run a slow application in several processes, by the durations of earlier runs
    #[arg(long, help_heading = "Running")]
    pub(crate) split: bool,
    /// Run a test that has failed again, so many times
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Running")]
    pub(crate) retries: Option<u32>,
    /// What a test is that has passed only when it was run again [default: pass]
    #[arg(long, value_name = "RESULT", help_heading = "Running")]
    pub(crate) flaky: Option<FlakyResult>,
    /// Stop after so many failed tests; 0: never
    #[arg(
        long,
        alias = "maximum-failed-tests",
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Running"
    )]
    pub(crate) max_fail: Option<u32>,
    /// Fewer tests are a failure
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Running")]
    pub(crate) minimum_expected_tests: Option<u32>,
    /// What a run is in which no test was run
    #[arg(long, value_name = "RESULT", default_value = "fail", help_heading = "Running")]
    pub(crate) no_tests: NoTests,
    /// Exit codes that are no failure, separated by ';', as in dotnet test
    #[arg(long, value_name = "CODES", value_delimiter = ';', help_heading = "Running")]
    pub(crate) ignore_exit_code: Vec<i32>,
    /// Stop the run after this time: 90s, 10m, 500ms; a number alone is seconds
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Running")]
    pub(crate) timeout: Option<Duration>,
    /// End a test that takes longer, with its process; none: never
    #[arg(long = "timeout-per-test", value_name = "TIME", value_parser = parse_limit, help_heading = "Running")]
    pub(crate) limit_of_each: Option<Limit<Duration>>,
    /// Kill an application that has not introduced itself by then [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Running")]
    pub(crate) start_timeout: Option<Duration>,
    /// Kill an application that was told to end and has not by then [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Running")]
    pub(crate) grace: Option<Duration>,
    /// Kill an application whose session is over and that has not ended by then; none: wait [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_limit, help_heading = "Running")]
    pub(crate) exit_timeout: Option<Limit<Duration>>,
    /// Say which tests take longer; none: say nothing [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_limit, help_heading = "Running")]
    pub(crate) slow: Option<Limit<Duration>>,
    /// Options of this profile in runtap.toml
    #[arg(long, value_name = "NAME", help_heading = "Running")]
    pub(crate) profile: Option<String>,
    /// A runtap.toml [default: the nearest one in the directory or above it]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Running")]
    pub(crate) config: Option<PathBuf>,
    /// The directory of earlier runs [default: one for each working directory, in ~/.local/state/runtap]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Running")]
    pub(crate) history: Option<PathBuf>,
    /// Neither read nor keep how tests went
    #[arg(long, conflicts_with = "history", help_heading = "Running")]
    pub(crate) no_history: bool,

    /// How much to say of tests
    #[arg(
        long,
        value_name = "DETAIL",
        ignore_case = true,
        default_value = "normal",
        help_heading = "Output"
    )]
    pub(crate) output: Detail,
    /// No progress in place
    #[arg(long, help_heading = "Output")]
    pub(crate) no_progress: bool,
    /// Neither progress nor colours
    #[arg(long, help_heading = "Output")]
    pub(crate) no_ansi: bool,
    /// Write a report: junit, junit10, trx, ctrf, html, jsonl [default path: test-results.EXT in --results-directory; - is stdout], or github
    #[arg(long, value_name = "FORMAT[=FILE]", add = ArgValueCompleter::new(complete::test_reports), help_heading = "Output")]
    pub(crate) report: Vec<String>,
    /// With --format json: one document at the end instead of a line for each event
    #[arg(long, help_heading = "Output")]
    pub(crate) summary: bool,
    /// What was said in the words of dotnet test and means nothing here
    #[arg(long = "option-of-dotnet-test", require_equals = true, hide = true)]
    pub(crate) without_meaning: Vec<String>,
    /// Print help; with PATH, the applications' own options as well
    #[arg(short, long)]
    pub(crate) help: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

impl Test {
    /// With the words of `--list-tests json` and `--rerun latest`, as `dotnet test` and people write them, where they belong:
    /// these options take values by `=` only, so that they take no path.
    pub(crate) fn with_words_of_options(mut self) -> Self {
        if self.list_tests == Some(ListFormat::Text) {
            self.list_tests = self.taken("json").then_some(ListFormat::Json).or(self.list_tests);
            self.taken("text");
        }
        if self.rerun.is_some() {
            self.taken("latest");
        }
        self
    }

    /// Takes a word away from the paths, unless there is such a file.
    fn taken(&mut self, word: &str) -> bool {
        let found = self.paths.iter().position(|path| path == word && !Path::new(word).exists());
        found.map(|place| self.paths.remove(place)).is_some()
    }
}
