//! The reports of a run: results are collected while it runs. Event reports are written meanwhile, the others at the end.

mod convert;
mod events;
mod files;
mod results;
#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtap_os::output;
use runtap_test_report::events::summary;
use runtap_test_report::{Source as _, Spool, TestResult};

pub use self::events::EventStream;
use self::events::totals;
pub use self::files::{ReportError, Reports, STDOUT, WriteError, Written, names};
use self::results::RunResults;
use crate::suite::artifacts::Collector;
use crate::suite::listing;
use crate::{Mode, Module, ModuleFailure, ModuleId, RunEvent, RunSpec, Stop, StopLevel, TestInfo, code};

/// Collects the results of a run and writes its reports.
pub struct Reporter {
    results: RunResults,
    /// Event reports, each with its title.
    live: Vec<(String, EventStream<Box<dyn Write + Send>>)>,
    reports: Reports,
    /// Whether a requested output could not be written.
    has_failed: bool,
    collector: Option<Arc<Collector>>,
    started: Instant,
    /// The time after which the run is stopped.
    timeout: Option<Duration>,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The writers of event reports have no representation.
        f.debug_struct("Reporter").field("reports", &self.reports).finish_non_exhaustive()
    }
}

/// A problem after which the run continues.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// Results cannot be kept in this directory, so there are neither reports nor a history of the run.
    ResultsLost {
        /// The directory.
        directory: PathBuf,
        /// The reason.
        why: String,
    },
    /// The event report with this title cannot be written any more.
    NotWritten(String, io::Error),
    /// No application can list its tests.
    NoListing(io::Error),
    /// This application did not list its tests, so reports may lack their classes.
    NotListed(ModuleId),
}

/// An event whose result was added to the reports.
#[derive(Debug)]
pub struct Reported {
    /// The result as it appears in reports, if the event has one.
    pub result: Option<TestResult>,
    /// The time since the start of the run, in nanoseconds.
    pub ts: u64,
    /// The problems that occurred.
    pub problems: Vec<Problem>,
}

impl Reporter {
    /// Creates the reporter of a run of these modules that starts now. `timeout` is the time after which the run is stopped,
    /// `explain` describes the failure of a module for the reports.
    ///
    /// # Errors
    /// Returns an error if no temporary file can be created.
    pub fn new(
        modules: &[Module],
        reports: Reports,
        collector: Option<Collector>,
        timeout: Option<Duration>,
        explain: fn(&ModuleFailure) -> String,
    ) -> Result<Self, WriteError> {
        Ok(Self {
            results: RunResults::new(modules, explain)?,
            live: Vec::new(),
            reports,
            has_failed: false,
            collector: collector.map(Arc::new),
            started: Instant::now(),
            timeout,
        })
    }

    /// Starts the event reports. Until then, reports of an earlier run stay unchanged.
    ///
    /// # Errors
    /// Returns an error if a report cannot be created.
    pub fn begin(&mut self) -> Result<(), output::Error> {
        let live = self.reports.begin()?;
        self.live = live.into_iter().map(|(title, to)| (title, EventStream::new(to))).collect();
        Ok(())
    }

    /// Returns whether a report is written while the run runs.
    pub fn is_live(&self) -> bool {
        !self.live.is_empty()
    }

    /// Returns the collector of the files that applications report, if they are collected.
    pub fn collector(&self) -> Option<&Arc<Collector>> {
        self.collector.as_ref()
    }

    /// Adds facts about tests that were discovered before the run.
    pub fn add_known_tests(&mut self, known: impl IntoIterator<Item = (ModuleId, TestInfo)>) {
        self.results.add_known_tests(known);
    }

    /// Returns all results so far; `None` if some are lost.
    pub fn results(&self) -> Option<&Spool<File>> {
        self.results.complete()
    }

    /// Returns the results that are kept.
    pub fn spool(&self) -> &Spool<File> {
        &self.results.spool
    }

    /// Returns whether a requested output could not be written.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Notes that a requested output could not be written: the run fails with [`code::GENERIC`] unless it has failed otherwise.
    pub fn fail(&mut self) {
        self.has_failed = true;
    }

