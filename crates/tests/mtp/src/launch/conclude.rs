//! The end of a process: termination of its descendants, and evaluation of its exit.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use runtap_mtp_proto::server::Mode;
use runtap_mtp_proto::{Rule, Severity as RuleSeverity};

use super::app_server::failure;
use super::running::MAX_BYTES;
use super::supervise::{KillReason, StopState, Supervisor, seconds};
use super::{Signal, can_be_requested, dotnet_host, isolation, skipped};
use crate::child::Exit;
use crate::digest::UidSet;
use crate::event::{LaunchEnd, Level, ModuleFailure, RunEvent, TestOutcome};
use crate::listen::Transport;
use crate::pipe::MAX_CONNECTIONS;
use crate::run::{Done, Origin, Suspects, code};

/// The time in which the threads of closed connections notice the closing.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// The result of a process.
#[derive(Debug)]
pub(crate) struct LaunchResult {
    pub done: Done,
    pub end: LaunchEnd,
    /// The tests that have a result or are suspects, if the process exited before it had run all of its tests.
    pub completed: Option<UidSet>,
    /// The tests to run again because their process was stopped because of another test while they were running.
    pub disturbed: Vec<String>,
}

impl Supervisor<'_> {
    pub(super) fn end(mut self, signals: &Receiver<Signal>) -> LaunchResult {
        let linger = seconds(self.spec.timeouts.linger);
        let held: &[_] = match (self.streams > 0, self.listener.is_idle()) {
            (true, false) => &["output", "connection"],
            (true, true) => &["output"],
            (false, false) => &["connection"],
            (false, true) => &[],
        };
        if !held.is_empty() {
            let held = held.join(" and its ");
            self.notify(format!(
                "a process that the application started still holds its {held} open {linger} after its exit"
            ));
        }
        self.queue.open();
        self.listener.close(Instant::now() + CLOSE_TIMEOUT);
        if let Some(control) = &mut self.control {
            control.close();
        }
        if self.stop_state != StopState::Running {
            // Terminate its descendants too.
            self.process.kill();
        }
        while let Ok(signal) = signals.try_recv() {
            if let Signal::Messages(_) | Signal::Output(..) = signal {
                self.handle_signal(signal);
            }
            self.flush_events();
        }
        let exit = self.process.reap().ok();
        self.conclude(exit)
    }

    /// Sends a warning about the process.
    pub(super) fn notify(&mut self, text: String) {
        self.emit(RunEvent::Message { module: self.spec.id, level: Level::Warning, text });
    }

    fn conclude(mut self, exit: Option<Exit>) -> LaunchResult {
        let was_ended = self.stop_state != StopState::Running;
        let died = (matches!(exit, Some(Exit::Signal(_))) || self.sessions > 0) && !was_ended;
        if self.listener.rejected() > 0 {
            let rejected = self.listener.rejected();
            self.notify(format!("the application opened more than {MAX_CONNECTIONS} connections at a time; {rejected} were rejected"));
        }
        let crashed =
            died && self.introduced && self.stop_state == StopState::Running && self.spec.mode == Mode::Run;
        let suspects = crashed.then(|| self.suspects(exit)).flatten();
        let alone = self.only_suspect().filter(|_| crashed && self.has_started_none());
        let (blamed, alone) = match alone {
            Some(uid) => match self.spec.suspected.get(&uid) {
                Some(name) => (Some((uid, name.clone())), None),
                None => (None, Some(uid)),
            },
            None => (None, None),
        };
        let only_one = self.spec.uids.is_some_and(|uids| uids.len() == 1) && self.has_started_none();
        let culprits = match self.spec.uids {
            _ if !crashed || suspects.is_some() => Vec::new(),
            Some(chosen) if only_one => chosen.to_vec(),
            _ => self.tests.uids(),
        };
        self.count_late_rows();
        let disturbed = self.take_concurrent_tests();
        let held = self.release_held(&disturbed);
        let mut isolated = Vec::new();
        match self.stop_state {
            StopState::Killed(reason) => self.was_killed(reason),
            StopState::Requested { .. } => self.give_up_tests(TestOutcome::Cancelled, &self.why_ended()),
            StopState::Running if crashed => {
                let running = self.tests.names();
                if let Some(suspects) = &suspects {
                    self.report_suspects(suspects, exit);
                    // Other processes determine the outcome of these tests.
                    for test in self.tests.take() {
                        self.seen.insert(&test.uid);
                        self.failed.remove(&test.uid);
                    }
                } else if let Some((uid, name)) = &blamed {
                    // The name is known from the process in which the test was running.
                    self.fail(ModuleFailure::Died {
                        running: vec![name.clone()],
                        exit: exit.map_or(-1, Exit::code),
                    });
                    let text =
                        format!("The process exited ({}) when only this test was run.", describe(exit));
                    self.add_result_for(uid, name, None, TestOutcome::Error, text);
                } else if let Some(uid) = &alone {
                    self.fail(ModuleFailure::NotRun(format!(
                        "the process exits ({}) before the test starts, even if only this test is run: {uid}",
                        describe(exit)
                    )));
                } else {
                    self.fail(ModuleFailure::Died { running, exit: exit.map_or(-1, Exit::code) });
                }
                let text = format!("The process exited ({}) while the test was running.", describe(exit));
                self.give_up_tests(TestOutcome::Error, &text);
            }
            StopState::Running => {
                self.judge(exit);
                self.report_unfinished(exit);
                isolated = self.isolated_groups();
                if isolated.is_empty() {
                    self.report_missing();
                }
            }
        }
        if self.introduced && (self.stop_state == StopState::Running || self.overdue) {
            self.skip_explicit();
        }
        if self.tests.left_out() > 0 {
            let more = self.tests.left_out();
            let most = MAX_BYTES >> 20;
            self.notify(format!(
                "{more} started tests were not tracked: the ids and names of the running tests exceed {most} MiB"
            ));
        }
        if self.more_failures > 0 {
            let more = self.more_failures;
            self.notify(format!("{more} more violations of rules were not reported"));
        }
        let made_progress = self.results > 0 || suspects.as_ref().is_some_and(|it| !it.running.is_empty());
        let remaining = self.remaining(died, made_progress);
        if died && remaining.is_none() && suspects.is_none() && alone.is_none() {
            self.report_lost();
        }
        let mut failed: Vec<_> = std::mem::take(&mut self.failed).into_keys().collect();
        failed.sort_unstable();
        // A smaller part repeats only what was reported before.
        let quiet = self.spec.origin == Origin::Part && (suspects.is_some() || alone.is_some());
        let exits_by_tests = self.stop_state == StopState::Running
            && !died
            && exit.map(Exit::code) == Some(code::TESTS_FAILED);
        let end = LaunchEnd {
            exit,
            failures: self.failures.clone(),
            stdout: if quiet { String::new() } else { self.stdout.text() },
            stderr: if quiet { String::new() } else { self.stderr.text() },
            duration: self.started.elapsed(),
            stopped: was_ended && self.stop_state != StopState::Killed(KillReason::Failed),
        };
        self.flush_events();
        // A process that crashes after its session has run all of its tests.
        let in_time = self.overdue || self.sessions > 0;
        let whole = self.spec.uids.is_none() && self.spec.mode == Mode::Run;
        let completed = self.can_continue(died, made_progress || crashed) && in_time && whole;
        let completed = completed.then_some(self.seen);
        LaunchResult {
            done: Done {
                failed,
                remaining,
                explicit: Vec::new(),
                rows: Vec::new(),
                names: BTreeMap::new(),
                isolated,
                suspects,
                culprits,
                held,
                exits_by_tests,
                no_tests: self.no_tests,
                failures: self.failures,
            },
            end,
            completed,
            disturbed,
        }
    }

    fn was_killed(&mut self, reason: KillReason) {
        match reason {
            KillReason::Failed => {
                let text =
                    "The process was killed while the test was running: see the error of its application.";
                self.give_up_tests(TestOutcome::Error, text);
            }
            KillReason::IgnoredStop => {
                let grace = seconds(self.spec.timeouts.grace);
                let text = format!(
                    "{} No result of the test arrived; its process did not exit within {grace} and was killed.",
                    self.why_ended()
                );
                self.give_up_tests(TestOutcome::Cancelled, &text);
                self.notify(format!("the process was killed because it did not exit within {grace} after it was requested to stop"));
            }
            KillReason::RunStopped => {
                let text = "The run was stopped, and the process killed, while the test was running.";
                self.give_up_tests(TestOutcome::Cancelled, text);
            }
        }
    }

    fn why_ended(&self) -> String {
        let why = if self.overdue {
            "The process was stopped because another test timed out"
        } else {
            "The run was stopped"
        };
        format!("{why}, while this test was running.")
    }

    /// Adds results for the tests that will not have one.
    fn give_up_tests(&mut self, state: TestOutcome, why: &str) {
        for test in self.tests.take() {
            self.add_result(&test, state, why.to_owned());
        }
    }

    /// Evaluates the exit code.
    fn judge(&mut self, exit: Option<Exit>) {
        let code = exit.map_or(-1, Exit::code);
        for violation in self.server.finish(Some(code)) {
            match (violation.rule, violation.rule.severity()) {
                // Reported as another failure, or already known.
                (Rule::NeverConnected, _) => {}
                (_, RuleSeverity::Error) => self.fail(failure(&violation, None)),
                (rule, _) => self.warn(rule, violation.to_string()),
            }
        }
        if !self.introduced && self.spec.mode != Mode::Help {
            if !self.rejected {
                let failure = match dotnet_host::error(code, &self.stderr.text()) {
                    Some(why) => ModuleFailure::NotHosted { exit: code, why },
                    None => ModuleFailure::NoHandshake(exit.map(Exit::code)),
                };
                self.fail(failure);
            }
            if code == code::USAGE && self.spec.transport == Transport::Http {
                let text = "the application does not support the HTTP transport or another option: HTTP needs \
                            Microsoft.Testing.Platform 2.4 or later, the pipe needs 1.7 or later";
                self.notify(text.to_owned());
            } else if code == code::USAGE && self.spec.uids.is_some() {
                let text = "running only selected tests (--filter-uid) needs an application with Microsoft.Testing.Platform 1.8 or later";
                self.notify(text.to_owned());
            }
            return;
        }
        let explained = match code {
            0 => true,
            // If the application repeated a row, the last attempt counts.
            code::TESTS_FAILED => !self.failed.is_empty(),
            // The run as a whole decides whether this is a failure.
            code::ZERO_TESTS if self.executed == 0 => {
                self.no_tests = true;
                if self.spec.mode == Mode::Run && self.spec.uids.is_none() && self.results == 0 {
                    self.notify("no tests were run".to_owned());
                }
                true
            }
            _ => self.spec.run.ignored_codes.contains(&code),
        };
        if !explained {
            self.fail(match exit {
                // A listing need not be complete.
                Some(Exit::Signal(_)) => ModuleFailure::Died { running: Vec::new(), exit: code },
                _ => ModuleFailure::ExitCode(code),
            });
        }
    }

    /// Reports tests that the process started but did not finish before it exited normally. A process that stopped
    /// because too many tests failed leaves some unfinished, as its exit code indicates.
    fn report_unfinished(&mut self, exit: Option<Exit>) {
        let mut begun = self.tests.take();
        // A test that was started twice and ended once has a result.
        begun.retain(|test| !self.seen.contains_row(&test.uid, &test.name));
        for test in &begun {
            self.seen.insert(&test.uid);
        }
        let names: Vec<_> = begun.iter().map(|test| test.name.as_str()).collect();
        let is_told = exit.map(Exit::code) == Some(code::TOO_MANY_FAILED);
        if !names.is_empty() && !is_told {
            let have = if names.len() == 1 { "started test has" } else { "started tests have" };
            self.fail(ModuleFailure::NotRun(format!("{} {have} no result: {}", names.len(), named(&names))));
        }
    }

    /// Reports requested tests that the process does not have; no other process runs them.
    fn report_missing(&mut self) {
        let (Some(uids), Mode::Run, false) = (self.spec.uids, self.spec.mode, self.spec.may_lack_uids) else {
            return;
        };
        let missing: Vec<_> =
            uids.iter().filter(|uid| !self.seen.contains(uid)).map(String::as_str).collect();
        let Some(first) = missing.first() else { return };
        let (count, all) = (missing.len(), uids.len());
        let text = if self.spec.origin == Origin::Remaining {
            format!(
                "{count} of {all} tests that another process did not run are missing; the first is {first}"
            )
        } else {
            let have = if count == 1 { "has" } else { "have" };
            let chosen = if self.spec.attempt > 1 { "tests to be repeated" } else { "chosen tests" };
            format!("{count} of {all} {chosen} {have} no result: {}", named(&missing))
        };
        self.fail(ModuleFailure::NotRun(text));
    }

    /// Returns groups of tests without a result that may be missing because of the ids of other tests.
    fn isolated_groups(&mut self) -> Vec<Vec<String>> {
        // If ids are specified for all modules, a module without results may have none of the tests.
        let may_lack_all = self.spec.may_lack_uids && self.results == 0;
        let (Some(uids), Mode::Run, true, false) =
            (self.spec.uids, self.spec.mode, self.introduced, may_lack_all)
        else {
            return Vec::new();
        };
        let explicit = self.spec.explicit.iter().map(|test| &test.uid);
        let groups = isolation::groups(uids, explicit, |uid| self.seen.contains(uid));
        let count: usize = groups.iter().map(Vec::len).sum();
        if count > 0 && self.spec.origin != Origin::Part {
            let (all, have) = (uids.len(), if count == 1 { "has" } else { "have" });
            self.notify(format!(
                "{count} of {all} chosen tests {have} no result, possibly because of spaces or backslashes in ids; \
                 running the tests with such ids separately"
            ));
        }
        groups
    }

    /// Skips explicit tests that have no result because other tests are selected with them.
    fn skip_explicit(&mut self) {
        for test in self.spec.explicit {
            if !self.seen.contains(&test.uid) {
                self.result(skipped(test, self.spec.attempt));
            }
        }
    }

    /// Reports requested tests that no process will run.
    fn report_lost(&mut self) {
        let uids = self.spec.uids.unwrap_or_default();
        let lost: Vec<_> = uids.iter().filter(|uid| !self.seen.contains(uid)).map(String::as_str).collect();
        if !lost.is_empty() {
            self.notify(format!("the process exited, and these tests were not run: {}", named(&lost)));
        }
    }

    /// Returns whether no test of a run has a result or is running.
    fn has_started_none(&self) -> bool {
        self.spec.mode == Mode::Run && self.results == 0 && self.tests.is_empty()
    }

    /// Returns the tests that may have crashed the process: the running tests, or all selected tests if none was
    /// running, because the combination of tests may matter. Applications report late, so even a single running test
    /// may have ended before. `None` if there are no suspects, or a single test that cannot be run alone, or already
    /// was.
    fn suspects(&self, exit: Option<Exit>) -> Option<Suspects> {
        let uids = match self.spec.uids {
            Some(chosen) if self.has_started_none() => chosen.to_vec(),
            _ => self.tests.uids(),
        };
        let is_known = match &uids[..] {
            [] => true,
            [only] => self.spec.uids.is_some_and(|chosen| chosen.len() == 1) || !can_be_requested(only),
            _ => false,
        };
        if is_known {
            return None;
        }
        let mut names = self.spec.suspected.clone();
        names.extend(self.tests.by_uid());
        Some(Suspects { uids, running: self.tests.names(), names, exit: exit.map_or(-1, Exit::code) })
    }

    /// Returns the test that is run alone because an earlier process that ran it with others did not show which test
    /// made it exit.
    fn only_suspect(&self) -> Option<String> {
        match self.spec.uids {
            Some([uid]) if self.spec.origin == Origin::Part || self.spec.suspected.contains_key(uid) => {
                Some(uid.clone())
            }
            _ => None,
        }
    }

    /// Reports the suspects once, not for each smaller part.
    fn report_suspects(&mut self, suspects: &Suspects, exit: Option<Exit>) {
        if self.spec.origin == Origin::Part {
            return;
        }
        let how = describe(exit);
        let text = if suspects.running.is_empty() {
            let count = suspects.uids.len();
            format!(
                "the process exited ({how}) before it started any of {count} chosen tests; running them in smaller parts \
                 to find the cause"
            )
        } else if let [only] = &suspects.running[..] {
            format!(
                "the process exited ({how}) while {only} was running; running that test again alone to find out whether it \
                 is the cause"
            )
        } else {
            let all: Vec<_> = suspects.running.iter().map(String::as_str).collect();
            format!(
                "the process exited ({how}) while several tests were running; running them in smaller parts to find the \
                 cause: {}",
                named(&all)
            )
        };
        self.notify(text);
    }

    /// Returns whether another process can run the remaining tests. Not if the process made no progress at all.
    fn can_continue(&self, died: bool, made_progress: bool) -> bool {
        (died || self.overdue) && made_progress
    }

    /// Returns the requested tests that were not run, if another process can run them.
    fn remaining(&self, died: bool, made_progress: bool) -> Option<Vec<String>> {
        if !self.can_continue(died, made_progress) {
            return None;
        }
        let uids = self.spec.uids?;
        let left: Vec<_> = uids.iter().filter(|uid| !self.seen.contains(uid)).cloned().collect();
        (!left.is_empty() && left.len() < uids.len()).then_some(left)
    }
}

/// Formats the first ids, and the number of further ids.
pub(crate) fn named(uids: &[&str]) -> String {
    const MAX_NAMED: usize = 5;
    let more =
        if uids.len() > MAX_NAMED { format!(" and {} more", uids.len() - MAX_NAMED) } else { String::new() };
    let named: Vec<_> = uids.iter().take(MAX_NAMED).copied().collect();
    format!("{}{more}", named.join(", "))
}

fn describe(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        None => "unknown".to_owned(),
    }
}
