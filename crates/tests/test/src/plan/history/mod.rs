//! What is remembered of earlier runs: durations, outcomes, the cost of starting a module.
//!
//! Owns: the values, how a run adds to them, how two histories become one, how little is kept. Refuses to: read or write
//! a file; `file.rs` has the bytes of one, `add.rs` adds a run to them.
//!
//! Times are milliseconds since 1970 (UTC) and come from the caller. A run is known by the time at which it began, so
//! histories of several machines can be merged: the result is the same in any order, and merging a history twice
//! changes nothing.

mod add;
mod file;
mod merge;

use std::collections::BTreeMap;
use std::time::Duration;

pub use add::{AddError, add_run};
pub use file::HistoryError;

/// The number of complete runs of a module whose times are kept.
const KEPT_RUNS: usize = 32;

/// The number of outcomes that are kept of a test.
const KEPT_OUTCOMES: usize = 10;

/// Modules with what is remembered of their tests.
///
/// ```
/// use std::time::Duration;
/// use runtap_test::plan::{Finished, History, ModuleKey, ModuleRun, Outcome};
///
/// let mut history = History::default();
/// let test = Finished { class: Some("OrderTests"), duration: Some(Duration::from_millis(40)), ..Finished::new("a1", Outcome::Failed) };
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

/// Which module: the same tests built for two frameworks are two modules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleKey {
    /// The name of the module, without directory: the same on every machine.
    pub name: String,
    /// The target framework, for example `net10.0`; empty if it is not known.
    pub framework: String,
}

impl ModuleKey {
    /// A module of this name and framework.
    pub fn new(name: impl Into<String>, framework: impl Into<String>) -> Self {
        Self { name: name.into(), framework: framework.into() }
    }
}

/// What is remembered of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleHistory {
    /// Identifies the content of its file, for example by a hash. With the same fingerprint the module has the same tests.
    pub fingerprint: Option<String>,
    /// How long it takes from the start of its process to its first test.
    pub start: Option<Duration>,
    /// How long all its tests take in one process, without the start: less than the sum of the tests if the framework
    /// runs some of them at the same time. Only complete runs tell.
    pub wall: Option<Duration>,
    /// Whether there may be failures that are not known: a run was cut short or broken and no complete one came after it, or
    /// a failed test was forgotten.
    pub broken: bool,
    /// When the last module run began that told fingerprint, start or wall.
    updated: u64,
    /// When the last complete runs began, ascending.
    runs: Vec<u64>,
    /// The last complete run with a known fingerprint, if all its tests are still kept.
    listing: Option<Listing>,
    tests: BTreeMap<String, TestHistory>,
}

/// A run from which all tests of a file are known: those that were seen since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Listing {
    at: u64,
    fingerprint: String,
}

/// What is remembered of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestHistory {
    /// Its class, if known: tests of a class share fixtures.
    pub class: Option<String>,
    /// How long it takes: an exponential average, in which the newest run counts a third.
    pub duration: Option<Duration>,
    /// The last outcomes, oldest first.
    outcomes: Vec<Seen>,
    /// When the last run began in which the test occurred.
    last_seen: u64,
}

/// How a test ended in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// When the run began, in milliseconds since 1970.
    pub at: u64,
    /// How the test ended.
    pub outcome: Outcome,
}

/// How a test ended, after all retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It passed at once.
    Passed,
    /// It was skipped.
    Skipped,
    /// It failed first, then passed.
    Flaky,
    /// It failed, also if by an error outside of the test.
    Failed,
    /// It took too long, or its process ended before it did.
    TimedOut,
}

impl Outcome {
    /// Whether the test has to run again before the whole is green.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

/// What is told of a run of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleRun<'a> {
    /// When the run began, in milliseconds since 1970: the same number for all modules of a run.
    pub at: u64,
    /// Whether all tests of the module ran to their end: no filter, no partition, not cut short.
    pub complete: bool,
    /// Whether it was cut short or broken.
    pub broken: bool,
    /// The fingerprint of its file.
    pub fingerprint: Option<&'a str>,
    /// The time from the start of the process to the first test.
    pub start: Option<Duration>,
    /// The time of all tests in one process; ignored unless the run is complete.
    pub wall: Option<Duration>,
}

