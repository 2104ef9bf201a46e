//! Opening of files that an application named, on Windows: only on local disks, because accessing another host would
//! reveal the user's identity to it. The owner is not checked, and copies have the permissions of their folder.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, Prefix};

use runtap_os::output::open_ordinary;

/// Opens a regular file; not a link.
///
/// # Errors
/// Returns the reason why the file is not opened.
pub(super) fn open(path: &Path) -> Result<File, String> {
    match path.components().next() {
        Some(Component::Prefix(prefix))
            if matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)) =>
        {
            open_ordinary(path).map_err(|error| error.to_string())
        }
        _ => Err("it is not on a local disk".to_owned()),
    }
}

/// Does nothing.
///
/// # Errors
/// Never fails.
#[expect(clippy::unnecessary_wraps, reason = "the Unix version can fail")]
pub(super) fn same_rights(_from: &Metadata, _to: &File) -> io::Result<()> {
    Ok(())
}
