//! The life of a process: what happens becomes events; what lasts too long is ended.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use runtap_mtp_proto::Rule;

use super::conclude::Concluded;
use super::control::Control;
use super::gate::{self, Gate};
use super::made_up::GivenUp;
use super::neighbours::HeldResults;
use super::running::RunningTests;
use super::speak::{Heard, Speaker};
use super::{Happening, LaunchSpec};
use crate::child::Running;
use crate::digest::Uids;
use crate::event::{ModuleFailure, RunEvent, Severity, State, Stream, TestResult};
use crate::listen::Listener;
use crate::output::Output;
use crate::stop::StopLevel;
use crate::totals::Totals;

/// The number of failed rows that are searched for one with another name: passing rows must not cost quadratic time.
const MOST_COMPARED: usize = 64;

/// More complaints about one process help nobody, nor do more about one rule.
const MOST_FAILURES: usize = 20;
const MOST_OF_A_RULE: usize = 5;

/// What an application says within this time is taken together, unless it comes with so much at once.
const COLLECT: Duration = Duration::from_micros(300);
const MANY: usize = 8;
/// So many events are handed on together, of at most as many happenings.
const TOGETHER: usize = 64;
/// So much more is heard after a time is over, before that is acted on. What had been said in time is among it, as it has
/// waited at the gate: a test that has ended is not to take too long because we were busy. But who never stops speaking has
/// no more time than others.
const LATE: usize = 4 * gate::MOST;

/// What a process is asked to do about its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// Nothing yet.
    No,
    /// It was asked to; `by_signal`: by SIGINT too, which stops tests that do not hear of the control pipe.
    Asked { since: Instant, by_signal: bool },
    /// It was killed.
    Killed(Because),
}

/// Why a process was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Because {
    /// There is nothing to be expected of it: what was wrong is said as a failure.
    Useless,
    /// It was asked to end, and has not.
    Stubborn,
    /// Everything is to be over.
    Stopped,
}

/// A process that runs, and what is around it.
#[derive(Debug)]
pub(crate) struct Process {
    pub running: Running,
    pub listener: Listener,
    pub control: Option<Control>,
    pub speaker: Arc<Speaker>,
    pub gate: Gate,
    pub started: Instant,
}

