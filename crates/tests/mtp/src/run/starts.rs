//! A limit on the number of programs that start at the same time. Starting a runtime keeps a processor busy; if more
//! programs start than there are processors, all start late, including the `max_start_time` ones, for which the run has to wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum duration of a start.
const MAX_START_TIME: Duration = Duration::from_secs(1);

/// The programs that are starting.
#[derive(Debug)]
pub(super) struct Starts {
    /// The maximum number of programs that start at the same time.
    limit: usize,
    /// The time after which a program without a handshake no longer counts as starting.
    max_start_time: Duration,
    /// When each program started.
    since: Mutex<Vec<(u64, Instant)>>,
    changed: Condvar,
}

/// A guard of a program that is starting. Dropping it marks the start as finished.
#[derive(Debug)]
pub(super) struct Starting<'a> {
    starts: &'a Starts,
    number: u64,
}

impl Starts {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, max_start_time: MAX_START_TIME, since: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until another program may start. `PendingTasks` programs start in the order in which the system wakes their
    /// threads.
    pub(super) fn begin(&self, number: u64) -> Starting<'_> {
        let mut since = self.since();
        loop {
            let now = Instant::now();
            since.retain(|(_, since)| now.duration_since(*since) < self.max_start_time);
            let Some((_, first)) = since.first().filter(|_| since.len() >= self.limit) else { break };
            let left = self.max_start_time.saturating_sub(now.duration_since(*first));
            since = self.changed.wait_timeout(since, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        since.push((number, Instant::now()));
        Starting { starts: self, number }
    }

    fn since(&self) -> MutexGuard<'_, Vec<(u64, Instant)>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.starts.since().retain(|(number, _)| *number != self.number);
        self.starts.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_program_starts_when_another_has_finished_starting() {
        // Long enough for slow test environments.
        let starts = Starts { max_start_time: Duration::from_hours(1), ..Starts::new(2) };
        let first = starts.begin(1);
        let second = starts.begin(2);
        thread::scope(|scope| {
            let third = scope.spawn(|| drop(starts.begin(3)));
            thread::sleep(Duration::from_millis(20));
            assert!(!third.is_finished());
            drop(first);
            third.join().unwrap();
        });
        assert_eq!(starts.since().len(), 1);
        drop(second);
        assert_eq!(starts.since().len(), 0);
    }

    #[test]
    fn a_program_that_never_starts_does_not_block_others() {
        let starts = Starts::new(1);
        let since = Instant::now();
        let _stuck = starts.begin(1);
        let _second = starts.begin(2);
        assert!(since.elapsed() >= MAX_START_TIME);
    }
}
