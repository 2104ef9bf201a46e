//! Detects processes that would block a tool: stopped ones, and suspended ones that no tool is going to resume.

use std::io;

use crate::doctor::Finding;
use runtap_discover::System;
use runtap_os::in_a_thread;

use crate::resolved::ResolvedTarget;

impl ResolvedTarget {
    /// Returns why the process is stopped, or `None` if it runs. A stopped process does not answer any command.
    pub fn stopped(&self) -> Option<(u32, Finding)> {
        let pid = self.process.as_ref()?.pid;
        Some((pid, crate::doctor::stopped(&System::current(), pid)?))
    }
}

/// Returns the first process that is suspended at startup and waits for a port on which nothing listens. Only a tool on that port
/// can resume it; until then a session would be empty and could not be stopped.
///
/// # Errors
/// Returns an error if no thread can be started.
pub async fn stuck_at_startup(subjects: &[ResolvedTarget]) -> io::Result<Option<(u32, Finding)>> {
    let pids: Vec<u32> = subjects.iter().filter_map(|subject| Some(subject.process.as_ref()?.pid)).collect();
    in_a_thread(move || {
        let system = System::current();
        pids.into_iter().find_map(|pid| Some((pid, crate::doctor::stuck_at_startup(&system, pid)?)))
    })
    .await
}
