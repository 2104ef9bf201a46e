//! Errors of [`Reader::next`](crate::Reader::next), and the reason why a stream is incomplete. Single unusual events are
//! not errors; [`Counts`](crate::Counts) counts them.

use std::fmt;

use runtap_wire::DecodeError;
use thiserror::Error;

/// An error that prevents reading a stream or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream does not begin with the first bytes of nettrace or `NetPerf`. Nothing more can be read.
    #[error("not a nettrace stream")]
    NotNettrace,
    /// The version of the stream is not supported. Nothing more can be read.
    #[error("nettrace version {version} is not supported")]
    Unsupported {
        /// The version in the stream: 1 to 3 are `NetPerf`, 6 is the newer container.
        version: u32,
    },
    /// Bytes that do not follow the format. Inside a block, the rest of that block is lost; between blocks, nothing more
    /// can be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// The reason why a stream is incomplete, and the place where the damage begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partial {
    /// The stream offset in bytes of the first byte that could not be used.
    pub offset: u64,
    /// The reason.
    pub reason: PartialReason,
}

/// The reason why a stream is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartialReason {
    /// The first error that [`Reader::next`](crate::Reader::next) returned.
    Damaged(Error),
    /// The stream ends inside an object: the target exited, or the file was truncated.
    Cut {
        /// The number of bytes from the offset to the end of the stream that could not be used.
        unused: u64,
    },
    /// The last object is complete, but the end marker is missing.
    NoEndMarker,
}

impl fmt::Display for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset;
        match &self.reason {
            PartialReason::Damaged(error) => write!(f, "damaged at offset {offset}: {error}"),
            PartialReason::Cut { unused } => {
                write!(f, "truncated: {unused} bytes from offset {offset} could not be used")
            }
            PartialReason::NoEndMarker => write!(f, "has no end marker (it ends at offset {offset})"),
        }
    }
}
