//! What a run asks of Windows.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

/// What the machine is called.
pub(super) fn machine() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// A file that is written to at its end, made if it is not there. Making links takes a right that users don't have.
pub(super) fn append(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}

/// None: a job object ends an application with this program.
pub(super) fn process_keeper() -> Vec<OsString> {
    Vec::new()
}
