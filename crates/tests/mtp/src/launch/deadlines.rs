//! Time-outs: the next deadline of the supervisor, and the actions at a deadline.

use std::time::{Duration, Instant};

use super::running::RunningTest;
use super::supervise::{KillReason, StopState, Supervisor, seconds};
use crate::event::{ModuleFailure, RunEvent};

/// Poll interval of connections that are still open after the exit.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The part of the grace period in which only the control pipe is used.
fn until_signal(grace: Duration) -> Duration {
    grace / 5
}

impl Supervisor<'_> {
    pub(super) fn deadline(&self) -> Option<Instant> {
        let timeouts = &self.spec.timeouts;
        if let Some(exited) = self.exited {
            let over = exited + timeouts.linger;
            // The end of a connection is not signaled.
            return Some(if self.streams == 0 { over.min(Instant::now() + POLL_INTERVAL) } else { over });
        }
        match self.stop_state {
            StopState::Running => {}
            StopState::Requested { since, by_signal: false } => {
                return Some(since + until_signal(timeouts.grace));
            }
            StopState::Requested { since, by_signal: true } => return Some(since + timeouts.grace),
            StopState::Killed(_) => return None,
        }
        let start = (!self.introduced).then_some(self.started + timeouts.start);
        let truncated = self.disconnected.map(|truncated| truncated + timeouts.grace);
        let whole = timeouts.whole.map(|whole| self.started + whole);
        let exit = timeouts.exit.and_then(|exit| Some(self.idle_since? + exit));
        start.into_iter().chain(whole).chain(truncated).chain(exit).chain(self.tests.next()).min()
    }

    pub(super) fn lingered(&self) -> bool {
        self.exited.is_some_and(|exited| exited.elapsed() >= self.spec.timeouts.linger)
    }

    pub(super) fn check_time(&mut self) {
        let timeouts = self.spec.timeouts;
        if self.exited.is_some() {
            return;
        }
        match self.stop_state {
            StopState::Killed(_) => return,
            StopState::Requested { since, .. } if since.elapsed() >= timeouts.grace => {
                return self.kill(KillReason::IgnoredStop);
            }
            StopState::Requested { since, by_signal: false }
                if since.elapsed() >= until_signal(timeouts.grace) =>
            {
                return self.interrupt(since);
            }
            StopState::Requested { .. } => return,
            StopState::Running => {}
        }
        if !self.introduced && self.started.elapsed() >= timeouts.start {
            let what = if self.connected {
                "it connected but sent no complete handshake"
            } else {
                "it did not connect"
            };
            let text = format!("{what} within {}", seconds(timeouts.start));
            self.fail(ModuleFailure::Unresponsive(text));
            return self.kill(KillReason::Failed);
        }
        if let Some(whole) = timeouts.whole.filter(|whole| self.started.elapsed() >= *whole) {
            self.fail(ModuleFailure::Unresponsive(format!("it took longer than {}", seconds(whole))));
            return self.kill(KillReason::Failed);
        }
        if self.disconnected.is_some_and(|truncated| truncated.elapsed() >= timeouts.grace) {
            let text = format!(
                "it closed its connection in the middle of a message, and did not exit within {}",
                seconds(timeouts.grace)
            );
            self.fail(ModuleFailure::Unresponsive(text));
            return self.kill(KillReason::Failed);
        }
        if let Some(exit) =
            timeouts.exit.filter(|exit| self.idle_since.is_some_and(|it| it.elapsed() >= *exit))
        {
            let text = format!(
                "it did not exit within {} after its last session: a foreground thread, or a process that it waits for, \
                 keeps it running (--exit-timeout)",
                seconds(exit)
            );
            self.fail(ModuleFailure::Unresponsive(text));
            return self.kill(KillReason::Failed);
        }
        let now = Instant::now();
        for RunningTest { uid, name, since, .. } in self.tests.slow(now) {
            let running = now.duration_since(since);
            self.emit(RunEvent::TestSlow { module: self.spec.id, uid, name, running });
        }
        let overdue = self.tests.overdue(now);
        if overdue.is_empty() {
            return;
        }
        self.overdue = true;
        for test in overdue {
            let limit = test.limit.unwrap_or_default();
            let message = format!("The test ran longer than {}; its process was stopped.", seconds(limit));
            self.add_timeout(&test, message);
        }
        self.request_stop();
    }
}
