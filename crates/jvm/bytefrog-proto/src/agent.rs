//! An agent's side: its control connection, and its data connections.
//!
//! ```text
//! Control::new(dialect) ─▶ hello() ─▶ handle_bytes(…) ─▶ Event::Configured ─▶ heartbeat(…) … ─▶ Event::Command(start) …
//! Data::new(dialect)    ─▶ hello(run) ─▶ handle_bytes(…) ─▶ Reply::Ready ─▶ write events
//! ```
//!
//! What an agent does about what it is told:
//!
//! | what comes | ours | the originals |
//! |---|---|---|
//! | a configuration before start | applied; replaces the one before | the same |
//! | a configuration after start | error; the program goes on untraced | the same |
//! | one that can't be read | error; the program goes on untraced | the JVM aborts |
//! | a command in a mode that does not have it | the same | the same |
//! | stop before start | the program starts, untraced | hangs for ever |
//! | an error in place of the first configuration | [`Event::Refused`]: an F1 agent says hello again, with 1; one that is refused for its version, with 4, 3, and 2 | the JVM aborts |
//! | an error before start | the program goes on untraced | the program ends, with status 0 |
//! | an error later | said back; shutting down; the program goes on | the same |

use thiserror::Error;

use crate::mode::Effect;
use crate::rules::quoted;
use crate::{
    ClassOutcome, Command, Configuration, Decoder, Dialect, EncodeError, JavaStr, JavaString, Message, Mode,
    Rule, State, Stream, Violation, encode, f1, hq,
};

/// What HQ has said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// What to trace. The first one, or another one before start.
    Configured(Box<Configuration>),
    /// A legal command, and where it leads.
    Command(Command, State),
    /// Send counts and coverage.
    Snapshot {
        /// And count from zero then.
        reset: bool,
    },
    /// HQ does not want this agent, or not this version.
    Refused {
        /// Why.
        text: JavaString,
        /// Whether to say hello again on a new connection, and with what.
        fallback: Option<Dialect>,
    },
    /// HQ ends the trace.
    Error {
        /// Why.
        text: JavaString,
    },
    /// HQ has broken a rule. The agent shuts down; its program goes on.
    Violation(Violation),
}

/// What follows from what has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// What has happened, in order.
    pub events: Vec<Event>,
    /// What to write.
    pub transmit: Vec<u8>,
    /// Whether the trace ends: what is buffered is sent, and the connections are closed.
    pub close: bool,
}

