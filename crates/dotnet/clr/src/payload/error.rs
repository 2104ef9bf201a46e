//! Errors in payloads.

use std::fmt::Write as _;

use runtap_wire::{DecodeError, DecodeErrorKind};
use thiserror::Error;

use crate::shown::shown;

/// An error in a payload that does not follow its schema. The fields before the one named here were read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} at offset {offset} of the payload: {kind}")]
#[non_exhaustive]
pub struct PayloadError {
    /// The path of the field: `Values[3].Name`. Truncated to 256 bytes and `…`.
    pub field: String,
    /// The offset of the field's first byte in the payload.
    pub offset: u64,
    /// The kind of error.
    pub kind: DecodeErrorKind,
}

impl From<DecodeError> for PayloadError {
    #[cold]
    fn from(error: DecodeError) -> Self {
        Self { field: String::new(), offset: error.offset, kind: error.kind }
    }
}

impl PayloadError {
    /// Adds the name of the field that contains the error.
    #[cold]
    pub(super) fn in_field(mut self, name: &str) -> Self {
        let name = if name.is_empty() { "(unnamed)" } else { name };
        let separator = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = shown(&format!("{name}{separator}{}", self.field)).into_owned();
        self
    }

    /// Adds the index of the array element that contains the error.
    #[cold]
    pub(super) fn in_element(mut self, index: u32) -> Self {
        let mut path = format!("[{index}]");
        if !self.field.is_empty() {
            // Writing to a String can't fail.
            let _ = write!(path, ".{}", self.field);
        }
        self.field = shown(&path).into_owned();
        self
    }
}
