//! The file of the platform's log (`--diagnostic`), by the rules for outputs: private, and behind no link of another user.

use std::fs::File;
use std::io;
use std::path::Path;

use runtap_os::output::{create_new, make_folder};

pub(crate) fn create(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    // With its cause: an I/O error that has a source of its own is printed without that.
    make_folder(folder)
        .and_then(|()| create_new(path))
        .map_err(|error| io::Error::other(error.cause.to_string()))
}
