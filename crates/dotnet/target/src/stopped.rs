//! Processes that would keep everybody waiting: those that are stopped, and those that nobody is going to resume.

use std::io;

use crate::doctor::Finding;
use runtap_discover::System;
use runtap_os::in_a_thread;

use crate::subject::Subject;

impl Subject {
    /// What keeps it from answering anything at all: it is stopped. It would keep everybody waiting until it is given up.
    pub fn stopped(&self) -> Option<(u32, Finding)> {
        let pid = self.process.as_ref()?.pid;
        Some((pid, crate::doctor::stopped(&System::current(), pid)?))
    }
}

/// The first that waits for a port on which nobody listens. It goes on over that port alone: until then a session would be empty,
/// and could not even be stopped.
///
/// # Errors
/// There is no thread.
pub async fn stuck_at_startup(subjects: &[Subject]) -> io::Result<Option<(u32, Finding)>> {
    let pids: Vec<u32> = subjects.iter().filter_map(|subject| Some(subject.process.as_ref()?.pid)).collect();
    in_a_thread(move || {
        let system = System::current();
        pids.into_iter().find_map(|pid| Some((pid, crate::doctor::stuck_at_startup(&system, pid)?)))
    })
    .await
}
