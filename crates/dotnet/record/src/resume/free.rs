//! Resumes processes that wait for tools that are gone, according to their environments, on Linux.

use std::ffi::OsString;
use std::time::Duration;

use runtap_diag::ports;
use runtap_discover::{Process, Startup};
use runtap_os::{in_a_thread, my_uid};
use tokio::time::{Instant, sleep, timeout};

use super::stand_in::{self, TakenOver};
use super::{ResumeError, Resumption};

/// Poll interval of a runtime's startup.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The time from the command to the start of the program after which other reasons for waiting are considered.
pub(super) const MOMENT: Duration = Duration::from_millis(500);

/// Resumes a process over the ports that it still waits for, and all others that wait there, because their tools are gone.
pub(super) async fn free(
    process: &Process,
    limit: Duration,
    guard: Option<&[OsString]>,
    tell: &(impl Fn(Resumption<'_>) + Clone + Send + Sync + 'static),
) -> Result<(), ResumeError> {
    let pid = process.pid;
    let looked = timeout(limit.max(MOMENT), in_a_thread(move || ports::waited_for(pid))).await;
    let ports = looked.map_err(|_elapsed| ResumeError::TooSlow { pid })???;
    if !ports.is_empty() && starts_within(pid, limit.min(MOMENT)).await {
        return Ok(());
    }
    let (mut taken_over, mut refused) = (Vec::new(), None);
    for awaited in ports {
        match TakenOver::over(&awaited) {
            Ok(port) => taken_over.push((awaited, port)),
            Err(error) => drop(refused.get_or_insert((awaited, error))),
        }
    }
    let (awaited, mut taken_over): (Vec<_>, Vec<_>) = taken_over.into_iter().unzip();
    if process.uid == my_uid() {
        for taken_over in &taken_over {
            tell(Resumption::TakenOver(taken_over.port()));
        }
    }
    let began = Instant::now();
    if !taken_over.is_empty() {
        let others = in_a_thread(move || ports::waiting_for(&awaited));
        stand_in::listen_for(&mut taken_over, others, limit, tell).await?;
    }
    for taken_over in taken_over {
        taken_over.care_for_their_children(process.uid, guard, tell).await;
    }
    if let Some((awaited, error)) = refused {
        return Err(stand_in::not_taken_over(pid, &awaited, error).await);
    }
    // Others may have used up the time.
    if starts_within(pid, limit.saturating_sub(began.elapsed()).max(MOMENT)).await {
        return Ok(());
    }
    Err(ResumeError::StillWaits { pid })
}

/// Whether the runtime starts its program within this time.
async fn starts_within(pid: u32, limit: Duration) -> bool {
    let looking = async {
        while runtap_discover::startup(pid) == Startup::Waiting {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(limit, looking).await.is_ok()
}
