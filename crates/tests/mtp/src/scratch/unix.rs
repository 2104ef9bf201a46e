//! The directory, and sockets in it.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The platform refuses longer paths of sockets, for the sake of macOS.
const LONGEST_SOCKET: usize = 103;
/// The longest name of a socket in here.
const SOCKET_NAME: usize = "/18446744073709551615c".len();

pub(super) fn make(name: &str) -> io::Result<PathBuf> {
    let usual = env::temp_dir().join(name);
    let fits = usual.as_os_str().len() + SOCKET_NAME <= LONGEST_SOCKET;
    let path = if fits { usual } else { Path::new("/tmp").join(name) };
    // Fails if somebody has it already, which can't be foreseen.
    DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

pub(super) fn socket(directory: &Path, name: &str) -> PathBuf {
    directory.join(name)
}
