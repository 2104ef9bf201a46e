//! Recording of a run for the history.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{LaunchId, Module, ModuleId, RunEvent};
use runtap_model::order;
use runtap_test::plan::{Finished, ModuleKey, ModuleRun, PastOutcome};
use runtap_test_report::{Source, TestOutcome, TestResult};

use crate::suite::fingerprint::fingerprint;

/// A recorder of facts about a run that results alone do not contain: start times, and which modules were complete.
#[derive(Debug)]
pub struct Recorder {
    /// The start of the run, in milliseconds since 1970.
    at: u64,
    modules: Vec<Module>,
    /// The modules of which all tests were to be run.
    whole: BTreeSet<ModuleId>,
    /// The marks of the modules of the run.
    pub(crate) marks: Vec<(ModuleId, PathBuf)>,
    /// Whether the run was stopped.
    interrupted: bool,
    records: BTreeMap<ModuleId, ModuleRecord>,
}

/// The record of a module.
#[derive(Debug, Default)]
struct ModuleRecord {
    framework: String,
    launches: BTreeMap<LaunchId, Launch>,
    incomplete: bool,
}

#[derive(Debug)]
struct Launch {
    started: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Recorder {
    /// Creates a recorder for a run that starts now, at this time in milliseconds since 1970. All tests of the modules
    /// in `whole` are to be run.
    pub fn new(at: u64, modules: Vec<Module>, whole: impl IntoIterator<Item = ModuleId>) -> Self {
        let whole = whole.into_iter().collect();
        Self { at, modules, whole, marks: Vec::new(), interrupted: false, records: BTreeMap::new() }
    }

    /// Records that the run was stopped: tests that were not run may still exist.
    pub fn interrupted(&mut self) {
        self.interrupted = true;
        for number in 0..self.modules.len() {
            self.records.entry(ModuleId(number)).or_default();
        }
    }

    /// Handles an event that has just occurred.
    pub fn event(&mut self, event: &RunEvent) {
        let now = Instant::now();
        match event {
            RunEvent::LaunchStarted { module, launch, attempt, .. } => {
                let records = self.records.entry(*module).or_default();
                if *attempt == 1 {
                    records.launches.insert(*launch, Launch { started: now, first: None, last: None });
                }
            }
            RunEvent::Introduced { module, introduction, .. } => {
                self.records.entry(*module).or_default().framework = introduction.target_framework();
            }
            RunEvent::TestStarted { module, launch, .. } => self.test(*module, *launch, now, Duration::ZERO),
            RunEvent::TestEnded { module, launch, result, .. } => {
                let duration = result.execution.duration().unwrap_or_default();
                self.test(*module, *launch, now, duration);
                if result.execution.state == TestOutcome::Cancelled {
                    self.records.entry(*module).or_default().incomplete = true;
                }
            }
            RunEvent::LaunchEnded { module, end, .. } => {
                let records = self.records.entry(*module).or_default();
                records.incomplete |= !end.failures.is_empty() || end.exit.is_none();
            }
            RunEvent::ModuleEnded { module, failures, .. } if !failures.is_empty() => {
                self.records.entry(*module).or_default().incomplete = true;
            }
            _ => {}
        }
    }

    fn test(&mut self, module: ModuleId, launch: LaunchId, now: Instant, took: Duration) {
        let launches = &mut self.records.entry(module).or_default().launches;
        if let Some(launch) = launches.get_mut(&launch) {
            let began = now.checked_sub(took).unwrap_or(now).max(launch.started);
            launch.first = Some(launch.first.map_or(began, |first| first.min(began)));
            launch.last = Some(now);
        }
    }

    /// Returns the modules with events, by name.
    pub(crate) fn modules(&self) -> BTreeMap<String, Vec<ModuleId>> {
        let mut modules: BTreeMap<String, Vec<ModuleId>> = BTreeMap::new();
        for id in self.records.keys() {
            if let Some(module) = self.modules.get(id.0) {
                modules.entry(module.name()).or_default().push(*id);
            }
        }
        modules
    }

    /// Returns the start of the run, in milliseconds since 1970.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn module(&self, id: ModuleId) -> Option<&Module> {
        self.modules.get(id.0)
    }

