//! What can be wrong with a stream: errors of [`Reader::next`](crate::Reader::next) and the verdict on a stream
//! that is not whole. Says nothing about single events that are odd; those are in [`Counts`](crate::Counts).

use std::fmt;

use runtap_wire::DecodeError;
use thiserror::Error;

/// Why a stream cannot be read, or a part of it not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are not those of a nettrace or `NetPerf` stream. Final.
    #[error("not a nettrace stream")]
    NotNettrace,
    /// A stream of a version that this reader does not know. Final.
    #[error("nettrace version {version} is not supported")]
    Unsupported {
        /// The version that the stream names: 1 to 3 are `NetPerf`, 6 is the newer container.
        version: u32,
    },
    /// Bytes that do not follow the format. Inside a block this costs the rest of that block; between blocks it
    /// is final.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Why a stream is not whole, and where that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partial {
    /// Stream offset in bytes of the first byte that could not be used.
    pub offset: u64,
    /// What is the matter there.
    pub reason: PartialReason,
}

/// What is the matter with a stream that is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartialReason {
    /// An error that [`Reader::next`](crate::Reader::next) returned; the first one.
    Damaged(Error),
    /// The stream ends inside an object: the target died, or the file was cut.
    Cut {
        /// Bytes from the offset to the end of the stream that could not be used.
        unused: u64,
    },
    /// The last object is whole, but the end marker is missing.
    NoEndMarker,
}

impl fmt::Display for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset;
        match &self.reason {
            PartialReason::Damaged(error) => write!(f, "damaged at offset {offset}: {error}"),
            PartialReason::Cut { unused } => {
                write!(f, "cut off: {unused} bytes from offset {offset} on could not be used")
            }
            PartialReason::NoEndMarker => write!(f, "ends at offset {offset} without an end marker"),
        }
    }
}
