//! In which order modules start, and which of them are split into several processes.
//!
//! Owns: the estimate of how long a run takes, and the search for a shorter one. Refuses to: start anything.
//!
//! The processes are to be started in the given order, each as soon as one of `parallel` places is free. Modules of which
//! nothing is known come first, because one of them may be the longest; then the longest.
//!
//! A process is estimated as its start, plus the time of its tests: their sum by the module's concurrency, at least the
//! longest. Modules whose tests are all known by uid may be split, if the whole run then ends sooner by
//! [`ScheduleOptions::min_gain`] and [`ScheduleOptions::min_gain_percent`]. No process is made whose tests take less time than its
//! start. Tests of a class stay in one process where that makes the longest process at most 10 % longer, because they
//! often share a fixture that each process would have to set up again.

mod cost;
mod pack;
mod search;

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::plan::history::ModuleHistory;
use cost::Cost;
use search::Search;

/// What is known of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module<'a> {
    /// The tests, as far as they are known.
    pub tests: Vec<TestCost<'a>>,
    /// Whether these are exactly the tests to run: they were discovered, or recorded with the same fingerprint. Only then
    /// the module can be split; without any tests it gets no process.
    pub listed: bool,
    /// The number of tests, if only that is known.
    pub count: Option<usize>,
    /// From the start of its process to its first test.
    pub start: Option<Duration>,
    /// How many tests run at the same time in one process, in percent; less than 100 counts as 100.
    pub concurrency_percent: u32,
}

impl<'a> Module<'a> {
    /// What a history knows of a module whose file has this fingerprint now.
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

/// What is known of a test. A uid may occur more than once; then its durations are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestCost<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// Its class, if known.
    pub class: Option<&'a str>,
    /// How long it takes, if known; else the median of the tests of its module, or of all tests.
    pub duration: Option<Duration>,
}

/// What the machine offers, and when splitting pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleOptions {
    /// How many processes run at the same time.
    pub parallel: NonZeroUsize,
    /// What starting a process costs if a module's own start is not known.
    pub start: Duration,
    /// Whether modules may be split.
    pub split: bool,
    /// By how much the run must end sooner before anything is split.
    pub min_gain: Duration,
    /// The same in percent of the run without splitting.
    pub min_gain_percent: u32,
}

impl ScheduleOptions {
    /// So many processes at the same time; a start costs 300 ms, and splitting has to gain 1 s and 10 %.
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

/// Processes in the order in which they should start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule<'a> {
    /// The processes.
    pub processes: Vec<Process<'a>>,
    /// How long the run is estimated to take. A module of which nothing is known counts as the median of the others.
    pub makespan: Duration,
    /// How long it would take if no module were split; never less than `makespan`.
    pub unsplit: Duration,
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process<'a> {
    /// The position of its module.
    pub module: usize,
    /// Which of the module's tests it runs.
    pub which: Which<'a>,
    /// How long it is estimated to take; `None` if nothing is known.
    pub estimate: Option<Duration>,
}

/// Which tests of a module a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which<'a> {
    /// All that were to run.
    All,
    /// These, in the order of the module; none of them is in another process.
    Uids(Vec<&'a str>),
}

/// Plans a run. The same input has the same result on every machine.
///
/// ```
/// use std::{num::NonZeroUsize, time::Duration};
/// use runtap_test::plan::{Module, ScheduleOptions, TestCost, Which, schedule};
///
/// let test = |uid, seconds| TestCost { uid, class: None, duration: Some(Duration::from_secs(seconds)) };
/// let slow = Module { tests: vec![test("a", 10), test("b", 8), test("c", 2)], listed: true, ..Module::default() };
/// let plan = schedule(&[slow], &ScheduleOptions::new(NonZeroUsize::new(2).unwrap()));
///
/// let uids: Vec<_> = plan.processes.iter().map(|process| process.which.clone()).collect();
/// assert_eq!(uids, [Which::Uids(vec!["a"]), Which::Uids(vec!["b", "c"])]);
/// assert_eq!((plan.unsplit, plan.makespan), (Duration::from_millis(20_300), Duration::from_millis(10_300)));
/// ```
pub fn schedule<'a>(modules: &[Module<'a>], options: &ScheduleOptions) -> Schedule<'a> {
    let costs = Cost::all(modules, options);
    let mut search = Search::new(&costs, options);
    search.run();
    search.into_schedule()
}
