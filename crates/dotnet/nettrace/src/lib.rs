//! Incremental reader and writer of the nettrace event stream of .NET EventPipe.
//!
//! The crate does no I/O: [`Reader::feed`] accepts bytes in chunks of any size, and [`Reader::next`] returns items;
//! [`Writer`] accepts events, and [`Writer::take_output`] returns bytes. The crate uses no file, socket, clock or thread,
//! and it never sorts: items are returned in the order of the stream, or in order of time by [`InOrder`], which merges
//! the ordered runs of the stream.
//!
//! # The format in one page
//!
//! ```text
//! stream  := "Nettrace" 20 "!FastSerialization.1" object* 01
//! object  := 05 05 01 version min-reader-version name 06 DATA 06
//! DATA    := Trace: 48 bytes (clock, pointer size, process)
//!          | block: i32 size, 0 to 3 bytes up to a stream offset divisible by 4, size bytes
//! blocks  := MetadataBlock (definitions of events, by id) | StackBlock (call stacks, by id)
//!          | EventBlock (events, which name a metadata id and a stack id)
//!          | SPBlock (sequence point: last sequence number of every thread; stack ids start anew)
//!          | SPBlock (sequence point: last sequence number of every thread; stack ids are reassigned)
//!
//! The storeys, from the bytes up: `raw` (tags and objects) → `block` (what lies in one block) → [`Reader`].
//! The layers, from the bytes up: `raw` (tags and objects) → `block` (the contents of one block) → [`Reader`].
//! Versions: `NetPerf` 1 to 3 and Nettrace 4 and 6 are read, Nettrace 4 and 6 and `NetPerf` 3 are written. What people call "version 5" is
//! `NetPerf` 1 to 3 and Nettrace 4 and 6 can be read; Nettrace 4 and 6 and `NetPerf` 3 can be written. "Version 5" is
//! version 4 with optional tags in its metadata records.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod block;
mod error;
mod header;
pub mod inspect;
mod item;
mod limits;
mod metadata;
mod observe;
mod parts;
mod raw;
mod reader;
mod repair;
mod resync;
mod sequence;
mod table;
mod text;
mod walk;
mod writer;

pub use block::label::{Label, LabelNumber, Labels};
pub use block::stack::{Ips, Stack};
pub use block::thread::Thread;
pub use error::{Error, Partial, PartialReason};
pub use header::TraceHeader;
pub use item::{Event, SequencePoint, StreamItem, ThreadSequences};
pub use limits::Limits;
pub use metadata::{Field, FieldType, Metadata};
pub use observe::{Join, Observe};
pub use parts::{Part, Scan};
pub use reader::{Counts, InOrder, Items, Reader};
pub use repair::{Repair, Repaired, Skipped};
pub use runtap_wire::{DecodeError, DecodeErrorKind, Uuid};
pub use table::IdTable;
pub use writer::{EventToWrite, MAX_PAYLOAD, MAX_STACK_DEPTH, Version, WriteError, Writer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
