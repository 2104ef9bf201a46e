//! The directory, and the paths of sockets in it.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The maximum length of socket paths that the platform accepts, because of macOS.
const MAX_SOCKET_PATH: usize = 103;
/// The maximum length of a socket's name in the directory.
const SOCKET_NAME: usize = "/18446744073709551615c".len();

pub(super) fn make(name: &str) -> io::Result<PathBuf> {
    let usual = env::temp_dir().join(name);
    let fits = usual.as_os_str().len() + SOCKET_NAME <= MAX_SOCKET_PATH;
    let path = if fits { usual } else { Path::new("/tmp").join(name) };
    // Fails if the directory exists already, which is unlikely because its name is random.
    DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

pub(super) fn socket(directory: &Path, name: &str) -> PathBuf {
    directory.join(name)
}
