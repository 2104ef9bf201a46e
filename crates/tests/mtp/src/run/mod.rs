//! A run: worker threads process jobs, one program at a time each. The calling thread counts results, schedules
//! retries, and passes all events on in one stream.

mod held_rows;
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

use runtap_model::order;
use runtap_mtp_proto::server::Mode;

use self::held_rows::HeldRows;
pub use self::settings::{ArtifactKeeper, Job, RunSpec, TestRule, TestRules, Timeouts};
pub use self::verdict::code;
use self::verdict::{RunFacts, of_module, of_run};
pub(crate) use self::workers::{Done, HeldResult, Origin, Suspects};
use self::workers::{Queue, Task, Worker};
use crate::event::Totals;
use crate::event::{LaunchId, Level, ModuleFailure, ModuleId, RunEvent};
use crate::launch::named;
use crate::scratch::Scratch;
use crate::stop::{Stop, StopLevel};
use crate::tally::Tally;

/// The capacity of the channel of event batches (of up to 64 events, usually fewer). Programs have to wait while it is
/// full.
const CHANNEL_CAPACITY: usize = 16;

/// The maximum number of processes of a module that crash without a known cause, or that omit tests because of other
/// tests, before the search for the cause ends. Half of the names of a class need as many processes as the class has
/// tests.
const MAX_SEARCHES: u32 = 100;
/// The maximum number of searches while no process has started a test, so that ids may not be the cause.
const MAX_SEARCHES_WITHOUT_PROGRESS: u32 = 5;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// The totals.
    pub totals: Totals,
    /// The verdict, as an exit code of the platform ([`code`]).
    pub exit_code: i32,
    /// A message about tests that were selected by id for all modules, but run by none of them. `None` if there are
    /// none.
    pub missing: Option<String>,
}

