//! Errors of the writer.

use thiserror::Error;

use super::MAX_PAYLOAD;
use crate::metadata::Unwritable;

/// An error of a [`Writer`](crate::Writer). A call that returns an error leaves the stream unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A payload, a definition or something else is too large.
    #[error("{what} has {size} bytes, more than {limit}")]
    TooLarge {
        /// The object that is too large.
        what: &'static str,
        /// The size of the object in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The metadata id of an event is not defined.
    #[error("metadata id {id} is not defined")]
    UnknownMetadata {
        /// The metadata id.
        id: u32,
    },
    /// A name contains a NUL, which ends names.
    #[error("a name contains a NUL character")]
    NulInName,
    /// The version of the format does not support the type of a field.
    #[error("field type {code} is not supported by this version of the format")]
    FieldType {
        /// The code of the type.
        code: u32,
    },
    /// A stack of a 32-bit target contains a larger address.
    #[error("address {address:#x} does not fit into 32 bits")]
    WideAddress {
        /// The address.
        address: u64,
    },
    /// The version of the format does not support the data.
    #[error("{what} need version 6 of the format")]
    NeedsVersion6 {
        /// The kind of data.
        what: &'static str,
    },
    /// The thread was described or has written events before, and was not removed since.
    #[error("thread {index} is already described")]
    ThreadKnown {
        /// The index of the thread.
        index: u64,
    },
    /// The event is older than the order of the stream allows.
    #[error("time stamp {timestamp} is before {least}")]
    TimeGoesBack {
        /// The time stamp of the event.
        timestamp: u64,
        /// The least time stamp that is allowed.
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
