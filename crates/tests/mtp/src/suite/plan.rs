//! Which tests of which modules are run, in which order and in how many processes.
//!
//! Owns: what has to be asked of the applications first, and the way from tests to jobs. Refuses to: decide; filters,
//! partitions and schedules of [`runtap_test::plan`] do.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::num::NonZeroUsize;

use crate::{Job, ModuleFailure, ModuleId, RunSpec, Stop, TestInfo};
use runtap_test::plan::{
    Filter, Module as Costs, ModuleHistory, Partition, Process, ScheduleOptions, TestCost, TestKey, Unmet,
    Which, schedule,
};
use thiserror::Error;

use crate::suite::facts;
use crate::suite::fingerprint::fingerprint;
use crate::suite::history::{Earlier, of_module};
use crate::suite::known::{apart, discover, untold};

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
        /// What it has printed.
        stdout: String,
        /// What it has printed of errors.
        stderr: String,
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
    /// The modules of which all tests are run.
    pub complete: Vec<ModuleId>,
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
        // Of tests that have failed before, it is known whose they are.
        let is_known = |module| selection.failed_only && !planner.may_have_unknown_failures(module);
        may_lack = (0..spec.modules.len()).map(|module| !is_known(module)).collect();
    } else if selection.discover || selection.partition.is_some() || selection.filter.is_some() {
        planned.known = discover(spec, stop)?;
        let needs_more = |filter: &Filter| !filter.needs_names_only();
        if selection.discover || selection.filter.as_ref().is_some_and(needs_more) {
            planned.untold = untold(&planned.known);
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

/// For each module, the ids of tests; `None` where it is not known which there are.
type Lists = Vec<Option<Vec<String>>>;

/// For each module, the explicit tests that are chosen beside others.
type Explicit = Vec<Vec<TestInfo>>;

struct Planner<'a> {
    spec: &'a RunSpec,
    selection: &'a Selection,
    /// What is remembered of each module, and the fingerprint of its file where that matters.
    records: Vec<Option<&'a ModuleHistory>>,
    fingerprints: Vec<Option<String>>,
    unfinished: &'a BTreeSet<ModuleId>,
    options: ScheduleOptions,
}

impl<'a> Planner<'a> {
    fn new(spec: &'a RunSpec, selection: &'a Selection, earlier: &'a Earlier) -> Self {
        // An order may be wrong, a split may not.
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

    /// What is remembered of what the modules cost.
    fn costs(&self) -> impl Iterator<Item = Costs<'a>> {
        self.records.iter().zip(&self.fingerprints).map(|(record, print)| {
            record.map_or_else(Costs::default, |record| Costs::recorded(record, print.as_deref()))
        })
    }

    /// The tests that filter, ids and partition choose of those that were listed: of each module, each id once. And why
    /// there is none.
    fn choose(&self, known: &[(ModuleId, TestInfo)]) -> (Lists, Explicit, Option<Empty>) {
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
        // A test that has failed was run: it is run again.
        if !self.selection.failed_only {
            (explicit, wanted) = apart(wanted);
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
                empty = Some(Empty::OtherParts { tests });
            }
        }
        let mut chosen = vec![Some(Vec::new()); self.spec.modules.len()];
        for (module, test) in wanted {
            if let Some(Some(chosen)) = chosen.get_mut(module.0) {
                chosen.push(test.uid.clone());
            }
        }
        // In the part that has the first of the others, so that all parts together have them once.
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
        let name = self.spec.modules.get(module.0).map(crate::Module::name).unwrap_or_default();
        (name, TestKey { duration, ..TestKey::new("", &test.uid) })
    }

    /// Whether a run of the module did not come to all of its tests, or its end is not recorded.
    fn may_have_unknown_failures(&self, module: usize) -> bool {
        let record = self.records.get(module).copied().flatten();
        record.is_some_and(|record| record.broken) || self.unfinished.contains(&ModuleId(module))
    }

    /// Of the tests that are chosen, those that failed when they were last run; all of a module that may have failures that
    /// are not known.
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

    /// The tests of the modules that are worth splitting, as they list them now. A module that does not list a test which
    /// it ran before makes up tests as it runs: it is not split.
    fn confirmed(
        &self,
        known: &mut Vec<(ModuleId, TestInfo)>,
        stop: &Stop,
    ) -> Result<(Lists, Explicit), PlanError> {
        let costs: Vec<_> = self.costs().collect();
        let mut lists = vec![None; costs.len()];
        let mut beside = vec![Vec::new(); costs.len()];
        let first = schedule(&costs, &self.options);
        let parts = first.processes.iter().filter(|process| matches!(process.which, Which::Uids(_)));
        let split: BTreeSet<_> = parts.map(|process| process.module).collect();
        if known.is_empty() && !split.is_empty() {
            let jobs = split.iter().map(|&module| Job::whole(ModuleId(module))).collect();
            *known = match discover(&RunSpec { jobs, ..self.spec.clone() }, stop) {
                // What it can't list it may run all the same: then as a whole.
                Err(PlanError::NotListed { .. }) => return Ok((lists, beside)),
                found => found?,
            };
        }
        for module in split {
            let mut seen = HashSet::new();
            let listed = known.iter().filter(|(of, test)| of.0 == module && seen.insert(test.uid.as_str()));
            let (explicit, others) = apart(listed.collect());
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

    /// The processes, in the order in which they are begun.
    fn jobs(&self, chosen: &Lists, listed: &Lists, explicit: &mut Explicit) -> Vec<Job> {
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
            let explicit = explicit.get_mut(process.module).map(std::mem::take).unwrap_or_default();
            Some(Job { uids, explicit, part, ..Job::whole(ModuleId(process.module)) })
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
