//! The history of runs: durations and outcomes of tests, and start times of modules.
//!
//! This module defines the values, the adding of runs, merging, and limits. `file.rs` defines the file format, and
//! `add.rs` adds a run to a file.
//!
//! Times are milliseconds since 1970 (UTC) and come from the caller. A run is identified by its start time, so
//! histories of several machines can be merged: the result does not depend on the order, and merging a history twice
//! has no effect.

mod add;
mod file;
mod merge;

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_model::order;

pub use add::{AddError, add_run};
pub use file::HistoryError;

/// The number of complete runs of a module whose times are kept.
const KEPT_RUNS: usize = 32;

/// The number of outcomes that are kept of a test.
const KEPT_OUTCOMES: usize = 10;

/// The history of modules and their tests.
///
/// ```
/// use std::time::Duration;
/// use runtap_test::plan::{Finished, History, ModuleKey, ModuleRun, PastOutcome};
///
/// let mut history = History::default();
/// let test = Finished { class: Some("OrderTests"), duration: Some(Duration::from_millis(40)), ..Finished::new("a1", PastOutcome::Failed) };
/// let run = ModuleRun { at: 1_790_000_000_000, complete: true, ..ModuleRun::default() };
/// history.record(ModuleKey::new("Shop.Tests", "net10.0"), &run, [test]);
///
/// let mut file = Vec::new();
/// history.write(&mut file)?;
/// let again = History::read(&*file)?;
/// assert_eq!(again, history);
/// let failed: Vec<_> = again.modules().flat_map(|(_, module)| module.failed()).collect();
/// assert_eq!(failed, ["a1"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    modules: BTreeMap<ModuleKey, ModuleHistory>,
}

/// The key of a module. Tests built for two frameworks are two modules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleKey {
    /// The name of the module without its directory, which is equal on all machines.
    pub name: String,
    /// The target framework, for example `net10.0`; empty if unknown.
    pub framework: String,
}

impl ModuleKey {
    /// Creates a key.
    pub fn new(name: impl Into<String>, framework: impl Into<String>) -> Self {
        Self { name: name.into(), framework: framework.into() }
    }
}

/// Returns the history of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleHistory {
    /// Identifies the content of the module's file, for example by a hash. Equal fingerprints mean equal tests.
    pub fingerprint: Option<String>,
    /// The time from the start of its process to its first test.
    pub start: Option<Duration>,
    /// The time of all tests in one process, without the start: less than the sum of the tests if the framework runs
    /// tests in parallel. Only set by complete runs.
    pub wall: Option<Duration>,
    /// Whether there may be unknown failures: a run was stopped or broken without a later complete run, or a failed
    /// test was forgotten.
    pub broken: bool,
    /// The start of the last run that set fingerprint, start or wall.
    updated: u64,
    /// The starts of the last complete runs, ascending.
    runs: Vec<u64>,
    /// The last complete run with a known fingerprint, if all of its tests are still kept.
    listing: Option<Listing>,
    tests: BTreeMap<String, TestHistory>,
}

/// A run that contained all tests of a file: the tests that were seen since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Listing {
    at: u64,
    fingerprint: String,
}

/// Returns the history of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestHistory {
    /// The class, if known: tests of a class share fixtures.
    pub class: Option<String>,
    /// The duration: an exponential moving average, in which the newest run has a weight of one third.
    pub duration: Option<Duration>,
    /// The last outcomes, oldest first.
    outcomes: Vec<Seen>,
    /// The start of the last run with the test.
    last_seen: u64,
}

/// The outcome of a test in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// The start of the run, in milliseconds since 1970.
    pub at: u64,
    /// The outcome of the test.
    pub outcome: PastOutcome,
}

/// The outcome of a test after all retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PastOutcome {
    /// The test passed at the first attempt.
    Passed,
    /// The test was skipped.
    Skipped,
    /// The test failed first, and then passed.
    Flaky,
    /// The test failed, including errors outside of the test.
    Failed,
    /// The test timed out, or its process exited before it ended.
    TimedOut,
}

impl PastOutcome {
    /// Returns whether the test must run again for a successful run.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

/// The result of a module in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleRun<'a> {
    /// The start of the run, in milliseconds since 1970; equal for all modules of a run.
    pub at: u64,
    /// Whether all tests of the module ran completely: no filter, no partition, not stopped.
    pub complete: bool,
    /// Whether the run was stopped or broken.
    pub broken: bool,
    /// The fingerprint of the module's file.
    pub fingerprint: Option<&'a str>,
    /// The time from the start of the process to the first test.
    pub start: Option<Duration>,
    /// The time of all tests in one process; ignored unless the run is complete.
    pub wall: Option<Duration>,
}

