//! Whether a runtime waits at its start.

use runtap_diag_proto::ProcessInfo;
use runtap_transport::discover::{self, Process, Startup};

/// Whether the runtime waits at its start. No command asks this; but such a runtime reports the host alone as its
/// command line, without the arguments that the process has, and it has not made all its threads. `None` where that
/// can't be seen.
pub fn is_suspended(process: &Process, info: &ProcessInfo) -> Option<bool> {
    let host = process.exe.as_deref().is_some_and(|exe| exe.as_os_str() == info.command_line.as_str());
    let host_alone = host || process.command_line.first() == Some(&info.command_line);
    if !host_alone && process.command_line.len() > 1 {
        return Some(false);
    }
    match discover::startup(process.pid) {
        Startup::Done => Some(false),
        Startup::Waiting => Some(true),
        _ => None,
    }
}
