//! The agent's side of the protocol: its control connection and its data connections.
//!
//! ```text
//! Control::new(dialect) ─▶ hello() ─▶ handle_bytes(…) ─▶ Event::Configured ─▶ heartbeat(…) … ─▶ Event::Command(start) …
//! Data::new(dialect)    ─▶ hello(run) ─▶ handle_bytes(…) ─▶ Reply::Ready ─▶ write events
//! ```
//!
//! How an agent reacts to what HQ sends:
//!
//! | HQ sends | this implementation | the original agents |
//! |---|---|---|
//! | a configuration before start | applies it; it replaces the previous one | same |
//! | a configuration after start | sends an error; the program continues untraced | same |
//! | an unreadable configuration | sends an error; the program continues untraced | the JVM aborts |
//! | a command that the current mode does not have | sends an error; the program continues untraced | same |
//! | stop before start | the program starts, untraced | the program hangs forever |
//! | an error in place of the first configuration | reports [`Event::Rejected`]: an F1 agent sends hello again with
//! version 1; an agent whose version was rejected, with 4, 3, and 2 | the JVM aborts |
//! | an error before start | the program continues untraced | the program exits with status 0 |
//! | an error after start | sends the error back and shuts down; the program continues | same |

use thiserror::Error;

use crate::mode::CommandEffect;
use crate::rules::quoted;
use crate::{
    AgentState, ClassOutcome, Command, Configuration, Decoder, Dialect, EncodeError, JavaStr, JavaString,
    Message, Mode, Rule, Stream, Violation, encode, f1, hq,
};

/// An event that a message of HQ caused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// HQ sent a configuration: the first one, or another one before start.
    Configured(Box<Configuration>),
    /// HQ sent a legal command, which leads to this state.
    Command(Command, AgentState),
    /// HQ requested a snapshot of counts and coverage.
    Snapshot {
        /// Whether to reset the counts to zero afterwards.
        reset: bool,
    },
    /// HQ rejected this agent, or this version of the protocol.
    Rejected {
        /// The error text of HQ.
        text: JavaString,
        /// The version to say hello with on a new connection; `None` if the agent should give up.
        fallback: Option<Dialect>,
    },
    /// HQ aborted the trace.
    Error {
        /// The error text of HQ.
        text: JavaString,
    },
    /// HQ broke a rule of the protocol. The agent shuts down; its program continues.
    Violation(Violation),
}

/// The result of handling received bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The bytes to send.
    pub transmit: Vec<u8>,
    /// Whether the trace is over: send what is buffered, then close the connections.
    pub close: bool,
}

