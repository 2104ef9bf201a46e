//! The end of a process that is not our child, by a handle of it.

use std::future;
use std::time::Duration;

use runtap_os::windows::process::Running;
use tokio::sync::oneshot;

use super::watching::on_a_thread;

/// How long it waits before it looks whether anybody still wants to know.
const A_WHILE: Duration = Duration::from_secs(1);

/// Ready when this process has ended; never without one, or where it can't be watched.
pub(super) async fn ended(process: Option<u32>) {
    if let Some(watched) = process.and_then(|pid| Running::open(pid).ok())
        && on_a_thread(move |answer| has_ended(&watched, answer)).await
    {
        return;
    }
    future::pending::<()>().await;
}

/// Waits for the end of a process, as long as somebody waits for the answer.
fn has_ended(watched: &Running, answer: &oneshot::Sender<()>) -> bool {
    while !answer.is_closed() {
        match watched.ends_within(A_WHILE) {
            Ok(false) => {}
            Ok(true) => return true,
            Err(_) => return false,
        }
    }
    false
}