    /// Returns whether all tests of a module were run completely.
    pub(crate) fn is_complete(&self, id: ModuleId) -> bool {
        let records = self.records.get(&id);
        self.whole.contains(&id) && !self.interrupted && records.is_some_and(|records| !records.incomplete)
    }

    /// Returns the record of a module, or `None` if there is nothing to record.
    pub(crate) fn facts(&self, id: ModuleId) -> Option<ModuleFacts> {
        let (module, records) = (self.modules.get(id.0)?, self.records.get(&id)?);
        let broken = records.incomplete || self.interrupted;
        if !broken && records.launches.values().all(|launch| launch.first.is_none()) {
            return None;
        }
        let starts = records.launches.values().filter_map(|it| Some(it.first? - it.started));
        let alone = (records.launches.len() == 1).then(|| records.launches.values().next()).flatten();
        Some(ModuleFacts {
            key: ModuleKey::new(module.name(), records.framework.clone()),
            at: self.at,
            complete: self.is_complete(id),
            broken,
            fingerprint: fingerprint(module),
            start: starts.min(),
            wall: alone.and_then(|it| Some(it.last? - it.first?)),
        })
    }
}

/// The facts about a module in a run.
#[derive(Debug)]
pub(crate) struct ModuleFacts {
    /// The key of the module, without a framework if the module did not report one.
    pub(crate) key: ModuleKey,
    at: u64,
    complete: bool,
    broken: bool,
    fingerprint: Option<String>,
    start: Option<Duration>,
    wall: Option<Duration>,
}

impl ModuleFacts {
    pub(crate) fn run(&self) -> ModuleRun<'_> {
        ModuleRun {
            at: self.at,
            complete: self.complete,
            broken: self.broken,
            fingerprint: self.fingerprint.as_deref(),
            start: self.start,
            wall: self.wall,
        }
    }
}

/// The results of a module, sorted by test id. Texts are not copied.
#[derive(Debug, Default)]
pub(crate) struct Results(Vec<Ended>);

/// The result of a test.
#[derive(Debug)]
struct Ended {
    uid: Box<str>,
    class: Option<Arc<str>>,
    duration: Option<Duration>,
    outcome: PastOutcome,
}

impl Results {
    pub(crate) fn of(module: ModuleId, results: &impl Source) -> io::Result<Self> {
        let mut classes: HashSet<Arc<str>> = HashSet::new();
        let mut all = Vec::with_capacity(results.count(module.0));
        for index in 0..results.count(module.0) {
            let result = results.result(module.0, index)?;
            let class = result.type_name.as_deref().map(|name| {
                classes.get(name).cloned().unwrap_or_else(|| {
                    let name: Arc<str> = name.into();
                    classes.insert(Arc::clone(&name));
                    name
                })
            });
            let nanos = result.last.duration_ns.and_then(|it| u64::try_from(it).ok());
            all.push(Ended {
                uid: result.uid.as_str().into(),
                class,
                duration: nanos.map(Duration::from_nanos),
                outcome: outcome(&result),
            });
        }
        // A stable sort keeps the order of results of one test.
        order::sort_by(&mut all, |a, b| a.uid.cmp(&b.uid));
        Ok(Self(all))
    }

    pub(crate) fn finished(&self) -> impl Iterator<Item = Finished<'_>> {
        self.0.iter().map(|ended| Finished {
            class: ended.class.as_deref(),
            duration: ended.duration,
            ..Finished::new(&ended.uid, ended.outcome)
        })
    }
}

fn outcome(result: &TestResult) -> PastOutcome {
    match result.state() {
        TestOutcome::Passed if result.is_flaky() => PastOutcome::Flaky,
        TestOutcome::Passed => PastOutcome::Passed,
        TestOutcome::Skipped => PastOutcome::Skipped,
        TestOutcome::Failed | TestOutcome::Error => PastOutcome::Failed,
        TestOutcome::Timeout | TestOutcome::Cancelled => PastOutcome::TimedOut,
    }
}
