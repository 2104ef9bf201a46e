//! System functions for reports on Windows.

use std::fs::File;
use std::io;
use std::path::Path;

/// Returns the host name.
pub(super) fn machine() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Opens a file for appending, creating it if missing. Links need no check: creating them takes a privilege that users lack.
pub(super) fn append(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}
