//! Handles processes that outlive a command and still have its port in their environment, on Windows. A pipe can't be inherited by a
//! guard process, so the processes are only reported; their children wait in vain.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use runtap_diag::ports::Port;
use runtap_discover::System;
use runtap_os::in_a_thread;
use tokio::time::sleep;

use crate::event::{Event, Reporter};

/// Returns a function that finds the descendants of this process. The environments of other processes are not read.
pub(crate) fn holders(
    _port: &Path,
    _users: &BTreeSet<u32>,
) -> impl Fn() -> Vec<u32> + Clone + Send + 'static {
    let us = std::process::id();
    move || {
        let mut below = System::current().tree(us);
        below.retain(|pid| *pid != us);
        below
    }
}

/// Whether `look`, such as [`holders`], finds no process. Searches twice, each followed by a pause.
pub(crate) async fn is_free<L>(look: &L, pause: Duration) -> bool
where
    L: Fn() -> Vec<u32> + Clone + Send + 'static,
{
    for _ in 0..2 {
        if !in_a_thread(look.clone()).await.is_ok_and(|holders| holders.is_empty()) {
            return false;
        }
        sleep(pause).await;
    }
    true
}

/// Closes the port, and reports the processes that may still need it.
pub(crate) async fn leave_behind(
    port: Port,
    users: &BTreeSet<u32>,
    _arguments: Option<&[OsString]>,
    reporter: &Reporter,
) {
    let path = port.path().to_owned();
    let processes = match in_a_thread(holders(&path, users)).await {
        Ok(holders) if holders.is_empty() => return,
        Ok(holders) => Some(holders),
        Err(_) => None,
    };
    drop(port);
    reporter.report(Event::NoGuard { processes, port: path, error: io::ErrorKind::Unsupported.into() });
}

/// Not supported on this system.
///
/// # Errors
/// Always returns an error.
pub async fn guard_port(_path: &Path, _users: &BTreeSet<u32>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