/// Runs the jobs of `spec`, and calls `on_event` on this thread with all events in order.
///
/// Blocks until all started processes have exited; [`Stop`] ends the run early.
///
/// # Errors
/// Returns an error if no socket directory can be created, or no thread can be started.
pub fn run(spec: &RunSpec, stop: &Stop, mut on_event: impl FnMut(RunEvent)) -> io::Result<RunOutcome> {
    let scratch = Scratch::new()?;
    let started = Instant::now();
    on_event(RunEvent::RunStarted { modules: spec.modules.clone() });
    let queue = Queue::new(spec.jobs.iter().cloned().map(Task::first));
    let mut coordinator = Coordinator::new(spec, stop, &queue, &mut on_event);
    coordinator.finish_idle();
    thread::scope(|scope| {
        // Stops the workers in any case.
        let _closing = queue.closing();
        let (send, receive) = mpsc::sync_channel(CHANNEL_CAPACITY);
        for _ in 0..spec.parallel.clamp(1, spec.jobs.len().max(1)) {
            let working = Worker { spec, stop, queue: &queue, scratch: &scratch, send: send.clone() };
            thread::Builder::new().name("mtp-module".into()).spawn_scoped(scope, move || working.run())?;
        }
        drop(send);
        for message in receive {
            coordinator.handle(message);
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

/// A message of a worker.
#[derive(Debug)]
pub(crate) enum WorkerMessage {
    /// Events, in order.
    Events(Vec<RunEvent>),
    /// A task is done. The sender is dropped when follow-up tasks have been decided.
    Done(Box<Task>, Box<Done>, mpsc::SyncSender<Infallible>),
}

/// The coordinator of a run, which counts results and schedules tasks.
struct Coordinator<'a> {
    spec: &'a RunSpec,
    stop: &'a Stop,
    queue: &'a Queue,
    on_event: &'a mut dyn FnMut(RunEvent),
    modules: BTreeMap<ModuleId, ModuleState>,
    codes: Vec<i32>,
    /// The attempt of each process.
    attempts: HashMap<LaunchId, u32>,
    /// The totals of the modules that have ended.
    totals: Totals,
    /// The totals of all results so far.
    so_far: Totals,
    /// The number of failures that count and that no further attempt will change.
    settled: u64,
    too_many_failed: bool,
    /// The tests that were selected for all modules and that no module has run so far.
    wanted: BTreeSet<&'a str>,
    /// Whether a test was discovered, in discovery; and whether an application reported that it has no tests.
    discovered: bool,
    no_tests: bool,
}

/// The state of a module.
#[derive(Debug, Default)]
struct ModuleState {
    tally: Tally,
    failures: Vec<ModuleFailure>,
    /// The results that count if no later process has results for their rows.
    held: HeldRows,
    /// The maximum number of retries of failed tests, if there are rules.
    retries: HashMap<Box<str>, u32>,
    /// The number of pending tasks.
    left: usize,
    /// The number of processes that crashed without a known cause.
    searches: u32,
    /// Failures that no process reported.
    own_failures: Vec<ModuleFailure>,
    /// The tests that crash their process when they run alone.
    culprits: Vec<String>,
    /// The crashes without a known cause, each with the tests that may be the cause.
    unexplained: Vec<Suspects>,
    /// The crashes while no test was running.
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
        let numbers = 0..spec.modules.len();
        let mut modules = order::to_map(numbers.map(|number| (ModuleId(number), ModuleState::default())));
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

    /// Removes modules without jobs.
    fn finish_idle(&mut self) {
        self.modules.retain(|_, module| module.left > 0);
        if self.modules.is_empty() {
            self.queue.close();
        }
    }

    fn handle(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Events(events) => events.into_iter().for_each(|event| self.event(event)),
            WorkerMessage::Done(task, done, decided) => {
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
                    module.held.drop_replaced(result);
                    result.quarantined = rule.quarantined;
                    let before = (module.tally.totals(), module.tally.settled());
                    let counted = module.tally.count(result, attempt, attempt > rule.retries);
                    (result.flaky, result.row, result.outdated) =
                        (counted.flaky, counted.row, counted.outdated);
                    self.so_far = self.so_far.minus(&before.0).plus(&module.tally.totals());
                    self.settled = self.settled + module.tally.settled() - before.1;
                    if self.spec.rules.is_some() && result.execution.state.is_failure() {
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

    /// Stops the run when too many tests failed. Failures count when no retry is left. Tests that are canceled because
    /// the run is being stopped do not count.
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
        // A safeguard: a process that reports failed tests has failed, even if the tally has lost the row.
        let has_failed = |uid: &String| module.tally.has_failed(uid);
        if done.exits_by_tests && !done.failed.is_empty() && !done.failed.iter().any(has_failed) {
            module.own_failures.push(ModuleFailure::ExitCode(code::TESTS_FAILED));
        }
        done.held.into_iter().for_each(|held| module.held.hold(held));
        done.rows.into_iter().for_each(|(uid, name)| module.held.add_missing(uid, name));
        let mut follow = Vec::new();
        let has_culprit = |suspects: &Suspects| done.culprits.iter().any(|uid| suspects.uids.contains(uid));
        module.unexplained.retain(|suspects| !has_culprit(suspects));
        let is_suspected = done.suspects.is_some();
        if let Some(suspects) = &done.suspects {
            if module.unexplained.len() < MAX_SEARCHES as usize {
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
            if !done.isolated.is_empty() {
                module.searches += 1;
                if module.searches <= MAX_SEARCHES {
                    follow.extend(done.isolated.into_iter().map(|uids| task.isolated(uids)));
                } else {
                    let all: Vec<_> = done.isolated.iter().flatten().map(String::as_str).collect();
                    let text = format!("these tests have no result: {}", named(&all));
                    module.own_failures.push(ModuleFailure::NotRun(text));
                }
            }
            if let Some(suspects) = done.suspects {
                suspects.uids.iter().for_each(|uid| module.tally.reopen(uid));
                // Does not count for a single test, which is run only once more and would otherwise have no result.
                module.searches += u32::from(suspects.uids.len() > 1);
                let made_progress = module.tally.totals().total() > 0 || !suspects.running.is_empty();
                let most = if made_progress { MAX_SEARCHES } else { MAX_SEARCHES_WITHOUT_PROGRESS };
                if suspects.uids.len() == 1 || module.searches <= most {
                    follow.extend(task.parts(suspects));
                } else {
                    let Suspects { uids, running, exit, .. } = suspects;
                    module.unexplained.retain(|suspects| suspects.running != running);
                    // A crash above the limit is among the failures already.
                    let died = ModuleFailure::Died { running, exit };
                    if !module.own_failures.contains(&died) {
                        module.own_failures.push(died);
                    }
                    let all: Vec<_> = uids.iter().map(String::as_str).collect();
                    let text = format!("the process exits when these tests are run: {}", named(&all));
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
        // Crashes that a later attempt resolves, or that a test is found to cause, are not failures of the module.
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
            self.so_far = self.so_far.minus(&before).plus(&totals);
            (self.on_event)(RunEvent::RowsMerged { module: id, rows });
        }
        // Failures that could not be retried are final.
        self.settled = self.settled + totals.failures() - settled;
        let stopped = self.stop.level().is_some();
        self.wanted.retain(|uid| !module.tally.has(uid));
        // Applications report tests late, so a test that still fails may have caused other crashes too. A test that
        // passed when it was retried explains only the crashes in which it was running.
        if module.culprits.iter().any(|uid| module.tally.fails(uid)) {
            module.unexplained.clear();
            module.unblamed.clear();
        }
        for Suspects { running, exit, .. } in smallest(mem::take(&mut module.unexplained)) {
            if !stopped && !running.is_empty() {
                let text = match &running[..] {
                    [only] => format!(
                        "the process exited while {only} was running, but not when that test was run alone"
                    ),
                    _ => format!(
                        "the process exited while {} tests were running, but not when they were run in smaller parts",
                        running.len()
                    ),
                };
                (self.on_event)(RunEvent::Message { module: id, level: Level::Warning, text });
            }
            module.own_failures.push(ModuleFailure::Died { running, exit });
        }
        module.own_failures.extend(module.held.not_run().filter(|_| !stopped));
        module.failures.append(&mut module.unblamed);
        let reported = module.failures.len();
        module.failures.append(&mut module.own_failures);
        let spec = self.spec;
        let exit_code = of_module(&totals, &module.failures, spec.flaky_fails, stopped, &spec.ignored_codes);
        self.codes.push(exit_code);
        self.totals = self.totals.plus(&totals);
        let duration = module.started.map(|started| started.elapsed()).unwrap_or_default();
        let failures = module.failures;
        (self.on_event)(RunEvent::ModuleEnded {
            module: id,
            totals,
            failures,
            reported,
            exit_code,
            duration,
        });
    }

    fn conclude(mut self) -> RunOutcome {
        // Modules that were never started because the run was stopped.
        for id in self.modules.keys().copied().collect::<Vec<_>>() {
            self.end_module(id);
        }
        let facts = RunFacts {
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
        let exit_code = of_run(&self.totals, &self.codes, facts);
        let missing: Vec<_> = self.wanted.into_iter().collect();
        // If nothing was run or the run was stopped, that is the better known reason.
        let is_reported = facts.some_missing && self.totals.total() > 0 && self.stop.level().is_none();
        let missing = is_reported.then(|| {
            let which = if missing.len() == 1 { "a chosen test has" } else { "chosen tests have" };
            format!("{which} no result in any application: {}", named(&missing))
        });
        RunOutcome { totals: self.totals, exit_code, missing }
    }
}

/// Returns the crashes whose suspects are not a superset of another crash's: a search splits suspects into parts.
fn smallest(mut all: Vec<Suspects>) -> Vec<Suspects> {
    order::sort_by_key(&mut all, |suspects| suspects.uids.len());
    let mut smallest: Vec<Suspects> = Vec::new();
    for suspects in all {
        let whole: HashSet<_> = suspects.uids.iter().collect();
        if !smallest.iter().any(|part| part.uids.iter().all(|uid| whole.contains(uid))) {
            smallest.push(suspects);
        }
    }
    smallest
}
