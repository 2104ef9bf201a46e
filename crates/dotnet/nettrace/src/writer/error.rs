//! What cannot be written.

use thiserror::Error;

use super::MAX_PAYLOAD;
use crate::metadata::Unwritable;

/// What cannot be written. The stream is as if the call had not been.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A payload, a definition or something else is too large.
    #[error("{what} has {size} bytes, more than {limit}")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The largest that can be written.
        limit: usize,
    },
    /// An event names a definition that was not made.
    #[error("metadata id {id} is not defined")]
    UnknownMetadata {
        /// The id.
        id: u32,
    },
    /// Names end with the first NUL, so that they cannot have one.
    #[error("a name contains a NUL character")]
    NulInName,
    /// A field has a type that the version of the format does not know.
    #[error("field type {code} is not known in this version of the format")]
    FieldType {
        /// Its code.
        code: u32,
    },
    /// A stack of a 32-bit target has a wider address.
    #[error("address {address:#x} does not fit into 32 bits")]
    WideAddress {
        /// The address.
        address: u64,
    },
    /// The version of the format has no place for it.
    #[error("{what} need version 6 of the format")]
    NeedsVersion6 {
        /// What it is.
        what: &'static str,
    },
    /// A thread was described, or has written events, and was not removed since.
    #[error("thread {index} is described already")]
    ThreadKnown {
        /// What events name it with.
        index: u64,
    },
    /// The event is older than what was written before allows.
    #[error("time stamp {timestamp} is before {least}")]
    TimeGoesBack {
        /// Time stamp of the event.
        timestamp: u64,
        /// The least that could be written here.
        least: u64,
    },
}

impl WriteError {
    pub(super) fn definition(why: &Unwritable, size: usize) -> Self {
        match why {
            Unwritable::Nul => Self::NulInName,
            Unwritable::Type(code) => Self::FieldType { code: *code },
            Unwritable::TooLong => Self::TooLarge { what: "a definition", size, limit: MAX_PAYLOAD },
        }
    }
}

pub(super) fn check_size(what: &'static str, size: usize, limit: usize) -> Result<(), WriteError> {
    if size > limit { Err(WriteError::TooLarge { what, size, limit }) } else { Ok(()) }
}
