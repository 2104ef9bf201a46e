//! What HQ tells an agent to trace.
//!
//! Owns: [`Configuration`], the same for all versions, and its two forms: a serialized Java object (`java`) and JSON
//! (`json`). What is written equals what the original HQs write, byte for byte.

mod java;
mod json;
mod objects;

use thiserror::Error;

pub use java::JavaClass;

use crate::{DecodeError, Dialect, EncodeError, Framing, JavaString, Message, encode};

/// How an F1 agent records; ignored by all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Record {
    /// Every call.
    #[default]
    Full,
    /// How often and how long, as snapshots.
    Counts,
    /// What has run, each once.
    Coverage,
}

/// What an F1 agent does when HQ takes less than it has to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WhenSlow {
    /// The program waits, as with the original agents.
    #[default]
    Block,
    /// Events are dropped, and their number told.
    Drop,
    /// It goes on with counts only.
    Counts,
}

/// The part of a configuration that only F1 has. It rides in the JSON, where older agents would ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extension {
    /// How to record.
    pub record: Record,
    /// Whether the clock has milliseconds only, which costs less.
    pub coarse_clock: bool,
    /// What to do when HQ is slow.
    pub when_slow: WhenSlow,
    /// Time between two snapshots of counts or coverage, in milliseconds; 0: only when asked.
    pub snapshot_interval: u32,
}

/// What to trace, and how to send it. Numbers are Java's: signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Names the run on data connections. Java has it as a signed byte, so 200 is -56 there.
    pub run: u8,
    /// Time between two heartbeats, in milliseconds.
    pub heartbeat_interval: i32,
    /// Classes to leave alone: Java expressions that are anchored at the beginning only, for names with slashes.
    pub exclusions: Vec<JavaString>,
    /// Classes to trace all the same: an inclusion wins over an exclusion.
    pub inclusions: Vec<JavaString>,
    /// Bytes for all buffers together. Below about 1,280 the original agents end with an error.
    pub buffer_memory_budget: i32,
    /// Not used by any known agent.
    pub queue_retry_count: i32,
    /// Data connections. With 0 the program of an original agent never ends.
    pub data_senders: i32,
    /// For F1 agents.
    pub extension: Extension,
}

impl Default for Configuration {
    /// As the original HQ has them; everything is traced.
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

/// A configuration that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("configuration: {0}")]
pub struct ConfigurationError(#[from] pub DecodeError);

impl Configuration {
    /// Reads the payload of a configuration message. The class is that of the Java object, which says how long method exits
    /// are; JSON has none. Fields that are missing in JSON have the values of the original HQ.
    ///
    /// # Errors
    /// What does not follow the form, with the offset in the payload.
    pub fn decode(payload: &[u8], framing: Framing) -> Result<(Self, Option<JavaClass>), ConfigurationError> {
        Ok(match framing {
            Framing::Java => {
                let (configuration, class) = objects::read(payload)?;
                (configuration, Some(class))
            }
            Framing::Json16 | Framing::Json32 => (json::read(payload)?, None),
        })
    }

    /// The payload of a configuration message in this dialect.
    ///
    /// # Errors
    /// A pattern of more than 65,535 bytes in a Java object. There is no class of Code Pulse that could be written: no HQ of
    /// theirs has ever met an agent of version 1.
    pub fn payload(&self, dialect: Dialect) -> Result<Vec<u8>, EncodeError> {
        match dialect.framing() {
            Framing::Java => java::write(self, &JavaClass::bytefrog()),
            Framing::Json16 => Ok(json::write(self, None)),
            Framing::Json32 => Ok(json::write(self, Some(&self.extension))),
        }
    }

    /// The whole message. Write it in one call: the original agents take what the first `read` gives them for the whole.
    ///
    /// # Errors
    /// As [`payload`](Self::payload); and more than 65,535 bytes for versions 2 to 4.
    pub fn to_message(&self, dialect: Dialect) -> Result<Vec<u8>, EncodeError> {
        let payload = self.payload(dialect)?;
        encode::to_bytes(&Message::Configuration { payload: &payload }, dialect)
    }
}
