//! The server's side: everything that one test application says, on all its connections.
//!
//! ```text
//! Application::new(settings)
//!     │ connect(Pipe) ─▶ Connection, one for each that the listener accepts
//!     │ handle_bytes(&mut connection, …) ─▶ Output: events, bytes to write, whether to close
//!     │ handle_close(&mut connection)    ─▶ Output
//!     ▼ handle_exit(code)                ─▶ Output: what is wrong with the whole
//! ```
//!
//! A [`Connection`] holds what is of one connection, so that many can be read at the same time; an [`Application`] holds what
//! they share, and takes one of them at a time.
//!
//! A broken rule is a value, [`Event::Violation`], and the machine goes on wherever there is a sensible way to, where
//! `dotnet test` would end itself and all other modules with it. The caller decides what becomes of the application: one with
//! a violation whose severity is [`Error`](crate::Severity::Error) has failed.
//!
//! | what comes | reply | event |
//! |---|---|---|
//! | a handshake that is accepted | the chosen version | [`Event::Connected`] |
//! | one that is not | an empty version, at which hosts exit with 12 | a violation, [`Event::Rejected`] |
//! | command-line options in help mode, also without a handshake (before MTP 2.3) | void | [`Event::Message`] |
//! | anything else before the handshake, or after it was rejected | none; close | a violation. It is not decoded |
//! | a message of a wrong mode, or of another ExecutionId | void | a violation |
//! | a body that can't be decoded | void | a violation |
//! | any other message that is known | void | its violations, [`Event::Message`] |
//! | an unknown id | void | a violation |
//! | the request on the control pipe | later: [`Connection::control`] | [`Event::ControlWaiting`] |

mod application;
mod connection;
pub(crate) mod fields;
mod handshake;
mod sessions;

use crate::{Handshake, HostType, Limits, Message, Rule, Version, Versions, Violation};

pub use application::Application;
pub use connection::Connection;

/// Names a connection of an application: 0, 1, 2 … in the order of [`Application::connect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// What an application was started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// To run its tests.
    Run,
    /// To list its tests (`--list-tests`).
    Discover,
    /// To list its options (`--help`). Wins over the one before if both are given.
    Help,
}

/// What a connection is for: it depends on the pipe that the application has dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pipe {
    /// The pipe that was given on the command line.
    Data,
    /// The pipe that the reply to the handshake has named.
    Control,
}

/// What the server says and expects.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the application was started for.
    pub mode: Mode,
    /// The versions that may be chosen.
    pub versions: Versions,
    /// Whether to ask for tests that have begun, and for all about discovered tests
    /// ([`IS_IDE`](crate::HandshakeKey::IS_IDE)).
    pub is_ide: bool,
    /// The name of the control pipe, if there is one. It is offered with version 1.4.0 and later.
    pub control_pipe: Option<String>,
    /// What else replies to handshakes say: process id, architecture, framework, system.
    pub identity: Handshake,
    /// How much is accepted.
    pub limits: Limits,
}

impl Settings {
    /// All versions, no wishes, no control pipe, nothing about ourselves.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            versions: Versions::all(),
            is_ide: false,
            control_pipe: None,
            identity: Handshake::new(),
            limits: Limits::default(),
        }
    }
}

/// A process of the application that has had its handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its connection.
    pub connection: ConnectionId,
    /// What it has said.
    pub handshake: Handshake,
    /// The chosen version.
    pub version: Version,
    /// What it is to the application.
    pub host_type: HostType,
    /// Which attempt it is, from 1 on; none if it is no test host. Several test hosts of one attempt have parts of the tests
    /// each. Before MTP 2.4 hosts do not say it: each new InstanceId counts as the next attempt then, as it does for
    /// `dotnet test`.
    pub attempt: Option<u32>,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A handshake was accepted.
    Connected(Peer),
    /// A handshake was not accepted. Its violations have come before; this is the first of those that led to it.
    Rejected(Rule),
    /// A message other than a handshake.
    Message(Message),
    /// A process waits on its control pipe: [`Connection::control`].
    ControlWaiting,
    /// A rule was broken.
    Violation(Violation),
}

/// What is to be done now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// What has happened, in order.
    pub events: Vec<Event>,
    /// Bytes to write, in one go.
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

    fn violation(&mut self, rule: Rule, connection: Option<ConnectionId>, detail: impl Into<String>) {
        self.events.push(Event::Violation(Violation {
            rule,
            connection,
            detail: detail.into(),
            offset: None,
        }));
    }

    /// Says of the violations from the event `since` on where they are, if they do not say it themselves.
    fn place(&mut self, since: usize, offset: u64) {
        for event in self.events.iter_mut().skip(since) {
            if let Event::Violation(violation) = event {
                violation.offset.get_or_insert(offset);
            }
        }
    }

    fn reply(&mut self, message: &Message) {
        // Our replies are a few hundred bytes.
        if let Ok(frame) = message.to_frame() {
            self.transmit.extend_from_slice(&frame);
        }
    }
}

/// Text of the other side as it can be shown: quoted, escaped, and cut.
pub(crate) fn quote(text: &str) -> String {
    const SHOWN: usize = 100;
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() { format!("{head:?}…") } else { format!("{head:?}") }
}
