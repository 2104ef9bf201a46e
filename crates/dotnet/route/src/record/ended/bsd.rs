//! Waiting for the end of a process that is not a child, on systems without process descriptors (macOS), by polling.
//! Counterpart of `linux.rs`; also compiled and tested on Linux.

use std::future;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tokio::time::sleep;

/// The polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Completes when this process has exited and was reaped; never for `None`. Does not notice if the process id is reused.
pub(super) async fn ended(process: Option<u32>) {
    let pid = process.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let Some(pid) = pid else { return future::pending().await };
    while test_kill_process(pid) != Err(Errno::SRCH) {
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut ending = Box::pin(ended(Some(child.id())));
        assert!(poll_once(&mut ending).await.is_none(), "it runs");
        drop(child.stdin.take());
        child.wait().unwrap();
        ending.await;
        assert!(poll_once(&mut Box::pin(ended(None))).await.is_none());
    }

    /// Returns the result of a future that is ready immediately.
    async fn poll_once(future: &mut (impl Future<Output = ()> + Unpin)) -> Option<()> {
        tokio::select! {
            biased;
            () = future => Some(()),
            () = future::ready(()) => None,
        }
    }
}
