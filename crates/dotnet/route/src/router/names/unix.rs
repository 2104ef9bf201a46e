//! The names of a router's sockets.

use std::path::PathBuf;
use std::time::SystemTime;

use runtap_transport::naming::{SocketKind, SocketName};

/// Returns the paths of a router's socket and of a runtime's socket for a process.
pub fn socket_names(pid: u32) -> [PathBuf; 2] {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let router = SocketName { pid, key: since, kind: SocketKind::Router };
    let runtime = SocketName::runtime(pid, runtap_discover::start_time(pid).unwrap_or(since));
    [router, runtime].map(|name| runtap_discover::temp_dir().join(name.to_string()))
}
