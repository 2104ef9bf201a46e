//! The life of one trace: dialling, what HQ says, what the JVM is told because of it, and the end.
//!
//! Owns: the thread that does so (`runtap-agent`), and through it the one that sends (`runtap-drain`).

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

/// Between two attempts to reach HQ.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest time for which nothing is read.
const STEP: Duration = Duration::from_millis(20);
/// How long a write may take before it is looked whether it is still wanted.
const STUCK: Duration = Duration::from_millis(200);
/// Characters of a line that is said.
const MOST_SAID: usize = 1000;

/// Begins a trace on a thread of its own.
pub(crate) fn begin(agent: &'static Agent, of: &Arc<Session>) -> io::Result<()> {
    let session = Arc::clone(of);
    let run = move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live(agent, &session)));
        // Whatever has happened, nobody waits.
        agent.set_gone(true);
        for ring in agent.rings.all() {
            ring.set_limit(crate::ring::NOBODY);
        }
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => session.fail(error.to_string(), say),
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

/// One line on standard error, and only if there is no trace, or it ends before the program: standard output is the program's.
pub(crate) fn say(line: &str) {
    // There may be no standard error.
    let _ = io::stderr().write_all(format!("runtap agent: {}\n", visible(line)).as_bytes());
}

/// What HQ says can be anything: as one line, in which no terminal finds a command.
pub(crate) fn visible(text: &str) -> String {
    let mut result = String::new();
    for c in text.chars().take(MOST_SAID) {
        if c.is_control() { result.extend(c.escape_default()) } else { result.push(c) }
    }
    if text.chars().nth(MOST_SAID).is_some() {
        result.push('…');
    }
    result
}

fn live(agent: &'static Agent, session: &Session) -> Result<(), LinkError> {
    let Some(link) = connect(session)? else { return Ok(()) };
    link.socket.set_write_timeout(Some(STUCK)).map_err(LinkError::Io)?;
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
    // Nobody wants to know why a trace has ended that was to end.
    let wanted = session.is_finishing();
    trace.end(result.is_err());
    if wanted { Ok(()) } else { result }
}

