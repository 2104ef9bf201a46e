//! System functions for reports on Unix.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Returns the host name.
pub(super) fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Opens a file for appending, creating it if missing; does not follow a link.
pub(super) fn append(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    File::options().append(true).create(true).custom_flags(flags).open(path)
}
