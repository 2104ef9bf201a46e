//! HQ's side of a control connection.

use std::time::Duration;

use super::{AgentProcess, CommandError, Event, Output, Settings, UNEXPECTED, WRONG_VERSION, error};
use crate::mode::Effect;
use crate::rules::quoted;
use crate::{
    Command, Configuration, Decoder, Dialect, Message, Mode, ModeByte, Rule, State, Stream, Violation, encode,
};

/// How long an agent may take to follow a command: the original HQ is concerned after that.
const TO_FOLLOW: Duration = Duration::from_secs(2);

/// A control connection.
#[derive(Debug)]
pub struct Control {
    settings: Settings,
    decoder: Decoder,
    dialect: Option<Dialect>,
    /// What was sent last.
    configuration: Option<Configuration>,
    /// Where the commands have led the agent.
    state: State,
    /// What it has said itself.
    said: Option<ModeByte>,
    heard: Duration,
    /// The interval before it was configured once more: the next heartbeat may still come by that one.
    before: Option<Duration>,
    commanded: Option<Duration>,
    overdue: bool,
    has_process: bool,
    closed: bool,
}

impl Control {
    /// A connection that was accepted at `now`, a time since any fixed point.
    pub fn new(settings: Settings, now: Duration) -> Self {
        Self {
            decoder: Decoder::with_limits(Stream::control_from_agent(), settings.limits),
            settings,
            dialect: None,
            configuration: None,
            state: State::NEW,
            said: None,
            heard: now,
            before: None,
            commanded: None,
            overdue: false,
            has_process: false,
            closed: false,
        }
    }

    /// The dialect of an agent that has said hello.
    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// Where the commands, and the end of the program, have led the agent.
    pub fn state(&self) -> State {
        self.state
    }

    /// The mode in its last heartbeat.
    pub fn said(&self) -> Option<ModeByte> {
        self.said
    }

    /// The configuration that was sent last.
    pub fn configuration(&self) -> Option<&Configuration> {
        self.configuration.as_ref()
    }