/// A message that cannot be sent now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// A message that requires a configuration, which HQ has not sent yet.
    #[error("{0} must not be sent before the configuration")]
    NotConfigured(&'static str),
    /// A message that was already sent and may be sent only once.
    #[error("{0} was already sent")]
    Twice(&'static str),
    /// A message that cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// The agent's end of a control connection.
#[derive(Debug)]
pub struct Control {
    dialect: Dialect,
    decoder: Decoder,
    greeted: bool,
    configuration: Option<Configuration>,
    state: AgentState,
    closed: bool,
}

impl Control {
    /// Creates the state machine of a new connection to HQ.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            decoder: Decoder::new(Stream::control_from_hq(dialect)),
            greeted: false,
            configuration: None,
            state: AgentState::NEW,
            closed: false,
        }
    }

    /// Returns the dialect of this agent. For an agent of version 1, the configuration determines which of two
    /// dialects it is.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the current state of the agent.
    pub fn state(&self) -> AgentState {
        self.state
    }

    /// Returns the configuration in force; `None` before the first one.
    pub fn configuration(&self) -> Option<&Configuration> {
        self.configuration.as_ref()
    }

    /// Returns the first message, hello; with a project if the dialect has projects.
    ///
    /// # Errors
    /// Fails if hello was already sent, or if the dialect has no hello of this form.
    pub fn hello(&mut self, project: Option<u32>) -> Result<Vec<u8>, SendError> {
        if self.greeted {
            return Err(SendError::Twice("hello"));
        }
        let version = self.dialect.hello();
        let message = match project {
            Some(project) => Message::ProjectHello { version, project },
            None => Message::Hello { version },
        };
        let bytes = encode::to_bytes(&message, self.dialect)?;
        self.greeted = true;
        Ok(bytes)
    }

    fn message(&self, what: &'static str, message: &Message<'_>) -> Result<Vec<u8>, SendError> {
        if self.configuration.is_none() {
            return Err(SendError::NotConfigured(what));
        }
        Ok(encode::to_bytes(message, self.dialect)?)
    }

    /// Returns a heartbeat: to be sent right after the configuration, and then once per interval. `queue` is the
    /// number of buffers that wait to be sent.
    ///
    /// # Errors
    /// Fails before the configuration.
    pub fn heartbeat(&self, queue: u16) -> Result<Vec<u8>, SendError> {
        self.message("a heartbeat", &Message::Heartbeat { mode: self.state.mode.byte(), queue })
    }

    /// Returns the message that reports what the agent did with a class.
    ///
    /// # Errors
    /// Fails before the configuration, or if the name is too long.
    pub fn class(&self, outcome: ClassOutcome, name: &JavaString) -> Result<Vec<u8>, SendError> {
        self.message("a class", &Message::Class { outcome, name: name.as_java_str() })
    }

    /// Returns the message that reports a gap in the trace before this event: to be sent when recording stops, on
    /// the change from tracing to suspended.
    ///
    /// # Errors
    /// Fails before the configuration, and for F1, which has a drop message per thread instead.
    pub fn data_break(&self, sequence: u32) -> Result<Vec<u8>, SendError> {
        self.message("a data break", &Message::DataBreak { sequence })
    }

    /// Returns the message that describes the process, which an F1 agent sends first.
    ///
    /// # Errors
    /// Fails before the configuration, and for dialects other than F1.
    pub fn process(&self, process: &f1::Process<'_>) -> Result<Vec<u8>, SendError> {
        self.message("the process", &Message::Process(*process))
    }

    /// Notes that the program is exiting: heartbeats report the mode "shutting down" from now on.
    pub fn shut_down(&mut self) {
        self.state.mode = Mode::ShuttingDown;
    }

    /// Handles bytes that HQ sent.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Output {
        let mut output = Output::default();
        if self.closed {
            return output;
        }
        let stream = Stream::control_from_hq(self.dialect);
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(stream));
        let read = decoder.feed(bytes, |offset, message| {
            if !output.close {
                self.handle(offset, &message, &mut output);
            }
            None
        });
        if let Err(error) = read
            && !output.close
        {
            self.fail(Rule::Undecodable, error.to_string(), error.offset, &mut output);
        }
        self.decoder = decoder;
        self.closed |= output.close;
        output
    }

    /// Ends the trace because HQ broke a rule.
    fn fail(&mut self, rule: Rule, detail: String, offset: u64, output: &mut Output) {
        let violation = Violation::new(rule, detail, Some(offset));
        output.transmit.extend(hq::error(&violation.to_string()));
        output.events.push(Event::Violation(violation));
        output.close = true;
        self.state.mode = Mode::ShuttingDown;
    }

    fn handle(&mut self, offset: u64, message: &Message<'_>, output: &mut Output) {
        match *message {
            Message::Configuration { payload } => self.configure(payload, offset, output),
            Message::Error { text } if self.configuration.is_none() => {
                let fallback = fallback(self.dialect, text);
                output.events.push(Event::Rejected { text: text.into(), fallback });
                output.close = true;
            }
            Message::Error { text } => {
                // Sent back, as the original agents do: an HQ that waits for the reply learns that the error arrived.
                output.transmit.extend(hq::error(&format!("received error from HQ: {text}")));
                output.events.push(Event::Error { text: text.into() });
                output.close = true;
                self.state.mode = Mode::ShuttingDown;
            }
            Message::Command(command) if self.configuration.is_some() => match self.state.after(command) {
                CommandEffect::To(state) => {
                    self.state = state;
                    output.events.push(Event::Command(command, state));
                }
                CommandEffect::Ignored => {}
                CommandEffect::Illegal => {
                    let before = if self.state.started { "" } else { ", before start" };
                    let detail = format!("{command} while {}{before}", self.state.mode);
                    self.fail(Rule::IllegalCommand, detail, offset, output);
                }
            },
            Message::Snapshot { reset } if self.configuration.is_some() => {
                output.events.push(Event::Snapshot { reset });
            }
            _ => {
                let detail = format!("{message} before the configuration");
                self.fail(Rule::IllegalCommand, detail, offset, output);
            }
        }
    }

    fn configure(&mut self, payload: &[u8], offset: u64, output: &mut Output) {
        if self.state.started {
            let detail = format!("while {}", self.state.mode);
            return self.fail(Rule::LateConfiguration, detail, offset, output);
        }
        match Configuration::decode(payload, self.dialect.framing()) {
            Ok((configuration, class)) => {
                if let Some(class) = class {
                    self.dialect = class.dialect();
                }
                self.configuration = Some(configuration.clone());
                output.events.push(Event::Configured(Box::new(configuration)));
            }
            Err(error) => self.fail(Rule::Configuration, quoted_error(&error.to_string()), offset, output),
        }
    }
}

