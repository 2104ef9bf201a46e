//! Windows named pipes. The server's name refers to a local pipe.

use std::io;
use std::os::windows::io::AsHandle as _;
use std::path::{Path, PathBuf};

use runtap_os::windows::pipe::server_process;
use runtap_os::windows::process::is_ours;

use super::super::path_text;
use crate::HostError;

pub(crate) use runtap_os::windows::local::LocalStream as Stream;

/// Stands for any other user, because Windows users have no numeric ids.
const UNKNOWN_UID: u32 = u32::MAX;

pub(super) fn connect(name: &Path) -> io::Result<Stream> {
    let is_path = name.as_os_str().as_encoded_bytes().starts_with(br"\\");
    let mut path = PathBuf::from(if is_path { "" } else { r"\\.\pipe\" }).into_os_string();
    path.push(name);
    Stream::connect(PathBuf::from(path))
}

pub(super) fn is_gone(stream: &Stream) -> bool {
    stream.is_at_end()
}

/// Rejects a server of another user, like the platform's own hosts (.NET's `CurrentUserOnly`).
pub(super) fn check(stream: &Stream, path: &Path) -> Result<(), HostError> {
    let server = server_process(stream.as_handle()).and_then(is_ours);
    if server.unwrap_or(false) {
        Ok(())
    } else {
        Err(HostError::OtherUser { path: path_text(path), uid: UNKNOWN_UID })
    }
}
