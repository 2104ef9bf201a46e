//! The life cycle of one trace: connecting, HQ's commands, the changes they require in the JVM, and the end.
//!
//! Owns: the control thread (`runtap-agent`), which starts the thread that sends (`runtap-drain`).

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::agent::{Control, Event, Output};
use runtap_bytefrog_proto::f1::{self, Process};
use runtap_bytefrog_proto::{
    Command, Configuration, Dialect, JavaString, Message, Mode, RecordMode, WhenSlow, to_bytes,
};

use crate::clock;
use crate::drain::Drain;
use crate::filter::Filter;
use crate::hook::Plan;
use crate::jvm;
use crate::link::{self, Link, LinkError, read_some};
use crate::session::{Agent, Phase, Session, locked};
use crate::silence::Silence;
use crate::stream::{Stream, text};

/// The pause between two attempts to connect to HQ.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// The longest time that one read of the control connection blocks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The time-out of a write, after which the thread checks whether the write is still wanted.
const WRITE_TIMEOUT: Duration = Duration::from_millis(200);
/// The maximum number of characters of a line on standard error.
const MAX_LINE_CHARS: usize = 1000;

/// Starts a trace on a thread of its own.
pub(crate) fn begin(agent: &'static Agent, of: &Arc<Session>) -> io::Result<()> {
    let session = Arc::clone(of);
    let run = move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live(agent, &session)));
        // Release the threads that wait for HQ, whatever has happened.
        agent.set_gone(true);
        for ring in agent.rings.all() {
            ring.set_limit(crate::ring::UNREAD);
        }
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => session.fail(error.to_string(), log),
            Err(_panic) => {
                session.set_lost();
                jvm::untrace(agent);
            }
        }
        session.set_phase(Phase::Ended);
    };
    let thread = std::thread::Builder::new().name("runtap-agent".to_owned()).spawn(run)?;
    *locked(&of.thread) = Some(thread);
    Ok(())
}

/// Writes one line to standard error. Used only if there is no trace, or if the trace ends before the program. Standard
/// output belongs to the program.
pub(crate) fn log(line: &str) {
    // Standard error may be closed.
    let _ = io::stderr().write_all(format!("runtap agent: {}\n", visible(line)).as_bytes());
}

/// Makes a text from HQ safe to print: one line, without control characters that a terminal would interpret.
pub(crate) fn visible(text: &str) -> String {
    let mut result = String::new();
    for c in text.chars().take(MAX_LINE_CHARS) {
        if c.is_control() { result.extend(c.escape_default()) } else { result.push(c) }
    }
    if text.chars().nth(MAX_LINE_CHARS).is_some() {
        result.push('…');
    }
    result
}

fn live(agent: &'static Agent, session: &Session) -> Result<(), LinkError> {
    let Some(link) = connect(session)? else { return Ok(()) };
    link.socket.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(LinkError::Io)?;
    let start = clock::now();
    let wall = clock::wall();
    let mut trace = Trace {
        agent,
        session,
        dialect: link.control.dialect(),
        control: link.control,
        socket: link.socket,
        silence: Silence::new(session.options.silence),
        start,
        drain: None,
        ticker: None,
        next_beat: Instant::now(),
        stop: false,
    };
    if trace.dialect == Dialect::F1 {
        let (jvm, main) = session.description.get().cloned().unwrap_or_default();
        let resolution = if trace.is_coarse(&trace.configuration()) { 1_000_000 } else { 1 };
        let process =
            Process { pid: std::process::id(), wall, resolution, jvm: text(&jvm), main: text(&main) };
        let bytes =
            trace.control.process(&process).map_err(|error| LinkError::Violation(error.to_string()))?;
        trace.write(&bytes)?;
    }
    session.set_phase(Phase::Configured);
    let result = trace.run(link.rest);
    // The end of a trace that was meant to end is not reported.
    let wanted = session.is_finishing();
    trace.end(result.is_err());
    if wanted { Ok(()) } else { result }
}

