//! HQ's end of a control connection.

use std::time::Duration;

use super::{AgentProcess, CommandError, Event, Output, Settings, UNEXPECTED, WRONG_VERSION, error};
use crate::mode::CommandEffect;
use crate::rules::quoted;
use crate::{
    AgentState, Command, Configuration, Decoder, Dialect, Message, Mode, ModeByte, Rule, Stream, Violation,
    encode,
};

/// The time that an agent has to follow a command; the original HQ warns after this time.
const COMMAND_DEADLINE: Duration = Duration::from_secs(2);

/// HQ's end of a control connection.
#[derive(Debug)]
pub struct Control {
    settings: Settings,
    decoder: Decoder,
    dialect: Option<Dialect>,
    /// The last configuration that was sent.
    configuration: Option<Configuration>,
    /// The state that the commands led to.
    state: AgentState,
    /// The mode in the agent's last heartbeat.
    reported: Option<ModeByte>,
    last_heartbeat: Duration,
    /// The interval of the previous configuration: the next heartbeat may still follow it.
    previous_interval: Option<Duration>,
    /// The time of the last command that the agent has not followed yet.
    commanded: Option<Duration>,
    overdue: bool,
    has_process: bool,
    closed: bool,
}

impl Control {
    /// Creates the state machine of a connection that was accepted at `now`, a time since any fixed point.
    pub fn new(settings: Settings, now: Duration) -> Self {
        Self {
            decoder: Decoder::with_limits(Stream::control_from_agent(), settings.limits),
            settings,
            dialect: None,
            configuration: None,
            state: AgentState::NEW,
            reported: None,
            last_heartbeat: now,
            previous_interval: None,
            commanded: None,
            overdue: false,
            has_process: false,
            closed: false,
        }
    }

    /// Returns the dialect of the agent; `None` before hello.
    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// Returns the state that the commands, or the exit of the program, have led the agent to.
    pub fn state(&self) -> AgentState {
        self.state
    }

    /// Returns the mode in the last heartbeat; `None` before the first one.
    pub fn reported_mode(&self) -> Option<ModeByte> {
        self.reported
    }

    /// Returns the last configuration that was sent.
    pub fn configuration(&self) -> Option<&Configuration> {
        self.configuration.as_ref()
    }

