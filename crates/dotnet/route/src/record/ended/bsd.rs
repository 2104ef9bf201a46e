//! The end of a process that is not our child, where no descriptor stands for one (macOS): it is looked for now and then. The
//! same function as `linux.rs`. Nothing in it is foreign to Linux, so it is compiled and tested there too.

use std::future;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tokio::time::sleep;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// Ready when this process has ended and its parent knows; never without one. That another one has its id by then is not
/// noticed.
pub(super) async fn ended(process: Option<u32>) {
    let pid = process.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let Some(pid) = pid else { return future::pending().await };
    while test_kill_process(pid) != Err(Errno::SRCH) {
        sleep(LOOK).await;
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
        assert!(futures_now(&mut ending).await.is_none(), "it runs");
        drop(child.stdin.take());
        child.wait().unwrap();
        ending.await;
        assert!(futures_now(&mut Box::pin(ended(None))).await.is_none());
    }

    /// What is ready at once.
    async fn futures_now(future: &mut (impl Future<Output = ()> + Unpin)) -> Option<()> {
        tokio::select! {
            biased;
            () = future => Some(()),
            () = future::ready(()) => None,
        }
    }
}
