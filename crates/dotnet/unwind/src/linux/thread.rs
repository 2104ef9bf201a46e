//! What is known of one thread, and when its answer is not to be expected any more. Refuses to ask or to read: `threads`
//! does.

use std::time::{Duration, Instant};

use super::signal::Ticket;
use super::task::{self, Activity, Doing, Wait};

/// A thread that has run for so many nanoseconds without an answer blocks the signal.
const BLOCKED: u64 = 2_000_000;
/// One that still waits in the kernel after so many rounds without an answer was not woken: as a rule it blocks the
/// signal, too.
const UNANSWERED_ROUNDS: u32 = 10;
/// A wait of so many nanoseconds is not told from none.
const SHORTEST_WAIT: u64 = 10_000;
/// For this long it is not asked again.
const MUTE: Duration = Duration::from_secs(1);

/// What is known of a thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) doing: Doing,
    /// Processor time at the last look.
    pub(super) time: Option<u64>,
    /// When it was last found running, and its processor time then.
    pub(super) ran: Option<(Instant, u64)>,
    /// Where it waited at the last look.
    pub(super) wait: Option<Wait>,
    pub(super) pending: Option<Pending>,
    pub(super) muted: Option<Instant>,
    pub(super) running: bool,
    /// Where its stack begins, 0 until it was seen.
    pub(super) top: u64,
    pub(super) stack: Vec<u64>,
    pub(super) complete: bool,
}

impl Thread {
    pub(super) fn new(id: libc::pid_t, keep_open: bool) -> Self {
        Self {
            doing: Doing::of(id, keep_open),
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

    /// Whether it has had a processor all the time since it was last found running. If it waits now, then for a few
    /// microseconds, and it would have been signalled in as short a time after any other question.
    pub(super) fn has_not_waited(&self, now: Instant, time: u64) -> bool {
        self.ran.is_some_and(|(then, before)| {
            let since = now.saturating_duration_since(then).as_nanos();
            since <= u128::from(time.saturating_sub(before) + SHORTEST_WAIT)
        })
    }

    /// Whether it blocked the signal a short while ago.
    pub(super) fn is_muted(&self) -> bool {
        self.muted.is_some_and(|since| since.elapsed() < MUTE)
    }

    /// Whether its request will hardly be answered. A thread that was woken by the signal and has no processor yet counts
    /// as running.
    pub(super) fn is_hopeless(&self) -> bool {
        self.pending.is_some_and(|pending| {
            pending.ran() >= BLOCKED
                || pending.rounds >= UNANSWERED_ROUNDS && matches!(self.doing.now(), Activity::Waiting(_))
        })
    }

    /// Its request is given up.
    pub(super) fn withdraw(&mut self, id: libc::pid_t, signal: i32) {
        let Some(pending) = self.pending.take() else { return };
        // Neither woken nor blocking the signal: it waits for a disk, and can be asked again when it runs.
        let muted = pending.ran() >= BLOCKED || task::blocks(id, signal).unwrap_or(true);
        self.muted = muted.then(Instant::now);
        // As if it had just been found: if it waits, it is read from outside.
        (self.time, self.wait) = (None, None);
    }
}

/// A request that was not answered yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) ticket: Ticket,
    /// Processor time when it was asked, and at the last look.
    pub(super) asked_at: u64,
    pub(super) seen_at: u64,
    pub(super) running: bool,
    /// Rounds that have ended without an answer. From the second on, the thread is reported with its last stack.
    pub(super) rounds: u32,
}

impl Pending {
    /// How long the thread has run since it was asked, in nanoseconds.
    fn ran(self) -> u64 {
        self.seen_at.saturating_sub(self.asked_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_used_all_the_time_has_not_waited() {
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