/// Connects until HQ has sent its configuration, or until the trace is over. Falls back to version 1 if HQ does not support
/// F1, and to versions 4 to 2 if HQ does not support version 1.
fn connect(session: &Session) -> Result<Option<Link>, LinkError> {
    let options = &session.options;
    let mut dialect = options.version.unwrap_or(Dialect::F1);
    let mut closed = 0;
    if let Some(what) = needs_f1(options).filter(|_| dialect != Dialect::F1) {
        return Err(LinkError::Violation(format!("{what} requires F1, but version={dialect} was specified")));
    }
    loop {
        match link::control(options, dialect, || session.is_finishing()) {
            Ok(link) => return Ok(Some(link)),
            Err(LinkError::Over) => return Ok(None),
            Err(LinkError::Io(_)) if session.is_finishing() => return Ok(None),
            Err(LinkError::Io(error)) if !options.retry && is_final(&error, &mut closed) => return Ok(None),
            Err(LinkError::Io(_)) => std::thread::sleep(RETRY_INTERVAL),
            Err(LinkError::Refused { text, fallback: Some(older) }) if options.version.is_none() => {
                if let Some(what) = needs_f1(options) {
                    return Err(LinkError::Violation(format!(
                        "{what} requires F1, which HQ does not support ({text})"
                    )));
                }
                dialect = older;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether an agent that does not retry gives up: nothing listens any more, or the listener has closed several
/// connections without an answer. A burst of connections can cause a single such close.
fn is_final(error: &io::Error, closed: &mut u32) -> bool {
    const MAX_CLOSED: u32 = 3;
    match error.kind() {
        io::ErrorKind::ConnectionRefused => true,
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            *closed += 1;
            *closed >= MAX_CLOSED
        }
        _ => false,
    }
}

/// Returns the requested option that an older HQ does not support, if any.
fn needs_f1(options: &crate::options::Options) -> Option<&'static str> {
    match (options.record, options.coarse_clock, options.when_slow) {
        (Some(RecordMode::Counts), ..) => Some("mode=counts"),
        (Some(RecordMode::Coverage), ..) => Some("mode=coverage"),
        (_, Some(false), _) => Some("clock=ns"),
        (.., Some(WhenSlow::Counts)) => Some("when-slow=counts"),
        _ => None,
    }
}

struct Trace<'a> {
    agent: &'static Agent,
    session: &'a Session,
    dialect: Dialect,
    control: Control,
    socket: TcpStream,
    silence: Silence,
    start: u64,
    drain: Option<JoinHandle<()>>,
    ticker: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
    next_beat: Instant,
    stop: bool,
}

impl Trace<'_> {
    fn configuration(&self) -> Configuration {
        self.control.configuration().cloned().unwrap_or_default()
    }

    fn run(&mut self, first: Output) -> Result<(), LinkError> {
        self.beat()?;
        if self.take(first)? {
            return Ok(());
        }
        let mut buffer = vec![0; 16 * 1024];
        loop {
            if self.session.is_finishing() || self.session.is_lost() {
                return Ok(());
            }
            self.answers()?;
            let wait = self.next_beat.saturating_duration_since(Instant::now()).min(POLL_INTERVAL);
            if let Some(count) = read_some(&mut self.socket, &mut buffer, wait)? {
                if count == 0 {
                    return Err(
                        io::Error::new(io::ErrorKind::UnexpectedEof, "HQ closed the connection").into()
                    );
                }
                let output = self.control.handle_bytes(buffer.get(..count).unwrap_or_default());
                if self.take(output)? || self.stop {
                    return Ok(());
                }
            }
            self.report_classes_and_breaks()?;
            if Instant::now() >= self.next_beat {
                self.beat()?;
            }
        }
    }

    /// Executes HQ's commands. Returns `true` if the trace ends.
    fn take(&mut self, output: Output) -> Result<bool, LinkError> {
        self.write(&output.transmit)?;
        for event in output.events {
            match event {
                Event::Command(command, state) => {
                    self.session.set_mode(state.mode);
                    self.agent.set_paused(state.mode == Mode::Paused);
                    match command {
                        Command::Start => self.begin()?,
                        Command::Stop => return Ok(true),
                        _ => {}
                    }
                    self.beat()?;
                }
                Event::Snapshot { reset } => self.session.ask_snapshot(reset),
                Event::Error { text } => {
                    return Err(LinkError::Violation(format!("HQ ended the trace: {text}")));
                }
                Event::Violation(violation) => return Err(LinkError::Violation(violation.to_string())),
                _ => {}
            }
        }
        Ok(output.close)
    }

    /// Returns whether millisecond precision suffices; versions 1 to 4 have no other.
    fn is_coarse(&self, configuration: &Configuration) -> bool {
        let wanted = self.session.options.coarse_clock;
        self.dialect != Dialect::F1 || wanted.unwrap_or(configuration.extension.coarse_clock)
    }

    /// Returns the plan that results from HQ's configuration and the options.
    fn plan(&self, configuration: &Configuration) -> Result<Plan, LinkError> {
        let options = &self.session.options;
        let extension = &configuration.extension;
        let ours = self.dialect == Dialect::F1;
        let record = if ours { options.record.unwrap_or(extension.record) } else { RecordMode::Full };
        let coarse = self.is_coarse(configuration);
        let texts = |theirs: &[JavaString], ours: &[String]| -> Vec<String> {
            theirs.iter().map(ToString::to_string).chain(ours.iter().cloned()).collect()
        };
        let include = texts(&configuration.inclusions, &options.include);
        let mut exclude = texts(&configuration.exclusions, &options.exclude);
        // An inclusion only overrides exclusions: a user who names classes to include wants no other classes.
        if exclude.is_empty() && !options.include.is_empty() {
            exclude.push(".*".to_owned());
        }
        let filter =
            Filter::new(include, exclude).map_err(|error| LinkError::Violation(error.to_string()))?;
        let probe = self.agent.probe.get().cloned();
        let probe =
            probe.ok_or_else(|| LinkError::Violation("this JVM accepts no probe class".to_owned()))?;
        let lines = self.dialect == Dialect::V1;
        Ok(Plan { record, coarse, lines, filter, boot: options.boot, probe })
    }

    /// Starts tracing, on HQ's command.
    fn begin(&mut self) -> Result<(), LinkError> {
        // An agent of version 1 learns from the configuration which variant of version 1 HQ uses.
        self.dialect = self.control.dialect();
        let configuration = self.configuration();
        let plan = match self.plan(&configuration) {
            Ok(plan) => plan,
            Err(error) => {
                self.fail(&error.to_string())?;
                return Err(error);
            }
        };
        let sockets = link::data(&self.session.options, self.dialect, &configuration)?;
        if self.session.is_finishing() || self.session.is_lost() {
            // No thread waits for the start any more.
            return Err(LinkError::Over);
        }
        // The configuration of an older HQ has no key for counts. An option that requires them was rejected in `connect`.
        let wanted = configuration.extension.when_slow;
        let theirs = if self.dialect == Dialect::F1 { wanted } else { WhenSlow::default() };
        let when_slow = self.session.options.when_slow.unwrap_or(theirs);
        self.agent.set_when_slow(when_slow);
        if plan.coarse {
            let end = Arc::new(AtomicBool::new(false));
            let ends = Arc::clone(&end);
            clock::set_ticks();
            let thread = std::thread::Builder::new().name("runtap-ticker".to_owned());
            self.ticker = Some((end, thread.spawn(move || clock::tick(&ends))?));
        }
        let (methods, exceptions) = (Arc::clone(&self.agent.methods), Arc::clone(&self.agent.exceptions));
        let delegates = Arc::clone(&self.agent.delegates);
        let stream = Stream::new(self.dialect, self.start, sockets.len(), methods, exceptions, delegates);
        let interval = Duration::from_millis(configuration.extension.snapshot_interval.into());
        let session = self.agent.session().ok_or(LinkError::Over)?;
        let agent = self.agent;
        agent.set_gone(false);
        // Created before any class gets probes, so that existing events and counts are attributed to an earlier trace.
        let drain = Drain::new(agent, Arc::clone(&session), stream, sockets, plan.record, interval);
        let thread = std::thread::Builder::new().name("runtap-drain".to_owned());
        self.drain = Some(thread.spawn(move || {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drain.run())).is_err() {
                agent.set_gone(true);
                session.set_lost();
            }
        })?);
        self.agent.set_plan(Some(Arc::new(plan)));
        // A waiting thread of the JVM does the work. A thread of the agent would have to be attached to the JVM,
        // which the program could see in the ids of later threads.
        if !self.session.set_host(false) {
            jvm::trace(self.agent);
        }
        self.session.set_phase(Phase::Started);
        Ok(())
    }

    fn fail(&mut self, why: &str) -> io::Result<()> {
        let why = JavaString::from(why);
        let error = Message::Error { text: why.as_java_str() };
        self.write(&to_bytes(&error, self.dialect).unwrap_or_default())
    }

    fn answers(&mut self) -> io::Result<()> {
        if self.silence.is_over(&self.socket) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "HQ's machine no longer responds"));
        }
        Ok(())
    }

    /// Writes all bytes, for as long as HQ's machine responds and the trace is not abandoned. HQ may be slow to read here.
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
                        if self.session.is_lost() {
                            return Err(error);
                        }
                        self.answers()?;
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    fn beat(&mut self) -> Result<(), LinkError> {
        let interval = self.configuration().heartbeat_interval.clamp(10, 60_000);
        self.next_beat = Instant::now() + Duration::from_millis(u64::from(interval.unsigned_abs()));
        if let Ok(beat) = self.control.heartbeat(self.session.waiting()) {
            self.write(&beat)?;
        }
        Ok(())
    }

    /// Reports classes and breaks to HQ.
    fn report_classes_and_breaks(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        if self.dialect != Dialect::F1 {
            for sequence in self.session.take_breaks() {
                bytes.extend(self.control.data_break(sequence).unwrap_or_default());
            }
        }
        for report in self.session.take_class_reports() {
            let mut name = JavaString::from(text(&report.name));
            // Collectors of the other versions might treat the whole text as the name.
            if report.was_loaded && self.dialect == Dialect::F1 {
                let marked = JavaString::from(&*f1::mark_loaded_before(&name.to_string()));
                name = JavaString::from(text(marked.as_java_str().as_bytes()));
            }
            bytes.extend(self.control.class(report.outcome, &name).unwrap_or_default());
        }
        self.write(&bytes)
    }

    /// Ends the trace: restores the original classes, sends all events, the last heartbeat and the end. Sends nothing
    /// if HQ is lost.
    fn end(&mut self, lost: bool) {
        if lost {
            self.session.set_lost();
        }
        self.control.shut_down();
        self.agent.set_paused(false);
        if !lost {
            let _ = self.report_classes_and_breaks();
            let _ = self.beat();
        }
        // A program that exits keeps its probes: removing them would take time and has no benefit.
        let ends_with_program = self.session.is_finishing();
        if !ends_with_program {
            jvm::untrace(self.agent);
        }
        self.session.set_finishing();
        if let Some(drain) = self.drain.take() {
            let _ = drain.join();
        }
        // A class that was being loaded may have got its probes since.
        if !ends_with_program {
            jvm::untrace(self.agent);
        }
        if let Some((end, ticker)) = self.ticker.take() {
            end.store(true, std::sync::atomic::Ordering::Relaxed);
            let _ = ticker.join();
        }
        if !lost {
            let _ = self.report_classes_and_breaks();
            let _ = self.beat();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_one_line_without_commands() {
        assert_eq!(
            visible("no \u{1b}[31mway\u{1b}[0m\nrm\u{9b}é"),
            "no \\u{1b}[31mway\\u{1b}[0m\\nrm\\u{9b}é"
        );
        let long = visible(&"x".repeat(70_000));
        assert_eq!(long.chars().count(), MAX_LINE_CHARS + 1);
    }
}
