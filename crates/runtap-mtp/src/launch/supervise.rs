//! The life of a process: what happens becomes events; what lasts too long is ended.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::control::Control;
use super::running::{RunningTest, RunningTests};
use super::speak::{Heard, Speaker, failure};
use super::{Happening, LaunchSpec};
use runtap_mtp_proto::Rule;

use crate::child::{Exit, Running};
use crate::command::Mode;
use crate::event::{Exception, LaunchEnd, ModuleFailure, RunEvent, Severity, State, Stream, TestResult};
use crate::output::Output;
use crate::pipe::Pipe;
use crate::run::Done;
use crate::stop::StopLevel;

/// More complaints about one process help nobody.
const MOST_FAILURES: usize = 20;

/// What a process is asked to do about its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    /// Nothing yet.
    No,
    /// It was asked to.
    Asked { since: Instant },
    /// It was killed.
    Killed,
}

/// A process that runs, and what is around it.
#[derive(Debug)]
pub(crate) struct Process {
    pub running: Running,
    pub pipe: Pipe,
    pub control: Control,
    pub speaker: Arc<Speaker>,
    pub started: Instant,
}

/// Stays with a process until its end.
pub(crate) struct Supervisor<'a> {
    spec: &'a LaunchSpec<'a>,
    emit: &'a mut dyn FnMut(RunEvent),
    process: Running,
    pipe: Pipe,
    control: Control,
    speaker: Arc<Speaker>,
    started: Instant,
    stdout: Output,
    stderr: Output,
    /// Streams that are not at their end.
    streams: usize,
    exited: Option<Instant>,
    ending: Ending,
    introduced: bool,
    /// Sessions that have begun and not ended.
    sessions: usize,
    tests: RunningTests,
    failed: Vec<String>,
    seen: HashSet<Box<str>>,
    discovered: Vec<String>,
    failures: Vec<ModuleFailure>,
    /// Stopped by a test that took too long.
    overdue: bool,
    unsuccessful: u64,
    results: u64,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(spec: &'a LaunchSpec<'a>, process: Process, emit: &'a mut dyn FnMut(RunEvent)) -> Self {
        let Process { running, pipe, control, speaker, started } = process;
        Self {
            spec,
            emit,
            process: running,
            pipe,
            control,
            speaker,
            started,
            stdout: Output::default(),
            stderr: Output::default(),
            streams: 2,
            exited: None,
            ending: Ending::No,
            introduced: false,
            sessions: 0,
            tests: RunningTests::default(),
            failed: Vec::new(),
            seen: HashSet::new(),
            discovered: Vec::new(),
            failures: Vec::new(),
            overdue: false,
            unsuccessful: 0,
            results: 0,
        }
    }

    pub(crate) fn run(mut self, happenings: &Receiver<Happening>) -> Done {
        self.emit(RunEvent::LaunchStarted {
            module: self.spec.id,
            launch: self.spec.launch,
            attempt: self.spec.attempt,
            part: self.spec.part,
            pid: self.process.pid(),
        });
        while self.exited.is_none() || self.streams > 0 {
            match self.next(happenings) {
                Some(happening) => self.happened(happening),
                None if self.lingered() => break,
                None => self.check_time(),
            }
        }
        self.end(happenings)
    }

    /// What happens next; `None` when a time is over before.
    fn next(&self, happenings: &Receiver<Happening>) -> Option<Happening> {
        let Some(deadline) = self.deadline() else { return happenings.recv().ok() };
        happenings.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    fn deadline(&self) -> Option<Instant> {
        let timeouts = &self.spec.timeouts;
        if let Some(exited) = self.exited {
            return Some(exited + timeouts.linger);
        }
        match self.ending {
            Ending::No => {}
            Ending::Asked { since } => return Some(since + timeouts.grace),
            Ending::Killed => return None,
        }
        let start = (!self.introduced).then_some(self.started + timeouts.start);
        start.into_iter().chain(self.tests.next(timeouts.slow, timeouts.test)).min()
    }

    fn lingered(&self) -> bool {
        self.exited.is_some_and(|exited| exited.elapsed() >= self.spec.timeouts.linger)
    }

    fn happened(&mut self, happening: Happening) {
        match happening {
            Happening::Heard(all) => all.into_iter().for_each(|heard| self.heard(heard)),
            Happening::Printed(stream, bytes) => self.printed(stream, bytes),
            Happening::PrintedAll => self.streams = self.streams.saturating_sub(1),
            Happening::Exited => self.exited = Some(Instant::now()),
            Happening::Stop(StopLevel::Graceful) => self.ask_to_end(),
            Happening::Stop(StopLevel::Hard) => self.kill(),
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
        match heard {
            Heard::Introduced(introduction) => {
                self.introduced = true;
                self.emit(RunEvent::Introduced { module, launch, introduction });
            }
            Heard::Discovered(test) => {
                self.discovered.push(test.uid.clone());
                self.emit(RunEvent::Discovered { module, test });
            }
            Heard::Started { uid, name } => {
                self.tests.begin(uid.clone(), name.clone(), Instant::now());
                let attempt = self.spec.attempt;
                self.emit(RunEvent::TestStarted { module, launch, uid, name, attempt });
            }
            Heard::Result(result) => self.result(result),
            Heard::Artifact(artifact) => self.emit(RunEvent::Artifact { module, artifact }),
            Heard::Message(severity, text) => self.emit(RunEvent::Message { module, severity, text }),
            Heard::SessionStarted => self.sessions += 1,
            Heard::SessionEnded => self.sessions = self.sessions.saturating_sub(1),
            Heard::Option(option) => self.emit(RunEvent::Option { module, option }),
            Heard::Failure { failure, fatal } => {
                if self.failures.len() < MOST_FAILURES && !self.failures.contains(&failure) {
                    self.failures.push(failure);
                }
                if fatal {
                    // There is nothing to be expected of it any more.
                    self.kill();
                }
            }
        }
    }

    fn result(&mut self, mut result: TestResult) {
        self.tests.end(&result.uid);
        // The runner's attempts and those that the application makes itself.
        result.attempt = result.attempt.max(self.spec.attempt);
        self.results += 1;
        if result.state.is_failure() && !result.superseded {
            self.unsuccessful += 1;
            self.failed.push(result.uid.clone());
        } else if result.attempt > self.spec.attempt && result.state == State::Passed {
            // The application has repeated it itself.
            self.failed.retain(|uid| *uid != result.uid);
        }
        if self.spec.uids.is_some() {
            self.seen.insert(result.uid.as_str().into());
        }
        self.emit(RunEvent::TestEnded { module: self.spec.id, launch: self.spec.launch, result });
    }

    fn check_time(&mut self) {
        let timeouts = self.spec.timeouts;
        match self.ending {
            Ending::Killed => return,
            Ending::Asked { since } if since.elapsed() >= timeouts.grace => return self.kill(),
            Ending::Asked { .. } => return,
            Ending::No => {}
        }
        if !self.introduced && self.started.elapsed() >= timeouts.start {
            let text = format!("it did not connect within {}", seconds(timeouts.start));
            self.failures.push(ModuleFailure::Unresponsive(text));
            return self.kill();
        }
        let now = Instant::now();
        if let Some(slow) = timeouts.slow {
            for RunningTest { uid, name, since, .. } in self.tests.slow(slow, now) {
                let running = now.duration_since(since);
                self.emit(RunEvent::TestSlow { module: self.spec.id, uid, name, running });
            }
        }
        let Some(limit) = timeouts.test else { return };
        let overdue = self.tests.overdue(limit, now);
        if overdue.is_empty() {
            return;
        }
        self.overdue = true;
        for test in overdue {
            let message = format!("The test ran longer than {}; its process was ended.", seconds(limit));
            self.made_up(&test, State::Timeout, message);
        }
        self.ask_to_end();
    }

    /// A result that we give, since the process does not.
    fn made_up(&mut self, test: &RunningTest, state: State, message: String) {
        let result = TestResult {
            uid: test.uid.clone(),
            name: test.name.clone(),
            state,
            duration: Some(test.since.elapsed()),
            attempt: self.spec.attempt,
            exceptions: vec![Exception { message: Some(message), ..Exception::default() }],
            ..TestResult::new()
        };
        self.result(result);
    }

    /// By the control pipe where the platform has one, else as Ctrl-C does.
    fn ask_to_end(&mut self) {
        if self.ending == Ending::No {
            self.ending = Ending::Asked { since: Instant::now() };
            if !self.control.cancel() {
                self.process.interrupt();
            }
        }
    }

    fn kill(&mut self) {
        self.ending = Ending::Killed;
        self.process.kill();
    }

    fn end(mut self, happenings: &Receiver<Happening>) -> Done {
        let linger = self.exited.map_or_else(Instant::now, |exited| exited + self.spec.timeouts.linger);
        self.pipe.close(linger);
        self.control.close();
        if self.streams > 0 {
            let text = format!(
                "a process that it has started still holds its output {} after its end",
                seconds(self.spec.timeouts.linger)
            );
            self.emit(RunEvent::Message { module: self.spec.id, severity: Severity::Warning, text });
        }
        if self.ending != Ending::No {
            // What it has started does not outlive it either.
            self.process.kill();
        }
        while let Ok(happening) = happenings.try_recv() {
            if let Happening::Heard(_) | Happening::Printed(..) = happening {
                self.happened(happening);
            }
        }
        let exit = self.process.reap().ok();
        self.conclude(exit)
    }

    fn conclude(mut self, exit: Option<Exit>) -> Done {
        let died = matches!(exit, Some(Exit::Signal(_))) || self.sessions > 0;
        let was_asked = self.ending != Ending::No;
        let running = self.tests.names();
        if self.spec.mode == Mode::Run && died && !was_asked && self.introduced {
            self.failures.push(ModuleFailure::Died { running, exit: exit.map_or(-1, Exit::code) });
            for test in self.tests.take() {
                let text = format!("The process ended ({}) while the test was running.", describe(exit));
                self.made_up(&test, State::Error, text);
            }
        } else if was_asked {
            for test in self.tests.take() {
                self.made_up(
                    &test,
                    State::Cancelled,
                    "The process was ended while the test was running.".to_owned(),
                );
            }
        } else {
            self.judge(exit);
        }
        let remaining = self.remaining(died && !was_asked);
        self.failed.sort_unstable();
        self.failed.dedup();
        let end = LaunchEnd {
            exit,
            failures: self.failures.clone(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            duration: self.started.elapsed(),
        };
        let (module, launch) = (self.spec.id, self.spec.launch);
        self.emit(RunEvent::LaunchEnded { module, launch, end });
        Done { failed: self.failed, remaining, failures: self.failures }
    }

    /// What its code says beside its results.
    fn judge(&mut self, exit: Option<Exit>) {
        let code = exit.map_or(-1, Exit::code);
        for violation in self.speaker.finish(Some(code)) {
            if violation.rule == Rule::SessionOpen {
                self.failures.push(failure(&violation, &[]));
            }
        }
        if !self.introduced && self.spec.mode != Mode::Help {
            self.failures.push(ModuleFailure::NoHandshake(exit.map(Exit::code)));
            return;
        }
        let explained = match code {
            0 => true,
            2 => self.unsuccessful > 0,
            _ => false,
        };
        if !explained {
            self.failures.push(ModuleFailure::ExitCode(code));
        }
    }

    /// Tests that were asked for and did not come to their turn, where another process can go on with them.
    fn remaining(&self, died: bool) -> Option<Vec<String>> {
        if !(died || self.overdue) || self.results == 0 {
            return None;
        }
        let uids = self.spec.uids?;
        let left: Vec<_> = uids.iter().filter(|uid| !self.seen.contains(uid.as_str())).cloned().collect();
        (!left.is_empty() && left.len() < uids.len()).then_some(left)
    }

    fn emit(&mut self, event: RunEvent) {
        (self.emit)(event);
    }
}

fn describe(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        None => "unknown".to_owned(),
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
