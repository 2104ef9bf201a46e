//! Supervision of a process: signals become events, and time-outs are enforced.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use runtap_mtp_proto::Rule;

use super::added_results::TimedOutRow;
use super::app_server::{AppEvent, AppServer};
use super::backpressure::{self, BackpressureQueue};
use super::conclude::LaunchResult;
use super::concurrent_tests::HeldResults;
use super::control::Control;
use super::running::RunningTests;
use super::{LaunchSpec, Signal};
use crate::child::Running;
use crate::digest::UidSet;
use crate::event::Totals;
use crate::event::{Level, ModuleFailure, RunEvent, Stream, TestOutcome, TestResult};
use crate::listen::Listener;
use crate::output::Output;
use crate::stop::StopLevel;

/// The number of failed rows that are searched for one with another name, to avoid quadratic time.
const MAX_COMPARED: usize = 64;

/// Limits on the failures kept per process and per rule.
const MAX_FAILURES: usize = 20;
const MAX_FAILURES_PER_RULE: usize = 5;

/// Messages that arrive within this interval are handled as one batch, unless a signal has at least `BATCH_SIZE`
/// messages.
const BATCH_INTERVAL: Duration = Duration::from_micros(300);
const BATCH_SIZE: usize = 8;
/// The maximum number of events that are sent together, and of signals that are handled for them.
const MAX_BATCH: usize = 64;
/// The number of signals that are handled after a deadline before it is enforced. They may have been sent in time and
/// delayed in the queue. The limit prevents a process from extending its deadline by sending without end.
const GRACE_MESSAGES: usize = 4 * backpressure::CAPACITY;

/// The state of stopping a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StopState {
    /// The process was not requested to stop.
    Running,
    /// The process was requested to stop. `by_signal` is whether SIGINT was sent too, which stops tests that do not
    /// react to the control pipe.
    Requested { since: Instant, by_signal: bool },
    /// The process was killed.
    Killed(KillReason),
}

/// The reason why a process was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KillReason {
    /// The process broke the protocol or timed out; the failure has been reported.
    Failed,
    /// The process did not exit after it was requested to stop.
    IgnoredStop,
    /// The run was stopped by force.
    RunStopped,
}

/// A running process and its listeners.
#[derive(Debug)]
pub(crate) struct Process {
    pub running: Running,
    pub listener: Listener,
    pub control: Option<Control>,
    pub server: Arc<AppServer>,
    pub queue: BackpressureQueue,
    pub started: Instant,
}

