//! The error of encoding.

use thiserror::Error;

use crate::{Dialect, MessageId};

/// An error that occurs when a message or configuration is encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A text, table or configuration is longer than its length field can represent. The original agents fail in
    /// this case too, and lose what they had buffered.
    #[error("{what} is {length} long, but the format allows at most {limit}")]
    TooLong {
        /// The field.
        what: &'static str,
        /// Its length, in bytes or rows.
        length: u64,
        /// The largest length that the format allows.
        limit: u64,
    },
    /// A number is too large for the dialect.
    #[error("{what} {value} is out of range: version {dialect} allows at most {limit}")]
    OutOfRange {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The largest value that the dialect allows.
        limit: u64,
        /// The dialect.
        dialect: Dialect,
    },
    /// The dialect does not have the message, or not in this form.
    #[error("version {dialect} of the protocol does not have this form of the message {message}")]
    NotInDialect {
        /// The message.
        message: MessageId,
        /// The dialect.
        dialect: Dialect,
    },
}
