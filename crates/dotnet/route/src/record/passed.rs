//! What descriptors that pass are open for.

use runtap_transport::Descriptor;
use serde_json::Value;

/// As far as that can be told.
#[cfg(unix)]
pub(super) fn open_file(descriptor: &Descriptor) -> Value {
    use std::os::fd::AsRawFd as _;

    let path = std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
    path.map_or(Value::Null, |path| Value::from(path.to_string_lossy()))
}

/// None pass here.
#[cfg(not(unix))]
pub(super) fn open_file(descriptor: &Descriptor) -> Value {
    match *descriptor {}
}
