//! What cannot be sent.

use thiserror::Error;

/// A message that has no encoding.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The length word of a frame cannot say how long it is.
    #[error(
        "the frame has {bytes} bytes after its length, more than the {} that its length word can say",
        i32::MAX
    )]
    TooLong {
        /// Bytes after the length word.
        bytes: u64,
    },
}
