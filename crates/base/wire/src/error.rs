//! The error type of all decoders.

use thiserror::Error;

/// An error in decoded bytes: which field is invalid, at which offset, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} at offset {offset}: {kind}")]
pub struct DecodeError {
    /// Offset of the field's first byte from the start of the message or stream.
    pub offset: u64,
    /// Name of the field in its specification (`"provider count"`).
    pub field: &'static str,
    /// What is wrong with the field.
    pub kind: DecodeErrorKind,
}

/// The reasons why a field is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The field extends beyond the available bytes.
    #[error("needs {needed} bytes, {available} are left")]
    UnexpectedEnd {
        /// Number of bytes the field needs.
        needed: u64,
        /// Number of bytes available.
        available: u64,
    },
    /// A length or count that exceeds the maximum of the format or of the reader's [limits](crate#).
    #[error("is {value}, more than the allowed {limit}")]
    TooLarge {
        /// Value that was read.
        value: u64,
        /// Largest accepted value.
        limit: u64,
    },
    /// A value that is too small to be valid.
    #[error("is {value}, less than {least}")]
    TooSmall {
        /// Value that was read.
        value: u64,
        /// Smallest accepted value.
        least: u64,
    },
    /// A value that the format does not define.
    #[error("is {value:#x}, expected {expected}")]
    Unexpected {
        /// Value that was read.
        value: u64,
        /// Description of the valid values.
        expected: &'static str,
    },
    /// A string without a terminating NUL.
    #[error("has no terminating NUL")]
    Unterminated,
    /// A variable-length integer with more bytes than its type allows.
    #[error("is a variable-length integer of more than {limit} bytes")]
    OverlongVarint {
        /// Maximum number of bytes for the type.
        limit: u8,
    },
    /// Any other reason, as text.
    #[error("{0}")]
    Invalid(&'static str),
}

impl DecodeError {
    /// Creates an error for the field `what` at `offset`.
    pub fn new(offset: u64, field: &'static str, kind: DecodeErrorKind) -> Self {
        Self { offset, field, kind }
    }

    /// Returns whether the input was too short, so that decoding may succeed with more bytes.
    pub fn is_incomplete(&self) -> bool {
        matches!(self.kind, DecodeErrorKind::UnexpectedEnd { .. })
    }
}
