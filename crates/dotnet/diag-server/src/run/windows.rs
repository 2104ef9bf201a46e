//! What the pipe is called on Windows, and what the address of a port means.

use std::path::PathBuf;

use runtap_transport::naming::windows_pipe;

/// Where tools look for the pipe of this process.
#[expect(clippy::unnecessary_wraps, reason = "the same as on Unix")]
pub(super) fn default_path() -> Option<PathBuf> {
    Some(windows_pipe(std::process::id()).into())
}

/// The name of a pipe, which is a text: the variable that it comes from is one.
pub(super) fn path(address: &[u8]) -> PathBuf {
    String::from_utf8_lossy(address).into_owned().into()
}
