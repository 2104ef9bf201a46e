//! A private directory with a socket that is named like the runtime's, so that a tool with this directory as its `TMPDIR`
//! connects to the socket; or a path chosen by the user.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use runtap_os::random_u64;
use runtap_transport::naming::SocketName;
use runtap_transport::{BindOptions, Listener};

use super::{RecorderSocket, SocketError};

/// The maximum number of names tried for a private directory.
const MAX_NAMES: u32 = 16;

pub(super) fn listen(
    at: Option<&Path>,
    name: Option<SocketName>,
) -> Result<(RecorderSocket, Listener), SocketError> {
    let file = name.map_or_else(|| "port".to_owned(), |name| name.to_string());
    let (path, private_directory) = match at {
        Some(at) if at.is_dir() => (at.join(file), None),
        Some(at) => (at.to_owned(), None),
        None => {
            let private_directory = create_directory()?;
            (private_directory.join(file), Some(private_directory))
        }
    };
    // Created before binding, so that the directory is removed if binding fails.
    let socket = RecorderSocket { path, private_directory };
    let listener = Listener::bind(&socket.path, BindOptions::default().replace_stale(true))?;
    Ok((socket, listener))
}

pub(super) fn directory(path: &Path) -> Option<&Path> {
    let name = path.file_name().and_then(OsStr::to_str).and_then(SocketName::parse);
    path.parent().filter(|directory| name.is_some() && !directory.as_os_str().is_empty())
}

fn create_directory() -> Result<PathBuf, SocketError> {
    let parent = std::env::temp_dir();
    let mut tries = 0;
    loop {
        let path = parent.join(format!("runtap-{:016x}", random_u64()));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MAX_NAMES => tries += 1,
            Err(source) => return Err(SocketError::Directory { path: parent, source }),
        }
    }
}
