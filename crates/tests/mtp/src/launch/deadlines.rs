//! What takes too long: when the supervisor has to look again, and what it does then.

use std::time::{Duration, Instant};

use super::running::RunningTest;
use super::supervise::{Because, Ending, Supervisor, seconds};
use crate::event::{ModuleFailure, RunEvent};

/// Connections that are still open after the end are looked at so often.
const LOOK: Duration = Duration::from_millis(1);

/// How long the control pipe alone may take, of all the time that there is for an end.
fn until_signal(grace: Duration) -> Duration {
    grace / 5
}

impl Supervisor<'_> {
    pub(super) fn deadline(&self) -> Option<Instant> {
        let timeouts = &self.spec.timeouts;
        if let Some(exited) = self.exited {
            let over = exited + timeouts.linger;
            // A connection that ends says nothing.
            return Some(if self.streams == 0 { over.min(Instant::now() + LOOK) } else { over });
        }
        match self.ending {
            Ending::No => {}
            Ending::Asked { since, by_signal: false } => return Some(since + until_signal(timeouts.grace)),
            Ending::Asked { since, by_signal: true } => return Some(since + timeouts.grace),
            Ending::Killed(_) => return None,
        }
        let start = (!self.introduced).then_some(self.started + timeouts.start);
        let cut = self.cut.map(|cut| cut + timeouts.grace);
        let whole = timeouts.whole.map(|whole| self.started + whole);
        let exit = timeouts.exit.and_then(|exit| Some(self.quiet? + exit));
        start.into_iter().chain(whole).chain(cut).chain(exit).chain(self.tests.next()).min()
    }

    pub(super) fn lingered(&self) -> bool {
        self.exited.is_some_and(|exited| exited.elapsed() >= self.spec.timeouts.linger)
    }

    pub(super) fn check_time(&mut self) {
        let timeouts = self.spec.timeouts;
        if self.exited.is_some() {
            return;
        }
        match self.ending {
            Ending::Killed(_) => return,
            Ending::Asked { since, .. } if since.elapsed() >= timeouts.grace => {
                return self.kill(Because::Stubborn);
            }
            Ending::Asked { since, by_signal: false } if since.elapsed() >= until_signal(timeouts.grace) => {
                return self.ask_once_more(since);
            }
            Ending::Asked { .. } => return,
            Ending::No => {}
        }
        if !self.introduced && self.started.elapsed() >= timeouts.start {
            let what = if self.connected {
                "it connected and sent no whole handshake"
            } else {
                "it did not connect"
            };
            let text = format!("{what} within {}", seconds(timeouts.start));
            self.fail(ModuleFailure::Unresponsive(text));
            return self.kill(Because::Useless);
        }
        if let Some(whole) = timeouts.whole.filter(|whole| self.started.elapsed() >= *whole) {
            self.fail(ModuleFailure::Unresponsive(format!("it took longer than {}", seconds(whole))));
            return self.kill(Because::Useless);
        }
        if self.cut.is_some_and(|cut| cut.elapsed() >= timeouts.grace) {
            let text = format!(
                "it had broken off its connection, and had not ended {} after that",
                seconds(timeouts.grace)
            );
            self.fail(ModuleFailure::Unresponsive(text));
            return self.kill(Because::Useless);
        }
        if let Some(exit) = timeouts.exit.filter(|exit| self.quiet.is_some_and(|it| it.elapsed() >= *exit)) {
            let text = format!(
                "its session was over, and it had not ended {} after that: a thread that is no background thread, or a \
                 process that it waits for, keeps it (--exit-timeout)",
                seconds(exit)
            );
            self.fail(ModuleFailure::Unresponsive(text));
            return self.kill(Because::Useless);
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
            let message = format!("The test ran longer than {}; its process was ended.", seconds(limit));
            self.give_up(&test, message);
        }
        self.ask_to_end();
    }
}
