//! A run: jobs are done by as many threads as programs may run at a time; this thread counts, retries, and hands on what
//! happens, in one stream.

mod held;
mod settings;
mod starts;
mod verdict;
mod workers;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::io;
use std::mem;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use runtap_mtp_proto::server::Mode;

use self::held::HeldRows;
pub use self::settings::{ArtifactKeeper, Job, RunSpec, TestRule, TestRules, Timeouts};
pub use self::verdict::code;
use self::verdict::{Circumstances, of_module, of_run};
pub(crate) use self::workers::{Done, HeldResult, Origin, Suspects};
use self::workers::{Queue, Task, Working};
use crate::event::{LaunchId, ModuleFailure, ModuleId, RunEvent, Severity};
use crate::launch::named;
use crate::scratch::Scratch;
use crate::stop::{Stop, StopLevel};
use crate::tally::Tally;
use crate::totals::Totals;

/// So many times, some events (64, mostly fewer) wait for whoever consumes them before the programs have to wait.
const WAITING: usize = 16;

/// So many processes of a module may end, and nothing says by which of their tests, or leave out tests because of others, until the
/// search for those ends. Half of the names of a class need as many as it has tests.
const MOST_SEARCHES: u32 = 100;
/// As long as no process has begun a test, nothing says that it is because of their ids.
const FRUITLESS_SEARCHES: u32 = 5;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// All results.
    pub totals: Totals,
    /// The verdict, as an exit code of the platform ([`code`]).
    pub exit_code: i32,
    /// Tests that were chosen by their ids for all modules, and that none of them has run, in a sentence.
    pub missing: Option<String>,
}

/// Runs, and calls `on_event` on this thread with all that happens, in order.
///
/// Blocks until everything that was started is gone; [`Stop`] ends it early.
///
/// # Errors
/// There is no place for sockets, or no thread can be had.
pub fn run(spec: &RunSpec, stop: &Stop, mut on_event: impl FnMut(RunEvent)) -> io::Result<Outcome> {
    let scratch = Scratch::new()?;
    let started = Instant::now();
    on_event(RunEvent::RunStarted { modules: spec.modules.clone() });
    let queue = Queue::new(spec.jobs.iter().cloned().map(Task::first));
    let mut coordinator = Coordinator::new(spec, stop, &queue, &mut on_event);
    coordinator.finish_idle();
    thread::scope(|scope| {
        // However this ends, the workers end with it.
        let _closing = queue.closing();
        let (send, receive) = mpsc::sync_channel(WAITING);
        for _ in 0..spec.parallel.clamp(1, spec.jobs.len().max(1)) {
            let working = Working { spec, stop, queue: &queue, scratch: &scratch, send: send.clone() };
            thread::Builder::new().name("mtp-module".into()).spawn_scoped(scope, move || working.run())?;
        }
        drop(send);
        for said in receive {
            coordinator.hear(said);
        }
        Ok::<_, io::Error>(())
    })?;
    let outcome = coordinator.conclude();
    on_event(RunEvent::RunEnded {
        totals: outcome.totals,
        exit_code: outcome.exit_code,
        missing: outcome.missing.clone(),
        duration: started.elapsed(),
        stopped: stop.level().is_some(),
    });
    Ok(outcome)
}

/// What a worker says.
#[derive(Debug)]
pub(crate) enum Said {
    /// Something has happened, in this order.
    Events(Vec<RunEvent>),
    /// A task is done. The last is dropped when it is decided what follows.
    Done(Box<Task>, Box<Done>, mpsc::SyncSender<Infallible>),
}

/// Counts and decides.
struct Coordinator<'a> {
    spec: &'a RunSpec,
    stop: &'a Stop,
    queue: &'a Queue,
    on_event: &'a mut dyn FnMut(RunEvent),
    modules: BTreeMap<ModuleId, ModuleState>,
    codes: Vec<i32>,
    /// Which attempt each process is.
    attempts: HashMap<LaunchId, u32>,
    /// Of the modules that have ended.
    totals: Totals,
    /// Of all results so far.
    so_far: Totals,
    /// Failures that count and that no further attempt will change.
    settled: u64,
    too_many_failed: bool,
    /// Tests that were chosen for all modules and that none of them has run so far.
    wanted: BTreeSet<&'a str>,
    /// Whether a test was found, where that is asked; and whether an application said that it has none.
    discovered: bool,
    no_tests: bool,
}