/// Returns the version to say hello with next. An HQ that does not know F1 rejects it with an error, and most know
/// version 1: see `docs/bytefrog-f1.md`. Some know later versions only; an HQ that rejects for another reason would
/// do so for every version.
fn fallback(rejected: Dialect, text: JavaStr<'_>) -> Option<Dialect> {
    match rejected {
        Dialect::F1 => Some(Dialect::V1),
        _ if !hq::is_version_rejected(text) => None,
        Dialect::V1 | Dialect::V1CodePulse => Some(Dialect::V4),
        Dialect::V4 => Some(Dialect::V3),
        Dialect::V3 => Some(Dialect::V2),
        Dialect::V2 => None,
    }
}

fn quoted_error(text: &str) -> String {
    quoted(JavaString::from(text).as_java_str())
}

/// HQ's answer on a data connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// HQ is ready for events.
    Ready,
    /// HQ rejected the connection.
    Rejected {
        /// The error text of HQ.
        text: JavaString,
    },
    /// HQ broke a rule of the protocol.
    Violation(Violation),
}

/// The agent's end of a data connection.
#[derive(Debug)]
pub struct Data {
    decoder: Decoder,
    ready: bool,
}

impl Data {
    /// Creates the state machine of a new connection, to the address of the control connection.
    pub fn new(dialect: Dialect) -> Self {
        Self { decoder: Decoder::new(Stream::data_from_hq(dialect)), ready: false }
    }

    /// Returns the first message, which names the run that the configuration gave.
    pub fn hello(run: u8) -> [u8; 2] {
        [crate::MessageId::DATA_HELLO.0, run]
    }

    /// Handles bytes that HQ sent; only its reply is legal. Returns `None` if the reply is still incomplete.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Option<Reply> {
        let mut reply = None;
        let mut ready = self.ready;
        let read = self.decoder.feed(bytes, |offset, message| {
            if reply.as_ref().is_none_or(|reply| *reply == Reply::Ready) {
                reply = Some(match message {
                    Message::Error { text } => Reply::Rejected { text: text.into() },
                    _ if !ready => Reply::Ready,
                    _ => Reply::Violation(Violation::new(Rule::SecondHello, "a second reply", Some(offset))),
                });
                ready = true;
            }
            None
        });
        self.ready = ready;
        if let Err(error) = read {
            return Some(Reply::Violation(Violation::new(
                Rule::Undecodable,
                error.to_string(),
                Some(error.offset),
            )));
        }
        reply
    }
}
