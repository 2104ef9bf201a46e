//! Opens the files of a recording. Whoever has made the recording may have put anything there: refuses links, which lead
//! anywhere, and everything that is no ordinary file, because whoever opens a pipe waits for its writer, and a device has no
//! end.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Opens an ordinary file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => {
            return Err(refused("it is a link, and links are not followed: put the file itself there"));
        }
        // A socket.
        Err(Errno::NXIO) => return Err(refused("it is no ordinary file")),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(refused("it is no ordinary file"));
    }
    Ok(file)
}
