//! The order in which modules start, and their division into several processes.
//!
//! Estimates the duration of a run, and searches for a shorter one.
//!
//! Processes should be started in the given order, each when one of `parallel` slots is free. Modules with unknown
//! durations come first, because one of them may be the longest, followed by the others, longest first.
//!
//! The estimate of a process is its start time plus the time of its tests: their sum divided by the module's
//! concurrency, but at least the longest test. Modules whose tests are all known by uid may be split if the whole run
//! then ends earlier by [`ScheduleOptions::min_gain`] and [`ScheduleOptions::min_gain_percent`]. No process is created
//! whose tests take less time than its start. Tests of a class stay in one process if this makes the longest process at
//! most 10 % longer, because they often share a fixture that each process would have to set up.

mod cost;
mod pack;
mod search;

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::plan::history::ModuleHistory;
use cost::Cost;
use search::Search;

/// The known properties of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module<'a> {
    /// The known tests.
    pub tests: Vec<TestCost<'a>>,
    /// Whether these are exactly the tests to run: they were discovered, or recorded with the same fingerprint.
    /// Otherwise the module is not split. A listed module without tests gets no process.
    pub listed: bool,
    /// The number of tests, if only the number is known.
    pub count: Option<usize>,
    /// The time from the start of its process to its first test.
    pub start: Option<Duration>,
    /// The concurrency of tests in one process, in percent; values below 100 count as 100.
    pub concurrency_percent: u32,
}

impl<'a> Module<'a> {
    /// Returns the recorded properties of a module whose file now has this fingerprint.
    pub fn recorded(history: &'a ModuleHistory, fingerprint: Option<&str>) -> Self {
        let cost = |(uid, test): (&'a str, &'a crate::plan::TestHistory)| TestCost {
            uid,
            class: test.class.as_deref(),
            duration: test.duration,
        };
        let listed = fingerprint.and_then(|fingerprint| history.listed(fingerprint));
        let listed: Option<Vec<_>> = listed.map(|tests| tests.map(cost).collect());
        Self {
            listed: listed.is_some(),
            tests: listed.unwrap_or_else(|| history.tests().map(cost).collect()),
            count: None,
            start: history.start,
            concurrency_percent: history.concurrency_percent(),
        }
    }
}

/// The known properties of a test. If a uid occurs more than once, the durations are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestCost<'a> {
    /// The uid.
    pub uid: &'a str,
    /// The class, if known.
    pub class: Option<&'a str>,
    /// The duration, if known. Otherwise the median of the tests of the module, or of all tests, is used.
    pub duration: Option<Duration>,
}

/// The resources of the machine, and the conditions for splitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleOptions {
    /// The number of processes that run at the same time.
    pub parallel: NonZeroUsize,
    /// The start time of a process if the module's start time is unknown.
    pub start: Duration,
    /// Whether modules may be split.
    pub split: bool,
    /// The minimum time that splitting must save.
    pub min_gain: Duration,
    /// The minimum time that splitting must save, in percent of the run without splitting.
    pub min_gain_percent: u32,
}

impl ScheduleOptions {
    /// Returns options for this number of processes, a start time of 300 ms, and minimum savings of 1 s and 10 %.
    pub fn new(parallel: NonZeroUsize) -> Self {
        Self {
            parallel,
            start: Duration::from_millis(300),
            split: true,
            min_gain: Duration::from_secs(1),
            min_gain_percent: 10,
        }
    }
}

/// A schedule: processes in the order in which they should start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule<'a> {
    /// The processes.
    pub processes: Vec<Process<'a>>,
    /// The estimated duration of the run. A module with unknown durations counts as the median of the others.
    pub makespan: Duration,
    /// The estimated duration without splitting; never less than `makespan`.
    pub unsplit: Duration,
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process<'a> {
    /// The index of the module.
    pub module: usize,
    /// The tests of the module that the process runs.
    pub which: ProcessTests<'a>,
    /// The estimated duration, or `None` if it is unknown.
    pub estimate: Option<Duration>,
}

/// The tests of a module that a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessTests<'a> {
    /// All tests that should run.
    All,
    /// These tests, in the order of the module; none of them is in another process.
    Uids(Vec<&'a str>),
}

/// Plans a run. The result is deterministic on all machines.
///
/// ```
/// use std::{num::NonZeroUsize, time::Duration};
/// use runtap_test::plan::{Module, ScheduleOptions, TestCost, ProcessTests, schedule};
///
/// let test = |uid, seconds| TestCost { uid, class: None, duration: Some(Duration::from_secs(seconds)) };
/// let slow = Module { tests: vec![test("a", 10), test("b", 8), test("c", 2)], listed: true, ..Module::default() };
/// let plan = schedule(&[slow], &ScheduleOptions::new(NonZeroUsize::new(2).unwrap()));
///
/// let uids: Vec<_> = plan.processes.iter().map(|process| process.which.clone()).collect();
/// assert_eq!(uids, [ProcessTests::Uids(vec!["a"]), ProcessTests::Uids(vec!["b", "c"])]);
/// assert_eq!((plan.unsplit, plan.makespan), (Duration::from_millis(20_300), Duration::from_millis(10_300)));
/// ```
pub fn schedule<'a>(modules: &[Module<'a>], options: &ScheduleOptions) -> Schedule<'a> {
    let costs = Cost::all(modules, options);
    let mut search = Search::new(&costs, options);
    search.run();
    search.into_schedule()
}