/// What is told of a test that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// Its class, if known.
    pub class: Option<&'a str>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took; ignored if it was skipped.
    pub duration: Option<Duration>,
}

impl<'a> Finished<'a> {
    /// A test of which neither class nor duration are known.
    pub fn new(uid: &'a str, outcome: Outcome) -> Self {
        Self { uid, class: None, outcome, duration: None }
    }
}

/// How often a test changed its mind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flakiness {
    /// Runs in which it was not skipped, as far as they are kept.
    pub runs: usize,
    /// Those in which it failed to the end.
    pub failed: usize,
    /// Those in which only a retry passed.
    pub flaky: usize,
    /// How often a run in which it passed came next to one in which it failed to the end.
    pub changes: usize,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A test that did not occur in so many complete runs of its module is forgotten: 1 to 32.
    pub unseen_runs: usize,
    /// The number of tests in all modules together; those whose last outcome is a failure stay, then those that were seen
    /// last.
    pub tests: usize,
    /// The number of modules; those with the newest run stay.
    pub modules: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { unseen_runs: 10, tests: 200_000, modules: 1_000 }
    }
}

impl History {
    /// The modules, by name and framework.
    pub fn modules(&self) -> impl Iterator<Item = (&ModuleKey, &ModuleHistory)> {
        self.modules.iter()
    }

    /// What is remembered of a module.
    pub fn module(&self, key: &ModuleKey) -> Option<&ModuleHistory> {
        self.modules.get(key)
    }

    /// Adds what happened in a run of a module. A test that is told twice keeps the worse outcome and both durations count.
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

    /// Forgets what exceeds the limits. The longer something was not seen, the sooner it is forgotten.
    pub fn prune(&mut self, limits: &Limits) {
        for module in self.modules.values_mut() {
            if let Some(oldest) = module.forget_listing(limits) {
                module.tests.retain(|_, test| test.last_seen >= oldest);
            }
        }
        let mut by_age: Vec<_> =
            self.modules.iter().map(|(key, module)| (module.last_run(), key.clone())).collect();
        by_age.sort_unstable();
        for (_, key) in by_age.iter().take(self.modules.len().saturating_sub(limits.modules)) {
            self.modules.remove(key);
        }
        if self.modules.values().map(|module| module.tests.len()).sum::<usize>() <= limits.tests {
            // Mostly; a list of all of them takes as much memory as they do.
            return;
        }
        let tests = self.modules.iter().flat_map(|(key, module)| {
            let age = |test: &TestHistory| (test.has_failed(), test.last_seen);
            module.tests.iter().map(move |(uid, test)| (age(test), key.clone(), uid.clone()))
        });
        let mut by_age: Vec<_> = tests.collect();
        by_age.sort_unstable();
        for (_, key, uid) in by_age.iter().take(by_age.len().saturating_sub(limits.tests)) {
            if let Some(module) = self.modules.get_mut(key) {
                let Some(gone) = module.tests.remove(uid) else { continue };
                // A list with gaps is no list.
                module.listing.take_if(|list| gone.last_seen >= list.at);
                module.broken |= gone.has_failed();
            }
        }
    }
}

impl ModuleHistory {
    /// What a run says of the module itself.
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

    /// Forgets the listing if it is too old. Returns the run that is old enough: a test that was last seen before it is
    /// forgotten.
    fn forget_listing(&mut self, limits: &Limits) -> Option<u64> {
        let kept = limits.unseen_runs.clamp(1, KEPT_RUNS);
        let oldest = self.runs.len().checked_sub(kept).and_then(|at| self.runs.get(at)).copied()?;
        self.listing.take_if(|list| list.at < oldest);
        Some(oldest)
    }

