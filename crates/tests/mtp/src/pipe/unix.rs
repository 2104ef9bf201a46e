//! The socket's file, and waking of the accepting thread.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use runtap_transport::LocalListener;

pub(super) fn restrict(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o600))
}

/// Wakes the accepting thread after all pending connections. Works on Linux only; on other systems, a connection wakes
/// the thread.
pub(super) fn wake(listener: &LocalListener) -> bool {
    cfg!(target_os = "linux") && rustix::net::shutdown(listener, rustix::net::Shutdown::Both).is_ok()
}

pub(super) fn close_name(path: &Path) {
    let _ = fs::remove_file(path);
}