    /// Handles bytes that the agent sent.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Duration) -> Output {
        let mut output = Output::default();
        if self.closed {
            return output;
        }
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Stream::control_from_agent()));
        let read = decoder.feed(bytes, |offset, message| {
            if !output.close {
                self.handle(offset, &message, now, &mut output);
            }
            None
        });
        if let Err(error) = read
            && !output.close
        {
            let rule = if self.dialect.is_some() { Rule::Undecodable } else { Rule::BeforeHello };
            output.violation(rule, error.to_string(), error.offset);
            output.reject(UNEXPECTED);
        }
        self.decoder = decoder;
        self.closed |= output.close;
        output
    }

    fn handle(&mut self, offset: u64, message: &Message<'_>, now: Duration, output: &mut Output) {
        for (what, text) in message.texts().filter(|(_, text)| !text.is_valid()) {
            output.violation(Rule::Text, format!("{what} {}", quoted(text)), offset);
        }
        match *message {
            Message::Hello { version } => return self.handle_hello(version, None, offset, output),
            Message::ProjectHello { version, project } => {
                return self.handle_hello(version, Some(project), offset, output);
            }
            Message::Error { text } => {
                output.violation(Rule::AgentError, quoted(text), offset);
                output.events.push(Event::Error { text: text.into() });
                self.state.mode = Mode::ShuttingDown;
                return;
            }
            _ => {}
        }
        if self.configuration.is_none() {
            output.violation(Rule::BeforeConfiguration, message.to_string(), offset);
        }
        if self.dialect == Some(Dialect::F1) && !self.has_process && !matches!(message, Message::Process(_)) {
            output.violation(Rule::BeforeProcess, message.to_string(), offset);
            self.has_process = true;
        }
        let event = match *message {
            Message::Heartbeat { mode, queue } => {
                self.heartbeat(mode, offset, now, output);
                Event::Heartbeat { mode, queue }
            }
            Message::DataBreak { sequence } => Event::DataBreak { sequence },
            Message::Class { outcome, name } => Event::Class { outcome, name: name.into() },
            Message::Process(process) => {
                self.has_process = true;
                Event::Process(AgentProcess {
                    pid: process.pid,
                    wall: process.wall,
                    resolution: process.resolution,
                    jvm: process.jvm.into(),
                    main: process.main.into(),
                })
            }
            // Unreachable: the decoder accepts no other message on this stream.
            _ => return,
        };
        output.events.push(event);
    }

    fn handle_hello(&mut self, version: u8, project: Option<u32>, offset: u64, output: &mut Output) {
        if self.dialect.is_some() {
            output.violation(Rule::SecondHello, format!("version {version}"), offset);
            return output.reject(UNEXPECTED);
        }
        // Only version 4 has a project hello.
        let known = Dialect::of_hello(version)
            .filter(|dialect| self.settings.dialects.contains(dialect))
            .filter(|dialect| project.is_none() || *dialect == Dialect::V4);
        let Some(dialect) = known else {
            output.violation(Rule::UnknownVersion, format!("version {version}"), offset);
            return output.reject(WRONG_VERSION);
        };
        self.dialect = Some(dialect);
        output.events.push(Event::Hello { dialect, project });
    }

    fn heartbeat(&mut self, byte: ModeByte, offset: u64, now: Duration, output: &mut Output) {
        self.last_heartbeat = now;
        self.previous_interval = None;
        self.overdue = false;
        let shutting_down = Mode::ShuttingDown.byte();
        if self.reported == Some(shutting_down) && byte != shutting_down {
            output.violation(Rule::ModeAfterShutdown, format!("mode {:#04x}", byte.0), offset);
        }
        self.reported = Some(byte);
        match byte.mode() {
            None => output.violation(Rule::UnknownMode, format!("mode {:#04x}", byte.0), offset),
            Some(mode) if mode == self.state.mode => self.commanded = None,
            // The program is exiting.
            Some(Mode::ShuttingDown) => {
                self.state.mode = Mode::ShuttingDown;
                self.commanded = None;
            }
            Some(_) => {}
        }
    }

    /// Returns the longest interval allowed between two heartbeats.
    fn interval(&self) -> Option<Duration> {
        let configured = self.configuration.as_ref()?.heartbeat_interval.max(1).unsigned_abs();
        Some(Duration::from_millis(configured.into()).max(self.previous_interval.unwrap_or_default()))
    }

    /// Returns what is overdue at `now`: a heartbeat, or the mode that was commanded. Each is reported once.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<Violation> {
        let mut overdue = Vec::new();
        let Some(interval) = self.interval().filter(|_| !self.closed) else {
            return overdue;
        };
        let silent = now.saturating_sub(self.last_heartbeat);
        if silent > interval * 3 && !self.overdue {
            self.overdue = true;
            let detail =
                format!("none for {} ms, expected every {} ms", silent.as_millis(), interval.as_millis());
            overdue.push(Violation::new(Rule::HeartbeatMissing, detail, None));
        }
        // Only the next heartbeat shows whether the agent followed.
        let deadline = COMMAND_DEADLINE.max(interval * 2);
        if self.commanded.is_some_and(|since| now.saturating_sub(since) > deadline) {
            self.commanded = None;
            let reported = self.reported.map_or(0, |byte| byte.0);
            let detail = format!("commanded {:?}, but it reports {reported:#04x}", self.state.mode);
            overdue.push(Violation::new(Rule::ModeNotFollowed, detail, None));
        }
        overdue
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout) if no bytes arrive until then.
    pub fn next_timeout(&self) -> Option<Duration> {
        let interval = self.interval().filter(|_| !self.closed)?;
        let heartbeat = (!self.overdue).then(|| self.last_heartbeat + interval * 3);
        let mode = self.commanded.map(|since| since + COMMAND_DEADLINE.max(interval * 2));
        let next = match (heartbeat, mode) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        next.map(|at| at + Duration::from_millis(1))
    }

    /// Handles the end of the connection, which is how traces end. Returns the rules that were broken.
    pub fn handle_close(&mut self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let offset = Some(self.decoder.offset());
        if !self.closed && self.decoder.leftover() > 0 {
            let detail = format!("{} bytes of a message", self.decoder.leftover());
            violations.push(Violation::new(Rule::CutMessage, detail, offset));
        }
        if !self.closed && self.configuration.is_some() && self.reported != Some(Mode::ShuttingDown.byte()) {
            let reported =
                self.reported.map_or_else(|| "nothing".to_owned(), |byte| format!("{:#04x}", byte.0));
            violations.push(Violation::new(
                Rule::EndWithoutShutdown,
                format!("it last reported {reported}"),
                offset,
            ));
        }
        self.closed = true;
        violations
    }

    fn open_dialect(&self) -> Result<Dialect, CommandError> {
        if self.closed {
            return Err(CommandError::Closed);
        }
        self.dialect.ok_or(CommandError::NoHello)
    }

    /// Returns the bytes of a configuration: the first one, or another one before start. Send them with one write:
    /// the original agents assume that the first `read` returns all of it.
    ///
    /// # Errors
    /// Fails before hello, after start, and for a configuration that cannot be encoded in the agent's version.
    pub fn configure(&mut self, configuration: &Configuration) -> Result<Vec<u8>, CommandError> {
        let dialect = self.open_dialect()?;
        if self.state.started {
            return Err(CommandError::Started);
        }
        let bytes = configuration.to_message(dialect)?;
        self.previous_interval = self.interval();
        self.configuration = Some(configuration.clone());
        Ok(bytes)
    }

    /// Returns the byte of a command, if the command is legal in the agent's state.
    ///
    /// # Errors
    /// Fails for a command that would make the agent fail or hang, and before the configuration.
    pub fn command(&mut self, command: Command, now: Duration) -> Result<Vec<u8>, CommandError> {
        self.open_dialect()?;
        if self.configuration.is_none() {
            return Err(CommandError::NotConfigured);
        }
        match self.state.after(command) {
            CommandEffect::To(state) => {
                self.state = state;
                self.commanded = Some(now);
                Ok(vec![command.id()])
            }
            CommandEffect::Ignored | CommandEffect::Illegal => {
                Err(CommandError::Illegal { command, state: self.state })
            }
        }
    }

    /// Returns the bytes of the commands that lead to a mode. They start the agent if necessary.
    ///
    /// # Errors
    /// Fails if no commands lead to the mode, and before the configuration.
    pub fn change_mode(&mut self, mode: Mode, now: Duration) -> Result<Vec<u8>, CommandError> {
        let Some(path) = self.state.path_to(mode) else {
            return Err(CommandError::NoPath { from: self.state.mode, to: mode });
        };
        let mut bytes = Vec::new();
        for command in path {
            bytes.extend(self.command(*command, now)?);
        }
        Ok(bytes)
    }

    /// Returns the bytes of a request for counts and coverage.
    ///
    /// # Errors
    /// Fails if the agent does not speak F1, and before the configuration.
    pub fn snapshot(&mut self, reset: bool) -> Result<Vec<u8>, CommandError> {
        let dialect = self.open_dialect()?;
        if dialect != Dialect::F1 {
            return Err(CommandError::NotInDialect(dialect));
        }
        if self.configuration.is_none() {
            return Err(CommandError::NotConfigured);
        }
        Ok(encode::to_bytes(&Message::Snapshot { reset }, dialect)?)
    }

    /// Returns the bytes of an error message, which ends the trace. An original agent aborts its JVM during the
    /// handshake and exits the program before start; later the program continues.
    pub fn fail(&mut self, text: &str) -> Vec<u8> {
        self.state.mode = Mode::ShuttingDown;
        self.commanded = None;
        error(text)
    }
}