    /// The tests, by uid.
    pub fn tests(&self) -> impl Iterator<Item = (&str, &TestHistory)> {
        self.tests.iter().map(|(uid, test)| (uid.as_str(), test))
    }

    /// What is remembered of a test.
    pub fn test(&self, uid: &str) -> Option<&TestHistory> {
        self.tests.get(uid)
    }

    /// All tests of the module, if the last complete run was one of a file with this fingerprint. Names that a module makes
    /// up anew in each run (of random test data, for example) can't be known this way.
    pub fn listed(&self, fingerprint: &str) -> Option<impl Iterator<Item = (&str, &TestHistory)>> {
        let list = self.listing.as_ref().filter(|list| list.fingerprint == fingerprint)?;
        Some(self.tests().filter(|(_, test)| test.last_seen >= list.at))
    }

    /// How many tests the module runs at the same time, on average, in percent: the sum of its tests by [`Self::wall`].
    /// 100 if that is not known.
    pub fn concurrency_percent(&self) -> u32 {
        let last = self.runs.last().copied().unwrap_or_default();
        let tests = self.tests.values().filter(|test| test.last_seen >= last);
        let sum: u128 = tests.filter_map(|test| test.duration).map(|duration| duration.as_micros()).sum();
        let wall = self.wall.map_or(0, |wall| wall.as_micros());
        let percent = sum.saturating_mul(100).checked_div(wall).unwrap_or(100);
        // More than that is a mistake in the measurement.
        u32::try_from(percent.clamp(100, 100_000)).unwrap_or(100)
    }

    /// When the last run of the module began, in milliseconds since 1970; 0 if nothing is known.
    pub fn last_run(&self) -> u64 {
        let tests = self.tests.values().map(|test| test.last_seen);
        tests.chain(self.runs.last().copied()).fold(self.updated, u64::max)
    }

    /// The tests that have to run again: whose last outcome is a failure.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.tests().filter(|(_, test)| test.has_failed()).map(|(uid, _)| uid)
    }
}

impl TestHistory {
    /// Adds what a run that began then says of the test.
    fn add(&mut self, at: u64, test: &Finished<'_>) {
        self.last_seen = self.last_seen.max(at);
        if let Some(class) = test.class {
            self.class = Some(class.to_owned());
        }
        if test.outcome != Outcome::Skipped {
            self.duration = average(self.duration, test.duration);
        }
        merge::insert_outcome(&mut self.outcomes, Seen { at, outcome: test.outcome });
    }

    /// Whether its last outcome is a failure.
    fn has_failed(&self) -> bool {
        self.outcomes.last().is_some_and(|seen| seen.outcome.is_failure())
    }

    /// The last outcomes, oldest first.
    pub fn outcomes(&self) -> &[Seen] {
        &self.outcomes
    }

    /// When the last run began in which the test occurred, in milliseconds since 1970.
    pub fn last_seen(&self) -> u64 {
        self.last_seen
    }

    /// How often it changed its mind in the runs that are kept.
    pub fn flakiness(&self) -> Flakiness {
        let mut result = Flakiness::default();
        let mut before = None;
        for outcome in self.outcomes.iter().map(|seen| seen.outcome).filter(|o| *o != Outcome::Skipped) {
            result.runs += 1;
            result.failed += usize::from(outcome.is_failure());
            result.flaky += usize::from(outcome == Outcome::Flaky);
            result.changes += usize::from(before.is_some_and(|before| before != outcome.is_failure()));
            before = Some(outcome.is_failure());
        }
        result
    }
}

/// The exponential average: the newest value counts a third.
fn average(before: Option<Duration>, now: Option<Duration>) -> Option<Duration> {
    match (before, now) {
        (Some(before), Some(now)) => {
            // Whole microseconds: that is what is stored.
            let micros = (before.as_micros() * 2 + now.as_micros()) / 3;
            Some(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
        }
        (None, Some(now)) => Some(Duration::from_micros(u64::try_from(now.as_micros()).unwrap_or(u64::MAX))),
        (before, None) => before,
    }
}
