//! The name of the pipe on Windows, and the meaning of a port's address.

use std::path::PathBuf;

use runtap_transport::naming::windows_pipe;

/// Returns the path at which tools find the pipe of this process.
#[expect(clippy::unnecessary_wraps, reason = "the signature is that of Unix")]
pub(super) fn default_path() -> Option<PathBuf> {
    Some(windows_pipe(std::process::id()).into())
}

/// Converts an address to the name of a pipe. The address is a text, because it comes from a variable.
pub(super) fn path(address: &[u8]) -> PathBuf {
    String::from_utf8_lossy(address).into_owned().into()
}
