//! The state of one thread, and the decision when to give up waiting for its answer.

use std::time::{Duration, Instant};

use super::signal::Ticket;
use super::task::{self, Activity, ActivityFile, Wait};

/// A thread that has run for this many nanoseconds without an answer blocks the signal.
const BLOCKED: u64 = 2_000_000;
/// A thread that still waits in the kernel after this many rounds without an answer was not woken: usually it blocks the
/// signal, too.
const UNANSWERED_ROUNDS: u32 = 10;
/// A wait of fewer nanoseconds is not distinguished from none.
const SHORTEST_WAIT: u64 = 10_000;
/// How long a thread that blocks the signal gets no further one.
const MUTE: Duration = Duration::from_secs(1);

/// The state of a thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) activity_file: ActivityFile,
    /// The processor time at the last check.
    pub(super) time: Option<u64>,
    /// The time when it was last found running, and its processor time then.
    pub(super) ran: Option<(Instant, u64)>,
    /// Its wait at the last check.
    pub(super) wait: Option<Wait>,
    pub(super) pending: Option<Pending>,
    pub(super) muted: Option<Instant>,
    pub(super) running: bool,
    /// The start of its stack, 0 until it was seen.
    pub(super) top: u64,
    pub(super) stack: Vec<u64>,
    pub(super) complete: bool,
}

impl Thread {
    pub(super) fn new(id: libc::pid_t, keep_open: bool) -> Self {
        Self {
            activity_file: ActivityFile::of(id, keep_open),
            time: None,
            ran: None,
            wait: None,
            pending: None,
            muted: None,
            running: false,
            top: 0,
            stack: Vec::new(),
            complete: false,
        }
    }

    /// Returns whether the thread has had a processor all the time since it was last found running. If it waits now, then
    /// only for microseconds, and a signal would be as likely to interrupt it after any other check.
    pub(super) fn has_not_waited(&self, now: Instant, time: u64) -> bool {
        self.ran.is_some_and(|(then, before)| {
            let since = now.saturating_duration_since(then).as_nanos();
            since <= u128::from(time.saturating_sub(before) + SHORTEST_WAIT)
        })
    }

    /// Returns whether it recently blocked the signal.
    pub(super) fn is_muted(&self) -> bool {
        self.muted.is_some_and(|since| since.elapsed() < MUTE)
    }

    /// Returns whether its request will hardly be answered. A thread that was woken by the signal and has no processor yet
    /// counts as running.
    pub(super) fn is_hopeless(&self) -> bool {
        self.pending.is_some_and(|pending| {
            pending.ran() >= BLOCKED
                || pending.rounds >= UNANSWERED_ROUNDS
                    && matches!(self.activity_file.now(), Activity::Waiting(_))
        })
    }

    /// Gives up its request.
    pub(super) fn withdraw(&mut self, id: libc::pid_t, signal: i32) {
        let Some(pending) = self.pending.take() else { return };
        // Neither woken nor blocking the signal: it waits for a disk, and can be signalled again when it runs.
        let muted = pending.ran() >= BLOCKED || task::blocks(id, signal).unwrap_or(true);
        self.muted = muted.then(Instant::now);
        // As if it had just been found: if it waits, it is read from outside.
        (self.time, self.wait) = (None, None);
    }
}

/// A request without an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) ticket: Ticket,
    /// The processor time at the request, and at the last check.
    pub(super) asked_at: u64,
    pub(super) seen_at: u64,
    pub(super) running: bool,
    /// The rounds that have ended without an answer. From the second on, the thread is reported with its last stack.
    pub(super) rounds: u32,
}

impl Pending {
    /// Returns how long the thread has run since the request, in nanoseconds.
    fn ran(self) -> u64 {
        self.seen_at.saturating_sub(self.asked_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_used_all_the_time_has_not_waited() {
        let mut thread = Thread::new(1, false);
        let then = Instant::now();
        let later = then + Duration::from_millis(1);
        assert!(!thread.has_not_waited(later, 1_000_000), "it was never found running");
        thread.ran = Some((then, 5_000_000));
        assert!(thread.has_not_waited(later, 6_000_000));
        assert!(thread.has_not_waited(later, 5_990_000));
        assert!(!thread.has_not_waited(later, 5_989_999));
    }
}
