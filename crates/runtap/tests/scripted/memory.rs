//! Peak memory of a process.

use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

/// Waits until a child exits and returns its peak memory in bytes, as last observed.
pub(crate) fn most_until_its_end(child: &mut Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        most = most.max(kilobytes.unwrap_or(0) << 10);
        thread::sleep(Duration::from_millis(5));
    }
    most
}
