//! The end of a process: what is left of it is ended, and its end is judged.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use runtap_mtp_proto::server::Mode;
use runtap_mtp_proto::{Rule, Severity as RuleSeverity};

use super::running::MOST_BYTES;
use super::speak::failure;
use super::supervise::{Because, Ending, Supervisor, seconds};
use super::{Happening, apart, can_be_asked_for, host, skipped};
use crate::child::Exit;
use crate::digest::Uids;
use crate::event::{LaunchEnd, ModuleFailure, RunEvent, Severity, State};
use crate::listen::Transport;
use crate::pipe::MOST;
use crate::run::{Done, Origin, Suspects, code};

/// Who serves a connection that we have closed notices it within this time.
const NOTICED: Duration = Duration::from_millis(200);

/// What is known of a process that has ended.
#[derive(Debug)]
pub(crate) struct Concluded {
    pub done: Done,
    pub end: LaunchEnd,
    /// The tests that have a result or are suspects, if the process ended before it had run all of its tests.
    pub cut_short: Option<Uids>,
    /// Tests to be run again, since their process was ended because of another test while they were running.
    pub disturbed: Vec<String>,
}

impl Supervisor<'_> {
    pub(super) fn end(mut self, happenings: &Receiver<Happening>) -> Concluded {
        let linger = seconds(self.spec.timeouts.linger);
        let held: &[_] = match (self.streams > 0, self.listener.is_idle()) {
            (true, false) => &["output", "connection"],
            (true, true) => &["output"],
            (false, false) => &["connection"],
            (false, true) => &[],
        };
        if !held.is_empty() {
            let held = held.join(" and its ");
            self.tell(format!("a process that it has started still holds its {held} {linger} after its end"));
        }
        self.gate.open();
        self.listener.close(Instant::now() + NOTICED);
        if let Some(control) = &mut self.control {
            control.close();
        }
        if self.ending != Ending::No {
            // What it has started does not outlive it either.
            self.process.kill();
        }
        while let Ok(happening) = happenings.try_recv() {
            if let Happening::Heard(_) | Happening::Printed(..) = happening {
                self.happened(happening);
            }
            self.hand_on();
        }
        let exit = self.process.reap().ok();
        self.conclude(exit)
    }

    /// Something about it that is no failure.
    pub(super) fn tell(&mut self, text: String) {
        self.emit(RunEvent::Message { module: self.spec.id, severity: Severity::Warning, text });
    }

    fn conclude(mut self, exit: Option<Exit>) -> Concluded {
        let was_ended = self.ending != Ending::No;
        let died = (matches!(exit, Some(Exit::Signal(_))) || self.sessions > 0) && !was_ended;
        if self.listener.refused() > 0 {
            let refused = self.listener.refused();
            self.tell(format!("it had more than {MOST} connections at a time: {refused} were refused"));
        }
        let crashed = died && self.introduced && self.ending == Ending::No && self.spec.mode == Mode::Run;
        let suspects = crashed.then(|| self.suspects(exit)).flatten();
        let alone = self.only_suspect().filter(|_| crashed && self.has_begun_none());
        let (blamed, alone) = match alone {
            Some(uid) => match self.spec.suspected.get(&uid) {
                Some(name) => (Some((uid, name.clone())), None),
                None => (None, Some(uid)),
            },
            None => (None, None),
        };
        let only_one = self.spec.uids.is_some_and(|uids| uids.len() == 1) && self.has_begun_none();
        let culprits = match self.spec.uids {
            _ if !crashed || suspects.is_some() => Vec::new(),
            Some(chosen) if only_one => chosen.to_vec(),
            _ => self.tests.uids(),
        };
        let disturbed = self.take_neighbours();
        let held = self.release_held(&disturbed);
        let mut apart = Vec::new();
        match self.ending {
            Ending::Killed(because) => self.was_killed(because),
            Ending::Asked { .. } => self.give_up_tests(State::Cancelled, &self.why_ended()),
            Ending::No if crashed => {
                let running = self.tests.names();
                if let Some(suspects) = &suspects {
                    self.tell_suspects(suspects, exit);
                    // What they are is found out by other processes.
                    for test in self.tests.take() {
                        self.seen.insert(&test.uid);
                        self.failed.remove(&test.uid);
                    }
                } else if let Some((uid, name)) = &blamed {
                    // Its name is known from the process in which it was running.
                    self.fail(ModuleFailure::Died {
                        running: vec![name.clone()],
                        exit: exit.map_or(-1, Exit::code),
                    });
                    let text = format!("The process ended ({}) when only this test was run.", describe(exit));
                    self.made_up_of(uid, name, None, State::Error, text);
                } else if let Some(uid) = &alone {
                    self.fail(ModuleFailure::NotRun(format!(
                        "its process ends ({}) if only this test is run, before it begins: {uid}",
                        describe(exit)
                    )));
                } else {
                    self.fail(ModuleFailure::Died { running, exit: exit.map_or(-1, Exit::code) });
                }
                let text = format!("The process ended ({}) while the test was running.", describe(exit));
                self.give_up_tests(State::Error, &text);
            }
            Ending::No => {
                self.judge(exit);
                self.complain_of_begun(exit);
                apart = self.apart();
                if apart.is_empty() {
                    self.complain_of_missing();
                }
            }
        }
        if self.introduced && (self.ending == Ending::No || self.overdue) {
            self.skip_explicit();
        }
        if self.tests.left_out() > 0 {
            let more = self.tests.left_out();
            let most = MOST_BYTES >> 20;
            self.tell(format!(
                "{more} tests that it had begun were not waited for: the ids and names of those that were running took {most} MiB"
            ));
        }
        if self.more_failures > 0 {
            let more = self.more_failures;
            self.tell(format!("it has broken rules {more} more times"));
        }
        let gets_on = self.results > 0 || suspects.as_ref().is_some_and(|it| !it.running.is_empty());
        let remaining = self.remaining(died, gets_on);
        if died && remaining.is_none() && suspects.is_none() && alone.is_none() {
            self.name_lost();
        }
        let mut failed: Vec<_> = std::mem::take(&mut self.failed).into_keys().collect();
        failed.sort_unstable();
        // A part says nothing that the whole has not said.
        let quiet = self.spec.origin == Origin::Part && (suspects.is_some() || alone.is_some());
        let exits_by_tests =
            self.ending == Ending::No && !died && exit.map(Exit::code) == Some(code::TESTS_FAILED);
        let end = LaunchEnd {
            exit,
            failures: self.failures.clone(),
            stdout: if quiet { String::new() } else { self.stdout.text() },
            stderr: if quiet { String::new() } else { self.stderr.text() },
            duration: self.started.elapsed(),
            stopped: was_ended && self.ending != Ending::Killed(Because::Useless),
        };
        self.hand_on();
        // Who dies after its session has come to all of its tests.
        let in_time = self.overdue || self.sessions > 0;
        let whole = self.spec.uids.is_none() && self.spec.mode == Mode::Run;
        let cut_short = self.was_cut_short(died, gets_on || crashed) && in_time && whole;
        let cut_short = cut_short.then_some(self.seen);
        Concluded {
            done: Done {
                failed,
                remaining,
                explicit: Vec::new(),
                rows: Vec::new(),
                names: BTreeMap::new(),
                apart,
                suspects,
                culprits,
                held,
                exits_by_tests,
                no_tests: self.no_tests,
                failures: self.failures,
            },
            end,
            cut_short,
            disturbed,
        }
    }

    fn was_killed(&mut self, because: Because) {
        match because {
            Because::Useless => {
                let text =
                    "The process was killed while the test was running: see the error of its application.";
                self.give_up_tests(State::Error, text);
            }
            Because::Stubborn => {
                let grace = seconds(self.spec.timeouts.grace);
                let text = format!(
                    "{} No result of the test arrived; its process did not end within {grace} and was killed.",
                    self.why_ended()
                );
                self.give_up_tests(State::Cancelled, &text);
                self.tell(format!("it was told to end, did not within {grace}, and was killed"));
            }
            Because::Stopped => {
                let text = "The run was stopped, and the process killed, while the test was running.";
                self.give_up_tests(State::Cancelled, text);
            }
        }
    }

    fn why_ended(&self) -> String {
        let why = if self.overdue {
            "The process was told to end because of another test that took too long"
        } else {
            "The run was stopped"
        };
        format!("{why}, while this test was running.")
    }

    /// Results for the tests that will not have one.
    fn give_up_tests(&mut self, state: State, why: &str) {
        for test in self.tests.take() {
            self.made_up(&test, state, why.to_owned());
        }
    }

    /// What its code says beside its results.
    fn judge(&mut self, exit: Option<Exit>) {
        let code = exit.map_or(-1, Exit::code);
        for violation in self.speaker.finish(Some(code)) {
            match (violation.rule, violation.rule.severity()) {
                // Said in another way, or known already.
                (Rule::NeverConnected, _) => {}
                (_, RuleSeverity::Error) => self.fail(failure(&violation, None)),
                (rule, _) => self.warn(rule, violation.to_string()),
            }
        }
        if !self.introduced && self.spec.mode != Mode::Help {
            if !self.rejected {
                let failure = match host::error(code, &self.stderr.text()) {
                    Some(why) => ModuleFailure::NotHosted { exit: code, why },
                    None => ModuleFailure::NoHandshake(exit.map(Exit::code)),
                };
                self.fail(failure);
            }
            if code == code::USAGE && self.spec.transport == Transport::Http {
                let text = "it does not know the HTTP transport, or another of its options: that transport needs \
                            Microsoft.Testing.Platform 2.4 or later, the pipe 1.7";
                self.tell(text.to_owned());
            } else if code == code::USAGE && self.spec.uids.is_some() {
                let text = "only some of its tests were to be run, by --filter-uid: an application needs Microsoft.Testing.Platform 1.8 or later for that";
                self.tell(text.to_owned());
            }
            return;
        }
        let explained = match code {
            0 => true,
            // Of a row that the application has repeated, the last attempt counts.
            code::TESTS_FAILED => !self.failed.is_empty(),
            // The run as a whole decides whether that is a failure.
            code::ZERO_TESTS if self.executed == 0 => {
                self.no_tests = true;
                if self.spec.mode == Mode::Run && self.spec.uids.is_none() && self.results == 0 {
                    self.tell("it ran no test".to_owned());
                }
                true
            }
            _ => self.spec.run.ignored_codes.contains(&code),
        };
        if !explained {
            self.fail(match exit {
                // Where tests are listed, it need not have come to all of them.
                Some(Exit::Signal(_)) => ModuleFailure::Died { running: Vec::new(), exit: code },
                _ => ModuleFailure::ExitCode(code),
            });
        }
    }

    /// Tests that its process had begun, and not said how they ended, when it ended by itself. One that was told to end
    /// because too many have failed leaves some, and its code says so.
    fn complain_of_begun(&mut self, exit: Option<Exit>) {
        let mut begun = self.tests.take();
        // One that was begun twice and has ended once has a result.
        begun.retain(|test| !self.seen.contains_row(&test.uid, &test.name));
        for test in &begun {
            self.seen.insert(&test.uid);
        }
        let names: Vec<_> = begun.iter().map(|test| test.name.as_str()).collect();
        let is_told = exit.map(Exit::code) == Some(code::TOO_MANY_FAILED);
        if !names.is_empty() && !is_told {
            let have = if names.len() == 1 { "test has begun and has" } else { "tests have begun and have" };
            self.fail(ModuleFailure::NotRun(format!("{} {have} no result: {}", names.len(), named(&names))));
        }
    }

    /// Tests that were to be run and that its process does not know: nothing else runs them.
    fn complain_of_missing(&mut self) {
        let (Some(uids), Mode::Run, false) = (self.spec.uids, self.spec.mode, self.spec.may_lack_uids) else {
            return;
        };
        let missing: Vec<_> =
            uids.iter().filter(|uid| !self.seen.contains(uid)).map(String::as_str).collect();
        let Some(first) = missing.first() else { return };
        let (count, all) = (missing.len(), uids.len());
        let text = if self.spec.origin == Origin::Rest {
            format!(
                "{count} of {all} that another process did not come to are missing, the first of them {first}"
            )
        } else {
            let have = if count == 1 { "has" } else { "have" };
            let chosen = if self.spec.attempt > 1 { "tests to be repeated" } else { "chosen tests" };
            format!("{count} of {all} {chosen} {have} no result: {}", named(&missing))
        };
        self.fail(ModuleFailure::NotRun(text));
    }

    /// Tests without a result that may have none because of the ids of others.
    fn apart(&mut self) -> Vec<Vec<String>> {
        // Where ids are given for all modules, one that has run none of them has none.
        let may_lack_all = self.spec.may_lack_uids && self.results == 0;
        let (Some(uids), Mode::Run, true, false) =
            (self.spec.uids, self.spec.mode, self.introduced, may_lack_all)
        else {
            return Vec::new();
        };
        let explicit = self.spec.explicit.iter().map(|test| &test.uid);
        let groups = apart::groups(uids, explicit, |uid| self.seen.contains(uid));
        let count: usize = groups.iter().map(Vec::len).sum();
        if count > 0 && self.spec.origin != Origin::Part {
            let (all, have) = (uids.len(), if count == 1 { "has" } else { "have" });
            self.tell(format!(
                "{count} of {all} chosen tests {have} no result, which may be because of blanks or backslashes in ids: \
                 tests with those are run apart from the others"
            ));
        }
        groups
    }

    /// Explicit tests are left out if others are chosen with them.
    fn skip_explicit(&mut self) {
        for test in self.spec.explicit {
            if !self.seen.contains(&test.uid) {
                self.result(skipped(test, self.spec.attempt));
            }
        }
    }

    /// Tests that were asked for and that no process will come to.
    fn name_lost(&mut self) {
        let uids = self.spec.uids.unwrap_or_default();
        let lost: Vec<_> = uids.iter().filter(|uid| !self.seen.contains(uid)).map(String::as_str).collect();
        if !lost.is_empty() {
            self.tell(format!("it has ended, and these tests were not run: {}", named(&lost)));
        }
    }

    /// Whether no test of a run has a result or is running.
    fn has_begun_none(&self) -> bool {
        self.spec.mode == Mode::Run && self.results == 0 && self.tests.is_empty()
    }

    /// The tests that were running when their process ended; if it had begun none, those that were chosen: it may depend on
    /// which of them are chosen together how it ends. Applications report late, so even a single one may have been over.
    /// `None` if there is none, or a single one that can't be run alone, or that was.
    fn suspects(&self, exit: Option<Exit>) -> Option<Suspects> {
        let uids = match self.spec.uids {
            Some(chosen) if self.has_begun_none() => chosen.to_vec(),
            _ => self.tests.uids(),
        };
        let is_known = match &uids[..] {
            [] => true,
            [only] => self.spec.uids.is_some_and(|chosen| chosen.len() == 1) || !can_be_asked_for(only),
            _ => false,
        };
        if is_known {
            return None;
        }
        let mut names = self.spec.suspected.clone();
        names.extend(self.tests.by_uid());
        Some(Suspects { uids, running: self.tests.names(), names, exit: exit.map_or(-1, Exit::code) })
    }

    /// The test that is run alone because a process that was to run it and others does not say by which of them it ended.
    fn only_suspect(&self) -> Option<String> {
        match self.spec.uids {
            Some([uid]) if self.spec.origin == Origin::Part || self.spec.suspected.contains_key(uid) => {
                Some(uid.clone())
            }
            _ => None,
        }
    }

    /// Once: each smaller part would say the same.
    fn tell_suspects(&mut self, suspects: &Suspects, exit: Option<Exit>) {
        if self.spec.origin == Origin::Part {
            return;
        }
        let how = describe(exit);
        let text = if suspects.running.is_empty() {
            let count = suspects.uids.len();
            format!(
                "it has ended ({how}) before it began one of {count} chosen tests: they are run in smaller parts, to find \
                 those by which it ends"
            )
        } else if let [only] = &suspects.running[..] {
            format!(
                "its process ended ({how}) while {only} was running: that test is run again alone, to find out whether it is \
                 the reason"
            )
        } else {
            let all: Vec<_> = suspects.running.iter().map(String::as_str).collect();
            format!(
                "it has ended ({how}) while several tests were running: they are run in smaller parts, to find the one by \
                 which it ends: {}",
                named(&all)
            )
        };
        self.tell(text);
    }

    /// Whether another process can go on. One that did not get on at all is not followed by another.
    fn was_cut_short(&self, died: bool, gets_on: bool) -> bool {
        (died || self.overdue) && gets_on
    }

    /// Tests that were asked for and did not come to their turn, where another process can go on with them.
    fn remaining(&self, died: bool, gets_on: bool) -> Option<Vec<String>> {
        if !self.was_cut_short(died, gets_on) {
            return None;
        }
        let uids = self.spec.uids?;
        let left: Vec<_> = uids.iter().filter(|uid| !self.seen.contains(uid)).cloned().collect();
        (!left.is_empty() && left.len() < uids.len()).then_some(left)
    }
}

/// The first of these ids, and how many more there are.
pub(crate) fn named(uids: &[&str]) -> String {
    const NAMED: usize = 5;
    let more = if uids.len() > NAMED { format!(" and {} more", uids.len() - NAMED) } else { String::new() };
    let named: Vec<_> = uids.iter().take(NAMED).copied().collect();
    format!("{}{more}", named.join(", "))
}

fn describe(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        None => "unknown".to_owned(),
    }
}
