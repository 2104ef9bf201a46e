//! Planning of a run: the selected tests of each module, their order, and their assignment to processes.
//!
//! Discovers tests where needed, and converts tests to jobs. Decisions are made by the filters, partitions and
//! schedules of [`runtap_test::plan`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::num::NonZeroUsize;

use crate::{Job, ModuleFailure, ModuleId, RunSpec, Stop, TestInfo};
use runtap_model::order;
use runtap_test::plan::{
    Filter, Module as Costs, ModuleHistory, Partition, Process, ProcessTests, ScheduleOptions, TestCost,
    TestKey, Unmet, schedule,
};
use thiserror::Error;

use crate::suite::discovery::{discover, names_only, split_explicit};
use crate::suite::facts;
use crate::suite::fingerprint::fingerprint;
use crate::suite::history::{Earlier, of_module};

/// A selection of tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only tests that match this filter.
    pub filter: Option<Filter>,
    /// Only tests with these ids.
    pub uids: Vec<String>,
    /// Only this part of the selected tests.
    pub partition: Option<Partition>,
    /// Only tests that failed in their last run.
    pub failed_only: bool,
    /// Whether a slow module may be run by several processes at the same time.
    pub split: bool,
    /// Whether more properties than names must be known for the tests that are run.
    pub discover: bool,
}

/// An error that occurs when planning a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The applications cannot be run at all.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An application cannot list its tests.
    #[error("the tests of {module} can't be listed")]
    NotListed {
        /// The path of the application.
        module: String,
        /// The cause.
        failure: Box<ModuleFailure>,
        /// The standard output of the application.
        stdout: String,
        /// The standard error of the application.
        stderr: String,
        /// The exit code for the run.
        exit_code: i32,
    },
    /// The run was stopped during planning.
    #[error("stopped")]
    Stopped,
    /// Failed tests are requested, but no earlier run is recorded.
    #[error("no earlier run of these test applications is recorded")]
    NoEarlierRun,
}

/// The results of planning.
#[derive(Debug, Default)]
pub struct Planned {
    /// The discovered tests, if discovery was needed.
    pub known: Vec<(ModuleId, TestInfo)>,
    /// The modules whose tests have no properties except names, if other properties are needed: conditions on them
    /// match no tests.
    pub names_only: Vec<ModuleId>,
    /// Whether all tests of all modules are run.
    pub whole: bool,
    /// The modules of which all tests are run.
    pub complete: Vec<ModuleId>,
    /// Whether failed tests are requested, but there are none.
    pub nothing_failed: bool,
    /// The reason why none of the discovered tests is run, if so.
    pub empty: Option<EmptyReason>,
}

/// The reason why none of the discovered tests is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmptyReason {
    /// The filter or the ids match no tests.
    NoMatch {
        /// The number of discovered tests.
        listed: usize,
        /// The conditions that no test meets.
        unmet: Vec<Unmet>,
    },
    /// All selected tests belong to other parts.
    OtherParts {
        /// The number of tests in all parts.
        tests: usize,
    },
}

impl Selection {
    /// Returns whether all tests are selected.
    pub fn is_whole(&self) -> bool {
        self.filter.is_none() && self.uids.is_empty() && self.partition.is_none() && !self.failed_only
    }

    /// Returns the selected ids, if ids alone determine the selection.
    fn named(&self) -> Option<Vec<String>> {
        if self.partition.is_some() || self.discover {
            return None;
        }
        if !self.uids.is_empty() {
            return Some(self.uids.clone());
        }
        let uids = self.filter.as_ref().and_then(Filter::uids)?;
        Some(uids.into_iter().map(str::to_owned).collect())
    }
}

