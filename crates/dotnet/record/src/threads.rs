//! Names of threads, which the stream does not carry: the kernel knows them while the process lives.

use std::collections::BTreeMap;

/// Names seen so far, by the number that the runtime reports.
#[derive(Debug, Default)]
pub(crate) struct ThreadNames {
    names: BTreeMap<u64, String>,
}

impl ThreadNames {
    /// Looks again. A thread that has ended keeps the last name it had.
    pub(crate) fn refresh(&mut self, pid: u32) {
        // A process that is gone has no threads to name.
        for thread in runtap_discover::threads(pid).unwrap_or_default() {
            self.names.insert(u64::from(thread.ns_tid), thread.name);
        }
    }

    /// All names.
    pub(crate) fn into_list(self) -> Vec<(u64, String)> {
        self.names.into_iter().collect()
    }
}