    /// Takes what the agent has sent.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Duration) -> Output {
        let mut output = Output::default();
        if self.closed {
            return output;
        }
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Stream::control_from_agent()));
        let read = decoder.feed(bytes, |offset, message| {
            if !output.close {
                self.take(offset, &message, now, &mut output);
            }
            None
        });
        if let Err(error) = read
            && !output.close
        {
            let rule = if self.dialect.is_some() { Rule::Undecodable } else { Rule::BeforeHello };
            output.violation(rule, error.to_string(), error.offset);
            output.refuse(UNEXPECTED);
        }
        self.decoder = decoder;
        self.closed |= output.close;
        output
    }

    fn take(&mut self, offset: u64, message: &Message<'_>, now: Duration, output: &mut Output) {
        for (what, text) in message.texts().filter(|(_, text)| !text.is_valid()) {
            output.violation(Rule::Text, format!("{what} {}", quoted(text)), offset);
        }
        match *message {
            Message::Hello { version } => return self.greet(version, None, offset, output),
            Message::ProjectHello { version, project } => {
                return self.greet(version, Some(project), offset, output);
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
            // The decoder lets nothing else through on this stream.
            _ => return,
        };
        output.events.push(event);
    }

    fn greet(&mut self, version: u8, project: Option<u32>, offset: u64, output: &mut Output) {
        if self.dialect.is_some() {
            output.violation(Rule::SecondHello, format!("version {version}"), offset);
            return output.refuse(UNEXPECTED);
        }
        // A project hello is the hello of version 4 and no other.
        let known = Dialect::of_hello(version)
            .filter(|dialect| self.settings.dialects.contains(dialect))
            .filter(|dialect| project.is_none() || *dialect == Dialect::V4);
        let Some(dialect) = known else {
            output.violation(Rule::UnknownVersion, format!("version {version}"), offset);
            return output.refuse(WRONG_VERSION);
        };
        self.dialect = Some(dialect);
        output.events.push(Event::Hello { dialect, project });
    }

    fn heartbeat(&mut self, byte: ModeByte, offset: u64, now: Duration, output: &mut Output) {
        self.heard = now;
        self.before = None;
        self.overdue = false;
        let shutting_down = Mode::ShuttingDown.byte();
        if self.said == Some(shutting_down) && byte != shutting_down {
            output.violation(Rule::ModeAfterShutdown, format!("mode {:#04x}", byte.0), offset);
        }
        self.said = Some(byte);
        match byte.mode() {
            None => output.violation(Rule::UnknownMode, format!("mode {:#04x}", byte.0), offset),
            Some(mode) if mode == self.state.mode => self.commanded = None,
            // The program has come to its end.
            Some(Mode::ShuttingDown) => {
                self.state.mode = Mode::ShuttingDown;
                self.commanded = None;
            }
            Some(_) => {}
        }
    }

    /// How long it may take from one heartbeat to the next.
    fn interval(&self) -> Option<Duration> {
        let configured = self.configuration.as_ref()?.heartbeat_interval.max(1).unsigned_abs();
        Some(Duration::from_millis(configured.into()).max(self.before.unwrap_or_default()))
    }

    /// What is overdue at `now`: a heartbeat, or the mode that was commanded. Each is said once.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<Violation> {
        let mut overdue = Vec::new();
        let Some(interval) = self.interval().filter(|_| !self.closed) else {
            return overdue;
        };
        let silent = now.saturating_sub(self.heard);
        if silent > interval * 3 && !self.overdue {
            self.overdue = true;
            let detail = format!("none for {} ms, one each {} ms", silent.as_millis(), interval.as_millis());
            overdue.push(Violation::new(Rule::HeartbeatMissing, detail, None));
        }
        // Whether it follows can be seen from the next heartbeat only.
        let to_follow = TO_FOLLOW.max(interval * 2);
        if self.commanded.is_some_and(|since| now.saturating_sub(since) > to_follow) {
            self.commanded = None;
            let said = self.said.map_or(0, |byte| byte.0);
            let detail = format!("commanded {:?}, it says {said:#04x}", self.state.mode);
            overdue.push(Violation::new(Rule::ModeNotFollowed, detail, None));
        }
        overdue
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to say if nothing comes until then.
    pub fn next_timeout(&self) -> Option<Duration> {
        let interval = self.interval().filter(|_| !self.closed)?;
        let heartbeat = (!self.overdue).then(|| self.heard + interval * 3);
        let mode = self.commanded.map(|since| since + TO_FOLLOW.max(interval * 2));
        let next = match (heartbeat, mode) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        next.map(|at| at + Duration::from_millis(1))
    }

    /// The connection has ended. That is how traces end; what is wrong with it is returned.
    pub fn handle_close(&mut self) -> Vec<Violation> {
        let mut wrong = Vec::new();
        let offset = Some(self.decoder.offset());
        if !self.closed && self.decoder.leftover() > 0 {
            let detail = format!("{} bytes of one", self.decoder.leftover());
            wrong.push(Violation::new(Rule::CutMessage, detail, offset));
        }
        if !self.closed && self.configuration.is_some() && self.said != Some(Mode::ShuttingDown.byte()) {
            let said = self.said.map_or_else(|| "nothing".to_owned(), |byte| format!("{:#04x}", byte.0));
            wrong.push(Violation::new(Rule::EndWithoutShutdown, format!("it had said {said}"), offset));
        }
        self.closed = true;
        wrong
    }

    fn open(&self) -> Result<Dialect, CommandError> {
        if self.closed {
            return Err(CommandError::Closed);
        }
        self.dialect.ok_or(CommandError::NoHello)
    }

    /// The bytes of a configuration: the first one, or another one before start. Write them in one call: the original agents
    /// take what comes with the first `read` for the whole of it.
    ///
    /// # Errors
    /// No hello yet, start was sent, a configuration that has no encoding in the agent's version.
    pub fn configure(&mut self, configuration: &Configuration) -> Result<Vec<u8>, CommandError> {
        let dialect = self.open()?;
        if self.state.started {
            return Err(CommandError::Started);
        }
        let bytes = configuration.to_message(dialect)?;
        self.before = self.interval();
        self.configuration = Some(configuration.clone());
        Ok(bytes)
    }

    /// The byte of a command, if it is legal where the agent is.
    ///
    /// # Errors
    /// A command that the agent would end or hang of; or there is no configuration yet.
    pub fn command(&mut self, command: Command, now: Duration) -> Result<Vec<u8>, CommandError> {
        self.open()?;
        if self.configuration.is_none() {
            return Err(CommandError::NotConfigured);
        }
        match self.state.after(command) {
            Effect::To(state) => {
                self.state = state;
                self.commanded = Some(now);
                Ok(vec![command.id()])
            }
            Effect::Ignored | Effect::Illegal => Err(CommandError::Illegal { command, state: self.state }),
        }
    }

    /// The bytes of the commands that lead to a mode. The agent is started if it is not.
    ///
    /// # Errors
    /// Nothing leads there, or there is no configuration yet.
    pub fn go(&mut self, mode: Mode, now: Duration) -> Result<Vec<u8>, CommandError> {
        let Some(path) = self.state.path_to(mode) else {
            return Err(CommandError::NoWay { from: self.state.mode, to: mode });
        };
        let mut bytes = Vec::new();
        for command in path {
            bytes.extend(self.command(*command, now)?);
        }
        Ok(bytes)
    }

    /// The bytes of a request for counts and coverage.
    ///
    /// # Errors
    /// The agent does not speak F1, or has no configuration yet.
    pub fn snapshot(&mut self, reset: bool) -> Result<Vec<u8>, CommandError> {
        let dialect = self.open()?;
        if dialect != Dialect::F1 {
            return Err(CommandError::NotInDialect(dialect));
        }
        if self.configuration.is_none() {
            return Err(CommandError::NotConfigured);
        }
        Ok(encode::to_bytes(&Message::Snapshot { reset }, dialect)?)
    }

    /// The bytes of an error: the trace ends. During the handshake it ends the JVM of an original agent, before start its
    /// program; later the program goes on.
    pub fn fail(&mut self, text: &str) -> Vec<u8> {
        self.state.mode = Mode::ShuttingDown;
        self.commanded = None;
        error(text)
    }
}
