//! Opening regular files on Unix. Pipes and terminals are opened without blocking.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::invalid_input;

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

pub(super) fn open(path: &Path) -> io::Result<File> {
    with(path, FLAGS.union(OFlags::NOFOLLOW))
}

pub(super) fn open_by_links(path: &Path) -> io::Result<File> {
    with(path, FLAGS)
}

fn with(path: &Path, flags: OFlags) -> io::Result<File> {
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::LOOP) if flags.contains(OFlags::NOFOLLOW) => {
            Err(invalid_input("it is a symbolic link, which is not followed; put the file itself there"))
        }
        // Sockets cannot be opened.
        Err(Errno::NXIO) => Err(invalid_input("it is not a regular file")),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn is_deleted(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}
