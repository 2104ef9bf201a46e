//! Threads with equal stacks.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::{DumpedThread, ThreadDump, ThreadState};
use crate::order;

/// Threads with equal stacks that are of the same kind, in the same state, and wait for the same kind of object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackGroup {
    /// The threads, as positions in [`ThreadDump::threads`]. Never empty.
    pub threads: Vec<usize>,
}

impl ThreadDump {
    /// Groups the threads by their stacks: large groups first, then in the order of their first threads.
    pub fn groups(&self) -> Vec<StackGroup> {
        let mut groups: Vec<StackGroup> = Vec::new();
        let mut by_key = HashMap::with_hasher(RandomState::default());
        for (index, thread) in self.threads.iter().enumerate() {
            let group = *by_key.entry(key(thread)).or_insert_with(|| {
                groups.push(StackGroup { threads: Vec::new() });
                groups.len() - 1
            });
            if let Some(group) = groups.get_mut(group) {
                group.threads.push(index);
            }
        }
        order::sort_by_key(&mut groups, |group| std::cmp::Reverse(group.threads.len()));
        groups
    }
}

/// Returns what threads of a group have in common.
fn key(thread: &DumpedThread) -> impl Eq + std::hash::Hash + '_ {
    let wait = thread.wait.map(|wait| wait.kind);
    (&thread.frames, thread.kind.name(), thread.state.map(ThreadState::name), wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread_dump::DumpedFrame;

    #[test]
    fn equal_stacks_in_equal_states_are_merged() {
        let thread = |name: &str, state| DumpedThread {
            frames: vec![DumpedFrame { name: name.to_owned(), ..DumpedFrame::default() }],
            state: Some(state),
            ..DumpedThread::default()
        };
        let (run, wait) = (ThreadState::Runnable, ThreadState::Waiting);
        let threads = vec![thread("a", run), thread("b", run), thread("a", wait), thread("b", run)];
        let dump = ThreadDump { threads, ..ThreadDump::default() };
        let groups: Vec<_> = dump.groups().into_iter().map(|group| group.threads).collect();
        assert_eq!(groups, [vec![1, 3], vec![0], vec![2]]);
    }
}