/// The result of a test in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<'a> {
    /// The uid.
    pub uid: &'a str,
    /// The class, if known.
    pub class: Option<&'a str>,
    /// The outcome.
    pub outcome: PastOutcome,
    /// The duration; ignored if the test was skipped.
    pub duration: Option<Duration>,
}

impl<'a> Finished<'a> {
    /// Creates a result without class and duration.
    pub fn new(uid: &'a str, outcome: PastOutcome) -> Self {
        Self { uid, class: None, outcome, duration: None }
    }
}

/// Statistics about changing outcomes of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flakiness {
    /// The number of kept runs in which the test was not skipped.
    pub runs: usize,
    /// The number of runs in which the test failed despite retries.
    pub failed: usize,
    /// The number of runs in which the test passed only after a retry.
    pub flaky: usize,
    /// The number of changes between a run in which the test passed and one in which it failed despite retries.
    pub changes: usize,
}

/// Limits on the size of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The number of complete runs of its module without a test after which the test is forgotten: 1 to 32.
    pub unseen_runs: usize,
    /// The maximum number of tests in all modules together. Tests whose last outcome is a failure are kept first, then
    /// those that were seen last.
    pub tests: usize,
    /// The maximum number of modules. Modules with the newest runs are kept.
    pub modules: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { unseen_runs: 10, tests: 200_000, modules: 1_000 }
    }
}

impl History {
    /// Returns the modules, sorted by name and framework.
    pub fn modules(&self) -> impl Iterator<Item = (&ModuleKey, &ModuleHistory)> {
        self.modules.iter()
    }

    /// The history of a module.
    pub fn module(&self, key: &ModuleKey) -> Option<&ModuleHistory> {
        self.modules.get(key)
    }

    /// Adds a run of a module. If a test is reported twice, the worse outcome is kept, and both durations count.
    pub fn record<'a>(
        &mut self,
        key: ModuleKey,
        run: &ModuleRun<'_>,
        tests: impl IntoIterator<Item = Finished<'a>>,
    ) {
        let module = self.modules.entry(key).or_default();
        module.begin(run);
        for test in tests {
            module.tests.entry(test.uid.to_owned()).or_default().add(run.at, &test);
        }
    }

    /// Removes entries beyond the limits. Entries that were not seen for longest are removed first.
    pub fn prune(&mut self, limits: &Limits) {
        for module in self.modules.values_mut() {
            if let Some(oldest) = module.forget_listing(limits) {
                module.tests.retain(|_, test| test.last_seen >= oldest);
            }
        }
        let mut by_age: Vec<_> =
            self.modules.iter().map(|(key, module)| (module.last_run(), key.clone())).collect();
        order::sort(&mut by_age);
        for (_, key) in by_age.iter().take(self.modules.len().saturating_sub(limits.modules)) {
            self.modules.remove(key);
        }
        if self.modules.values().map(|module| module.tests.len()).sum::<usize>() <= limits.tests {
            // The common case: a sorted list of all tests would double the memory usage.
            return;
        }
        let tests = self.modules.iter().flat_map(|(key, module)| {
            let age = |test: &TestHistory| (test.has_failed(), test.last_seen);
            module.tests.iter().map(move |(uid, test)| (age(test), key.clone(), uid.clone()))
        });
        let mut by_age: Vec<_> = tests.collect();
        order::sort(&mut by_age);
        for (_, key, uid) in by_age.iter().take(by_age.len().saturating_sub(limits.tests)) {
            if let Some(module) = self.modules.get_mut(key) {
                let Some(gone) = module.tests.remove(uid) else { continue };
                // An incomplete list is useless.
                module.listing.take_if(|list| gone.last_seen >= list.at);
                module.broken |= gone.has_failed();
            }
        }
    }
}

impl ModuleHistory {
    /// Adds the properties of the module in a run.
    fn begin(&mut self, run: &ModuleRun<'_>) {
        if run.at >= self.updated {
            self.updated = run.at;
            self.broken = run.broken || self.broken && !run.complete;
            if let Some(fingerprint) = run.fingerprint {
                self.fingerprint = Some(fingerprint.to_owned());
            }
            self.start = average(self.start, run.start);
            self.wall = average(self.wall, run.wall.filter(|_| run.complete));
        }
        if run.complete {
            merge::insert_run(&mut self.runs, run.at);
            let fingerprint = run.fingerprint.map(str::to_owned);
            let listing = fingerprint.map(|fingerprint| Listing { at: run.at, fingerprint });
            self.listing = self.listing.take().max(listing);
        }
    }