/// Until HQ has said what to trace, or nobody waits for it any more. With an HQ that does not know F1, version 1; with one that
/// does not know that either, versions 4 to 2.
fn connect(session: &Session) -> Result<Option<Link>, LinkError> {
    let options = &session.options;
    let mut dialect = options.version.unwrap_or(Dialect::F1);
    let mut closed = 0;
    if let Some(what) = needs_f1(options).filter(|_| dialect != Dialect::F1) {
        return Err(LinkError::Violation(format!("version={dialect} is not F1, and {what} needs it")));
    }
    loop {
        match link::control(options, dialect, || session.is_finishing()) {
            Ok(link) => return Ok(Some(link)),
            Err(LinkError::Over) => return Ok(None),
            Err(LinkError::Io(_)) if session.is_finishing() => return Ok(None),
            Err(LinkError::Io(error)) if !options.retry && is_final(&error, &mut closed) => return Ok(None),
            Err(LinkError::Io(_)) => std::thread::sleep(AGAIN),
            Err(LinkError::Refused { text, fallback: Some(older) }) if options.version.is_none() => {
                if let Some(what) = needs_f1(options) {
                    return Err(LinkError::Violation(format!(
                        "HQ does not know F1 ({text}), and {what} needs it"
                    )));
                }
                dialect = older;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether an agent that does not try again gives up: nothing listens any more, or what listens has closed a few connections
/// without an answer. A crowd of connections can cause one of these.
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

/// What an older HQ can't take, if it was asked for.
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
            let wait = self.next_beat.saturating_duration_since(Instant::now()).min(STEP);
            if let Some(count) = read_some(&mut self.socket, &mut buffer, wait)? {
                if count == 0 {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "HQ is gone").into());
                }
                let output = self.control.handle_bytes(buffer.get(..count).unwrap_or_default());
                if self.take(output)? || self.stop {
                    return Ok(());
                }
            }
            self.tell()?;
            if Instant::now() >= self.next_beat {
                self.beat()?;
            }
        }
    }

    /// Does what HQ has said. `true`: the trace ends.
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
                    return Err(LinkError::Violation(format!("HQ ends the trace: {text}")));
                }
                Event::Violation(violation) => return Err(LinkError::Violation(violation.to_string())),
                _ => {}
            }
        }
        Ok(output.close)
    }

    /// Whether milliseconds suffice: that is all that versions 1 to 4 have.
    fn is_coarse(&self, configuration: &Configuration) -> bool {
        let wanted = self.session.options.coarse_clock;
        self.dialect != Dialect::F1 || wanted.unwrap_or(configuration.extension.coarse_clock)
    }

    /// The plan that HQ and the options make together.
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
        // An inclusion only wins over exclusions: whoever names some classes wants no others.
        if exclude.is_empty() && !options.include.is_empty() {
            exclude.push(".*".to_owned());
        }
        let filter =
            Filter::new(include, exclude).map_err(|error| LinkError::Violation(error.to_string()))?;
        let probe = self.agent.probe.get().cloned();
        let probe = probe.ok_or_else(|| LinkError::Violation("this JVM takes no probe class".to_owned()))?;
        let lines = self.dialect == Dialect::V1;
        Ok(Plan { record, coarse, lines, filter, boot: options.boot, probe })
    }

    /// HQ has said start.
    fn begin(&mut self) -> Result<(), LinkError> {
        // An agent of version 1 has learned from the configuration which one it is.
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
            // Nobody waits for it any more.
            return Err(LinkError::Over);
        }
        // An older HQ can't be asking for counts: its configuration has no such key. Who asks here was refused (`connect`).
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
        // Made before any class gets probes: what is in the rings, and what was counted, counts as an earlier trace's.
        let drain = Drain::new(agent, Arc::clone(&session), stream, sockets, plan.record, interval);
        let thread = std::thread::Builder::new().name("runtap-drain".to_owned());
        self.drain = Some(thread.spawn(move || {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drain.run())).is_err() {
                agent.set_gone(true);
                session.set_lost();
            }
        })?);
        self.agent.set_plan(Some(Arc::new(plan)));
        // A thread of the JVM that waits does it: one of ours would have to become one, which a program can see in the numbers
        // of the threads that come later.
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
            return Err(io::Error::new(io::ErrorKind::TimedOut, "HQ's machine does not answer any more"));
        }
        Ok(())
    }

    /// Writes all of it, as long as HQ's machine answers and the trace is not given up: HQ may read nothing here.
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

    /// Classes and breaks.
    fn tell(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        if self.dialect != Dialect::F1 {
            for sequence in self.session.take_breaks() {
                bytes.extend(self.control.data_break(sequence).unwrap_or_default());
            }
        }
        for told in self.session.take_told() {
            let mut name = JavaString::from(text(&told.name));
            // Collectors of the other versions may read all of it as the name.
            if told.was_loaded && self.dialect == Dialect::F1 {
                let marked = JavaString::from(&*f1::mark_loaded_before(&name.to_string()));
                name = JavaString::from(text(marked.as_java_str().as_bytes()));
            }
            bytes.extend(self.control.class(told.outcome, &name).unwrap_or_default());
        }
        self.write(&bytes)
    }

    /// Original classes, everything sent, the last heartbeat, the end. If HQ is lost, there is nobody to tell.
    fn end(&mut self, lost: bool) {
        if lost {
            self.session.set_lost();
        }
        self.control.shut_down();
        self.agent.set_paused(false);
        if !lost {
            let _ = self.tell();
            let _ = self.beat();
        }
        // The program that ends keeps its probes: there is no time, and no need.
        let ends_with_program = self.session.is_finishing();
        if !ends_with_program {
            jvm::untrace(self.agent);
        }
        self.session.set_finishing();
        if let Some(drain) = self.drain.take() {
            let _ = drain.join();
        }
        // A class that was being loaded may have had its probes since.
        if !ends_with_program {
            jvm::untrace(self.agent);
        }
        if let Some((end, ticker)) = self.ticker.take() {
            end.store(true, std::sync::atomic::Ordering::Relaxed);
            let _ = ticker.join();
        }
        if !lost {
            let _ = self.tell();
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
        assert_eq!(long.chars().count(), MOST_SAID + 1);
    }
}
