//! What runtap's wire formats share: a bounds-checked [`Reader`], a [`Writer`], borrowed UTF-16 strings
//! ([`Utf16`]) a [`Deframer`] that turns a stream of chunks into whole messages, and the shape of a protocol's
//! rules ([`rules!`](crate::rules!)).
//!
//! Everything here is little-endian, as every protocol that runtap speaks is. Nothing here touches a socket,
//! a file, a clock or a thread, and nothing allocates by a length that a peer claims: a length is checked
//! against the bytes that are really there first.
//!
//! Every error is a [`DecodeError`] that carries the offset in the stream and the name of the field.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod deframer;
mod error;
mod reader;
mod rules;
mod utf16;
mod writer;

pub use deframer::Deframer;
pub use error::{DecodeError, DecodeErrorKind};
pub use reader::Reader;
pub use rules::Severity;
pub use utf16::Utf16;
pub use uuid::Uuid;
pub use writer::Writer;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
