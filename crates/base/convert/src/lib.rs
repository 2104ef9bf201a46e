//! From a recording to the files that people open.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use runtap_convert::{Content, FileFormat, Profile, plan, write_all};
//! use runtap_convert::source::Recording;
//! use runtap_os::output::Outlet;
//!
//! let formats = [FileFormat::from(runtap_sinks::Format::Speedscope)];
//! let content = Content::default();
//! let recording = Recording::open(Path::new("app.nettrace"))?;
//! let profile = Profile::read(recording, &content, &Default::default(), &mut |note| eprintln!("{note:?}"))?;
//! let planned = plan(&formats, None, Path::new("app"))?;
//! let outlets = planned.into_iter().map(|planned| (planned.format, Outlet::open(&planned.to).map_err(Into::into)));
//! let made = write_all(&profile.trace, profile.recording.length(), outlets, &content, &mut |note| eprintln!("{note:?}"));
//! assert!(made.failures.is_empty());
//! # Ok::<(), runtap_convert::Error>(())
//! ```
//!
//! - [`FileFormat`]: the formats that a file can have, the stream itself among them.
//! - [`Content`]: which view, how deep, how large; checked against formats before anything is recorded.
//! - [`plan`]: which files those are. No input is [overwritten](refuse_overwriting).
//! - [`Profile::read`] and [`write_all`] do the work. What is left out, or differs from what was asked, comes as [`Note`]s.
//! - [`convert`] does all of that at once for a recording on disk.
//! - [`repair`] makes a copy of a damaged recording; [`upgrade`] copies the oldest format of recordings into one that newer tools read.
//!
//! Refuses to print, and to choose words for people.

mod content;
mod convert;
mod difference;
mod error;
mod format;
mod note;
mod plan;
mod profile;
mod repair;
pub mod source;
mod upgrade;
mod write;

pub use self::content::{Content, Unsuitable};
pub use self::convert::{Converted, convert};
pub use self::difference::write_difference;
pub use self::error::Error;
pub use self::format::FileFormat;
pub use self::note::Note;
pub use self::plan::{Planned, format_of, free_base, plan, refuse_overwriting};
pub use self::profile::{Profile, finish, notes};
pub use self::repair::{RepairedFile, repair};
pub use self::upgrade::upgrade;
pub use self::write::{Made, OutputFile, limit_depth, write_all};
