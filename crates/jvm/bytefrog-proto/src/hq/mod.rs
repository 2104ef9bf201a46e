//! HQ's side of the protocol: one control connection and its data connections per agent.
//!
//! ```text
//! Control::new(settings, now)
//!     │ handle_bytes(bytes, now) ─▶ Output: events, bytes to send, whether to close
//!     │ configure(…), command(…), change_mode(…) ─▶ bytes to send, each with one write
//!     │ handle_timeout(now)      ─▶ what is overdue
//!     ▼ handle_close()           ─▶ rules that the end of the connection breaks
//! Data::new()
//!     │ handle_bytes(bytes, dialect of a run, handler of messages) ─▶ bytes to send, whether to close
//! ```
//!
//! | the agent sends | reply | event |
//! |---|---|---|
//! | hello of an accepted version | none; the caller must [`configure`](Control::configure) the agent at once,
//! because it waits forever | [`Event::Hello`] |
//! | hello of another version | error "Invalid Protocol Version"; close | a violation |
//! | anything before hello, or an invalid message | error "Unexpected Input Format"; close | a violation |
//! | a second hello | error "Unexpected Input Format"; close | a violation |
//! | anything before the configuration was sent | none | a violation, and the event of the message |
//! | data hello of a known run | data hello reply | |
//! | data hello of an unknown run | error; close | a violation |
//!
//! A command that would make the agent fail is rejected ([`CommandError`]): nothing is sent. [`Control::change_mode`]
//! finds a sequence of legal commands, such as unsuspend and pause from suspended to paused.

mod control;
mod data;

use thiserror::Error;

use crate::decode::Limits;
use crate::{
    AgentState, ClassOutcome, Command, Dialect, EncodeError, JavaStr, JavaString, Message, Mode, ModeByte,
    Rule, Violation, encode,
};

pub use control::Control;
pub use data::{Data, DataOutput};

/// The error text of the original HQs for input that they cannot decode.
const UNEXPECTED: &str = "Unexpected Input Format";

/// The error text of the original HQs for an unknown version.
const WRONG_VERSION: &str = "Invalid Protocol Version";

/// What HQ accepts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The accepted dialects.
    pub dialects: Vec<Dialect>,
    /// The limits of the decoder.
    pub limits: Limits,
}

impl Default for Settings {
    /// Returns settings that accept all versions.
    fn default() -> Self {
        Self { dialects: Dialect::ALL.to_vec(), limits: Limits::default() }
    }
}

/// The process of an F1 agent: an owned [`f1::Process`](crate::f1::Process).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `f1::Process`")]
pub struct AgentProcess {
    pub pid: u32,
    pub wall: u64,
    pub resolution: u32,
    pub jvm: JavaString,
    pub main: JavaString,
}

/// An event on a control connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of the message of the same name")]
pub enum Event {
    /// The agent said hello and waits for a configuration.
    Hello { dialect: Dialect, project: Option<u32> },
    /// The agent sent a heartbeat.
    Heartbeat { mode: ModeByte, queue: u16 },
    /// Recording stopped before this event, or a few events later.
    DataBreak { sequence: u32 },
    /// A class was loaded in the agent's JVM.
    Class { outcome: ClassOutcome, name: JavaString },
    /// The agent reported an error; the trace is over.
    Error { text: JavaString },
    /// The agent described its process.
    Process(AgentProcess),
    /// The agent broke a rule of the protocol.
    Violation(Violation),
}

/// The result of handling received bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The bytes to send.
    pub transmit: Vec<u8>,
    /// Whether to close the connection afterwards.
    pub close: bool,
}

impl Output {
    /// Returns the rules that were broken.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        self.events.iter().filter_map(|event| match event {
            Event::Violation(violation) => Some(violation),
            _ => None,
        })
    }

    fn violation(&mut self, rule: Rule, detail: impl Into<String>, offset: u64) {
        self.events.push(Event::Violation(Violation::new(rule, detail, Some(offset))));
    }

    /// Sends an error and closes the connection.
    fn reject(&mut self, why: &str) {
        self.transmit.extend(error(why));
        self.close = true;
    }
}

/// An error for a command that cannot be sent. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The agent has not said hello.
    #[error("the agent has not sent its hello")]
    NoHello,
    /// The agent has no configuration yet.
    #[error("the agent has no configuration yet")]
    NotConfigured,
    /// The agent was started: the configuration can be changed before start only.
    #[error("the configuration cannot be changed after start")]
    Started,
    /// The command would make the agent fail or hang.
    #[error("{command} is not possible: the agent is {}{}", .state.mode, if .state.started { "" } else { ", before start" })]
    Illegal {
        /// The command.
        command: Command,
        /// The state of the agent.
        state: AgentState,
    },
    /// No sequence of commands leads to the mode.
    #[error("no command changes the mode from {from} to {to}")]
    NoPath {
        /// The current mode.
        from: Mode,
        /// The requested mode.
        to: Mode,
    },
    /// The agent's version does not have the message.
    #[error("version {0} of the protocol does not support this")]
    NotInDialect(Dialect),
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
    /// The message cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Returns an error message, which is identical in all versions. The text is truncated to what the format allows.
pub(crate) fn error(text: &str) -> Vec<u8> {
    // One byte of UTF-8 becomes at most two bytes of modified UTF-8.
    let text: String = text
        .chars()
        .scan(0, |size, c| {
            *size += 2 * c.len_utf8();
            u16::try_from(*size).is_ok().then_some(c)
        })
        .collect();
    let text = JavaString::from(text.as_str());
    encode::to_bytes(&Message::Error { text: text.as_java_str() }, Dialect::V1).unwrap_or_default()
}

/// Returns whether an error text is the one with which an original HQ rejects an unknown version.
pub fn is_version_rejected(text: JavaStr<'_>) -> bool {
    text.as_bytes() == WRONG_VERSION.as_bytes()
}