/// Creates the jobs of a run. Tests that take longest are started first; they are preceded by tests with unknown
/// durations, in the order of the existing jobs.
///
/// Tests are discovered if the selection cannot be resolved otherwise.
///
/// # Errors
/// Returns an error if an application does not respond, if the run is stopped, or if there is no earlier run to repeat.
pub fn plan(
    spec: &mut RunSpec,
    selection: &Selection,
    earlier: &Earlier,
    stop: &Stop,
) -> Result<Planned, PlanError> {
    let planner = Planner::new(spec, selection, earlier);
    let mut planned = Planned { whole: selection.is_whole(), ..Planned::default() };
    let mut chosen = vec![None; spec.modules.len()];
    let mut explicit = vec![Vec::new(); spec.modules.len()];
    let mut may_lack = vec![false; spec.modules.len()];
    if let Some(uids) = selection.named() {
        chosen.fill(Some(uids));
        // The modules of tests that failed before are known.
        let is_known = |module| selection.failed_only && !planner.may_have_unknown_failures(module);
        may_lack = (0..spec.modules.len()).map(|module| !is_known(module)).collect();
    } else if selection.discover || selection.partition.is_some() || selection.filter.is_some() {
        planned.known = discover(spec, stop)?;
        let needs_more = |filter: &Filter| !filter.needs_names_only();
        if selection.discover || selection.filter.as_ref().is_some_and(needs_more) {
            planned.names_only = names_only(&planned.known);
        }
        if !selection.is_whole() {
            (chosen, explicit, planned.empty) = planner.choose(&planned.known);
        }
    }
    if selection.failed_only {
        if planner.records.iter().all(Option::is_none) && earlier.unfinished.is_empty() {
            return Err(PlanError::NoEarlierRun);
        }
        planner.keep_failed(&mut chosen);
        planned.nothing_failed = chosen.iter().all(|it| it.as_ref().is_some_and(Vec::is_empty));
    }
    let whole = chosen.iter().enumerate().filter(|(_, chosen)| chosen.is_none());
    planned.complete = whole.map(|(module, _)| ModuleId(module)).collect();
    let mut listed = vec![None; spec.modules.len()];
    if selection.split && planned.whole {
        (listed, explicit) = planner.confirmed(&mut planned.known, stop)?;
    }
    spec.jobs = planner.jobs(&chosen, &listed, &mut explicit);
    for job in &mut spec.jobs {
        job.may_lack_uids = may_lack.get(job.module.0).copied().unwrap_or_default();
    }
    Ok(planned)
}

/// For each module, the ids of its tests; `None` if they are unknown.
type Lists = Vec<Option<Vec<String>>>;

/// For each module, the explicit tests that are selected beside others.
type Explicit = Vec<Vec<TestInfo>>;

struct Planner<'a> {
    spec: &'a RunSpec,
    selection: &'a Selection,
    /// The history of each module, and the fingerprint of its file where it matters.
    records: Vec<Option<&'a ModuleHistory>>,
    fingerprints: Vec<Option<String>>,
    unfinished: &'a BTreeSet<ModuleId>,
    options: ScheduleOptions,
}

impl<'a> Planner<'a> {
    fn new(spec: &'a RunSpec, selection: &'a Selection, earlier: &'a Earlier) -> Self {
        // An outdated history may affect the order, but not a split.
        let exact = |module| selection.split.then(|| fingerprint(module)).flatten();
        let fingerprints: Vec<_> = spec.modules.iter().map(exact).collect();
        let modules = spec.modules.iter().zip(&fingerprints);
        let parallel = NonZeroUsize::new(spec.parallel).unwrap_or(NonZeroUsize::MIN);
        Self {
            spec,
            selection,
            records: modules
                .map(|(module, print)| of_module(&earlier.history, module, print.as_deref()))
                .collect(),
            unfinished: &earlier.unfinished,
            fingerprints,
            options: ScheduleOptions { split: selection.split, ..ScheduleOptions::new(parallel) },
        }
    }