/// The supervisor of a process.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(crate) struct Supervisor<'a> {
    pub(super) spec: &'a LaunchSpec<'a>,
    emit: &'a mut dyn FnMut(Vec<RunEvent>),
    /// The events that were not sent yet.
    events: Vec<RunEvent>,
    pub(super) process: Running,
    pub(super) listener: Listener,
    pub(super) control: Option<Control>,
    pub(super) server: Arc<AppServer>,
    pub(super) queue: BackpressureQueue,
    pub(super) started: Instant,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    /// The number of open output streams.
    pub(super) streams: usize,
    pub(super) exited: Option<Instant>,
    pub(super) stop_state: StopState,
    pub(super) connected: bool,
    pub(super) introduced: bool,
    pub(super) rejected: bool,
    /// When a connection ended in the middle of a message; the process may exit then.
    pub(super) disconnected: Option<Instant>,
    /// The number of open sessions.
    pub(super) sessions: usize,
    /// When the process last sent a message after the end of its last session.
    pub(super) idle_since: Option<Instant>,
    pub(super) tests: RunningTests,
    /// The failed tests: by id, the names of their failed rows, each with the application's attempt, and the attempt
    /// within that.
    pub(super) failed: HashMap<String, HashMap<String, (u32, u32)>>,
    /// The latest attempt of the application; `None` if the application does not count attempts.
    pub(super) host_attempt: Option<u32>,
    pub(super) seen: UidSet,
    pub(super) failures: Vec<ModuleFailure>,
    /// The number of failures that were not kept.
    pub(super) more_failures: u64,
    /// The rules with a warning; each rule has one.
    warned: BTreeSet<Rule>,
    /// Whether the process was stopped because a test timed out.
    pub(super) overdue: bool,
    /// Whether the run is being stopped, so that nothing more is started.
    pub(super) run_stopped: bool,
    /// The rows with a time-out result, by test id; the process may still report results for them.
    pub(super) timed_out: HashMap<String, Vec<TimedOutRow>>,
    /// The results that may be parts of timed-out tests.
    pub(super) late_rows: HeldResults,
    /// The results that count only if no other process has results for their rows.
    pub(super) held: HeldResults,
    /// The number of signals that were received after a deadline.
    late_signals: usize,
    pub(super) results: u64,
    /// The number of results of tests that were not skipped.
    pub(super) executed: u64,
    /// Whether the process exited with the code for no tests.
    pub(super) no_tests: bool,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(
        spec: &'a LaunchSpec<'a>,
        process: Process,
        emit: &'a mut dyn FnMut(Vec<RunEvent>),
    ) -> Self {
        let Process { running, listener, control, server, queue, started } = process;
        Self {
            spec,
            emit,
            events: Vec::new(),
            process: running,
            listener,
            control,
            server,
            queue,
            started,
            stdout: Output::default(),
            stderr: Output::default(),
            streams: 2,
            exited: None,
            stop_state: StopState::Running,
            connected: false,
            introduced: false,
            rejected: false,
            disconnected: None,
            sessions: 0,
            idle_since: None,
            tests: RunningTests::default(),
            failed: HashMap::new(),
            host_attempt: None,
            seen: UidSet::default(),
            failures: Vec::new(),
            more_failures: 0,
            warned: BTreeSet::new(),
            overdue: false,
            run_stopped: false,
            timed_out: HashMap::new(),
            late_rows: HeldResults::default(),
            held: HeldResults::default(),
            late_signals: 0,
            results: 0,
            executed: 0,
            no_tests: false,
        }
    }

    pub(crate) fn run(mut self, signals: &Receiver<Signal>) -> LaunchResult {
        self.emit(RunEvent::LaunchStarted {
            module: self.spec.id,
            launch: self.spec.launch,
            attempt: self.spec.attempt,
            part: self.spec.part,
            pid: self.process.pid(),
        });
        self.flush_events();
        while !self.is_over() {
            match self.next(signals) {
                Some(signal) => self.handle_batch(signal, signals),
                None if self.lingered() => break,
                None => self.check_time(),
            }
            self.flush_events();
        }
        self.end(signals)
    }

    /// Handles a signal and all other pending signals: waking up for each message costs more time, also for the
    /// application if there are few processors.
    fn handle_batch(&mut self, signal: Signal, signals: &Receiver<Signal>) {
        if let Signal::Messages(events) = &signal
            && events.len() < BATCH_SIZE
        {
            std::thread::sleep(BATCH_INTERVAL);
        }
        self.handle_signal(signal);
        // Not every signal becomes an event.
        for _ in 0..MAX_BATCH {
            if self.events.len() >= MAX_BATCH {
                break;
            }
            let Ok(signal) = signals.try_recv() else { break };
            self.count_received();
            self.handle_signal(signal);
        }
    }

    fn count_received(&mut self) {
        self.queue.received();
        self.late_signals += 1;
    }

    /// Returns whether the process has exited and all of its messages were handled.
    fn is_over(&self) -> bool {
        self.exited.is_some() && self.streams == 0 && self.listener.is_idle()
    }

    /// Returns the next signal, or `None` at a deadline.
    fn next(&mut self, signals: &Receiver<Signal>) -> Option<Signal> {
        let signal = match self.deadline() {
            None => signals.recv().ok(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    self.late_signals = 0;
                } else if self.late_signals >= GRACE_MESSAGES {
                    self.late_signals = 0;
                    return None;
                }
                signals.recv_timeout(left).ok()
            }
        };
        if signal.is_some() {
            self.count_received();
        }
        signal
    }

    pub(super) fn handle_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Messages(all) => all.into_iter().for_each(|event| self.handle_message(event)),
            Signal::Output(stream, bytes) => self.handle_output(stream, bytes),
            Signal::OutputEnded => self.streams = self.streams.saturating_sub(1),
            Signal::Exited => {
                self.exited = Some(Instant::now());
                self.listener.stop_accepting();
            }
            Signal::Stop(level) => {
                self.run_stopped = true;
                match level {
                    StopLevel::Graceful => self.request_stop(),
                    StopLevel::Hard => self.kill(KillReason::RunStopped),
                }
            }
        }
    }

    fn handle_output(&mut self, stream: Stream, bytes: Vec<u8>) {
        match stream {
            Stream::Stdout => self.stdout.push(&bytes),
            Stream::Stderr => self.stderr.push(&bytes),
        }
        if self.spec.live_output {
            let (module, launch) = (self.spec.id, self.spec.launch);
            self.emit(RunEvent::Output { module, launch, stream, bytes });
        }
    }

    fn handle_message(&mut self, event: AppEvent) {
        let (module, launch) = (self.spec.id, self.spec.launch);
        self.idle_since = self.idle_since.map(|_| Instant::now());
        match event {
            AppEvent::Connected => self.connected = true,
            AppEvent::Rejected => self.rejected = true,
            AppEvent::Introduced(introduction) => {
                self.host_attempt = self.host_attempt.max(introduction.attempt);
                self.introduced = true;
                self.emit(RunEvent::Introduced { module, launch, introduction });
            }
            AppEvent::Discovered(test) => self.emit(RunEvent::Discovered { module, test }),
            AppEvent::Started { uid, name } if self.is_late_start(&uid, &name) => {}
            AppEvent::Started { uid, name } => {
                let rule = self.spec.run.rule(module, &uid, &name);
                let shown = self.tests.begin(uid.clone(), &name, Instant::now(), rule).map(str::to_owned);
                let attempt = self.spec.attempt;
                if let Some(name) = shown {
                    self.emit(RunEvent::TestStarted { module, launch, uid, name, attempt });
                }
            }
            AppEvent::Result(result) => {
                let result = self.drop_late(result).and_then(|result| self.hold_back(result));
                if let Some(result) = result {
                    self.result(result);
                }
            }
            AppEvent::Artifact(artifact) => self.emit(RunEvent::Artifact { module, artifact }),
            AppEvent::Message(level, text) => self.emit(RunEvent::Message { module, level, text }),
            AppEvent::SessionStarted => {
                self.sessions += 1;
                self.idle_since = None;
            }
            AppEvent::SessionEnded => {
                self.sessions = self.sessions.saturating_sub(1);
                self.idle_since = (self.sessions == 0).then(Instant::now);
            }
            AppEvent::Option(option) => self.emit(RunEvent::Option { module, option }),
            AppEvent::Warning(rule, text) => self.warn(rule, text),
            AppEvent::Failure(failure) => self.fail(failure),
            AppEvent::Disconnected { rejected: true } => self.kill(KillReason::Failed),
            AppEvent::Disconnected { rejected: false } => self.disconnected = Some(Instant::now()),
        }
    }

    /// Adds a failure of the module, other than failed tests.
    pub(super) fn fail(&mut self, failure: ModuleFailure) {
        if self.failures.contains(&failure) {
            return;
        }
        let rule = rule_of(&failure);
        let alike = self.failures.iter().filter(|known| rule.is_some() && rule_of(known) == rule).count();
        if self.failures.len() < MAX_FAILURES && alike < MAX_FAILURES_PER_RULE {
            self.failures.push(failure);
        } else {
            self.more_failures += 1;
        }
    }

    /// Sends a warning about a violation, once per rule.
    pub(super) fn warn(&mut self, rule: Rule, text: String) {
        if self.warned.insert(rule) {
            self.emit(RunEvent::Message { module: self.spec.id, level: Level::Warning, text });
        }
    }

    pub(super) fn result(&mut self, result: TestResult) {
        let is_known = self.seen.contains_row(&result.uid, &result.name);
        let attempt = (result.host_attempt.unwrap_or(1), result.attempt);
        self.tests.end(&result.uid, &result.name, is_known);
        self.results += 1;
        self.executed += u64::from(result.execution.state != TestOutcome::Skipped);
        if result.execution.state.is_failure() && !result.superseded {
            let rows = self.failed.entry(result.uid.clone()).or_default();
            let last = rows.entry(result.name.clone()).or_default();
            *last = attempt.max(*last);
        } else if result.execution.state == TestOutcome::Passed
            && let Some(rows) = self.failed.get_mut(&result.uid)
        {
            // The application repeated the row, which has passed now. The row may have another name in another process.
            let is_new = !is_known && result.host_attempt > Some(1);
            let repeated = match rows.get(&result.name) {
                Some(before) => (*before < attempt).then(|| result.name.clone()),
                None if is_new => {
                    let mut some = rows.iter().take(MAX_COMPARED);
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
        if !result.superseded {
            self.seen.insert(&result.uid);
        }
        // The totals are set by the run.
        let so_far = Totals::default();
        self.emit(RunEvent::TestEnded { module: self.spec.id, launch: self.spec.launch, result, so_far });
    }

    /// Requests the process to stop, by the control pipe if there is one, and by an interrupt otherwise.
    pub(super) fn request_stop(&mut self) {
        if self.stop_state == StopState::Running {
            self.process.announce_stop();
            let by_pipe = self.control.as_ref().is_some_and(Control::cancel);
            self.stop_state = StopState::Requested { since: Instant::now(), by_signal: !by_pipe };
            if !by_pipe {
                self.process.interrupt();
            }
        }
    }

    /// Requests the process to stop by SIGINT too: the control pipe ends a session between two tests, while the signal
    /// cancels running tests, whose clean-up then runs.
    pub(super) fn interrupt(&mut self, since: Instant) {
        self.stop_state = StopState::Requested { since, by_signal: true };
        self.process.interrupt();
    }

    pub(super) fn kill(&mut self, reason: KillReason) {
        // The first reason is kept.
        if !matches!(self.stop_state, StopState::Killed(_)) {
            self.stop_state = StopState::Killed(reason);
        }
        self.process.kill();
    }

    pub(super) fn emit(&mut self, event: RunEvent) {
        self.events.push(event);
    }

    /// Sends the collected events.
    pub(super) fn flush_events(&mut self) {
        if !self.events.is_empty() {
            (self.emit)(std::mem::take(&mut self.events));
        }
    }
}

/// Returns the id of the violated rule.
fn rule_of(failure: &ModuleFailure) -> Option<&str> {
    match failure {
        ModuleFailure::Protocol(text) => text.split(':').next(),
        _ => None,
    }
}

/// Formats a duration in seconds.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
