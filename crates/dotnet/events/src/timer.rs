//! One thread for all periodic tasks, such as counters and metrics, that runs while sessions request them. It sleeps while
//! nothing is due.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A periodic task.
pub(crate) trait Periodic: Send + Sync {
    /// Does the work that is due at `now` and returns the next time. `None` until [`wake`] is called.
    fn run(&self, now: Instant) -> Option<Instant>;
}

struct Entry {
    task: Weak<dyn Periodic>,
    due: Option<Instant>,
}

#[derive(Default)]
struct Timer {
    entries: Mutex<Vec<Entry>>,
    changed: Condvar,
}

static TIMER: OnceLock<Option<&'static Timer>> = OnceLock::new();

/// Returns the timer, whose thread starts with the first task. `None` if the thread cannot be created.
fn timer() -> Option<&'static Timer> {
    *TIMER.get_or_init(|| {
        let timer: &'static Timer = Box::leak(Box::default());
        let thread = std::thread::Builder::new().name("event timer".to_owned()).spawn(|| timer.run());
        thread.ok().map(|_runs_as_long_as_the_program| timer)
    })
}

/// Adds a task, for which nothing is due yet. A dropped task is removed.
pub(crate) fn add(task: Weak<dyn Periodic>) {
    if let Some(timer) = timer() {
        timer.entries().push(Entry { task, due: None });
    }
}

/// Makes a task due at this time, or earlier if it already is.
pub(crate) fn wake(task: &Weak<dyn Periodic>, at: Instant) {
    let Some(timer) = timer() else { return };
    let mut entries = timer.entries();
    for entry in entries.iter_mut().filter(|entry| entry.task.ptr_eq(task)) {
        entry.due = Some(entry.due.map_or(at, |due| due.min(at)));
    }
    timer.changed.notify_one();
}

impl Timer {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut entries = self.entries();
        loop {
            entries.retain(|entry| entry.task.strong_count() > 0);
            let next = entries.iter().filter_map(|entry| entry.due).min();
            let now = Instant::now();
            entries = match next {
                None => self.changed.wait(entries).unwrap_or_else(PoisonError::into_inner),
                Some(due) if due > now => {
                    let wait = due.saturating_duration_since(now).min(Duration::from_hours(1));
                    self.changed.wait_timeout(entries, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let due = due_tasks(&mut entries, now);
                    drop(entries);
                    self.run_tasks(due, now)
                }
            };
        }
    }

    /// Runs tasks without the lock, because they call the program's own code.
    fn run_tasks(&self, due: Vec<Arc<dyn Periodic>>, now: Instant) -> MutexGuard<'_, Vec<Entry>> {
        for task in due {
            let next = task.run(now);
            let weak = Arc::downgrade(&task);
            if let Some(next) = next {
                wake(&weak, next);
            }
        }
        self.entries()
    }
}

fn due_tasks(entries: &mut [Entry], now: Instant) -> Vec<Arc<dyn Periodic>> {
    let due = entries.iter_mut().filter(|entry| entry.due.is_some_and(|due| due <= now));
    due.filter_map(|entry| {
        entry.due = None;
        entry.task.upgrade()
    })
    .collect()
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}

/// Returns the next multiple of an interval after `due` that is in the future: missed times are skipped.
pub(crate) fn next_after(due: Instant, interval: Duration, now: Instant) -> Instant {
    let next = due + interval;
    if next > now { next } else { now + interval }
}
