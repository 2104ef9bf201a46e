//! Files that an application has named, on Unix: those of our own user alone, and their modes.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

/// Opens a regular file of ours; no link.
///
/// # Errors
/// Why it is not opened.
pub(super) fn open(path: &Path) -> Result<File, String> {
    // Neither a terminal nor a pipe holds us up.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| {
        if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
            "it is a link".to_owned()
        } else {
            error.to_string()
        }
    })?;
    match file.metadata() {
        Ok(metadata) if !metadata.is_file() => Err("it is no regular file".to_owned()),
        Ok(metadata) if metadata.uid() != geteuid().as_raw() => Err("another user owns it".to_owned()),
        Ok(_) => Ok(file),
        Err(error) => Err(error.to_string()),
    }
}

/// Whoever may read the one may read the other.
///
/// # Errors
/// The file system refuses.
pub(super) fn same_rights(from: &Metadata, to: &File) -> io::Result<()> {
    to.set_permissions(Permissions::from_mode(from.mode() & 0o777))
}
