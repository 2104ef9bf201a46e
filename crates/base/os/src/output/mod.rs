//! Private output files that appear atomically when complete, and are never written through symbolic links of other
//! users.
//!
//! ```
//! use std::io::Write;
//!
//! use runtap_os::output::{Destination, OutputSink};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("profile.folded");
//! let mut out = OutputSink::open(&Destination::File(path.clone()))?.begin()?;
//! out.write_all(b"main;work 1\n")?;
//! assert!(!path.exists());
//! out.finish()?;
//! assert!(path.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`PendingFile`] is a file that does not have its final name yet; [`OutputSink`] is a pending file or standard
//!   output.
//! - Symbolic links are followed only if no other user can have created them; `docs/design/trust.md` has the rules.
//! - [`copy`] copies files of other processes, preserving holes.
//! - [`open_ordinary`] opens files that other users may have created, [`open_named`] files that the user specified.
//! - A program calls [`sweep`](sweep()) before it exits to delete unfinished files.
//!
//! This module neither interprets the data nor prints messages.

#[cfg(all(test, target_os = "linux"))]
#[expect(dead_code, reason = "only part of the module is tested on Linux")]
#[path = "system/bsd.rs"]
mod bsd;
mod copy;
mod error;
mod names;
#[cfg_attr(unix, path = "native/unix.rs")]
#[cfg_attr(windows, path = "native/windows.rs")]
mod native;
mod ordinary;
mod pending_file;
#[cfg_attr(windows, path = "place/windows.rs")]
mod place;
#[cfg(unix)]
mod shared;
mod sink;
#[cfg(unix)]
#[cfg_attr(target_os = "linux", path = "system/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "system/bsd.rs")]
mod system;

use std::fs::File;
use std::io;
use std::path::Path;

pub use self::copy::copy;
pub use self::error::{Cause, Error};
pub use self::names::{
    NAMES_TRIED, insert_before_extension, is_free, is_plain_letter, is_plain_word, is_regular, numbered,
    plain_name, with_extension, without_extension,
};
#[cfg(unix)]
pub use self::native::is_same_file;
pub use self::native::{is_path_of, is_same_path, reopened};
pub use self::ordinary::{is_deleted, open_named, open_ordinary};
pub use self::pending_file::{PendingFile, sweep, temporary_name};
use self::place::Folder;
pub use self::sink::{Destination, OutputSink, Writer, shared_stdout};

/// Creates a directory and its missing parents. Symbolic links of other users are not followed.
///
/// # Errors
/// If the directory cannot be created, is behind a symbolic link that is not followed, or is not a directory.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    Folder::made(path, false).map(drop).map_err(Error::folder(path))
}

/// Like [`make_folder`], but only the current user can access the created directories, whatever the umask is.
///
/// # Errors
/// See [`make_folder`].
pub fn make_private_folder(path: &Path) -> Result<(), Error> {
    Folder::made(path, true).map(drop).map_err(Error::folder(path))
}

/// Creates a new private file that is visible at once, for data that is read while it is written, such as a log.
///
/// # Errors
/// If something with that name exists, the file cannot be created, or the path is not followed.
pub fn create_new(path: &Path) -> Result<File, Error> {
    let make = || -> Result<File, Cause> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
        let folder = Folder::of(path.parent().unwrap_or_else(|| Path::new("")))?;
        Ok(folder.create(name, native::PRIVATE)?)
    };
    make().map_err(Error::file(path))
}
