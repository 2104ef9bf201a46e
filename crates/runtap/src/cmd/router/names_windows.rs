//! What a router's pipes are called.

use std::path::PathBuf;

use runtap_transport::naming::{windows_pipe, windows_router_pipe};

/// A router's name, and a runtime's, for a process.
pub(super) fn names(pid: u32) -> [PathBuf; 2] {
    [windows_router_pipe(pid), windows_pipe(pid)].map(PathBuf::from)
}
