//! Which tests of which modules are run, in which order and in how many processes.
//!
//! Owns: what has to be asked of the applications first, and the way from tests to jobs. Refuses to: decide; filters,
//! partitions and schedules of [`runtap_test_plan`] do.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::num::NonZeroUsize;

use runtap_mtp::{Job, Mode, ModuleFailure, ModuleId, RunEvent, RunSpec, Stop, TestInfo, run};
use runtap_test_plan::{
    Filter, History, Module as Costs, ModuleHistory, Partition, Process, ScheduleOptions, TestCost, TestKey,
    Unmet, Which, schedule,
};
use thiserror::Error;

use crate::facts;
use crate::fingerprint::fingerprint;
use crate::history::of_module;

/// Which tests are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only those that match.
    pub filter: Option<Filter>,
    /// Only those with these ids.
    pub uids: Vec<String>,
    /// Only a part of those.
    pub partition: Option<Partition>,
    /// Only those that failed when they were last run.
    pub failed_only: bool,
    /// Whether a slow module may be run by several processes at the same time.
    pub split: bool,
    /// Whether more than names must be known of the tests that are run.
    pub discover: bool,
}

/// Why there is no plan.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The applications can't be run at all.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An application does not say which tests it has.
    #[error("the tests of {module} can't be listed")]
    NotListed {
        /// Its path.
        module: String,
        /// Why.
        failure: Box<ModuleFailure>,
        /// The exit code that fits.
        exit_code: i32,
    },
    /// The run was stopped meanwhile.
    #[error("stopped")]
    Stopped,
    /// Failed tests are to be run again, and no earlier run is known.
    #[error("no earlier run of these test applications is recorded")]
    NoEarlierRun,
}

/// What was found out on the way.
#[derive(Debug, Default)]
pub struct Planned {
    /// The tests that the applications have listed, where they were asked.
    pub known: Vec<(ModuleId, TestInfo)>,
    /// Modules that tell nothing but names of their tests, where more is asked for: conditions on that meet none of them.
    pub untold: Vec<ModuleId>,
    /// Whether all tests of all modules are run.
    pub whole: bool,
    /// Failed tests are to be run again, and there are none.
    pub nothing_failed: bool,
    /// Why none of the tests that the applications have listed is run.
    pub empty: Option<Empty>,
}

/// Why none of the tests is run that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Empty {
    /// The filter, or the ids, match none.
    NoMatch {
        /// Tests that were listed.
        listed: usize,
        /// Which conditions no test meets.
        unmet: Vec<Unmet>,
    },
    /// The other parts have them.
    OtherParts {
        /// Tests of all parts.
        tests: usize,
    },
}

impl Selection {
    /// Whether all tests are wanted.
    pub fn is_whole(&self) -> bool {
        self.filter.is_none() && self.uids.is_empty() && self.partition.is_none() && !self.failed_only
    }

    /// The ids, where they are all that has to be known.
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

/// Makes the jobs of a run: of the tests that are wanted, those that take longest first; before them, what is not known, in
/// the order of the jobs that are there.
///
/// Applications are asked for their tests where the selection can't be decided otherwise.
///
/// # Errors
/// An application does not answer, the run is stopped, or there is no earlier run to repeat.
pub fn plan(
    spec: &mut RunSpec,
    selection: &Selection,
    history: &History,
    stop: &Stop,
) -> Result<Planned, PlanError> {
    let planner = Planner::new(spec, selection, history);
    let mut planned = Planned { whole: selection.is_whole(), ..Planned::default() };
    let mut chosen = vec![None; spec.modules.len()];
    let mut may_lack = vec![false; spec.modules.len()];
    if let Some(uids) = selection.named() {
        chosen.fill(Some(uids));
        // Of tests that have failed before, it is known whose they are.
        let is_known = |record: Option<&ModuleHistory>| {
            selection.failed_only && !record.is_some_and(|record| record.broken)
        };
        may_lack = planner.records.iter().map(|record| !is_known(*record)).collect();
    } else if selection.discover || selection.partition.is_some() || selection.filter.is_some() {
        planned.known = discover(spec, stop)?;
        let needs_more = |filter: &Filter| !filter.needs_names_only();
        if selection.discover || selection.filter.as_ref().is_some_and(needs_more) {
            planned.untold = untold(&planned.known);
        }
        if !selection.is_whole() {
            (chosen, planned.empty) = planner.choose(&planned.known);
        }
    }
    if selection.failed_only {
        if planner.records.iter().all(Option::is_none) {
            return Err(PlanError::NoEarlierRun);
        }
        planner.keep_failed(&mut chosen);
        planned.nothing_failed = chosen.iter().all(|it| it.as_ref().is_some_and(Vec::is_empty));
    }
    let listed = if selection.split && planned.whole {
        planner.confirmed(&mut planned.known, stop)?
    } else {
        vec![None; spec.modules.len()]
    };
    spec.jobs = planner.jobs(&chosen, &listed);
    for job in &mut spec.jobs {
        job.may_lack_uids = may_lack.get(job.module.0).copied().unwrap_or_default();
    }
    Ok(planned)
}

/// For each module, the ids of tests; `None` where it is not known which there are.
type Lists = Vec<Option<Vec<String>>>;

struct Planner<'a> {
    spec: &'a RunSpec,
    selection: &'a Selection,
    /// What is remembered of each module, and the fingerprint of its file where that matters.
    records: Vec<Option<&'a ModuleHistory>>,
    fingerprints: Vec<Option<String>>,
    options: ScheduleOptions,
}

