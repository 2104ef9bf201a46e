//! Files that an application has named, on Windows: on a disk of this machine, as asking another one would tell it who we
//! are. Whose they are is not asked, and who can read a copy, its folder says.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, Prefix};

use runtap_os::output::open_ordinary;

/// Opens a regular file; no link.
///
/// # Errors
/// Why it is not opened.
pub(super) fn open(path: &Path) -> Result<File, String> {
    match path.components().next() {
        Some(Component::Prefix(prefix))
            if matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)) =>
        {
            open_ordinary(path).map_err(|error| error.to_string())
        }
        _ => Err("it is on no disk of this machine".to_owned()),
    }
}

/// Nothing is to be done.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "the same as on Unix")]
pub(super) fn same_rights(_from: &Metadata, _to: &File) -> io::Result<()> {
    Ok(())
}
