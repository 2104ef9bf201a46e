//! The worker threads, and the queue of tasks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use runtap_model::order;

use super::starts::Starts;
use super::{Job, RunSpec, WorkerMessage};
use crate::event::{LaunchId, ModuleFailure, RunEvent, TestInfo, TestResult};
use crate::launch::{self, LaunchSpec};
use crate::scratch::Scratch;
use crate::stop::Stop;

/// A job and its attempt.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub job: Job,
    pub attempt: u32,
    pub origin: Origin,
    /// The names by id of tests that were running when another process exited, or that it did not run.
    pub suspected: BTreeMap<String, String>,
}

/// The origin of the tests of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The tests were selected.
    Chosen,
    /// Another process did not run the tests.
    Remaining,
    /// Another process that ran these tests and others exited before it had started any, or while they were running.
    Part,
}

/// The result of a task.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The failed tests, without duplicates.
    pub failed: Vec<String>,
    /// The tests that the process did not run because it crashed or was killed.
    pub remaining: Option<Vec<String>>,
    /// Explicit tests that are selected beside `remaining`; see [`Job::explicit`].
    pub explicit: Vec<TestInfo>,
    /// The known names of `remaining`, by id.
    pub names: BTreeMap<String, String>,
    /// The ids and names of rows that the process did not run, of tests with results for other rows.
    pub rows: Vec<(String, String)>,
    /// The tests that may have crashed the process, if any.
    pub suspects: Option<Suspects>,
    /// The tests without a result, in groups that are run separately.
    pub isolated: Vec<Vec<String>>,
    /// The tests that are known to have crashed the process.
    pub culprits: Vec<String>,
    /// The results that count if no later process has results for their rows. Their tests are run again.
    pub held: Vec<HeldResult>,
    /// Whether the process exited normally with the platform's code for failed tests.
    pub exits_by_tests: bool,
    /// Whether the process exited with the platform's code for no tests.
    pub no_tests: bool,
    /// The failures of the process.
    pub failures: Vec<ModuleFailure>,
}

/// A result that is held back because its process was being stopped.
#[derive(Debug)]
pub(crate) struct HeldResult {
    pub launch: LaunchId,
    /// The runner's attempt of the process.
    pub attempt: u32,
    pub result: TestResult,
}

/// Tests that may have crashed a process in the middle of its session.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Suspects {
    pub uids: Vec<String>,
    /// The names of the running tests. Empty if no test was running.
    pub running: Vec<String>,
    /// The known names, by id.
    pub names: BTreeMap<String, String>,
    /// The exit code, as shells report it.
    pub exit: i32,
}

impl Task {
    pub(crate) fn first(job: Job) -> Self {
        Self { job, attempt: 1, origin: Origin::Chosen, suspected: BTreeMap::new() }
    }

    /// Returns the task that retries failed tests.
    pub(crate) fn again(&self, failed: Vec<String>) -> Self {
        let suspected = named(&failed, &self.suspected);
        let job = Job { uids: Some(failed), may_lack_uids: false, ..self.job_without_tests() };
        Self { attempt: self.attempt + 1, suspected, ..Self::first(job) }
    }

    /// Returns the job without its tests.
    fn job_without_tests(&self) -> Job {
        let Job { module, may_lack_uids, part, .. } = self.job;
        Job { may_lack_uids, part, ..Job::whole(module) }
    }

    /// Returns the task for tests that were not run.
    pub(crate) fn remaining(
        &self,
        uids: Vec<String>,
        explicit: Vec<TestInfo>,
        names: BTreeMap<String, String>,
    ) -> Self {
        let mut suspected = self.suspected.clone();
        suspected.extend(names);
        let job = Job { uids: Some(uids), explicit, ..self.job_without_tests() };
        Self { attempt: self.attempt, origin: Origin::Remaining, suspected, ..Self::first(job) }
    }

    /// Returns the task for tests that had no result when they ran together with others.
    pub(crate) fn isolated(&self, uids: Vec<String>) -> Self {
        let job = Job { uids: Some(uids), ..self.job_without_tests() };
        Self { attempt: self.attempt, origin: Origin::Part, ..Self::first(job) }
    }

    /// Splits tests that may have crashed their process into two tasks; a single test becomes one task. The first split
    /// separates ids with white space from the others, because white space ends a word in the filter languages of
    /// adapters.
    pub(crate) fn parts(&self, suspects: Suspects) -> Vec<Self> {
        let has_blank = |uid: &String| uid.contains(char::is_whitespace);
        let (mut ones, mut others): (Vec<_>, Vec<_>) = suspects.uids.into_iter().partition(has_blank);
        if ones.is_empty() {
            ones = others.split_off(others.len() / 2);
        } else if others.is_empty() {
            let second = ones.split_off(ones.len() / 2);
            others = std::mem::replace(&mut ones, second);
        }
        let parts = [others, ones].into_iter().filter(|uids| !uids.is_empty());
        let part = |uids: Vec<String>| {
            let suspected = named(&uids, &suspects.names);
            let job = Job { uids: Some(uids), ..self.job_without_tests() };
            Self { attempt: self.attempt, origin: Origin::Part, suspected, ..Self::first(job) }
        };
        parts.map(part).collect()
    }
}

/// Returns the known names of these tests.
fn named(uids: &[String], names: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let known = uids.iter().filter_map(|uid| names.get_key_value(uid));
    order::to_map(known.map(|(uid, name)| (uid.clone(), name.clone())))
}

/// The queue of tasks.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<PendingTasks>,
    changed: Condvar,
    launches: AtomicU64,
    starts: Starts,
}

#[derive(Debug)]
struct PendingTasks {
    tasks: VecDeque<Task>,
    closed: bool,
}

