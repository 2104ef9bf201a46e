//! The configuration of an agent: what to trace.
//!
//! [`Configuration`] is common to all versions. It has two encodings: a serialized Java object (`java`) and JSON
//! (`json`). The encoded bytes equal those of the original HQs.

mod java;
mod json;
mod objects;

use thiserror::Error;

pub use java::JavaClass;

use crate::{DecodeError, Dialect, EncodeError, Framing, JavaString, Message, encode};

/// How an F1 agent records; all other agents ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RecordMode {
    /// Record every call.
    #[default]
    Full,
    /// Record the number and total duration of calls, as snapshots.
    Counts,
    /// Record which methods have run, each once.
    Coverage,
}

/// What an F1 agent does when HQ reads more slowly than the agent sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WhenSlow {
    /// Block the program, as the original agents do.
    #[default]
    Block,
    /// Drop events, and report how many.
    Drop,
    /// Continue with counts only.
    Counts,
}

/// The part of a configuration that only F1 has. It is sent in the JSON, where older agents ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extension {
    /// How the agent records.
    pub record: RecordMode,
    /// Whether timestamps have a resolution of milliseconds only, which costs less.
    pub coarse_clock: bool,
    /// What the agent does when HQ is slow.
    pub when_slow: WhenSlow,
    /// The time between two snapshots of counts or coverage, in milliseconds; 0 sends them on request only.
    pub snapshot_interval: u32,
}

/// What an agent traces and how it sends it. The numbers are signed, as in Java.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The number of the run, which data connections repeat. Java has a signed byte, so 200 is -56 there.
    pub run: u8,
    /// The time between two heartbeats, in milliseconds.
    pub heartbeat_interval: i32,
    /// The classes not to trace: Java regular expressions that are anchored at the beginning only, for names with
    /// slashes.
    pub exclusions: Vec<JavaString>,
    /// The classes to trace even if they are excluded: an inclusion takes precedence over an exclusion.
    pub inclusions: Vec<JavaString>,
    /// The total size of all buffers, in bytes. Below about 1,280 the original agents fail with an error.
    pub buffer_memory_budget: i32,
    /// Unused by all known agents.
    pub queue_retry_count: i32,
    /// The number of data connections. With 0 the program of an original agent never exits.
    pub data_senders: i32,
    /// The settings of F1 agents.
    pub extension: Extension,
}

impl Default for Configuration {
    /// Returns the configuration of the original HQ, which traces everything.
    fn default() -> Self {
        Self {
            run: 0,
            heartbeat_interval: 1000,
            exclusions: Vec::new(),
            inclusions: Vec::new(),
            buffer_memory_budget: 25_600,
            queue_retry_count: 5,
            data_senders: 1,
            extension: Extension::default(),
        }
    }
}

/// An error that occurs when a configuration is decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("configuration: {0}")]
pub struct ConfigurationError(#[from] pub DecodeError);

impl Configuration {
    /// Decodes the payload of a configuration message. The returned class is that of the Java object, which
    /// determines the length of method exits; `None` for JSON. Fields that are missing in JSON have the defaults of
    /// the original HQ.
    ///
    /// # Errors
    /// Fails if the payload is malformed; the error has the offset in the payload.
    pub fn decode(payload: &[u8], framing: Framing) -> Result<(Self, Option<JavaClass>), ConfigurationError> {
        Ok(match framing {
            Framing::Java => {
                let (configuration, class) = objects::read(payload)?;
                (configuration, Some(class))
            }
            Framing::Json16 | Framing::Json32 => (json::read(payload)?, None),
        })
    }

    /// Returns the payload of a configuration message in this dialect.
    ///
    /// # Errors
    /// Fails for a pattern of more than 65,535 bytes in a Java object. The class of Code Pulse is never written: no
    /// HQ of Code Pulse supports agents of version 1.
    pub fn payload(&self, dialect: Dialect) -> Result<Vec<u8>, EncodeError> {
        match dialect.framing() {
            Framing::Java => java::write(self, &JavaClass::bytefrog()),
            Framing::Json16 => Ok(json::write(self, None)),
            Framing::Json32 => Ok(json::write(self, Some(&self.extension))),
        }
    }

    /// Returns the complete message. Send it with one write: the original agents assume that the first `read`
    /// returns all of it.
    ///
    /// # Errors
    /// Fails as [`payload`](Self::payload) does, and for more than 65,535 bytes in versions 2 to 4.
    pub fn to_message(&self, dialect: Dialect) -> Result<Vec<u8>, EncodeError> {
        let payload = self.payload(dialect)?;
        encode::to_bytes(&Message::Configuration { payload: &payload }, dialect)
    }
}
