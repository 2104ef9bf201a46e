//! Creation of the platform's log file (`--diagnostic`) by the rules for outputs: private, and not through a link of
//! another user.

use std::fs::File;
use std::io;
use std::path::Path;

use runtap_os::output::{create_new, make_folder};

pub(crate) fn create(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    // Keep only the text of the cause: an I/O error with a source is printed without the source.
    make_folder(folder)
        .and_then(|()| create_new(path))
        .map_err(|error| io::Error::other(error.cause.to_string()))
}
