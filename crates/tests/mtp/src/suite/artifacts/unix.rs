//! Opening of files that an application named, on Unix: only files of the current user.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

/// Opens a regular file of the current user; not a link.
///
/// # Errors
/// Returns the reason why the file is not opened.
pub(super) fn open(path: &Path) -> Result<File, String> {
    // Do not block on terminals and pipes.
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
        Ok(metadata) if !metadata.is_file() => Err("it is not a regular file".to_owned()),
        Ok(metadata) if metadata.uid() != geteuid().as_raw() => Err("another user owns it".to_owned()),
        Ok(_) => Ok(file),
        Err(error) => Err(error.to_string()),
    }
}

/// Copies the permissions of a file.
///
/// # Errors
/// Returns an error if the file system rejects the change.
pub(super) fn same_rights(from: &Metadata, to: &File) -> io::Result<()> {
    to.set_permissions(Permissions::from_mode(from.mode() & 0o777))
}
