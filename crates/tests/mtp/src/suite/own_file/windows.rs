//! Users have no numbers here, and files no modes: what a folder of the user's profile has is the user's.

use std::io;
use std::path::Path;

use super::Found;

/// Opens a file of at most `most` bytes. It may grow: whoever reads it sets a limit.
///
/// # Errors
/// It can't be opened, is no regular file, or is too large.
pub(crate) fn open(path: &Path, most: u64, anybodys: bool) -> io::Result<Found> {
    let opened =
        if anybodys { runtap_os::output::open_named(path) } else { runtap_os::output::open_ordinary(path) };
    match opened {
        Ok(file) if file.metadata()?.len() > most => {
            Err(io::Error::other(format!("it is larger than {most} bytes")))
        }
        Ok(file) => Ok(Found::File(file)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Found::Nothing)
        }
        Err(error) => Err(error),
    }
}

/// The user whose a file or a folder is, as far as it concerns us; `None` for what is not there.
pub(crate) fn owner_of(path: &Path) -> Option<u32> {
    path.exists().then(runtap_os::my_uid)
}
