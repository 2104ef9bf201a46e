//! The questions of [`discover`](super) on systems other than Linux: it only hands them on. Compiled and tried on Linux
//! too, as far as it is Unix's.

use super::{NotFound, Options, Process, Thread};

#[cfg(unix)]
fn here() -> (std::path::PathBuf, u32) {
    (super::temp_dir(), rustix::process::geteuid().as_raw())
}

/// The managed processes that can be seen from here, by pid.
pub fn processes(options: Options) -> Vec<Process> {
    #[cfg(unix)]
    {
        let (temp, uid) = here();
        super::macos::processes(&temp, uid, options)
    }
    #[cfg(windows)]
    {
        let _ = options;
        super::windows::processes()
    }
}

/// The .NET process `pid`, or what stands in the way.
///
/// # Errors
/// See [`Reason`](super::Reason).
pub fn process(pid: u32) -> Result<Process, NotFound> {
    #[cfg(unix)]
    {
        let (temp, uid) = here();
        super::macos::process(&temp, uid, pid)
    }
    #[cfg(windows)]
    super::windows::process(pid)
}

/// The start time of process `pid`: the key in the name of its socket, where there is one.
pub fn start_time(pid: u32) -> Option<u64> {
    #[cfg(unix)]
    {
        super::macos::start_time(pid)
    }
    #[cfg(windows)]
    {
        let _ = pid;
        None
    }
}

/// Whether the process that had the id `pid` and this start time is still running.
pub fn is_running(pid: u32, start_time: u64) -> bool {
    self::start_time(pid) == Some(start_time)
}

/// Always fails: threads are not listed here.
///
/// # Errors
/// Always.
pub fn threads(_pid: u32) -> std::io::Result<Vec<Thread>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_no_runtime_and_runs() {
        let me = std::process::id();
        assert_eq!(process(me).unwrap_err().pid, me);
        assert!(processes(Options::default()).iter().all(|found| found.pid != me));
        let start = start_time(me).unwrap();
        assert!(is_running(me, start) && !is_running(me, start - 1));
        assert_eq!(threads(me).unwrap_err().kind(), std::io::ErrorKind::Unsupported);
    }
}
