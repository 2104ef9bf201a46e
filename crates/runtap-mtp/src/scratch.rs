//! The directory of a run: private, with a short name, gone at the end.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use runtap_transport::random_u64;

/// The platform refuses longer paths of sockets, for the sake of macOS.
const LONGEST_SOCKET: usize = 103;
/// The longest name of a socket in here.
const SOCKET_NAME: usize = "/18446744073709551615c".len();

/// A directory of mode 0700 that is removed with all that is in it when it is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it in the directory for temporary files, or in `/tmp` if that has a name too long for sockets.
    ///
    /// # Errors
    /// Neither can be written to.
    pub fn new() -> io::Result<Self> {
        let name = format!("runtap-{:016x}", random_u64());
        let usual = env::temp_dir().join(&name);
        let fits = usual.as_os_str().len() + SOCKET_NAME <= LONGEST_SOCKET;
        let path = if fits { usual } else { Path::new("/tmp").join(name) };
        // Fails if somebody has it already, which can't be foreseen.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind there is nobody's.
        let _ = fs::remove_dir_all(&self.0);
    }
}
