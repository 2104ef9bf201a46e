//! The server's side: the state of one test application on all of its connections.
//!
//! ```text
//! Application::new(settings)
//!     │ connect(Pipe) ─▶ Connection, one for each that the listener accepts
//!     │ handle_bytes(&mut connection, …) ─▶ Output: events, bytes to write, whether to close
//!     │ handle_close(&mut connection)    ─▶ Output
//!     ▼ handle_exit(code)                ─▶ Output: violations of the whole run
//! ```
//!
//! A [`Connection`] holds the state of one connection, so that several can be read concurrently. An [`Application`]
//! holds the shared state and handles one connection at a time.
//!
//! A violation is a value, [`Event::Violation`], and handling continues wherever this makes sense, whereas `dotnet
//! test` would exit and stop all other modules. The caller decides what happens to the application: a violation of
//! severity [`Error`](crate::Severity::Error) means that the application has failed.
//!
//! | received | reply | event |
//! |---|---|---|
//! | a handshake that is accepted | the chosen version | [`Event::Connected`] |
//! | a handshake that is rejected | an empty version, on which hosts exit with 12 | a violation, [`Event::Rejected`] |
//! | command-line options in help mode, also without a handshake (before MTP 2.3) | void | [`Event::Message`] |
//! | anything else before the handshake, or after it was rejected | none; close | a violation; the message is not decoded |
//! | a message of a wrong mode, or of another ExecutionId | void | a violation |
//! | a body that can't be decoded | void | a violation |
//! | any other known message | void | its violations, [`Event::Message`] |
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

/// The id of a connection of an application: 0, 1, 2 … in the order of [`Application::connect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// The mode in which an application was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Run the tests.
    Run,
    /// List the tests (`--list-tests`).
    Discover,
    /// List the options (`--help`). Takes precedence over `--list-tests`.
    Help,
}

/// The pipe of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pipe {
    /// The pipe that was specified on the command line.
    Data,
    /// The pipe that the reply to the handshake named.
    Control,
}

/// The settings of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The mode in which the application was started.
    pub mode: Mode,
    /// The versions that may be chosen.
    pub versions: Versions,
    /// Whether to request started tests and all details of discovered tests ([`IS_IDE`](crate::HandshakeKey::IS_IDE)).
    pub is_ide: bool,
    /// The name of the control pipe, if any. It is offered with version 1.4.0 and later.
    pub control_pipe: Option<String>,
    /// Further properties of handshake replies: process id, architecture, framework, operating system.
    pub identity: Handshake,
    /// Limits on received frames.
    pub limits: Limits,
}

impl Settings {
    /// Creates settings with all versions, no requested events, no control pipe and no identity.
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

/// A process of the application whose handshake was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The id of the connection.
    pub connection: ConnectionId,
    /// The handshake of the process.
    pub handshake: Handshake,
    /// The chosen version.
    pub version: Version,
    /// The role of the process in the application.
    pub host_type: HostType,
    /// The attempt, starting at 1; `None` if the process is not a test host. Several test hosts of one attempt each run
    /// a part of the tests. Hosts before MTP 2.4 do not send the attempt: each new InstanceId then counts as the next
    /// attempt, as for `dotnet test`.
    pub attempt: Option<u32>,
}

/// An event of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A handshake was accepted.
    Connected(Peer),
    /// A handshake was rejected. Its violations precede this event; holds the first rule that led to the rejection.
    Rejected(Rule),
    /// A message other than a handshake.
    Message(Message),
    /// A process is waiting for a command on its control pipe; see [`Connection::control`].
    ControlWaiting,
    /// A rule was broken.
    Violation(Violation),
}

/// The result of handling an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The bytes to write, in one operation.
    pub transmit: Vec<u8>,
    /// Whether to close the connection after writing.
    pub close: bool,
}

impl Output {
    /// Returns the violations among the events.
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

    /// Sets the offset of the violations from event `since` on, unless it is already set.
    fn set_offset(&mut self, since: usize, offset: u64) {
        for event in self.events.iter_mut().skip(since) {
            if let Event::Violation(violation) = event {
                violation.offset.get_or_insert(offset);
            }
        }
    }

    fn reply(&mut self, message: &Message) {
        // Replies of the server have a few hundred bytes and can always be encoded.
        if let Ok(frame) = message.to_frame() {
            self.transmit.extend_from_slice(&frame);
        }
    }
}

/// Formats text of the peer for messages: quoted, escaped, and truncated.
pub(crate) fn quote(text: &str) -> String {
    const MAX_CHARS: usize = 100;
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(MAX_CHARS).collect();
    if chars.next().is_some() { format!("{head:?}…") } else { format!("{head:?}") }
}
