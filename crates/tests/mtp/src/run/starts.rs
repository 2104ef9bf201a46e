//! How many programs start at the same time. To start a runtime keeps a processor busy for a while; where there are more of
//! them than processors, all of them start late, and so do those that take longest, for which the run has to wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a start takes at most.
const LONGEST: Duration = Duration::from_secs(1);

/// The programs that are starting.
#[derive(Debug)]
pub(super) struct Starts {
    /// So many may at a time.
    most: usize,
    /// Who has not introduced itself by then does something else than start, or nothing.
    longest: Duration,
    /// Since when each of them does.
    since: Mutex<Vec<(u64, Instant)>>,
    changed: Condvar,
}

/// A program that may start. Dropped, it has.
#[derive(Debug)]
pub(super) struct Starting<'a> {
    starts: &'a Starts,
    number: u64,
}

impl Starts {
    pub(super) fn new(most: usize) -> Self {
        Self { most, longest: LONGEST, since: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until one more may start: in the order in which the system wakes those who wait.
    pub(super) fn begin(&self, number: u64) -> Starting<'_> {
        let mut since = self.since();
        loop {
            let now = Instant::now();
            since.retain(|(_, since)| now.duration_since(*since) < self.longest);
            let Some((_, first)) = since.first().filter(|_| since.len() >= self.most) else { break };
            let left = self.longest.saturating_sub(now.duration_since(*first));
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
    fn the_next_one_begins_when_one_has_started() {
        // However slow this machine is.
        let starts = Starts { longest: Duration::from_hours(1), ..Starts::new(2) };
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
    fn who_never_starts_holds_nobody_up() {
        let starts = Starts::new(1);
        let since = Instant::now();
        let _stuck = starts.begin(1);
        let _second = starts.begin(2);
        assert!(since.elapsed() >= LONGEST);
    }
}