    /// Handles an event, and moves the texts of a result out of it; `stopped` tells whether the run was asked to stop.
    pub fn event(&mut self, event: &mut RunEvent, stopped: bool) -> Reported {
        if let Some(collector) = &self.collector {
            collector.event(event);
        }
        let mut problems = Vec::new();
        let interrupted = stopped.then(|| self.interruption(event));
        let result = self.modify(&mut problems, |results| results.take(event, interrupted));
        if let RunEvent::RunEnded { exit_code, .. } = event
            && *exit_code == code::OK
            && self.has_failed
        {
            *exit_code = code::GENERIC;
        }
        let ts = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let spool = &self.results.spool;
        self.live.retain_mut(|(title, live)| {
            let error = live.event(ts, event, result.as_ref(), spool).err();
            let is_written = error.is_none();
            problems.extend(error.map(|error| Problem::NotWritten(title.clone(), error)));
            is_written
        });
        Reported { result, ts, problems }
    }

    /// Changes the results, and adds a problem if results are lost by that.
    fn modify<T>(&mut self, problems: &mut Vec<Problem>, change: impl FnOnce(&mut RunResults) -> T) -> T {
        let was_complete = self.results.lost.is_none();
        let done = change(&mut self.results);
        if was_complete && let Some(error) = &self.results.lost {
            self.has_failed |= self.reports.needs_results();
            problems.push(Problem::ResultsLost { directory: std::env::temp_dir(), why: error.to_string() });
        }
        done
    }

    /// Returns the reason why the run was stopped.
    fn interruption(&self, event: &RunEvent) -> &'static str {
        match event {
            RunEvent::RunEnded { exit_code: code::TOO_MANY_FAILED, .. } => {
                "too many tests failed (--max-fail)"
            }
            _ if self.timeout.is_some_and(|timeout| self.started.elapsed() >= timeout) => {
                "it reached its time limit (--timeout)"
            }
            _ => "it was stopped by a signal",
        }
    }

    /// Requests the classes of the tests that have run from the applications, because results lack them, if a report shows
    /// classes. `stop` ends the requests as well.
    pub fn request_facts(&mut self, spec: &RunSpec, exit_code: i32, stop: &Stop) -> Vec<Problem> {
        let mut problems = Vec::new();
        let modules = self.results.not_listed();
        let is_hard_stop = stop.level() == Some(StopLevel::Hard);
        let is_useless = is_hard_stop || modules.is_empty() || self.results.lost.is_some();
        if spec.mode != Mode::Run || is_useless || !self.reports.needs_facts(exit_code) {
            return problems;
        }
        let limit = if stop.level().is_some() { spec.timeouts.grace } else { spec.timeouts.start };
        let silent = listing::list(spec, &modules, limit, stop, |module, test| {
            self.modify(&mut problems, |results| results.add_late_facts(module, &test));
        });
        let silent = silent.unwrap_or_else(|error| {
            problems.push(Problem::NoListing(error));
            modules
        });
        problems.extend(silent.into_iter().map(Problem::NotListed));
        problems
    }

    /// Completes the results at the end of the run.
    pub fn settle(&mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.modify(&mut problems, RunResults::settle);
        problems
    }

    /// Writes the reports, and passes the title of each and its outcome to `each`, in order. `stdout_is_taken` tells whether
    /// standard output has other content.
    pub fn write(&mut self, stdout_is_taken: bool, each: impl FnMut(&str, Result<Written, WriteError>)) {
        std::mem::take(&mut self.reports).write(self.results.complete(), stdout_is_taken, each);
    }

    /// Writes the summary of the run as one JSON document.
    ///
    /// # Errors
    /// Returns an error of the writer or of the kept results.
    pub fn write_summary(&mut self, to: impl Write) -> io::Result<()> {
        let spool = &mut self.results.spool;
        let run = spool.run_mut();
        if self.has_failed && run.exit_code == code::OK {
            run.exit_code = code::GENERIC;
        }
        summary(to, spool.run(), spool.modules(), &totals(spool)?)
    }
}
