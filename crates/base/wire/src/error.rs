//! The one error that every decoder of runtap returns: what was wrong, in which field, at which offset.

use thiserror::Error;

/// Bytes that do not follow the format, with the place where they stop doing so.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} at offset {offset}: {kind}")]
pub struct DecodeError {
    /// Offset of the field's first byte, counted from the first byte of the message or stream.
    pub offset: u64,
    /// The field, in the words of its specification (`"provider count"`).
    pub what: &'static str,
    /// What is wrong with it.
    pub kind: DecodeErrorKind,
}

/// What can be wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The field reaches beyond the bytes that are there.
    #[error("needs {needed} bytes, {available} are left")]
    UnexpectedEnd {
        /// Bytes the field needs.
        needed: u64,
        /// Bytes that are left.
        available: u64,
    },
    /// A length or a count above what the format, or the [limits](crate#) of the reader, allow.
    #[error("is {value}, more than the allowed {limit}")]
    TooLarge {
        /// The value on the wire.
        value: u64,
        /// The largest that is accepted.
        limit: u64,
    },
    /// A value below the least that makes sense.
    #[error("is {value}, less than {least}")]
    TooSmall {
        /// The value on the wire.
        value: u64,
        /// The least that is accepted.
        least: u64,
    },
    /// A value outside the set that the format knows.
    #[error("is {value:#x}, expected {expected}")]
    Unexpected {
        /// The value on the wire.
        value: u64,
        /// What would have been right.
        expected: &'static str,
    },
    /// A string whose last unit is not NUL.
    #[error("has no final NUL")]
    Unterminated,
    /// A variable-length integer with more bytes than its type can hold.
    #[error("is a variable-length integer of more than {limit} bytes")]
    OverlongVarint {
        /// The most bytes the type can take.
        limit: u8,
    },
    /// Anything else, in words.
    #[error("{0}")]
    Invalid(&'static str),
}

impl DecodeError {
    /// An error for `what` at `offset`.
    pub fn new(offset: u64, what: &'static str, kind: DecodeErrorKind) -> Self {
        Self { offset, what, kind }
    }

    /// Whether more bytes could have helped: the field reaches beyond the end of what was there.
    pub fn is_incomplete(&self) -> bool {
        matches!(self.kind, DecodeErrorKind::UnexpectedEnd { .. })
    }
}