/// What is known of a module meanwhile.
#[derive(Debug, Default)]
struct ModuleState {
    tally: Tally,
    failures: Vec<ModuleFailure>,
    /// Results that count if no later process has any for their rows.
    held: HeldRows,
    /// How often tests that have failed may be run again, where there are rules.
    retries: HashMap<Box<str>, u32>,
    /// Tasks that are not done.
    left: usize,
    /// Processes of which nothing said by which of their tests they ended.
    searches: u32,
    /// Failures that no process has told, beside those that are in `failures` too.
    own_failures: Vec<ModuleFailure>,
    /// Tests that crash their process when they run alone.
    culprits: Vec<String>,
    /// Crashes that no test is known to have caused, each with the tests that may have.
    unexplained: Vec<Suspects>,
    /// Crashes while no test was running.
    unblamed: Vec<ModuleFailure>,
    started: Option<Instant>,
}

impl<'a> Coordinator<'a> {
    fn new(
        spec: &'a RunSpec,
        stop: &'a Stop,
        queue: &'a Queue,
        on_event: &'a mut dyn FnMut(RunEvent),
    ) -> Self {
        let mut modules: BTreeMap<_, ModuleState> =
            (0..spec.modules.len()).map(|number| (ModuleId(number), ModuleState::default())).collect();
        for job in &spec.jobs {
            modules.entry(job.module).or_default().left += 1;
        }
        Self {
            spec,
            stop,
            queue,
            on_event,
            modules,
            codes: Vec::new(),
            attempts: HashMap::new(),
            totals: Totals::default(),
            so_far: Totals::default(),
            settled: 0,
            too_many_failed: false,
            wanted: spec
                .jobs
                .iter()
                .filter(|job| job.may_lack_uids)
                .flat_map(|job| job.uids.iter().flatten())
                .map(String::as_str)
                .collect(),
            discovered: false,
            no_tests: false,
        }
    }

