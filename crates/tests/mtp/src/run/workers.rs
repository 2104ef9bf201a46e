//! The threads that do the jobs, and the queue from which they take them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::starts::Starts;
use super::{Job, RunSpec, Said};
use crate::event::{LaunchId, ModuleFailure, RunEvent, TestInfo, TestResult};
use crate::launch::{self, LaunchSpec};
use crate::scratch::Scratch;
use crate::stop::Stop;

/// A job, and which attempt at it.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub job: Job,
    pub attempt: u32,
    pub origin: Origin,
    /// Names by ids: tests that were running when another process ended, or that it did not come to.
    pub suspected: BTreeMap<String, String>,
}

/// Where the tests of a task come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// They were chosen.
    Chosen,
    /// Another process did not come to them.
    Rest,
    /// Another process that was to run them, and others, ended before it had begun any, or while they were running.
    Part,
}

/// What is to be known of a task that is done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Tests that have failed, each once.
    pub failed: Vec<String>,
    /// Tests that its process did not come to, since it died or had to be killed.
    pub remaining: Option<Vec<String>>,
    /// Tests that are chosen beside `remaining`, as [`Job::explicit`].
    pub explicit: Vec<TestInfo>,
    /// Names by ids, of those of `remaining` whose names are known.
    pub names: BTreeMap<String, String>,
    /// Ids and names of rows that its process did not come to, of tests that have results for others of their rows.
    pub rows: Vec<(String, String)>,
    /// Tests of which some may be the reason why its process ended, while others can be run.
    pub suspects: Option<Suspects>,
    /// Tests without a result, in groups that are run apart from each other.
    pub apart: Vec<Vec<String>>,
    /// Tests that are known to have crashed its process.
    pub culprits: Vec<String>,
    /// Results that count if no later process has any for their rows: their tests are to be run again.
    pub held: Vec<HeldResult>,
    /// Its process ended by itself with the platform's code for failed tests.
    pub exits_by_tests: bool,
    /// Its process ended with the platform's code for no tests.
    pub no_tests: bool,
    /// What was wrong with its process.
    pub failures: Vec<ModuleFailure>,
}

/// A result of a test that its process was ended around.
#[derive(Debug)]
pub(crate) struct HeldResult {
    pub launch: LaunchId,
    /// The runner's attempt that its process was.
    pub attempt: u32,
    pub result: TestResult,
}

/// Tests of a process that ended in the middle of its session, and nothing says by which of them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Suspects {
    pub uids: Vec<String>,
    /// The names of those that were running; none if the process had begun none.
    pub running: Vec<String>,
    /// Names by ids, of those whose names are known.
    pub names: BTreeMap<String, String>,
    /// Its code, as a shell counts.
    pub exit: i32,
}

impl Task {
    pub(crate) fn first(job: Job) -> Self {
        Self { job, attempt: 1, origin: Origin::Chosen, suspected: BTreeMap::new() }
    }

    /// The same for tests that have failed.
    pub(crate) fn again(&self, failed: Vec<String>) -> Self {
        let suspected = named(&failed, &self.suspected);
        let job = Job { uids: Some(failed), may_lack_uids: false, ..self.job_without_tests() };
        Self { attempt: self.attempt + 1, suspected, ..Self::first(job) }
    }

    /// The job without what it chooses.
    fn job_without_tests(&self) -> Job {
        let Job { module, may_lack_uids, part, .. } = self.job;
        Job { may_lack_uids, part, ..Job::whole(module) }
    }

    /// The same for tests that were not run.
    pub(crate) fn remaining(
        &self,
        uids: Vec<String>,
        explicit: Vec<TestInfo>,
        names: BTreeMap<String, String>,
    ) -> Self {
        let mut suspected = self.suspected.clone();
        suspected.extend(names);
        let job = Job { uids: Some(uids), explicit, ..self.job_without_tests() };
        Self { attempt: self.attempt, origin: Origin::Rest, suspected, ..Self::first(job) }
    }

    /// A task for tests that had no result when they ran together with others.
    pub(crate) fn apart(&self, uids: Vec<String>) -> Self {
        let job = Job { uids: Some(uids), ..self.job_without_tests() };
        Self { attempt: self.attempt, origin: Origin::Part, ..Self::first(job) }
    }

    /// Splits tests that may have ended their process into two tasks; a single one is a task of its own. The first split
    /// separates ids with blanks from the others: in the filter languages of adapters, a blank ends a word.
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

/// The names of these tests, where they are known.
fn named(uids: &[String], names: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let known = uids.iter().filter_map(|uid| names.get_key_value(uid));
    known.map(|(uid, name)| (uid.clone(), name.clone())).collect()
}

/// The tasks that wait.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    launches: AtomicU64,
    starts: Starts,
}

#[derive(Debug)]
struct Waiting {
    tasks: VecDeque<Task>,
    closed: bool,
}

/// Closes the queue when it is dropped.
#[derive(Debug)]
pub(crate) struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Queue {
    pub(crate) fn new(tasks: impl Iterator<Item = Task>) -> Self {
        let waiting = Waiting { tasks: tasks.collect(), closed: false };
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiting: Mutex::new(waiting),
            changed: Condvar::new(),
            launches: AtomicU64::new(0),
            starts: Starts::new(processors),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts a task before those of modules that have not started, so that a started module ends soon. Parts of a part
    /// come after its sibling: large parts that run without a crash are run early.
    pub(crate) fn push(&self, task: Task) {
        let mut waiting = self.waiting();
        let is_sibling = |other: &Task| other.origin == Origin::Part && other.job.module == task.job.module;
        let after = waiting.tasks.iter().rposition(is_sibling).filter(|_| task.origin == Origin::Part);
        waiting.tasks.insert(after.map_or(0, |place| place + 1), task);
        drop(waiting);
        self.changed.notify_one();
    }

    /// There will be no more.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.changed.notify_all();
    }

    pub(crate) fn closing(&self) -> Closing<'_> {
        Closing(self)
    }

    /// The next task; `None` when there will be none.
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

/// One of the threads.
#[derive(Debug)]
pub(crate) struct Working<'a> {
    pub spec: &'a RunSpec,
    pub stop: &'a Stop,
    pub queue: &'a Queue,
    pub scratch: &'a Scratch,
    pub send: SyncSender<Said>,
}

impl Working<'_> {
    pub(crate) fn run(self) {
        while let Some(task) = self.queue.take() {
            let done = self.work(&task);
            let (decided, decision) = mpsc::sync_channel(0);
            // Who listens is there until all have ended.
            let _ = self.send.send(Said::Done(Box::new(task), Box::new(done), decided));
            // What comes of it is before all that waits, and may be the end of the run. Nothing is ever sent.
            let _ = decision.recv();
        }
    }

    fn work(&self, task: &Task) -> Done {
        // What was not begun is not begun any more.
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
            let _ = self.send.send(Said::Events(events));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ModuleId;

    #[test]
    fn ids_with_blanks_are_apart_first_and_halves_then() {
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
    fn parts_of_a_part_wait_for_its_sibling() {
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
