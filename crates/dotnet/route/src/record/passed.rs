//! Description of forwarded descriptors.

use runtap_transport::Descriptor;
use serde_json::Value;

/// Returns the path of the file that a descriptor refers to; null if unknown.
#[cfg(unix)]
pub(super) fn open_file(descriptor: &Descriptor) -> Value {
    use std::os::fd::AsRawFd as _;

    let path = std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
    path.map_or(Value::Null, |path| Value::from(path.to_string_lossy()))
}

/// Descriptors are not forwarded on this system.
#[cfg(not(unix))]
pub(super) fn open_file(descriptor: &Descriptor) -> Value {
    match *descriptor {}
}
