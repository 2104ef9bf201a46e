//! Finds threads that wait for each other.

use super::ThreadDump;

/// The state of a thread during the search.
#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Never,
    /// In the search that started with this thread.
    In(usize),
}

impl ThreadDump {
    /// Determines the deadlocks from the owners of the locks. Each starts with its first thread in the list.
    pub fn find_deadlocks(&mut self) {
        let mut visits = vec![Visit::Never; self.threads.len()];
        let mut deadlocks = Vec::new();
        for start in 0..self.threads.len() {
            let mut path = Vec::new();
            let mut next = Some(start);
            while let Some(thread) = next {
                let Some(visit) = visits.get_mut(thread) else { break };
                if *visit == Visit::Never {
                    *visit = Visit::In(start);
                    path.push(thread);
                    next = self.blocker(thread);
                    continue;
                }
                // Only threads of this search can be on the path.
                if *visit == Visit::In(start)
                    && let Some(first) = path.iter().position(|on_path| *on_path == thread)
                {
                    deadlocks.push(path.split_off(first));
                }
                break;
            }
        }
        for deadlock in &mut deadlocks {
            let first = deadlock.iter().enumerate().min_by_key(|(_, thread)| **thread);
            let first = first.map_or(0, |(place, _)| place);
            deadlock.rotate_left(first);
        }
        self.deadlocks = deadlocks;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::thread_dump::{DumpedLock, DumpedThread, ThreadDump, ThreadWait, WaitKind};

    /// Creates a dump in which thread `i` waits for lock `i`, which `owners[i]` holds.
    fn dump(owners: &[Option<usize>]) -> ThreadDump {
        let lock = |owner: &Option<usize>| DumpedLock { owner: *owner, ..DumpedLock::default() };
        let wait = |lock| Some(ThreadWait { kind: WaitKind::Lock, lock: Some(lock) });
        let threads =
            (0..owners.len()).map(|lock| DumpedThread { wait: wait(lock), ..DumpedThread::default() });
        let mut dump = ThreadDump {
            threads: threads.collect(),
            locks: owners.iter().map(lock).collect(),
            ..ThreadDump::default()
        };
        dump.find_deadlocks();
        dump
    }

    #[test]
    fn cycles_start_with_their_first_thread_and_others_are_none() {
        assert_eq!(dump(&[Some(1), Some(0)]).deadlocks, [[0, 1]]);
        // 0 waits for a member of the cycle; 4 waits for 5, which has no owner.
        let more = dump(&[Some(3), Some(2), Some(3), Some(1), Some(5), None]);
        assert_eq!(more.deadlocks, [[1, 2, 3]]);
        assert_eq!(more.waiters(4).collect::<Vec<_>>(), [4]);
        assert_eq!(dump(&[None, Some(0)]).deadlocks, Vec::<Vec<usize>>::new());
        // A thread that waits for itself, and an owner that is missing.
        assert_eq!(dump(&[Some(0), Some(9)]).deadlocks, [[0]]);
    }

    #[test]
    fn a_condition_has_no_owner_to_wait_for() {
        let mut dump = dump(&[Some(1), Some(0)]);
        dump.threads[0].wait = Some(ThreadWait { kind: WaitKind::Condition, lock: Some(0) });
        dump.find_deadlocks();
        assert_eq!((dump.blocker(0), dump.blocker(1)), (None, Some(0)));
        assert!(dump.deadlocks.is_empty());
    }

    proptest! {
        #[test]
        fn exactly_the_threads_that_reach_themselves_are_deadlocked(
            owners in prop::collection::vec(prop::option::of(0_usize..12), 0..12),
        ) {
            let dump = dump(&owners);
            let reaches_itself = |start: usize| {
                let mut at = start;
                (0..owners.len()).any(|_| match dump.blocker(at) {
                    Some(next) => { at = next; next == start }
                    None => false,
                })
            };
            let mut expected: Vec<usize> = (0..owners.len()).filter(|at| reaches_itself(*at)).collect();
            let mut found: Vec<usize> = dump.deadlocks.concat();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
            for deadlock in &dump.deadlocks {
                for (place, thread) in deadlock.iter().enumerate() {
                    let next = deadlock[(place + 1) % deadlock.len()];
                    prop_assert_eq!(dump.blocker(*thread), Some(next));
                }
            }
        }
    }
}
