//! Errors of encoding.

use thiserror::Error;

/// An error that occurs when a message cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The frame is too long for its length word.
    #[error("the frame has {bytes} bytes after its length word, more than the maximum of {}", i32::MAX)]
    TooLong {
        /// The number of bytes after the length word.
        bytes: u64,
    },
}
