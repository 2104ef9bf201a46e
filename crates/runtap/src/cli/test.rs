//! `runtap test`, as clap sees it: the names of `dotnet test` and more.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::ResultFormat;
use crate::units::parse_time_limit;

/// How tests are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Names, by module
    Text,
    /// One document
    Json,
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

#[derive(Debug, Args)]
#[command(after_help = "\
A path is a .dll, run by a dotnet host, or a program; a pattern ('*', '**', '?') matches test applications only.
What follows '--' goes to each application. Exit codes are those of Microsoft.Testing.Platform: 2 tests failed,
8 no tests, 9 fewer than expected, 13 stopped by --max-fail, 3 stopped, 7 an application died, 5 wrong usage.

Examples:
  runtap test bin/Release/net10.0/Shop.Tests.dll
  runtap test 'artifacts/**/*.Tests.dll' '!artifacts/**/ref/**' --retries 2 -j 4
  runtap test Shop.Tests.dll --list-tests json
  runtap test Shop.Tests.dll --timeout-per-test 30s --slow 5s -- --report-trx
  runtap test Shop.Tests.dll --format json")]
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
    /// A testconfig.json for all applications
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Applications")]
    pub(crate) config_file: Option<PathBuf>,
    /// Where the platform logs to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Applications")]
    pub(crate) diagnostic_output_directory: Option<PathBuf>,
    /// Options for each application
    #[arg(last = true, value_name = "APP-OPTIONS", help_heading = "Applications")]
    pub(crate) arguments: Vec<OsString>,

    /// Only these tests, by their ids
    #[arg(long, value_name = "UID", num_args = 1.., help_heading = "Tests")]
    pub(crate) filter_uid: Vec<String>,
    /// Only tests for which this holds, such as "class = Cart and not category = Slow"; or as for dotnet test
    #[arg(long, value_name = "EXPR", help_heading = "Tests", conflicts_with = "filter_uid")]
    pub(crate) filter: Option<String>,
    /// Only a part of the tests, for one of several machines: count:1/3, hash:1/3, slice:1/3
    #[arg(long, value_name = "PART", help_heading = "Tests", conflicts_with = "filter_uid")]
    pub(crate) partition: Option<String>,
    /// List the tests instead of running them
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "text", help_heading = "Tests")]
    pub(crate) list_tests: Option<ListFormat>,

    /// As many applications at a time [default: the number of processors]
    #[arg(short = 'j', long, alias = "parallel", value_name = "N", help_heading = "Running")]
    pub(crate) max_parallel_test_modules: Option<usize>,
    /// Run a test that has failed again, so many times
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Running")]
    pub(crate) retries: u32,
    /// Stop after so many failed tests
    #[arg(long, alias = "maximum-failed-tests", value_name = "N", help_heading = "Running")]
    pub(crate) max_fail: Option<u64>,
    /// Fewer tests are a failure
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Running")]
    pub(crate) minimum_expected_tests: u64,
    /// Stop the run after this time: 90s, 10m, 500ms
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Running")]
    pub(crate) timeout: Option<Duration>,
    /// End a test that takes longer, with its process
    #[arg(long = "timeout-per-test", value_name = "TIME", value_parser = parse_time_limit, help_heading = "Running")]
    pub(crate) limit_of_each: Option<Duration>,
    /// Say which tests take longer
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, default_value = "30s", help_heading = "Running")]
    pub(crate) slow: Duration,

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
    #[arg(long, alias = "no-ansi", help_heading = "Output")]
    pub(crate) no_progress: bool,
    /// Write a report: junit, trx, ctrf or html [default path: test-results.EXT in --results-directory]
    #[arg(long, value_name = "FORMAT[=FILE]", help_heading = "Output")]
    pub(crate) report: Vec<String>,
    /// With --format json: one document at the end instead of a line for each event
    #[arg(long, help_heading = "Output")]
    pub(crate) summary: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