    /// Returns the recorded costs of the modules.
    fn costs(&self) -> impl Iterator<Item = Costs<'a>> {
        self.records.iter().zip(&self.fingerprints).map(|(record, print)| {
            record.map_or_else(Costs::default, |record| Costs::recorded(record, print.as_deref()))
        })
    }

    /// Returns the discovered tests that filter, ids and partition select, without duplicate ids in a module, and the
    /// reason if there are none.
    fn choose(&self, known: &[(ModuleId, TestInfo)]) -> (Lists, Explicit, Option<EmptyReason>) {
        let paths = facts::paths(&self.spec.modules);
        let uids: HashSet<_> = self.selection.uids.iter().map(String::as_str).collect();
        let mut seen = HashSet::new();
        let wanted = known.iter().filter(|(module, test)| {
            let path = paths.get(module.0).map(String::as_str).unwrap_or_default();
            let filter = self.selection.filter.as_ref();
            filter.is_none_or(|filter| filter.matches(&facts::discovered(test, path)))
                && (uids.is_empty() || uids.contains(test.uid.as_str()))
                && seen.insert((*module, test.uid.as_str()))
        });
        let mut wanted: Vec<_> = wanted.collect();
        let mut empty = (wanted.is_empty() && !known.is_empty()).then(|| self.unmatched(known, &paths));
        let tests = wanted.len();
        let mut explicit = Vec::new();
        // A test that failed was run, so it is run again.
        if !self.selection.failed_only {
            (explicit, wanted) = split_explicit(wanted);
        }
        let mut first = BTreeMap::new();
        for (module, test) in &wanted {
            let first = first.entry(*module).or_insert(&test.uid);
            *first = (*first).min(&test.uid);
        }
        if let Some(partition) = &self.selection.partition {
            let keys: Vec<_> = wanted.iter().map(|(module, test)| self.key(*module, test)).collect();
            let keys: Vec<_> = keys.iter().map(|(name, key)| TestKey { module: name, ..*key }).collect();
            wanted = partition.select(&keys).into_iter().filter_map(|at| wanted.get(at).copied()).collect();
            if tests > 0 && wanted.is_empty() {
                empty = Some(EmptyReason::OtherParts { tests });
            }
        }
        let mut chosen = vec![Some(Vec::new()); self.spec.modules.len()];
        for (module, test) in wanted {
            if let Some(Some(chosen)) = chosen.get_mut(module.0) {
                chosen.push(test.uid.clone());
            }
        }
        // Explicit tests belong to the part with the first of the other tests, so that all parts together have them
        // once.
        let mut beside = vec![Vec::new(); self.spec.modules.len()];
        for (module, test) in explicit {
            let (here, first) = (chosen.get(module.0), first.get(module));
            let is_here = here.into_iter().flatten().flatten().any(|uid| Some(&uid) == first);
            if let (true, Some(beside)) = (is_here, beside.get_mut(module.0)) {
                beside.push(test.clone());
            }
        }
        (chosen, beside, empty)
    }

    /// Returns the reason why none of these tests is selected.
    fn unmatched(&self, known: &[(ModuleId, TestInfo)], paths: &[String]) -> EmptyReason {
        let facts = known.iter().map(|(module, test)| {
            facts::discovered(test, paths.get(module.0).map(String::as_str).unwrap_or_default())
        });
        let facts: Vec<_> = facts.collect();
        let ids = self.selection.uids.iter().map(|uid| Filter::of_uid(uid));
        let filters = self.selection.filter.iter().cloned().chain(ids);
        let unmet = filters.flat_map(|filter| filter.unmet(&facts)).collect();
        EmptyReason::NoMatch { listed: known.len(), unmet }
    }

    /// Returns the module name and the partition key of a test.
    fn key<'t>(&self, module: ModuleId, test: &'t TestInfo) -> (String, TestKey<'t>) {
        let record = self.records.get(module.0).copied().flatten();
        let duration = record.and_then(|record| record.test(&test.uid)?.duration);
        let name = self.spec.modules.get(module.0).map(crate::Module::name).unwrap_or_default();
        (name, TestKey { duration, ..TestKey::new("", &test.uid) })
    }

    /// Returns whether a run of the module did not run all tests, or its end is not recorded.
    fn may_have_unknown_failures(&self, module: usize) -> bool {
        let record = self.records.get(module).copied().flatten();
        record.is_some_and(|record| record.broken) || self.unfinished.contains(&ModuleId(module))
    }

    /// Keeps the selected tests that failed in their last run, and all tests of a module that may have unknown
    /// failures.
    fn keep_failed(&self, chosen: &mut Lists) {
        for (module, (chosen, record)) in chosen.iter_mut().zip(&self.records).enumerate() {
            if self.may_have_unknown_failures(module) {
                continue;
            }
            let wanted = chosen.take().map(|uids| uids.into_iter().collect::<HashSet<_>>());
            let is_wanted = |uid: &&str| wanted.as_ref().is_none_or(|wanted| wanted.contains(*uid));
            let failed = record.iter().flat_map(|record| record.failed());
            *chosen = Some(failed.filter(is_wanted).map(str::to_owned).collect());
        }
    }

    /// Returns the current tests of the modules that are worth splitting. A module that does not list a test that it
    /// ran before generates tests at run time, and is not split.
    fn confirmed(
        &self,
        known: &mut Vec<(ModuleId, TestInfo)>,
        stop: &Stop,
    ) -> Result<(Lists, Explicit), PlanError> {
        let costs: Vec<_> = self.costs().collect();
        let mut lists = vec![None; costs.len()];
        let mut beside = vec![Vec::new(); costs.len()];
        let first = schedule(&costs, &self.options);
        let parts = first.processes.iter().filter(|process| matches!(process.which, ProcessTests::Uids(_)));
        let split = order::to_set(parts.map(|process| process.module));
        if known.is_empty() && !split.is_empty() {
            let jobs = split.iter().map(|&module| Job::whole(ModuleId(module))).collect();
            *known = match discover(&RunSpec { jobs, ..self.spec.clone() }, stop) {
                // A module that cannot list its tests may still run them: do not split it.
                Err(PlanError::NotListed { .. }) => return Ok((lists, beside)),
                found => found?,
            };
        }
        for module in split {
            let mut seen = HashSet::new();
            let listed = known.iter().filter(|(of, test)| of.0 == module && seen.insert(test.uid.as_str()));
            let (explicit, others) = split_explicit(listed.collect());
            let uids: Vec<_> = others.iter().map(|(_, test)| test.uid.clone()).collect();
            let mut recorded = costs.get(module).into_iter().flat_map(|costs| &costs.tests);
            if let (true, Some(list)) = (recorded.all(|test| seen.contains(test.uid)), lists.get_mut(module))
            {
                *list = Some(uids);
                if let Some(beside) = beside.get_mut(module) {
                    beside.extend(explicit.into_iter().map(|(_, test)| test.clone()));
                }
            }
        }
        Ok((lists, beside))
    }

    /// Returns the jobs, in the order in which they are started.
    fn jobs(&self, chosen: &Lists, listed: &Lists, explicit: &mut Explicit) -> Vec<Job> {
        let lists = chosen.iter().zip(listed).map(|(chosen, listed)| chosen.as_ref().or(listed.as_ref()));
        let costs: Vec<_> = self.costs().zip(lists).map(|(costs, uids)| certain(costs, uids)).collect();
        let mut schedule = schedule(&costs, &self.options);
        // Modules with known durations are sorted by duration, others by the order of the existing jobs.
        let asked = self.spec.jobs.iter().map(|job| job.module.0);
        let places: HashMap<_, _> = asked.enumerate().map(|(place, module)| (module, place)).collect();
        order::sort_by_key(&mut schedule.processes, |process| match process.estimate {
            None => (0, places.get(&process.module).copied()),
            Some(_) => (1, None),
        });
        let mut parts = vec![0; costs.len()];
        for process in &schedule.processes {
            if let Some(parts) = parts.get_mut(process.module) {
                *parts += 1;
            }
        }
        let mut begun = vec![0; costs.len()];
        let job = |process: Process<'_>| {
            let begun = begun.get_mut(process.module)?;
            *begun += 1;
            let uids = match process.which {
                // A whole module needs no list, which may be long.
                ProcessTests::All => chosen.get(process.module)?.clone(),
                ProcessTests::Uids(uids) => Some(uids.into_iter().map(str::to_owned).collect()),
            };
            let part = (*begun, *parts.get(process.module)?);
            let explicit = explicit.get_mut(process.module).map(std::mem::take).unwrap_or_default();
            Some(Job { uids, explicit, part, ..Job::whole(ModuleId(process.module)) })
        };
        schedule.processes.into_iter().filter_map(job).collect()
    }
}

/// Returns the costs of a module, limited to the tests that are run, if they are known: an outdated history may lack
/// new tests.
fn certain<'a>(mut costs: Costs<'a>, uids: Option<&'a Vec<String>>) -> Costs<'a> {
    costs.listed = uids.is_some();
    if let Some(uids) = uids {
        let recorded: HashMap<_, _> = costs.tests.iter().map(|test| (test.uid, *test)).collect();
        let cost = |uid: &'a String| {
            let unknown = TestCost { uid, class: None, duration: None };
            recorded.get(uid.as_str()).copied().unwrap_or(unknown)
        };
        costs.tests = uids.iter().map(cost).collect();
    }
    costs
}
