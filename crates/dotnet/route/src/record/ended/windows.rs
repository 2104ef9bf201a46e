//! Waiting for the end of a process that is not a child, by a process handle.

use std::future;
use std::time::Duration;

use runtap_os::windows::process::Running;
use tokio::sync::oneshot;

use super::watching::on_a_thread;

/// The interval at which the receiver is checked for being dropped.
const POLL_TIMEOUT: Duration = Duration::from_secs(1);

/// Completes when this process has exited; never for `None`, or if the process can't be watched.
pub(super) async fn ended(process: Option<u32>) {
    if let Some(watched) = process.and_then(|pid| Running::open(pid).ok())
        && on_a_thread(move |answer| has_ended(&watched, answer)).await
    {
        return;
    }
    future::pending::<()>().await;
}

/// Waits for the end of a process, until the receiver of the answer is dropped.
fn has_ended(watched: &Running, answer: &oneshot::Sender<()>) -> bool {
    while !answer.is_closed() {
        match watched.ends_within(POLL_TIMEOUT) {
            Ok(false) => {}
            Ok(true) => return true,
            Err(_) => return false,
        }
    }
    false
}
