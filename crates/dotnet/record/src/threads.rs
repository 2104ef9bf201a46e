//! Names of threads, which are not in the stream: the kernel provides them while the process runs.

use std::collections::BTreeMap;

/// The names seen so far, by the thread id that the runtime reports.
#[derive(Debug, Default)]
pub(crate) struct ThreadNames {
    names: BTreeMap<u64, String>,
}

impl ThreadNames {
    /// Updates the names. A thread that has exited keeps its last name.
    pub(crate) fn refresh(&mut self, pid: u32) {
        // A process that has exited has no threads.
        for thread in runtap_discover::threads(pid).unwrap_or_default() {
            self.names.insert(u64::from(thread.ns_tid), thread.name);
        }
    }

    /// Returns the current names of the threads of a process.
    pub(crate) fn of(pid: u32) -> Vec<(u64, String)> {
        let mut names = Self::default();
        names.refresh(pid);
        names.into_list()
    }

    /// Returns all names.
    pub(crate) fn into_list(self) -> Vec<(u64, String)> {
        self.names.into_iter().collect()
    }
}
