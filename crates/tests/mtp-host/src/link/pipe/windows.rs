//! Named pipes of Windows: a server's name stands for a pipe of this machine.

use std::io;
use std::os::windows::io::AsHandle as _;
use std::path::{Path, PathBuf};

use runtap_os::windows::pipe::server_process;
use runtap_os::windows::process::is_ours;

use super::super::shown;
use crate::HostError;

pub(crate) use runtap_os::windows::local::LocalStream as Stream;

/// Stands for every user but ours: users have no numbers here.
const ANOTHER: u32 = u32::MAX;

pub(super) fn connect(name: &Path) -> io::Result<Stream> {
    let is_path = name.as_os_str().as_encoded_bytes().starts_with(br"\\");
    let mut path = PathBuf::from(if is_path { "" } else { r"\\.\pipe\" }).into_os_string();
    path.push(name);
    Stream::connect(PathBuf::from(path))
}

pub(super) fn is_gone(stream: &Stream) -> bool {
    stream.is_at_end()
}

/// The platform's own hosts refuse a server of another user (.NET's `CurrentUserOnly`).
pub(super) fn check(stream: &Stream, path: &Path) -> Result<(), HostError> {
    let server = server_process(stream.as_handle()).and_then(is_ours);
    if server.unwrap_or(false) {
        Ok(())
    } else {
        Err(HostError::NotOurUser { path: shown(path), uid: ANOTHER })
    }
}