/// Something that can't be said now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SayError {
    /// Hello is said once, and first.
    #[error("{0} has to wait for the configuration")]
    NotConfigured(&'static str),
    /// It was said.
    #[error("{0} was said before")]
    Twice(&'static str),
    /// It has no encoding.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A control connection.
#[derive(Debug)]
pub struct Control {
    dialect: Dialect,
    decoder: Decoder,
    greeted: bool,
    configuration: Option<Configuration>,
    state: State,
    closed: bool,
}

impl Control {
    /// A connection to HQ.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            decoder: Decoder::new(Stream::control_from_hq(dialect)),
            greeted: false,
            configuration: None,
            state: State::NEW,
            closed: false,
        }
    }

    /// What this agent speaks. An agent of version 1 learns from the configuration which one it is.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// The configuration in force.
    pub fn configuration(&self) -> Option<&Configuration> {
        self.configuration.as_ref()
    }

    /// The first message; with a project if the dialect has it.
    ///
    /// # Errors
    /// It was said, or has no such form in this dialect.
    pub fn hello(&mut self, project: Option<u32>) -> Result<Vec<u8>, SayError> {
        if self.greeted {
            return Err(SayError::Twice("hello"));
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

    fn say(&self, what: &'static str, message: &Message<'_>) -> Result<Vec<u8>, SayError> {
        if self.configuration.is_none() {
            return Err(SayError::NotConfigured(what));
        }
        Ok(encode::to_bytes(message, self.dialect)?)
    }

    /// A heartbeat: at once after the configuration, and then after each interval. `queue` is the number of buffers that wait.
    ///
    /// # Errors
    /// No configuration yet.
    pub fn heartbeat(&self, queue: u16) -> Result<Vec<u8>, SayError> {
        self.say("a heartbeat", &Message::Heartbeat { mode: self.state.mode.byte(), queue })
    }

    /// What became of a class.
    ///
    /// # Errors
    /// No configuration yet, or a name that is too long.
    pub fn class(&self, outcome: ClassOutcome, name: &JavaString) -> Result<Vec<u8>, SayError> {
        self.say("a class", &Message::Class { outcome, name: name.as_java_str() })
    }

    /// The trace has a break before this event: to be said when recording stops, from tracing to suspended.
    ///
    /// # Errors
    /// No configuration yet; F1, where each thread has a drop instead.
    pub fn data_break(&self, sequence: u32) -> Result<Vec<u8>, SayError> {
        self.say("a data break", &Message::DataBreak { sequence })
    }

    /// The process, which F1 begins with.
    ///
    /// # Errors
    /// No configuration yet; another dialect.
    pub fn process(&self, process: &f1::Process<'_>) -> Result<Vec<u8>, SayError> {
        self.say("the process", &Message::Process(*process))
    }

    /// The program ends: heartbeats say so from now on.
    pub fn shut_down(&mut self) {
        self.state.mode = Mode::ShuttingDown;
    }

    /// Takes what HQ has sent.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Output {
        let mut output = Output::default();
        if self.closed {
            return output;
        }
        let stream = Stream::control_from_hq(self.dialect);
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(stream));
        let read = decoder.feed(bytes, |offset, message| {
            if !output.close {
                self.take(offset, &message, &mut output);
            }
            None
        });
        if let Err(error) = read
            && !output.close
        {
            self.end(Rule::Undecodable, error.to_string(), error.offset, &mut output);
        }
        self.decoder = decoder;
        self.closed |= output.close;
        output
    }

    /// The trace ends because of HQ.
    fn end(&mut self, rule: Rule, detail: String, offset: u64, output: &mut Output) {
        let violation = Violation::new(rule, detail, Some(offset));
        output.transmit.extend(hq::error(&violation.to_string()));
        output.events.push(Event::Violation(violation));
        output.close = true;
        self.state.mode = Mode::ShuttingDown;
    }

    fn take(&mut self, offset: u64, message: &Message<'_>, output: &mut Output) {
        match *message {
            Message::Configuration { payload } => self.configure(payload, offset, output),
            Message::Error { text } if self.configuration.is_none() => {
                let fallback = fallback(self.dialect, text);
                output.events.push(Event::Refused { text: text.into(), fallback });
                output.close = true;
            }
            Message::Error { text } => {
                // Said back, as the originals do: an HQ that waits for it knows that it was heard.
                output.transmit.extend(hq::error(&format!("received error from HQ: {text}")));
                output.events.push(Event::Error { text: text.into() });
                output.close = true;
                self.state.mode = Mode::ShuttingDown;
            }
            Message::Command(command) if self.configuration.is_some() => match self.state.after(command) {
                Effect::To(state) => {
                    self.state = state;
                    output.events.push(Event::Command(command, state));
                }
                Effect::Ignored => {}
                Effect::Illegal => {
                    let before = if self.state.started { "" } else { ", before start" };
                    let detail = format!("{command} while {}{before}", self.state.mode);
                    self.end(Rule::IllegalCommand, detail, offset, output);
                }
            },
            Message::Snapshot { reset } if self.configuration.is_some() => {
                output.events.push(Event::Snapshot { reset });
            }
            _ => {
                let detail = format!("{message} before the configuration");
                self.end(Rule::IllegalCommand, detail, offset, output);
            }
        }
    }

    fn configure(&mut self, payload: &[u8], offset: u64, output: &mut Output) {
        if self.state.started {
            let detail = format!("while {}", self.state.mode);
            return self.end(Rule::LateConfiguration, detail, offset, output);
        }
        match Configuration::decode(payload, self.dialect.framing()) {
            Ok((configuration, class)) => {
                if let Some(class) = class {
                    self.dialect = class.dialect();
                }
                self.configuration = Some(configuration.clone());
                output.events.push(Event::Configured(Box::new(configuration)));
            }
            Err(error) => self.end(Rule::Configuration, quoted_error(&error.to_string()), offset, output),
        }
    }
}

/// What to say hello with next. An HQ that does not know F1 says so with an error, and most know 1: docs/bytefrog-f1.md. There
/// are some that know only a later one; who refuses for another reason would do so in every version.
fn fallback(refused: Dialect, text: JavaStr<'_>) -> Option<Dialect> {
    match refused {
        Dialect::F1 => Some(Dialect::V1),
        _ if !hq::is_version_refused(text) => None,
        Dialect::V1 | Dialect::V1CodePulse => Some(Dialect::V4),
        Dialect::V4 => Some(Dialect::V3),
        Dialect::V3 => Some(Dialect::V2),
        Dialect::V2 => None,
    }
}

fn quoted_error(text: &str) -> String {
    quoted(JavaString::from(text).as_java_str())
}

/// What HQ has answered on a data connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It is ready for events.
    Ready,
    /// It is not.
    Refused {
        /// Why.
        text: JavaString,
    },
    /// It has broken a rule.
    Violation(Violation),
}

/// A data connection.
#[derive(Debug)]
pub struct Data {
    decoder: Decoder,
    ready: bool,
}

impl Data {
    /// A connection to HQ, at the same address.
    pub fn new(dialect: Dialect) -> Self {
        Self { decoder: Decoder::new(Stream::data_from_hq(dialect)), ready: false }
    }

    /// The first message, with the run of the configuration.
    pub fn hello(run: u8) -> [u8; 2] {
        [crate::MessageId::DATA_HELLO.0, run]
    }

    /// Takes what HQ has sent: nothing but the reply is due.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Option<Reply> {
        let mut reply = None;
        let mut ready = self.ready;
        let read = self.decoder.feed(bytes, |offset, message| {
            if reply.as_ref().is_none_or(|reply| *reply == Reply::Ready) {
                reply = Some(match message {
                    Message::Error { text } => Reply::Refused { text: text.into() },
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
