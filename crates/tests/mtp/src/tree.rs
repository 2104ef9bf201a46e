//! The processes that a program has started, wherever they have gone: by a variable of their environment.

use rustix::process::Pid;

/// Kills each process of this user whose environment contains `mark` (`NAME=VALUE`), except for its keeper. Returns how many
/// there were.
///
/// A process is known by a descriptor before it is looked at, so that none that has got its number since is hit.
#[cfg(target_os = "linux")]
pub(crate) fn kill_marked(mark: &str, keeper: Option<Pid>) -> usize {
    use rustix::process::{PidfdFlags, Signal, getuid, pidfd_open, pidfd_send_signal};

    let uid = getuid().as_raw();
    let mut killed = 0;
    // A process may start others while we look: until none is found, but not for ever.
    for _ in 0..10 {
        let before = killed;
        for process in procfs::process::all_processes().into_iter().flatten().flatten() {
            let Some(pid) = Pid::from_raw(process.pid()) else { continue };
            if keeper == Some(pid) {
                continue;
            }
            let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            let marked = process.uid().is_ok_and(|owner| owner == uid) && has(&process, mark);
            if marked && pidfd_send_signal(&descriptor, Signal::KILL).is_ok() {
                killed += 1;
            }
        }
        if killed == before {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    killed
}

/// A process that has ended and was not reaped has no environment, and counts no more.
#[cfg(target_os = "linux")]
fn has(process: &procfs::process::Process, mark: &str) -> bool {
    use std::io::Read as _;

    // Beyond this, an environment has been filled with something else.
    const LONGEST: u64 = 4 << 20;
    let Ok(file) = process.open_relative("environ") else { return false };
    let mut environment = Vec::new();
    let read = file.take(LONGEST).read_to_end(&mut environment);
    read.is_ok() && environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

/// Elsewhere, the process group has to do.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn kill_marked(_: &str, _: Option<Pid>) -> usize {
    0
}
