//! The versions of the protocol and their differences.
//!
//! [`Dialect`] determines the layout of messages, and [`Stream`] names the connection and direction they belong to.

use std::fmt;

/// The hello byte of F1, the version of runtap.
pub const HELLO_F1: u8 = 0xf1;

/// A version of the protocol, as far as the layout of its messages differs. The hello byte does not suffice: for an
/// agent of version 1, the class of its configuration determines the layout of method exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Hello 1 with the configuration class of bytefrog: exits have 17 bytes. This is what the specification
    /// describes.
    V1,
    /// Hello 1 with the configuration class of Code Pulse: exits have 16 bytes.
    V1CodePulse,
    /// Hello 2, Code Pulse 2.0: the configuration is JSON.
    V2,
    /// Hello 3, Code Pulse 2.5: source locations.
    V3,
    /// Hello 4, Code Pulse 2.7: projects.
    V4,
    /// Hello 0xF1, runtap: nanoseconds, 32-bit threads, batches, counts and coverage (`docs/bytefrog-f1.md`).
    F1,
}

/// The encoding of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// A 32-bit length and a serialized Java object.
    Java,
    /// A 16-bit length and JSON (`writeUTF`).
    Json16,
    /// A 32-bit length and JSON.
    Json32,
}

impl Dialect {
    /// All dialects, oldest first.
    pub const ALL: [Self; 6] = [Self::V1, Self::V1CodePulse, Self::V2, Self::V3, Self::V4, Self::F1];

    /// Returns the dialect of an agent that says hello with this version; `None` if the version is unknown.
    pub fn of_hello(version: u8) -> Option<Self> {
        Some(match version {
            1 => Self::V1,
            2 => Self::V2,
            3 => Self::V3,
            4 => Self::V4,
            HELLO_F1 => Self::F1,
            _ => return None,
        })
    }

    /// Returns the version byte in hello.
    pub fn hello(self) -> u8 {
        match self {
            Self::V1 | Self::V1CodePulse => 1,
            Self::V2 => 2,
            Self::V3 => 3,
            Self::V4 => 4,
            Self::F1 => HELLO_F1,
        }
    }

    /// Returns the encoding of the configuration.
    pub fn framing(self) -> Framing {
        match self {
            Self::V1 | Self::V1CodePulse => Framing::Java,
            Self::V2 | Self::V3 | Self::V4 => Framing::Json16,
            Self::F1 => Framing::Json32,
        }
    }

    /// Returns the length of one unit of time, in nanoseconds: a millisecond, except in F1.
    pub fn nanoseconds(self) -> u64 {
        if self == Self::F1 { 1 } else { 1_000_000 }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "1",
            Self::V1CodePulse => "1 (Code Pulse)",
            Self::V2 => "2",
            Self::V3 => "3",
            Self::V4 => "4",
            Self::F1 => "F1",
        })
    }
}

/// A side of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The tracer inside the JVM, which connects.
    Agent,
    /// The collector, which listens.
    Hq,
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// The first connection of an agent, on which it says hello.
    Control,
    /// Any further connection, on which the agent says data hello.
    Data,
}

/// One direction of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The purpose of the connection.
    pub channel: Channel,
    /// The sender.
    pub from: Side,
    /// The layout of the messages. `None` before hello: then only hellos and errors can be decoded.
    pub dialect: Option<Dialect>,
}

impl Stream {
    /// Returns the stream from an agent to HQ on a control connection.
    pub fn control_from_agent() -> Self {
        Self { channel: Channel::Control, from: Side::Agent, dialect: None }
    }

    /// Returns the stream from an agent to HQ on a data connection. Its dialect is that of the control connection
    /// with the run that is named in data hello.
    pub fn data_from_agent(dialect: Option<Dialect>) -> Self {
        Self { channel: Channel::Data, from: Side::Agent, dialect }
    }

    /// Returns the stream from HQ to an agent that has said hello.
    pub fn control_from_hq(dialect: Dialect) -> Self {
        Self { channel: Channel::Control, from: Side::Hq, dialect: Some(dialect) }
    }

    /// Returns the stream from HQ to an agent on a data connection: the reply, or an error.
    pub fn data_from_hq(dialect: Dialect) -> Self {
        Self { channel: Channel::Data, from: Side::Hq, dialect: Some(dialect) }
    }
}
