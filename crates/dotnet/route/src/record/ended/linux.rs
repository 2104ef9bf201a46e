//! Waiting for the end of a process that is not a child, by a process descriptor. Source: `pidfd_open(2)`.

use std::future;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::oneshot;

use super::watching::on_a_thread;

/// Completes when this process has exited; never for `None`, or if the process can't be watched.
pub(super) async fn ended(process: Option<u32>) {
    let watched = || {
        let pid = Pid::from_raw(i32::try_from(process?).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    };
    if let Some(watched) = watched()
        && on_a_thread(move |answer| has_ended(&watched, answer)).await
    {
        return;
    }
    future::pending::<()>().await;
}

/// Waits for the end of a process, until the receiver of the answer is dropped.
fn has_ended(watched: &OwnedFd, answer: &oneshot::Sender<()>) -> bool {
    let poll_timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
    while !answer.is_closed() {
        let mut polled = [PollFd::new(watched, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&poll_timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
    false
}
