//! Why a value has no bytes.

use thiserror::Error;

use crate::{Dialect, MessageId};

/// A message or configuration that can't be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A text, table or configuration is longer than its length can say. The original agents end with an error too, and lose
    /// what they had buffered.
    #[error("{what} has {length}, the format allows {limit}")]
    TooLong {
        /// The field.
        what: &'static str,
        /// Its length, in bytes or rows.
        length: u64,
        /// The most that can be said.
        limit: u64,
    },
    /// A number is too large for the dialect.
    #[error("{what} is {value}, and version {dialect} has at most {limit}")]
    OutOfRange {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The largest.
        limit: u64,
        /// The dialect.
        dialect: Dialect,
    },
    /// The dialect has no such message, or not in this form.
    #[error("version {dialect} has no such {message}")]
    NotInDialect {
        /// The message.
        message: MessageId,
        /// The dialect.
        dialect: Dialect,
    },
}
