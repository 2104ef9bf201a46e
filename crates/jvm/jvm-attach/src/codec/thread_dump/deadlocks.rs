//! The deadlocks that a JVM reports, from which owners of `java.util.concurrent` locks are known even without `-l`.
//!
//! ```text
//! Found one Java-level deadlock:
//! =============================
//! "lock-1":
//!   waiting for ownable synchronizer 0x…, (a java.util.concurrent.locks.ReentrantLock$NonfairSync),
//!   which is held by "lock-2"
//!
//! "lock-2":
//!   waiting to lock monitor 0x… (object 0x…, a java.lang.Object),
//!   which is held by "lock-1"
//!
//! Java stack information for the threads listed above:
//! ```
//!
//! Each thread waits for the next one, and the last one for the first. Names are only used where several threads wait for an object.

use std::collections::BTreeMap;

use runtap_model::thread_dump::ThreadDump;

use super::header::address;

/// The maximum number of threads in all deadlocks.
const MAX_ENTRIES: usize = 1_000;

/// A thread of a deadlock.
#[derive(Debug)]
struct Entry<'a> {
    name: Option<&'a str>,
    /// The address of the object for which the thread waits.
    object: u64,
}

/// The reported deadlocks.
#[derive(Debug, Default)]
pub(super) struct Reported<'a> {
    deadlocks: Vec<Vec<Entry<'a>>>,
    current: Vec<Entry<'a>>,
    entries: usize,
    name: Option<&'a str>,
}

/// Returns whether a line is the heading of a deadlock.
pub(super) fn is_heading(line: &str) -> bool {
    line.starts_with("Found ") && line.ends_with(" Java-level deadlock:")
}

impl<'a> Reported<'a> {
    /// Handles a line after the heading of the first deadlock.
    pub(super) fn line(&mut self, line: &'a str) {
        if line == "Java stack information for the threads listed above:" || is_heading(line) {
            let current = std::mem::take(&mut self.current);
            if !current.is_empty() {
                self.deadlocks.push(current);
            }
        } else if let Some(name) = line.strip_prefix('"').and_then(|line| line.strip_suffix("\":")) {
            self.name = Some(name);
        } else if let Some(object) = waited_object(line)
            && self.entries < MAX_ENTRIES
        {
            self.entries = self.entries.saturating_add(1);
            self.current.push(Entry { name: self.name.take(), object });
        }
    }
}

/// Returns the address of the object for which a thread of a deadlock waits.
fn waited_object(line: &str) -> Option<u64> {
    let object = match line.strip_prefix("  waiting for ownable synchronizer ") {
        Some(object) => object,
        None => line.strip_prefix("  waiting to lock monitor ")?.split_once("(object ")?.1,
    };
    address(object.split(',').next()?)
}

/// Sets the owners of locks that are only known from deadlocks.
pub(super) fn complete_owners(dump: &mut ThreadDump, locks: &BTreeMap<u64, usize>, reported: &Reported<'_>) {
    if reported.deadlocks.is_empty() {
        return;
    }
    let mut waiters: Vec<Vec<usize>> = vec![Vec::new(); dump.locks.len()];
    for (index, thread) in dump.threads.iter().enumerate() {
        let lock = thread.wait.and_then(|wait| wait.lock).and_then(|lock| waiters.get_mut(lock));
        if let Some(waiters) = lock {
            waiters.push(index);
        }
    }
    let thread_of = |entry: &Entry<'_>| {
        let waiters = waiters.get(*locks.get(&entry.object)?)?;
        let is_named = |index: &&usize| {
            dump.threads.get(**index).is_some_and(|thread| thread.name.as_deref() == entry.name)
        };
        match waiters.as_slice() {
            [only] => Some(*only),
            several => several.iter().find(is_named).copied(),
        }
    };
    let mut owners = Vec::new();
    for deadlock in &reported.deadlocks {
        let next = deadlock.iter().cycle().skip(1);
        for (entry, next) in deadlock.iter().zip(next) {
            owners.extend(locks.get(&entry.object).copied().zip(thread_of(next)));
        }
    }
    for (lock, owner) in owners {
        let Some(known) = dump.locks.get_mut(lock).filter(|known| known.owner.is_none()) else { continue };
        known.owner = Some(owner);
        if let Some(thread) = dump.threads.get_mut(owner) {
            thread.holds.push(lock);
        }
    }
}