    /// Modules of which nothing is to be run.
    fn finish_idle(&mut self) {
        self.modules.retain(|_, module| module.left > 0);
        if self.modules.is_empty() {
            self.queue.close();
        }
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Events(events) => events.into_iter().for_each(|event| self.event(event)),
            Said::Done(task, done, decided) => {
                self.done(&task, *done);
                drop(decided);
            }
        }
    }

    fn event(&mut self, mut event: RunEvent) {
        match &mut event {
            RunEvent::LaunchStarted { module, launch, attempt, .. } => {
                self.attempts.insert(*launch, *attempt);
                if let Some(module) = self.modules.get_mut(module) {
                    module.started.get_or_insert_with(Instant::now);
                }
            }
            RunEvent::TestEnded { module, launch, result, so_far } => {
                let rule = self.spec.rule(*module, &result.uid, &result.name);
                let attempt = self.attempts.get(launch).copied().unwrap_or(1);
                if let Some(module) = self.modules.get_mut(module) {
                    module.held.replace(result);
                    result.quarantined = rule.quarantined;
                    let before = (module.tally.totals(), module.tally.settled());
                    let counted = module.tally.count(result, attempt, attempt > rule.retries);
                    (result.flaky, result.row, result.outdated) =
                        (counted.flaky, counted.row, counted.outdated);
                    self.so_far.replace(&before.0, &module.tally.totals());
                    self.settled = self.settled + module.tally.settled() - before.1;
                    if self.spec.rules.is_some() && result.state.is_failure() {
                        let retries = module.retries.entry(result.uid.as_str().into()).or_default();
                        *retries = rule.retries.max(*retries);
                    }
                }
                *so_far = self.so_far;
            }
            RunEvent::Discovered { .. } => self.discovered = true,
            RunEvent::LaunchEnded { launch, .. } => drop(self.attempts.remove(launch)),
            _ => {}
        }
        (self.on_event)(event);
        self.stop_at_limit();
    }

    /// Failures count when no retry is left for them. A run that is being stopped already is so for that reason: tests that
    /// are cancelled by it are not too many failures.
    fn stop_at_limit(&mut self) {
        if self.stop.level().is_none() && self.spec.max_failed.is_some_and(|limit| self.settled >= limit) {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.too_many_failed = true;
        self.stop.stop(StopLevel::Graceful);
    }

    fn done(&mut self, task: &Task, done: Done) {
        let stopped = self.stop.level().is_some();
        self.no_tests |= done.no_tests;
        let Some(module) = self.modules.get_mut(&task.job.module) else { return };
        // A net below the tally: a process that says so has failed, even if the tally has lost the row.
        let has_failed = |uid: &String| module.tally.has_failed(uid);
        if done.exits_by_tests && !done.failed.is_empty() && !done.failed.iter().any(has_failed) {
            module.own_failures.push(ModuleFailure::ExitCode(code::TESTS_FAILED));
        }
        done.held.into_iter().for_each(|held| module.held.hold(held));
        done.rows.into_iter().for_each(|(uid, name)| module.held.miss(uid, name));
        let mut follow = Vec::new();
        let has_culprit = |suspects: &Suspects| done.culprits.iter().any(|uid| suspects.uids.contains(uid));
        module.unexplained.retain(|suspects| !has_culprit(suspects));
        let is_suspected = done.suspects.is_some();
        if let Some(suspects) = &done.suspects {
            if module.unexplained.len() < MOST_SEARCHES as usize {
                module.unexplained.push(suspects.clone());
            } else {
                let Suspects { running, exit, .. } = suspects.clone();
                module.own_failures.push(ModuleFailure::Died { running, exit });
            }
        }
        let follows_culprit = !done.culprits.is_empty();
        module.culprits.extend(done.culprits);
        if !stopped {
            if let Some(remaining) = done.remaining {
                follow.push(task.remaining(remaining, done.explicit, done.names));
            }
            if !done.apart.is_empty() {
                module.searches += 1;
                if module.searches <= MOST_SEARCHES {
                    follow.extend(done.apart.into_iter().map(|uids| task.apart(uids)));
                } else {
                    let all: Vec<_> = done.apart.iter().flatten().map(String::as_str).collect();
                    let text = format!("these tests have no result: {}", named(&all));
                    module.own_failures.push(ModuleFailure::NotRun(text));
                }
            }
            if let Some(suspects) = done.suspects {
                suspects.uids.iter().for_each(|uid| module.tally.reopen(uid));
                // A single test is run once more at most, however many there are: it has no result without that.
                module.searches += u32::from(suspects.uids.len() > 1);
                let gets_on = module.tally.totals().total() > 0 || !suspects.running.is_empty();
                let most = if gets_on { MOST_SEARCHES } else { FRUITLESS_SEARCHES };
                if suspects.uids.len() == 1 || module.searches <= most {
                    follow.extend(task.parts(suspects));
                } else {
                    let Suspects { uids, running, exit, .. } = suspects;
                    module.unexplained.retain(|suspects| suspects.running != running);
                    module.own_failures.push(ModuleFailure::Died { running, exit });
                    let all: Vec<_> = uids.iter().map(String::as_str).collect();
                    let text = format!("its process ends if these tests are run: {}", named(&all));
                    module.own_failures.push(ModuleFailure::NotRun(text));
                }
            }
            let may_retry = |uid: &String| {
                let retries = module.retries.get(uid.as_str()).copied().unwrap_or(self.spec.retries);
                task.attempt <= retries
            };
            let again: Vec<_> = done.failed.into_iter().filter(may_retry).collect();
            if !again.is_empty() {
                follow.push(task.again(again));
            }
        }
        // What a later attempt mends is no failure of the module, nor is what a test is found to be the reason of.
        let is_explained =
            |failure: &ModuleFailure| matches!(failure, ModuleFailure::Died { .. }) && !follow.is_empty();
        let (explained, others): (Vec<_>, Vec<_>) = done.failures.into_iter().partition(is_explained);
        module.failures.extend(others);
        if !is_suspected && !follows_culprit && module.unblamed.is_empty() {
            module.unblamed = explained;
        }
        module.left = module.left - 1 + follow.len();
        let is_over = module.left == 0;
        for task in follow {
            self.queue.push(task);
        }
        if is_over {
            self.end_module(task.job.module);
        }
        self.stop_at_limit();
        if self.modules.is_empty() {
            self.queue.close();
        }
    }

    fn end_module(&mut self, id: ModuleId) {
        self.count_held(id);
        let Some(mut module) = self.modules.remove(&id) else { return };
        let before = module.tally.totals();
        let settled = module.tally.settled();
        let rows = module.tally.settle();
        let totals = module.tally.totals();
        if !rows.is_empty() {
            self.so_far.replace(&before, &totals);
            (self.on_event)(RunEvent::RowsMerged { module: id, rows });
        }
        // What could not be run again is not, either.
        self.settled = self.settled + totals.unsuccessful() - settled;
        let stopped = self.stop.level().is_some();
        self.wanted.retain(|uid| !module.tally.has(uid));
        // Applications report tests late: a test that still fails may have caused other crashes too. A test that passed when it was
        // retried explains only the crashes in which it was running.
        if module.culprits.iter().any(|uid| module.tally.fails(uid)) {
            module.unexplained.clear();
            module.unblamed.clear();
        }
        for Suspects { running, exit, .. } in smallest(mem::take(&mut module.unexplained)) {
            if !stopped && !running.is_empty() {
                let text = match &running[..] {
                    [only] => format!(
                        "it ended while {only} was running, and not again when that test was run alone"
                    ),
                    _ => format!(
                        "it ended while {} tests were running, and not again when they were run in smaller parts",
                        running.len()
                    ),
                };
                (self.on_event)(RunEvent::Message { module: id, severity: Severity::Warning, text });
            }
            module.own_failures.push(ModuleFailure::Died { running, exit });
        }
        module.own_failures.extend(module.held.not_run().filter(|_| !stopped));
        module.failures.append(&mut module.unblamed);
        let told = module.failures.len();
        module.failures.append(&mut module.own_failures);
        let spec = self.spec;
        let exit_code = of_module(&totals, &module.failures, spec.flaky_fails, stopped, &spec.ignored_codes);
        self.codes.push(exit_code);
        self.totals.add(&totals);
        let duration = module.started.map(|started| started.elapsed()).unwrap_or_default();
        let failures = module.failures;
        (self.on_event)(RunEvent::ModuleEnded { module: id, totals, failures, told, exit_code, duration });
    }

    fn conclude(mut self) -> Outcome {
        // Those that were never begun, since the run was stopped.
        for id in self.modules.keys().copied().collect::<Vec<_>>() {
            self.end_module(id);
        }
        let circumstances = Circumstances {
            stopped: self.stop.level(),
            too_many_failed: self.too_many_failed,
            minimum_expected: self.spec.minimum_expected,
            tests_expected: match self.spec.mode {
                Mode::Run => !self.spec.may_be_empty,
                Mode::Discover => self.no_tests && !self.discovered,
                Mode::Help => false,
            },
            ignored: &self.spec.ignored_codes,
            some_missing: !self.wanted.is_empty() && self.spec.mode == Mode::Run,
        };
        let exit_code = of_run(&self.totals, &self.codes, circumstances);
        let missing: Vec<_> = self.wanted.into_iter().collect();
        // Where nothing was run or the run was stopped, that is the better known reason.
        let is_told = circumstances.some_missing && self.totals.total() > 0 && self.stop.level().is_none();
        let missing = is_told.then(|| {
            let which =
                if missing.len() == 1 { "a test that was chosen has" } else { "tests that were chosen have" };
            format!("{which} no result in any application: {}", named(&missing))
        });
        Outcome { totals: self.totals, exit_code, missing }
    }
}

/// Returns the crashes whose suspects are not a superset of another crash's: a search splits suspects into parts.
fn smallest(mut all: Vec<Suspects>) -> Vec<Suspects> {
    all.sort_by_key(|suspects| suspects.uids.len());
    let mut smallest: Vec<Suspects> = Vec::new();
    for suspects in all {
        let whole: HashSet<_> = suspects.uids.iter().collect();
        if !smallest.iter().any(|part| part.uids.iter().all(|uid| whole.contains(uid))) {
            smallest.push(suspects);
        }
    }
    smallest
}
