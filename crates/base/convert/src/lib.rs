//! Converts recordings to the file formats of common tools.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use runtap_convert::{Content, FileFormat, Profile, plan, write_all};
//! use runtap_convert::source::Recording;
//! use runtap_os::output::OutputSink;
//!
//! let formats = [FileFormat::from(runtap_sinks::Format::Speedscope)];
//! let content = Content::default();
//! let recording = Recording::open(Path::new("app.nettrace"))?;
//! let profile = Profile::read(recording, &content, &Default::default(), &mut |note| eprintln!("{note:?}"))?;
//! let planned = plan(&formats, None, Path::new("app"))?;
//! let outlets = planned.into_iter().map(|planned| (planned.format, OutputSink::open(&planned.to).map_err(Into::into)));
//! let made = write_all(&profile.trace, profile.recording.length(), outlets, &content, &mut |note| eprintln!("{note:?}"));
//! assert!(made.failures.is_empty());
//! # Ok::<(), runtap_convert::Error>(())
//! ```
//!
//! - [`FileFormat`]: the output formats, including the original stream.
//! - [`Content`]: the view and the limits of depth and size; can be checked against formats before recording.
//! - [`plan`]: determines the output files. Inputs are never [overwritten](reject_overwriting).
//! - [`Profile::read`] and [`write_all`]: read and write. Omissions and deviations from the request are reported as
//!   [`Note`]s.
//! - [`convert`]: does all of this for a recording on disk; [`convert_profiles`] for any
//!   [source](source::ProfileSource) of profiles.
//! - [`repair`]: creates a readable copy of a damaged recording; [`upgrade`]: converts the oldest format of recordings
//!   to one that newer tools read.
//! - [`HeapFileFormat`]: the formats of heaps, and writing them.
//! - [`failure`]: whether an error is the fault of the request, and the next step.
//!
//! This crate prints nothing; the texts of [`Note`]s are chosen by the caller.

mod content;
mod convert;
mod difference;
mod error;
pub mod failure;
mod format;
mod heap_file;
mod note;
mod plan;
mod profile;
mod repair;
pub mod source;
mod upgrade;
mod write;

pub use self::content::{Content, Unsuitable};
pub use self::convert::{Converted, convert, convert_profiles};
pub use self::difference::write_difference;
pub use self::error::Error;
pub use self::format::FileFormat;
pub use self::heap_file::HeapFileFormat;
pub use self::note::Note;
pub use self::plan::{Planned, format_of, free_base, plan, reject_overwriting};
pub use self::profile::{Profile, finish, method_names, notes};
pub use self::repair::{RepairedFile, repair};
pub use self::upgrade::upgrade;
pub use self::write::{OutputFile, WrittenFiles, limit_depth, write_all};