impl<'a> Planner<'a> {
    fn new(spec: &'a RunSpec, selection: &'a Selection, history: &'a History) -> Self {
        // An order may be wrong, a split may not.
        let exact = |module| selection.split.then(|| fingerprint(module)).flatten();
        let fingerprints: Vec<_> = spec.modules.iter().map(exact).collect();
        let modules = spec.modules.iter().zip(&fingerprints);
        let parallel = NonZeroUsize::new(spec.parallel).unwrap_or(NonZeroUsize::MIN);
        Self {
            spec,
            selection,
            records: modules.map(|(module, print)| of_module(history, module, print.as_deref())).collect(),
            fingerprints,
            options: ScheduleOptions { split: selection.split, ..ScheduleOptions::new(parallel) },
        }
    }

    /// What is remembered of what the modules cost.
    fn costs(&self) -> impl Iterator<Item = Costs<'a>> {
        self.records.iter().zip(&self.fingerprints).map(|(record, print)| {
            record.map_or_else(Costs::default, |record| Costs::recorded(record, print.as_deref()))
        })
    }

    /// The tests that filter, ids and partition choose of those that were listed: of each module, each id once. And why
    /// there is none.
    fn choose(&self, known: &[(ModuleId, TestInfo)]) -> (Lists, Option<Empty>) {
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
        if let Some(partition) = &self.selection.partition {
            let keys: Vec<_> = wanted.iter().map(|(module, test)| self.key(*module, test)).collect();
            let keys: Vec<_> = keys.iter().map(|(name, key)| TestKey { module: name, ..*key }).collect();
            wanted = partition.select(&keys).into_iter().filter_map(|at| wanted.get(at).copied()).collect();
            if tests > 0 && wanted.is_empty() {
                empty = Some(Empty::OtherParts { tests });
            }
        }
        let mut chosen = vec![Some(Vec::new()); self.spec.modules.len()];
        for (module, test) in wanted {
            if let Some(Some(chosen)) = chosen.get_mut(module.0) {
                chosen.push(test.uid.clone());
            }
        }
        (chosen, empty)
    }

    /// Why none of these tests is wanted.
    fn unmatched(&self, known: &[(ModuleId, TestInfo)], paths: &[String]) -> Empty {
        let facts = known.iter().map(|(module, test)| {
            facts::discovered(test, paths.get(module.0).map(String::as_str).unwrap_or_default())
        });
        let facts: Vec<_> = facts.collect();
        let ids = self.selection.uids.iter().map(|uid| Filter::of_uid(uid));
        let filters = self.selection.filter.iter().cloned().chain(ids);
        let unmet = filters.flat_map(|filter| filter.unmet(&facts)).collect();
        Empty::NoMatch { listed: known.len(), unmet }
    }

    /// The name of its module, and the rest of what a partition knows of a test.
    fn key<'t>(&self, module: ModuleId, test: &'t TestInfo) -> (String, TestKey<'t>) {
        let record = self.records.get(module.0).copied().flatten();
        let duration = record.and_then(|record| record.test(&test.uid)?.duration);
        let name = self.spec.modules.get(module.0).map(runtap_mtp::Module::name).unwrap_or_default();
        (name, TestKey { duration, ..TestKey::new("", &test.uid) })
    }

    /// Of the tests that are chosen, those that failed when they were last run; all of a module whose last run was broken.
    fn keep_failed(&self, chosen: &mut Lists) {
        for (chosen, record) in chosen.iter_mut().zip(&self.records) {
            if record.is_some_and(|record| record.broken) {
                // Nobody knows which tests it did not come to.
                continue;
            }
            let wanted = chosen.take().map(|uids| uids.into_iter().collect::<HashSet<_>>());
            let is_wanted = |uid: &&str| wanted.as_ref().is_none_or(|wanted| wanted.contains(*uid));
            let failed = record.iter().flat_map(|record| record.failed());
            *chosen = Some(failed.filter(is_wanted).map(str::to_owned).collect());
        }
    }

    /// The tests of the modules that are worth splitting, as they list them now. A module that does not list a test which
    /// it ran before makes up tests as it runs: it is not split.
    fn confirmed(&self, known: &mut Vec<(ModuleId, TestInfo)>, stop: &Stop) -> Result<Lists, PlanError> {
        let costs: Vec<_> = self.costs().collect();
        let mut lists = vec![None; costs.len()];
        let first = schedule(&costs, &self.options);
        let parts = first.processes.iter().filter(|process| matches!(process.which, Which::Uids(_)));
        let split: BTreeSet<_> = parts.map(|process| process.module).collect();
        if known.is_empty() && !split.is_empty() {
            let jobs = split.iter().map(|&module| Job::whole(ModuleId(module))).collect();
            *known = match discover(&RunSpec { jobs, ..self.spec.clone() }, stop) {
                // What it can't list it may run all the same: then as a whole.
                Err(PlanError::NotListed { .. }) => return Ok(lists),
                found => found?,
            };
        }
        for module in split {
            let mut seen = HashSet::new();
            let listed = known.iter().filter(|(of, _)| of.0 == module).map(|(_, test)| test.uid.as_str());
            let uids: Vec<_> = listed.filter(|uid| seen.insert(*uid)).map(str::to_owned).collect();
            let mut recorded = costs.get(module).into_iter().flat_map(|costs| &costs.tests);
            if let (true, Some(list)) = (recorded.all(|test| seen.contains(test.uid)), lists.get_mut(module))
            {
                *list = Some(uids);
            }
        }
        Ok(lists)
    }

    /// The processes, in the order in which they are begun.
    fn jobs(&self, chosen: &Lists, listed: &Lists) -> Vec<Job> {
        let lists = chosen.iter().zip(listed).map(|(chosen, listed)| chosen.as_ref().or(listed.as_ref()));
        let costs: Vec<_> = self.costs().zip(lists).map(|(costs, uids)| certain(costs, uids)).collect();
        let mut schedule = schedule(&costs, &self.options);
        // What is known has its place by that; what is not, by the order in which it was asked for.
        let asked = self.spec.jobs.iter().map(|job| job.module.0);
        let places: HashMap<_, _> = asked.enumerate().map(|(place, module)| (module, place)).collect();
        schedule.processes.sort_by_key(|process| match process.estimate {
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
                // A whole module needs no list of what may be many.
                Which::All => chosen.get(process.module)?.clone(),
                Which::Uids(uids) => Some(uids.into_iter().map(str::to_owned).collect()),
            };
            let part = (*begun, *parts.get(process.module)?);
            Some(Job { uids, part, ..Job::whole(ModuleId(process.module)) })
        };
        schedule.processes.into_iter().filter_map(job).collect()
    }
}