/// Stays with a process until its end.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(crate) struct Supervisor<'a> {
    pub(super) spec: &'a LaunchSpec<'a>,
    emit: &'a mut dyn FnMut(Vec<RunEvent>),
    /// What has happened and was not handed on yet.
    events: Vec<RunEvent>,
    pub(super) process: Running,
    pub(super) listener: Listener,
    pub(super) control: Option<Control>,
    pub(super) speaker: Arc<Speaker>,
    pub(super) gate: Gate,
    pub(super) started: Instant,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    /// Streams that are not at their end.
    pub(super) streams: usize,
    pub(super) exited: Option<Instant>,
    pub(super) ending: Ending,
    pub(super) connected: bool,
    pub(super) introduced: bool,
    pub(super) rejected: bool,
    /// Its connection broke off, and it may end now.
    pub(super) cut: Option<Instant>,
    /// Sessions that have begun and not ended.
    pub(super) sessions: usize,
    /// Its last session is over, and it has said nothing since then.
    pub(super) quiet: Option<Instant>,
    pub(super) tests: RunningTests,
    /// Tests that have failed: by their ids, the names of their failed rows, each with the application's attempt, and the attempt
    /// within that.
    pub(super) failed: HashMap<String, HashMap<String, (u32, u32)>>,
    /// The latest attempt of the application; `None` if it does not count attempts.
    pub(super) host_attempt: Option<u32>,
    pub(super) seen: Uids,
    pub(super) failures: Vec<ModuleFailure>,
    /// Failures that are not kept.
    pub(super) more_failures: u64,
    /// Each rule is warned of once.
    warned: BTreeSet<Rule>,
    /// Stopped by a test that took too long.
    pub(super) overdue: bool,
    /// The run is being stopped: nothing is begun any more.
    pub(super) run_stopped: bool,
    /// Tests that were reported as timed out, whose own results may still come.
    pub(super) given_up: Vec<GivenUp>,
    /// Results that count only if no other process has any for their rows.
    pub(super) held: HeldResults,
    /// How much was heard since a time was over.
    late: usize,
    pub(super) results: u64,
    /// Results of tests that were executed: not skipped.
    pub(super) executed: u64,
    /// It has ended with the code for no tests.
    pub(super) no_tests: bool,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(
        spec: &'a LaunchSpec<'a>,
        process: Process,
        emit: &'a mut dyn FnMut(Vec<RunEvent>),
    ) -> Self {
        let Process { running, listener, control, speaker, gate, started } = process;
        Self {
            spec,
            emit,
            events: Vec::new(),
            process: running,
            listener,
            control,
            speaker,
            gate,
            started,
            stdout: Output::default(),
            stderr: Output::default(),
            streams: 2,
            exited: None,
            ending: Ending::No,
            connected: false,
            introduced: false,
            rejected: false,
            cut: None,
            sessions: 0,
            quiet: None,
            tests: RunningTests::default(),
            failed: HashMap::new(),
            host_attempt: None,
            seen: Uids::default(),
            failures: Vec::new(),
            more_failures: 0,
            warned: BTreeSet::new(),
            overdue: false,
            run_stopped: false,
            given_up: Vec::new(),
            held: HeldResults::default(),
            late: 0,
            results: 0,
            executed: 0,
            no_tests: false,
        }
    }

    pub(crate) fn run(mut self, happenings: &Receiver<Happening>) -> Concluded {
        self.emit(RunEvent::LaunchStarted {
            module: self.spec.id,
            launch: self.spec.launch,
            attempt: self.spec.attempt,
            part: self.spec.part,
            pid: self.process.pid(),
        });
        self.hand_on();
        while !self.is_over() {
            match self.next(happenings) {
                Some(happening) => self.happened_with_more(happening, happenings),
                None if self.lingered() => break,
                None => self.check_time(),
            }
            self.hand_on();
        }
        self.end(happenings)
    }

    /// Takes what has come meanwhile along: to be woken for each message takes more time, from the application too where
    /// there are few processors, than this does.
    fn happened_with_more(&mut self, happening: Happening, happenings: &Receiver<Happening>) {
        if let Happening::Heard(heard) = &happening
            && heard.len() < MANY
        {
            std::thread::sleep(COLLECT);
        }
        self.happened(happening);
        // Not all that happens becomes an event.
        for _ in 0..TOGETHER {
            if self.events.len() >= TOGETHER {
                break;
            }
            let Ok(happening) = happenings.try_recv() else { break };
            self.took();
            self.happened(happening);
        }
    }

    fn took(&mut self) {
        self.gate.heard();
        self.late += 1;
    }

    /// Whether it has ended and all that it has said was heard.
    fn is_over(&self) -> bool {
        self.exited.is_some() && self.streams == 0 && self.listener.is_idle()
    }

    /// What happens next; `None` when a time is over before.
    fn next(&mut self, happenings: &Receiver<Happening>) -> Option<Happening> {
        let happening = match self.deadline() {
            None => happenings.recv().ok(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    self.late = 0;
                } else if self.late >= LATE {
                    self.late = 0;
                    return None;
                }
                happenings.recv_timeout(left).ok()
            }
        };
        if happening.is_some() {
            self.took();
        }
        happening
    }

    pub(super) fn happened(&mut self, happening: Happening) {
        match happening {
            Happening::Heard(all) => all.into_iter().for_each(|heard| self.heard(heard)),
            Happening::Printed(stream, bytes) => self.printed(stream, bytes),
            Happening::PrintedAll => self.streams = self.streams.saturating_sub(1),
            Happening::Exited => {
                self.exited = Some(Instant::now());
                self.listener.stop_accepting();
            }
            Happening::Stop(level) => {
                self.run_stopped = true;
                match level {
                    StopLevel::Graceful => self.ask_to_end(),
                    StopLevel::Hard => self.kill(Because::Stopped),
                }
            }
        }
    }

    fn printed(&mut self, stream: Stream, bytes: Vec<u8>) {
        match stream {
            Stream::Stdout => self.stdout.push(&bytes),
            Stream::Stderr => self.stderr.push(&bytes),
        }
        if self.spec.live_output {
            let (module, launch) = (self.spec.id, self.spec.launch);
            self.emit(RunEvent::Output { module, launch, stream, bytes });
        }
    }

    fn heard(&mut self, heard: Heard) {
        let (module, launch) = (self.spec.id, self.spec.launch);
        self.quiet = self.quiet.map(|_| Instant::now());
        match heard {
            Heard::Connected => self.connected = true,
            Heard::Rejected => self.rejected = true,
            Heard::Introduced(introduction) => {
                self.host_attempt = self.host_attempt.max(introduction.attempt);
                self.introduced = true;
                self.emit(RunEvent::Introduced { module, launch, introduction });
            }
            Heard::Discovered(test) => self.emit(RunEvent::Discovered { module, test }),
            Heard::Started { uid, name } => {
                let rule = self.spec.run.rule(module, &uid, &name);
                let shown = self.tests.begin(uid.clone(), &name, Instant::now(), rule).map(str::to_owned);
                let attempt = self.spec.attempt;
                if let Some(name) = shown {
                    self.emit(RunEvent::TestStarted { module, launch, uid, name, attempt });
                }
            }
            Heard::Result(result) if self.is_given_up(&result) => {}
            Heard::Result(result) => {
                if let Some(result) = self.hold_back(result) {
                    self.result(result);
                }
            }
            Heard::Artifact(artifact) => self.emit(RunEvent::Artifact { module, artifact }),
            Heard::Message(severity, text) => self.emit(RunEvent::Message { module, severity, text }),
            Heard::SessionStarted => {
                self.sessions += 1;
                self.quiet = None;
            }
            Heard::SessionEnded => {
                self.sessions = self.sessions.saturating_sub(1);
                self.quiet = (self.sessions == 0).then(Instant::now);
            }
            Heard::Option(option) => self.emit(RunEvent::Option { module, option }),
            Heard::Warning(rule, text) => self.warn(rule, text),
            Heard::Failure(failure) => self.fail(failure),
            Heard::Over { refused: true } => self.kill(Because::Useless),
            Heard::Over { refused: false } => self.cut = Some(Instant::now()),
        }
    }

    /// What is wrong with the module beside its tests.
    pub(super) fn fail(&mut self, failure: ModuleFailure) {
        if self.failures.contains(&failure) {
            return;
        }
        let rule = rule_of(&failure);
        let alike = self.failures.iter().filter(|known| rule.is_some() && rule_of(known) == rule).count();
        if self.failures.len() < MOST_FAILURES && alike < MOST_OF_A_RULE {
            self.failures.push(failure);
        } else {
            self.more_failures += 1;
        }
    }

    /// A rule that is broken and by which nothing fails. Once says enough.
    pub(super) fn warn(&mut self, rule: Rule, text: String) {
        if self.warned.insert(rule) {
            self.emit(RunEvent::Message { module: self.spec.id, severity: Severity::Warning, text });
        }
    }

    pub(super) fn result(&mut self, result: TestResult) {
        let is_known = self.seen.contains_row(&result.uid, &result.name);
        let attempt = (result.host_attempt.unwrap_or(1), result.attempt);
        self.tests.end(&result.uid, &result.name, is_known);
        self.results += 1;
        self.executed += u64::from(result.state != State::Skipped);
        if result.state.is_failure() && !result.superseded {
            let rows = self.failed.entry(result.uid.clone()).or_default();
            let last = rows.entry(result.name.clone()).or_default();
            *last = attempt.max(*last);
        } else if result.state == State::Passed
            && let Some(rows) = self.failed.get_mut(&result.uid)
        {
            // The application repeated the row, which has passed so far. The row may have another name in another process.
            let is_new = !is_known && result.host_attempt > Some(1);
            let repeated = match rows.get(&result.name) {
                Some(before) => (*before < attempt).then(|| result.name.clone()),
                None if is_new => {
                    let mut some = rows.iter().take(MOST_COMPARED);
                    some.find(|(_, before)| before.0 < attempt.0).map(|(name, _)| name.clone())
                }
                None => None,
            };
            if let Some(name) = repeated {
                rows.remove(&name);
            }
            if rows.is_empty() {
                self.failed.remove(&result.uid);
            }
        }
        self.seen.insert_row(&result.uid, &result.name);
        // Who sees the whole run counts.
        let so_far = Totals::default();
        self.emit(RunEvent::TestEnded { module: self.spec.id, launch: self.spec.launch, result, so_far });
    }

    /// By the control pipe where the platform has one, else as Ctrl-C does.
    pub(super) fn ask_to_end(&mut self) {
        if self.ending == Ending::No {
            self.process.will_end();
            let by_pipe = self.control.as_ref().is_some_and(Control::cancel);
            self.ending = Ending::Asked { since: Instant::now(), by_signal: !by_pipe };
            if !by_pipe {
                self.process.interrupt();
            }
        }
    }

    /// By SIGINT, too: a word on the control pipe ends a session between two tests, while the signal cancels the running ones,
    /// whose clean-up then runs.
    pub(super) fn ask_once_more(&mut self, since: Instant) {
        self.ending = Ending::Asked { since, by_signal: true };
        self.process.interrupt();
    }

    pub(super) fn kill(&mut self, because: Because) {
        // The first reason is the one that counts.
        if !matches!(self.ending, Ending::Killed(_)) {
            self.ending = Ending::Killed(because);
        }
        self.process.kill();
    }

    pub(super) fn emit(&mut self, event: RunEvent) {
        self.events.push(event);
    }

    /// To whoever consumes events.
    pub(super) fn hand_on(&mut self) {
        if !self.events.is_empty() {
            (self.emit)(std::mem::take(&mut self.events));
        }
    }
}

/// The id of the rule that was broken.
fn rule_of(failure: &ModuleFailure) -> Option<&str> {
    match failure {
        ModuleFailure::Protocol(text) => text.split(':').next(),
        _ => None,
    }
}

/// For people.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
