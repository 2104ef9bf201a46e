//! The path of the socket on Unix, and the meaning of a port's address.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use runtap_transport::naming::SocketName;

/// Returns the path at which tools find the socket of this process. `None` if the start time of this process is unknown.
pub(super) fn default_path() -> Option<PathBuf> {
    let pid = std::process::id();
    Some(
        runtap_discover::temp_dir()
            .join(SocketName::runtime(pid, runtap_discover::start_time(pid)?).to_string()),
    )
}

/// Converts an address to a path, byte for byte.
pub(super) fn path(address: &[u8]) -> PathBuf {
    OsStr::from_bytes(address).into()
}
