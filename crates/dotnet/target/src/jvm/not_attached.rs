//! Facts about a virtual machine, on systems without an implementation of the attach protocol.

use runtap_discover::Java;

use super::{ThreadDumpReply, ThreadRequest};
use crate::error::Error;

const LINUX_ONLY: &str = "attaching to Java programs is supported on Linux only";

/// Always fails.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(super) async fn describe(_pid: u32, _start_time: u64, _java: &mut Java) -> Result<(), String> {
    Err(LINUX_ONLY.to_owned())
}

/// Advice for a Java program that can't be attached to; always `None` because none is found on this system.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(crate) async fn instead_of_attaching(_pid: u32) -> Option<String> {
    None
}

/// Always fails.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(super) async fn thread_dump(
    _pid: u32,
    _start_time: u64,
    _request: ThreadRequest,
) -> Result<ThreadDumpReply, Error> {
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, LINUX_ONLY).into())
}
