//! The options of `runtap jvm report` for coverage files and lists of methods that were never called.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use runtap_jvm::coverage_files::CoverageFile;

use crate::cmd::complete;

/// The options for coverage files and lists of methods that were never called.
#[derive(Debug, Args)]
#[command(next_help_heading = "Coverage")]
pub(crate) struct JvmCoverage {
    /// Write a coverage file in the format lcov, jacoco or cobertura; '-' is stdout; repeatable [default file: RECORDING.EXT]
    #[arg(long, value_name = "FORMAT[=FILE]", add = ArgValueCompleter::new(complete::coverage_files),
        conflicts_with_all = ["kind", "and", "minus", "diff", "to", "output"])]
    pub(crate) coverage: Vec<CoverageFile>,
    /// List the methods of this jar or class directory that were never called; repeatable
    #[arg(long, value_name = "JAR|DIR", value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["kind", "and", "minus", "diff", "to", "output"])]
    pub(crate) never_called: Vec<PathBuf>,
    /// Jar or class directory of the program, from which --coverage adds code that did not run; repeatable
    #[arg(long, value_name = "JAR|DIR", value_hint = ValueHint::AnyPath, requires = "coverage")]
    pub(crate) classes: Vec<PathBuf>,
    /// Source directory, for the paths in coverage files; repeatable
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "coverage")]
    pub(crate) sources: Vec<PathBuf>,
    /// Include only classes that match; takes precedence over --exclude; repeatable. A regular expression for class names
    /// with slashes (demo/Program$Inner), anchored at the start
    #[arg(long, value_name = "REGEX")]
    pub(crate) include: Vec<String>,
    /// Exclude classes that match; repeatable
    #[arg(long, value_name = "REGEX")]
    pub(crate) exclude: Vec<String>,
    /// Include methods that the compiler generated
    #[arg(long)]
    pub(crate) compiler_methods: bool,
    /// For recordings without line numbers: count a call as a visit of the method's first line
    #[arg(long, requires = "coverage")]
    pub(crate) entry_lines: bool,
}

impl JvmCoverage {
    /// Whether any of these outputs is requested.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.coverage.is_empty() || !self.never_called.is_empty()
    }
}