/// The costs of a module of which these tests are run, if it is known which: an old list may lack new ones.
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

/// The modules that have tests and tell only names of them.
fn untold(known: &[(ModuleId, TestInfo)]) -> Vec<ModuleId> {
    let is_told = |test: &TestInfo| {
        let facts = [&test.namespace, &test.type_name, &test.method, &test.file];
        facts.into_iter().any(Option::is_some) || !test.traits.is_empty()
    };
    // They are in the order of their modules.
    let of_modules = known.chunk_by(|(one, _), (other, _)| one == other);
    let silent = of_modules.filter(|tests| !tests.iter().any(|(_, test)| is_told(test)));
    silent.filter_map(|tests| tests.first()).map(|(module, _)| *module).collect()
}

/// All tests of the modules that have a job, in the order of their modules.
fn discover(spec: &RunSpec, stop: &Stop) -> Result<Vec<(ModuleId, TestInfo)>, PlanError> {
    let asking = RunSpec { mode: Mode::Discover, max_failed: None, minimum_expected: 0, ..spec.clone() };
    let (mut found, mut failed) = (Vec::new(), None);
    let outcome = run(&asking, stop, |event| match event {
        RunEvent::Discovered { module, test } => found.push((module, test)),
        RunEvent::LaunchEnded { module, end, .. } => {
            failed = failed.take().or_else(|| Some((module, end.failures.into_iter().next()?)));
        }
        _ => {}
    })?;
    if stop.level().is_some() {
        return Err(PlanError::Stopped);
    }
    if let Some((module, failure)) = failed {
        let module = spec.modules.get(module.0).map(ToString::to_string).unwrap_or_default();
        return Err(PlanError::NotListed {
            module,
            failure: Box::new(failure),
            exit_code: outcome.exit_code,
        });
    }
    found.sort_by_key(|(module, _)| *module);
    Ok(found)
}
