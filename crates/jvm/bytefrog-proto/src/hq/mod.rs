//! HQ's side: one control connection, and its data connections.
//!
//! ```text
//! Control::new(settings, now)
//!     │ handle_bytes(bytes, now) ─▶ Output: events, bytes to write, whether to close
//!     │ configure(…), command(…), go(…) ─▶ bytes to write, each in one call
//!     │ handle_timeout(now)      ─▶ what is overdue
//!     ▼ handle_close()           ─▶ what is wrong with the end
//! Data::new()
//!     │ handle_bytes(bytes, which run is which dialect, what to do with a message) ─▶ bytes to write, whether to close
//! ```
//!
//! | what comes | reply | event |
//! |---|---|---|
//! | hello of an accepted version | none; the caller has to [`configure`](Control::configure) at once: the agent waits for ever | [`Event::Hello`] |
//! | hello of another one | error "Invalid Protocol Version"; close | a violation |
//! | anything before hello, or what is no message | error "Unexpected Input Format"; close | a violation |
//! | a second hello | the same | a violation |
//! | anything before the configuration was sent | none | a violation, and its event |
//! | data hello of a known run | data hello reply | |
//! | data hello of another one | error; close | a violation |
//!
//! A command that the agent would die of is refused here ([`CommandError`]): nothing is sent. [`Control::go`] takes the way
//! around, such as unsuspend and pause from suspended to paused.

mod control;
mod data;

use thiserror::Error;

use crate::decode::Limits;
use crate::{
    ClassOutcome, Command, Dialect, EncodeError, JavaStr, JavaString, Message, Mode, ModeByte, Rule, State,
    Violation, encode,
};

pub use control::Control;
pub use data::{Data, DataOutput};

/// What the original HQs say to what they can't read.
const UNEXPECTED: &str = "Unexpected Input Format";

/// And to a version that they do not know.
const WRONG_VERSION: &str = "Invalid Protocol Version";

/// What HQ accepts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The dialects that it answers with a configuration.
    pub dialects: Vec<Dialect>,
    /// How much is accepted.
    pub limits: Limits,
}

impl Default for Settings {
    /// All versions.
    fn default() -> Self {
        Self { dialects: Dialect::ALL.to_vec(), limits: Limits::default() }
    }
}

/// The process of an F1 agent, with memory of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `f1::Process`")]
pub struct AgentProcess {
    pub pid: u32,
    pub wall: u64,
    pub resolution: u32,
    pub jvm: JavaString,
    pub main: JavaString,
}

/// What an agent has said on its control connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of the message of the same name")]
pub enum Event {
    /// It wants a configuration.
    Hello { dialect: Dialect, project: Option<u32> },
    /// It lives.
    Heartbeat { mode: ModeByte, queue: u16 },
    /// Recording has stopped before this event, or a few later.
    DataBreak { sequence: u32 },
    /// A class was loaded.
    Class { outcome: ClassOutcome, name: JavaString },
    /// The trace ends.
    Error { text: JavaString },
    /// What process it is.
    Process(AgentProcess),
    /// It has broken a rule.
    Violation(Violation),
}

/// What follows from what has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// What has happened, in order.
    pub events: Vec<Event>,
    /// What to write.
    pub transmit: Vec<u8>,
    /// Whether to close the connection after that.
    pub close: bool,
}

impl Output {
    /// The rules that were broken.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        self.events.iter().filter_map(|event| match event {
            Event::Violation(violation) => Some(violation),
            _ => None,
        })
    }

    fn violation(&mut self, rule: Rule, detail: impl Into<String>, offset: u64) {
        self.events.push(Event::Violation(Violation::new(rule, detail, Some(offset))));
    }

    /// The connection is of no use: say why, and close it.
    fn refuse(&mut self, why: &str) {
        self.transmit.extend(error(why));
        self.close = true;
    }
}

/// A command that can't be sent. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The agent has not said hello.
    #[error("the agent has not said hello")]
    NoHello,
    /// It has no configuration, which has to come first.
    #[error("the configuration has to be sent first")]
    NotConfigured,
    /// The configuration can be changed until start only.
    #[error("the configuration can't be changed after start")]
    Started,
    /// The agent would end with an error, or hang.
    #[error("{command} is not possible: the agent is {}{}", .state.mode, if .state.started { "" } else { ", before start" })]
    Illegal {
        /// The command.
        command: Command,
        /// Where the agent is.
        state: State,
    },
    /// No commands lead there.
    #[error("an agent that is {from} can't be made {to}")]
    NoWay {
        /// Where the agent is.
        from: Mode,
        /// Where it should be.
        to: Mode,
    },
    /// The agent's version does not have it.
    #[error("version {0} of the protocol does not have it")]
    NotInDialect(Dialect),
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
    /// It has no encoding.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// An error message, the same in all versions. Longer texts are cut to what the format can have.
pub(crate) fn error(text: &str) -> Vec<u8> {
    // A byte of UTF-8 is at most two of modified UTF-8.
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

/// Whether a text is what an original HQ says to a version that it does not know.
pub fn is_version_refused(text: JavaStr<'_>) -> bool {
    text.as_bytes() == WRONG_VERSION.as_bytes()
}
