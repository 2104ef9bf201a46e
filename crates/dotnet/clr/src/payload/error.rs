//! What can be wrong with a payload.

use std::fmt::Write as _;

use runtap_wire::{DecodeError, DecodeErrorKind};
use thiserror::Error;

use crate::shown::shown;

/// A payload that does not follow its schema. The fields before the one named here were read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} at offset {offset} of the payload: {kind}")]
#[non_exhaustive]
pub struct PayloadError {
    /// The field, with the way to it: `Values[3].Name`. Of a longer one than 256 bytes the beginning, and `…`.
    pub field: String,
    /// Offset of the field's first byte in the payload.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: DecodeErrorKind,
}

impl From<DecodeError> for PayloadError {
    #[cold]
    fn from(error: DecodeError) -> Self {
        Self { field: String::new(), offset: error.offset, kind: error.kind }
    }
}

impl PayloadError {
    /// The error as seen from the object that has the field.
    #[cold]
    pub(super) fn in_field(mut self, name: &str) -> Self {
        let name = if name.is_empty() { "(unnamed)" } else { name };
        let separator = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = shown(&format!("{name}{separator}{}", self.field)).into_owned();
        self
    }

    /// The error as seen from the array that has the element.
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