    /// Removes the listing if it is too old. Returns the start of the oldest relevant run: tests that were last seen
    /// before are forgotten.
    fn forget_listing(&mut self, limits: &Limits) -> Option<u64> {
        let kept = limits.unseen_runs.clamp(1, KEPT_RUNS);
        let oldest = self.runs.len().checked_sub(kept).and_then(|at| self.runs.get(at)).copied()?;
        self.listing.take_if(|list| list.at < oldest);
        Some(oldest)
    }

    /// Returns the tests, sorted by uid.
    pub fn tests(&self) -> impl Iterator<Item = (&str, &TestHistory)> {
        self.tests.iter().map(|(uid, test)| (uid.as_str(), test))
    }

    /// The history of a test.
    pub fn test(&self, uid: &str) -> Option<&TestHistory> {
        self.tests.get(uid)
    }

    /// Returns all tests of the module, if the last complete run was of a file with this fingerprint. Tests whose names
    /// differ in each run (for example because of random test data) are not covered.
    pub fn listed(&self, fingerprint: &str) -> Option<impl Iterator<Item = (&str, &TestHistory)>> {
        let list = self.listing.as_ref().filter(|list| list.fingerprint == fingerprint)?;
        Some(self.tests().filter(|(_, test)| test.last_seen >= list.at))
    }

    /// Returns the average number of tests that the module runs at the same time, in percent: the sum of its tests
    /// divided by [`Self::wall`]. 100 if unknown.
    pub fn concurrency_percent(&self) -> u32 {
        let last = self.runs.last().copied().unwrap_or_default();
        let tests = self.tests.values().filter(|test| test.last_seen >= last);
        let sum: u128 = tests.filter_map(|test| test.duration).map(|duration| duration.as_micros()).sum();
        let wall = self.wall.map_or(0, |wall| wall.as_micros());
        let percent = sum.saturating_mul(100).checked_div(wall).unwrap_or(100);
        // A larger value is a measurement error.
        u32::try_from(percent.clamp(100, 100_000)).unwrap_or(100)
    }

    /// Returns the start of the last run of the module, in milliseconds since 1970; 0 if unknown.
    pub fn last_run(&self) -> u64 {
        let tests = self.tests.values().map(|test| test.last_seen);
        tests.chain(self.runs.last().copied()).fold(self.updated, u64::max)
    }

    /// Returns the tests whose last outcome is a failure.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.tests().filter(|(_, test)| test.has_failed()).map(|(uid, _)| uid)
    }
}

impl TestHistory {
    /// Adds the result of a run that started at `at`.
    fn add(&mut self, at: u64, test: &Finished<'_>) {
        self.last_seen = self.last_seen.max(at);
        if let Some(class) = test.class {
            self.class = Some(class.to_owned());
        }
        if test.outcome != PastOutcome::Skipped {
            self.duration = average(self.duration, test.duration);
        }
        merge::insert_outcome(&mut self.outcomes, Seen { at, outcome: test.outcome });
    }

    /// Returns whether the last outcome is a failure.
    fn has_failed(&self) -> bool {
        self.outcomes.last().is_some_and(|seen| seen.outcome.is_failure())
    }

    /// Returns the last outcomes, oldest first.
    pub fn outcomes(&self) -> &[Seen] {
        &self.outcomes
    }

    /// Returns the start of the last run with the test, in milliseconds since 1970.
    pub fn last_seen(&self) -> u64 {
        self.last_seen
    }

    /// Returns statistics about the kept outcomes.
    pub fn flakiness(&self) -> Flakiness {
        let mut result = Flakiness::default();
        let mut before = None;
        for outcome in self.outcomes.iter().map(|seen| seen.outcome).filter(|o| *o != PastOutcome::Skipped) {
            result.runs += 1;
            result.failed += usize::from(outcome.is_failure());
            result.flaky += usize::from(outcome == PastOutcome::Flaky);
            result.changes += usize::from(before.is_some_and(|before| before != outcome.is_failure()));
            before = Some(outcome.is_failure());
        }
        result
    }
}

/// Returns the exponential moving average: the newest value has a weight of one third.
fn average(before: Option<Duration>, now: Option<Duration>) -> Option<Duration> {
    match (before, now) {
        (Some(before), Some(now)) => {
            // Round to whole microseconds, as in the file.
            let micros = (before.as_micros() * 2 + now.as_micros()) / 3;
            Some(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
        }
        (None, Some(now)) => Some(Duration::from_micros(u64::try_from(now.as_micros()).unwrap_or(u64::MAX))),
        (before, None) => before,
    }
}
