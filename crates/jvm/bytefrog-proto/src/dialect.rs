//! Versions of the protocol, and what differs between them.
//!
//! Owns: [`Dialect`], which decides every layout, and where a stream comes from ([`Stream`]).

use std::fmt;

/// The hello byte of our own version.
pub const HELLO_F1: u8 = 0xf1;

/// A version of the protocol as its messages are laid out. The hello byte does not suffice: an agent that says 1 gets its
/// layout of method exits from the class of its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Hello 1 with the configuration of bytefrog: exits have 17 bytes. What the specification describes.
    V1,
    /// Hello 1 with the configuration of Code Pulse: exits have 16 bytes.
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

/// How the configuration is sent.
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
    /// All of them, oldest first.
    pub const ALL: [Self; 6] = [Self::V1, Self::V1CodePulse, Self::V2, Self::V3, Self::V4, Self::F1];

    /// What an agent speaks that says hello with this version; `None` is a version that nobody knows.
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

    /// The version in hello.
    pub fn hello(self) -> u8 {
        match self {
            Self::V1 | Self::V1CodePulse => 1,
            Self::V2 => 2,
            Self::V3 => 3,
            Self::V4 => 4,
            Self::F1 => HELLO_F1,
        }
    }

    /// How the configuration is sent.
    pub fn framing(self) -> Framing {
        match self {
            Self::V1 | Self::V1CodePulse => Framing::Java,
            Self::V2 | Self::V3 | Self::V4 => Framing::Json16,
            Self::F1 => Framing::Json32,
        }
    }

    /// Nanoseconds in a unit of time: timestamps are milliseconds but for F1.
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

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The tracer inside the JVM, which dials.
    Agent,
    /// The collector, which listens.
    Hq,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// The first one, on which the agent says hello.
    Control,
    /// The others, on which it says data hello.
    Data,
}

/// One direction of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    /// What the connection is for.
    pub channel: Channel,
    /// Who sends.
    pub from: Side,
    /// The layout of its messages. `None`: no hello has come yet, and only hellos and errors can be read.
    pub dialect: Option<Dialect>,
}

impl Stream {
    /// What an agent sends on its first connection.
    pub fn control_from_agent() -> Self {
        Self { channel: Channel::Control, from: Side::Agent, dialect: None }
    }

    /// What an agent sends on another connection. The dialect is that of the control connection that the run in data hello
    /// belongs to.
    pub fn data_from_agent(dialect: Option<Dialect>) -> Self {
        Self { channel: Channel::Data, from: Side::Agent, dialect }
    }

    /// What HQ sends to an agent that has said hello.
    pub fn control_from_hq(dialect: Dialect) -> Self {
        Self { channel: Channel::Control, from: Side::Hq, dialect: Some(dialect) }
    }

    /// What HQ sends on a data connection: the reply, or an error.
    pub fn data_from_hq(dialect: Dialect) -> Self {
        Self { channel: Channel::Data, from: Side::Hq, dialect: Some(dialect) }
    }
}
