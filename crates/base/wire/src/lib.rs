//! Building blocks of runtap's wire formats: a bounds-checked [`Reader`], a [`Writer`], borrowed UTF-16 strings
//! ([`Utf16`]), a [`Deframer`] that turns a stream of chunks into complete messages, a macro that declares the
//! rules of a protocol ([`rules!`](crate::rules!)), the language of [filters](filter), and suggestions for misspelled names
//! ([`nearest`]).
//!
//! All integers are little-endian, as in every protocol that runtap implements. The crate does no I/O, reads no clock
//! and starts no threads. Lengths are checked against the available bytes before memory is allocated.
//!
//! All errors of decoding are [`DecodeError`]s with the offset in the stream and the name of the field.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod deframer;
mod error;
pub mod filter;
mod nearest;
mod reader;
mod rules;
mod utf16;
mod writer;

pub use deframer::Deframer;
pub use error::{DecodeError, DecodeErrorKind};
pub use nearest::nearest;
pub use reader::Reader;
pub use rules::Severity;
pub use utf16::Utf16;
pub use uuid::Uuid;
pub use writer::Writer;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
