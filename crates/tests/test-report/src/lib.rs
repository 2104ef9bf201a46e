//! Reports of a test run: one file for all modules, written by the runner, without code in the tested projects. There
//! is one module per format, each with its mapping table:
//!
//! | format | module | for |
//! |---|---|---|
//! | JUnit | [`junit`] | Jenkins, GitLab, Buildkite, and nearly everything else |
//! | TRX | [`trx`] | Azure DevOps, Visual Studio, and tools for VSTest |
//! | CTRF | [`ctrf`] | tools of the Common Test Report Format |
//! | HTML | [`html`] | users: one page, no network |
//! | events | [`events`] | programs: a line of JSON for each event, while the run is running |
//! | GitHub | [`github`] | annotations at lines of code, and the summary of a job |
//!
//! A report reads a [`Source`]: the run and its modules are in memory, and results are fetched one at a time and may be
//! in a file ([`Spool`]). A report keeps one result in memory, and a few bytes for each other result. The crate opens
//! no files, reads no clock and no environment, and equal runs produce equal bytes.
//!
//! All texts in a result are untrusted: names, messages and output of tests may have terminal sequences, and characters
//! that a format cannot represent. [`text`] defines the rules. The contents of each format are described in
//! docs/test-reports.md.

#![deny(clippy::disallowed_methods)]

pub mod ctrf;
pub mod events;
mod facts;
pub mod github;
pub mod html;
mod id;
mod json;
pub mod junit;
mod model;
mod shape;
mod source;
mod spool;
pub mod text;
mod time;
mod totals;
pub mod trx;
mod xml;

pub use crate::facts::Facts;
pub use crate::model::{
    Artifact, Attempt, Exception, Level, Location, Message, Module, Run, TestResult, Trait,
};
pub use crate::shape::facts_from_id;
pub use crate::source::{Memory, Source, trouble};
pub use crate::spool::Spool;
pub use crate::totals::Totals;
pub use runtap_test::TestOutcome;

use std::io;

/// The format of a report file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JUnit XML in the dialect of Jenkins and Surefire.
    Junit,
    /// JUnit XML that the schema of Jenkins' xUnit plugin allows.
    Junit10,
    /// The test results file of Visual Studio.
    Trx,
    /// The Common Test Report Format, JSON.
    Ctrf,
    /// An HTML page in one file.
    Html,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Junit, Self::Trx, Self::Ctrf, Self::Html, Self::Junit10];

    /// Returns the name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Junit => "junit",
            Self::Junit10 => "junit10",
            Self::Trx => "trx",
            Self::Ctrf => "ctrf",
            Self::Html => "html",
        }
    }

    /// Returns a short description.
    pub fn about(self) -> &'static str {
        match self {
            Self::Junit => "JUnit XML, which nearly every CI system reads",
            Self::Junit10 => {
                "JUnit XML for readers that are strict about the schema, as Jenkins' xUnit plugin is"
            }
            Self::Trx => "Visual Studio's test results, for Azure DevOps and tools for VSTest",
            Self::Ctrf => "The Common Test Report Format: JSON with attempts and output",
            Self::Html => "A page to open in a browser: one file, searchable",
        }
    }

    /// Returns the file name extension, with the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Junit => ".junit.xml",
            Self::Junit10 => ".junit10.xml",
            Self::Trx => ".trx",
            Self::Ctrf => ".ctrf.json",
            Self::Html => ".html",
        }
    }

    /// Returns the format with this name, if any.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Writes the report of `source` in this format. The writer should be buffered, because it is called with many
    /// small chunks.
    ///
    /// Returns errors of the writer and of the source.
    pub fn write(self, source: &impl Source, w: impl io::Write) -> io::Result<()> {
        match self {
            Self::Junit => junit::write(source, w),
            Self::Junit10 => junit::write_by_schema(source, w),
            Self::Trx => trx::write(source, w),
            Self::Ctrf => ctrf::write(source, w),
            Self::Html => html::write(source, w, &html::Options::default()),
        }
    }
}