/// Closes the queue when it is dropped.
#[derive(Debug)]
pub(crate) struct CloseGuard<'a>(&'a Queue);

impl Drop for CloseGuard<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Queue {
    pub(crate) fn new(tasks: impl Iterator<Item = Task>) -> Self {
        let waiting = PendingTasks { tasks: tasks.collect(), closed: false };
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiting: Mutex::new(waiting),
            changed: Condvar::new(),
            launches: AtomicU64::new(0),
            starts: Starts::new(processors),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, PendingTasks> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts a task before the tasks of modules that have not started, so that started modules end soon. Parts of a
    /// part are inserted after its sibling, so that large parts that do not crash are run early.
    pub(crate) fn push(&self, task: Task) {
        let mut waiting = self.waiting();
        let is_sibling = |other: &Task| other.origin == Origin::Part && other.job.module == task.job.module;
        let after = waiting.tasks.iter().rposition(is_sibling).filter(|_| task.origin == Origin::Part);
        waiting.tasks.insert(after.map_or(0, |place| place + 1), task);
        drop(waiting);
        self.changed.notify_one();
    }

    /// Closes the queue: no more tasks follow.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.changed.notify_all();
    }

    pub(crate) fn closing(&self) -> CloseGuard<'_> {
        CloseGuard(self)
    }

    /// Returns the next task, or `None` after the last one.
    fn take(&self) -> Option<Task> {
        let mut waiting = self.waiting();
        loop {
            if let Some(task) = waiting.tasks.pop_front() {
                return Some(task);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A worker thread.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    pub spec: &'a RunSpec,
    pub stop: &'a Stop,
    pub queue: &'a Queue,
    pub scratch: &'a Scratch,
    pub send: SyncSender<WorkerMessage>,
}

impl Worker<'_> {
    pub(crate) fn run(self) {
        while let Some(task) = self.queue.take() {
            let done = self.work(&task);
            let (decided, decision) = mpsc::sync_channel(0);
            // The receiver exists until all workers have ended.
            let _ = self.send.send(WorkerMessage::Done(Box::new(task), Box::new(done), decided));
            // Wait for follow-up tasks, which precede all waiting tasks. Nothing is ever sent on this channel.
            let _ = decision.recv();
        }
    }

    fn work(&self, task: &Task) -> Done {
        // Nothing more is started after the run was stopped.
        if self.stop.level().is_some() {
            return Done::default();
        }
        let Some(module) = self.spec.modules.get(task.job.module.0) else { return Done::default() };
        let launch = self.queue.launches.fetch_add(1, Ordering::Relaxed);
        let mut starting = Some(self.queue.starts.begin(launch));
        // The run may have been stopped meanwhile.
        if self.stop.level().is_some() {
            return Done::default();
        }
        let spec = LaunchSpec {
            run: self.spec,
            module,
            id: task.job.module,
            launch: LaunchId(launch),
            uids: task.job.uids.as_deref(),
            may_lack_uids: task.job.may_lack_uids,
            explicit: &task.job.explicit,
            attempt: task.attempt,
            origin: task.origin,
            suspected: &task.suspected,
            part: task.job.part,
            mode: self.spec.mode,
            application: &self.spec.application,
            transport: self.spec.transport,
            timeouts: self.spec.timeouts,
            live_output: self.spec.live_output,
            scratch: self.scratch.path(),
        };
        launch::run(&spec, self.stop, &mut |events: Vec<RunEvent>| {
            if events.iter().any(|event| matches!(event, RunEvent::Introduced { .. })) {
                starting = None;
            }
            let _ = self.send.send(WorkerMessage::Events(events));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ModuleId;

    #[test]
    fn ids_with_spaces_are_separated_first_and_then_halved() {
        let texts = |uids: &[&str]| uids.iter().map(|uid| (*uid).to_owned()).collect::<Vec<_>>();
        let task = Task::first(Job::whole(ModuleId(0)));
        let parts = |uids: &[&str]| {
            let parts = task.parts(Suspects { uids: texts(uids), ..Suspects::default() });
            assert!(parts.iter().all(|part| part.origin == Origin::Part && part.attempt == 1));
            parts.into_iter().map(|part| part.job.uids.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(parts(&["a", "b c", "d", "e\u{a0}f"]), [texts(&["a", "d"]), texts(&["b c", "e\u{a0}f"])]);
        assert_eq!(parts(&["a", "b", "c"]), [texts(&["a"]), texts(&["b", "c"])]);
        assert_eq!(parts(&["a b", "c d"]), [texts(&["a b"]), texts(&["c d"])]);
        assert_eq!((parts(&["a"]), parts(&["b c"])), (vec![texts(&["a"])], vec![texts(&["b c"])]));
    }

    #[test]
    fn parts_of_a_part_follow_its_sibling() {
        let task = |module, uid: &str, origin| {
            let job = Job { uids: Some(vec![uid.to_owned()]), ..Job::whole(ModuleId(module)) };
            Task { origin, ..Task::first(job) }
        };
        let queue = Queue::new([task(0, "x", Origin::Chosen), task(1, "y", Origin::Chosen)].into_iter());
        for (uid, origin) in [("p", Origin::Part), ("q", Origin::Part), ("again", Origin::Chosen)] {
            queue.push(task(0, uid, origin));
        }
        queue.push(task(0, "r", Origin::Part));
        queue.push(task(1, "other", Origin::Part));
        queue.close();
        let uids: Vec<_> =
            std::iter::from_fn(|| queue.take()).map(|task| task.job.uids.unwrap().concat()).collect();
        assert_eq!(uids, ["other", "again", "p", "q", "r", "x", "y"]);
    }
}
