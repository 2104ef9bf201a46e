//! The names of a router's pipes.

use std::path::PathBuf;

use runtap_transport::naming::{windows_pipe, windows_router_pipe};

/// Returns the names of a router's pipe and of a runtime's pipe for a process.
pub fn socket_names(pid: u32) -> [PathBuf; 2] {
    [windows_router_pipe(pid), windows_pipe(pid)].map(PathBuf::from)
}
