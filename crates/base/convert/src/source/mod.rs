//! Reads recordings from complete files, growing files and pipes.
//!
//! ```no_run
//! use runtap_convert::source::Recording;
//!
//! let mut recording = Recording::open("app.nettrace".as_ref())?;
//! recording.read(&mut |item| println!("{item:?}"))?;
//! if let Some(partial) = recording.partial() {
//!     println!("{} at offset {}", partial.reason, partial.offset);
//! }
//! # Ok::<(), runtap_convert::source::Error>(())
//! ```
//!
//! - [`Recording::read`] visits items in file order, [`Recording::read_in_order`] in time order, and
//!   [`Recording::read_parallel`] visits parts of a large file in parallel and joins the results.
//! - All readable items are visited; [`Recording::partial`] returns what is missing.
//! - Reading stops if the result takes too much memory: more than 1 GiB plus eight times the size of the recording, or
//!   three quarters of the memory of the machine or container. Unlimited if the operating system does not report
//!   memory.
//! - [`inspect`] lists the blocks of a file, including damaged ones; [`chunks`] returns its bytes.
//! - Compressed files (gzip, Zstandard) are decompressed up to a limit while being read ([`Input`]). Files of other
//!   tools are detected and rejected ([`ForeignFile`]).
//! - [`read_heap`] reads the graph of a heap from a heap dump or a recording.
//! - [`ProfileSource`] is a recording of any kind that has profiles; a [`Recording`] is one.
//!
//! This module neither interprets events nor writes files.

mod budget;
mod chunks;
mod error;
mod foreign;
mod heap;
mod parallel;
mod profiles;
mod recording;

pub use chunks::{chunks, inspect, inspect_opened, open_input};
pub use error::Error;
pub use foreign::ForeignFile;
pub use heap::{Heap, HeapFormat, is_heap_file, read_heap, read_opened_heap};
pub use profiles::{ProfileForm, ProfileSource, SourceProfile, has_view};
pub use recording::{Partial, Reason, Recording};
pub use runtap_os::compressed::{Compression, Input, MaxSize, TooLarge};
