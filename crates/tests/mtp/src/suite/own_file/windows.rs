//! Windows users have no numeric ids, and files have no modes: files in a folder of the user's profile are trusted.

use std::io;
use std::path::Path;

use super::OpenedFile;

/// Opens a file of at limit `limit` bytes. The file may grow, so readers must apply a limit too.
///
/// # Errors
/// Returns an error if the file cannot be opened, is not a regular file, or is too large.
pub(crate) fn open(path: &Path, limit: u64, is_named: bool) -> io::Result<OpenedFile> {
    let opened =
        if is_named { runtap_os::output::open_named(path) } else { runtap_os::output::open_ordinary(path) };
    match opened {
        Ok(file) if file.metadata()?.len() > limit => {
            Err(io::Error::other(format!("it is larger than {limit} bytes")))
        }
        Ok(file) => Ok(OpenedFile::File(file)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(OpenedFile::Nothing)
        }
        Err(error) => Err(error),
    }
}

/// Returns the owner of a file or a folder, which is always the current user, or `None` if it does not exist.
pub(crate) fn owner_of(path: &Path) -> Option<u32> {
    path.exists().then(runtap_os::my_uid)
}
