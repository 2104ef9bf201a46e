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
/// For this long it is not asked again.
const MUTE: Duration = Duration::from_secs(1);

/// What is known of a thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) doing: Doing,
    /// Processor time at the last look.
    pub(super) time: Option<u64>,
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
            wait: None,
            pending: None,
            muted: None,
            running: false,
            top: 0,
            stack: Vec::new(),
            complete: false,
        }
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
