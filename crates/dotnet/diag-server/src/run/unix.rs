//! Where the socket lies on Unix, and what the address of a port means.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use runtap_transport::naming::SocketName;

/// Where tools look for the socket of this process. `None` if the start time of this process is unknown.
pub(super) fn default_path() -> Option<PathBuf> {
    let pid = std::process::id();
    Some(
        runtap_discover::temp_dir()
            .join(SocketName::runtime(pid, runtap_discover::start_time(pid)?).to_string()),
    )
}

/// A path, byte for byte.
pub(super) fn path(address: &[u8]) -> PathBuf {
    OsStr::from_bytes(address).into()
}
