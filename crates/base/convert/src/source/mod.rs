//! Opens recordings: finished files, files that still grow, pipes.
//!
//! ```no_run
//! use runtap_convert::source::Recording;
//!
//! let mut recording = Recording::open("app.nettrace".as_ref())?;
//! recording.read(|item| println!("{item:?}"))?;
//! if let Some(partial) = recording.partial() {
//!     println!("{} at offset {}", partial.reason, partial.offset);
//! }
//! # Ok::<(), runtap_convert::source::Error>(())
//! ```
//!
//! - [`Recording::read`] hands out items in the order of the file, [`Recording::read_in_order`] in the order of time, and
//!   [`Recording::read_parallel`] shows parts of a large file to several observers at once and joins what they found.
//! - Whatever can be read is handed out; what is missing, [`Recording::partial`] tells.
//! - Reading ends where what it builds takes too much memory: eight times the size of the recording and 1 GiB, or three
//!   quarters of what the machine or its container has. Where the system does not tell, nothing is limited.
//! - [`inspect`] shows the blocks that a file is made of, damaged ones too; [`pieces`] its bytes.
//!
//! - Files that are compressed (gzip, Zstandard) are decompressed as they are read ([`Input`]), up to a limit. Files of other
//!   tools are recognized and named, and not read ([`ForeignFile`]).
//!
//! Refuses to interpret events, and to write.

mod budget;
mod error;
mod foreign;
mod parallel;
mod pieces;
mod recording;

pub use error::Error;
pub use foreign::ForeignFile;
pub use pieces::{inspect, inspect_opened, open_input, pieces};
pub use recording::{Partial, Reason, Recording};
pub use runtap_os::compressed::{Compression, Input, MaxSize, TooLarge};
