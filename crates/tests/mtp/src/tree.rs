//! Descendants of a program, identified by an environment variable, even if they left the process group.

#[cfg(target_os = "linux")]
use std::fs::{self, File};
#[cfg(target_os = "linux")]
use std::path::Path;

use rustix::process::Pid;

/// Kills each process of this user whose environment contains `mark` (`NAME=VALUE`), except the reaper. Returns the
/// number of killed processes.
///
/// A process is opened by a descriptor before its environment is read, so that a reused process id is never killed.
#[cfg(target_os = "linux")]
pub(crate) fn kill_marked(mark: &str, reaper: Option<Pid>) -> usize {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::process::{PidfdFlags, Signal, getuid, pidfd_open, pidfd_send_signal};

    let uid = getuid().as_raw();
    let mut killed = 0;
    // Processes may start others meanwhile: repeat until none is found, up to a limit.
    for _ in 0..10 {
        let before = killed;
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = process.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let Some(pid) = pid else { continue };
            if reaper == Some(pid) {
                continue;
            }
            let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            let is_own = process.metadata().is_ok_and(|folder| folder.uid() == uid);
            let marked = is_own && has(&process.path(), mark);
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

/// Returns whether the environment contains `mark`. An exited process that was not reaped has no environment.
#[cfg(target_os = "linux")]
fn has(process: &Path, mark: &str) -> bool {
    use std::io::Read as _;

    // The maximum size of an environment that is read, in bytes.
    const MAX_ENVIRONMENT: u64 = 4 << 20;
    let Ok(file) = File::open(process.join("environ")) else { return false };
    let mut environment = Vec::new();
    let read = file.take(MAX_ENVIRONMENT).read_to_end(&mut environment);
    read.is_ok() && environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

/// Does nothing: on other systems, only the process group is killed.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn kill_marked(_: &str, _: Option<Pid>) -> usize {
    0
}
