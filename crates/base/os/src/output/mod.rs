//! Files that are there only when they are whole: private, under their name by one step, and never where somebody else's
//! link leads.
//!
//! ```
//! use std::io::Write;
//!
//! use runtap_os::output::{Destination, Outlet};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("profile.folded");
//! let mut out = Outlet::open(&Destination::File(path.clone()))?.begin()?;
//! out.write_all(b"main;work 1\n")?;
//! assert!(!path.exists());
//! out.finish()?;
//! assert!(path.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Draft`] is a file in the making; [`Outlet`] is one, or standard output.
//! - Links on the way are followed only where nobody else can have laid them; `docs/design/trust.md` has the rules.
//! - [`copy`] copies what somebody else has made, as long as it was when it was looked at, with its holes.
//! - [`open_ordinary`] opens what others may have put there, and [`open_named`] what the user has named, unless that is no file.
//! - At its end a program [sweeps](sweep()) away what its threads have not finished.
//!
//! Refuses to know what is written, and to print.

#[cfg(all(test, target_os = "linux"))]
#[expect(dead_code, reason = "what a place asks is tried by itself")]
#[path = "system/bsd.rs"]
mod bsd;
mod copy;
mod draft;
mod error;
mod names;
#[cfg_attr(unix, path = "native/unix.rs")]
#[cfg_attr(windows, path = "native/windows.rs")]
mod native;
mod ordinary;
mod outlet;
#[cfg_attr(windows, path = "place/windows.rs")]
mod place;
#[cfg(unix)]
mod shared;
#[cfg(unix)]
#[cfg_attr(target_os = "linux", path = "system/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "system/bsd.rs")]
mod system;

use std::fs::File;
use std::io;
use std::path::Path;

pub use self::copy::copy;
pub use self::draft::{Draft, sweep, unforeseen};
pub use self::error::{Cause, Error};
pub use self::names::{
    NAMES_TRIED, insert_before_extension, is_free, is_plain_letter, is_plain_word, is_regular, numbered,
    plain_name, with_extension, without_extension,
};
#[cfg(unix)]
pub use self::native::same;
pub use self::native::{is_path_of, is_same_path, reopened};
pub use self::ordinary::{is_deleted, open_named, open_ordinary};
pub use self::outlet::{Destination, Outlet, Writer};
use self::place::Folder;

/// Makes a folder with all that are missing on the way to it, by the rule for outputs: no link of somebody else leads there.
///
/// # Errors
/// It can't be made, lies behind a link that is not followed, or is there and is no folder.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    Folder::made(path, false).map(drop).map_err(Error::folder(path))
}

/// The same for folders that only this user may enter, whatever the process's mask is.
///
/// # Errors
/// Those of [`make_folder`].
pub fn make_private_folder(path: &Path) -> Result<(), Error> {
    Folder::made(path, true).map(drop).map_err(Error::folder(path))
}

/// Makes a file that was not there, private, under its name at once: for what is read while it is written, such as a log.
///
/// # Errors
/// Something has the name, the file can't be made, or the path is one that is not followed.
pub fn create_new(path: &Path) -> Result<File, Error> {
    let make = || -> Result<File, Cause> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
        let folder = Folder::of(path.parent().unwrap_or_else(|| Path::new("")))?;
        Ok(folder.create(name, native::PRIVATE)?)
    };
    make().map_err(Error::file(path))
}
