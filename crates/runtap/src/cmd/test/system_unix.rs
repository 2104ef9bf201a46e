//! What a run asks of Unix.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// What the machine is called.
pub(super) fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A file that is written to at its end, made if it is not there; no link.
pub(super) fn append(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    File::options().append(true).create(true).custom_flags(flags).open(path)
}

/// How this program keeps an application. What an application leaves behind stays if it ends by itself.
pub(super) fn process_keeper() -> Vec<OsString> {
    ["mtp", "keep", "--leave-group", "--"].map(OsString::from).into()
}
