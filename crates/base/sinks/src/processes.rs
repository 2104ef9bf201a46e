//! The processes of a trace, for formats that store them: assigns threads to processes, and unique ids to processes.
//!
//! Two containers may each have a process 1. Within a file, ids must be unique, so the first process keeps its id, and
//! others get one beyond those of Linux. Processes are distinguished by the address of their [`Process`], not by name.

use runtap_model::{Process, Thread, Trace};

/// Greater than all process ids of Linux (`PID_MAX_LIMIT`).
const BEYOND: u32 = 1 << 22;

/// A process and its id in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered<'a> {
    pub(crate) pid: u32,
    pub(crate) process: &'a Process,
}

impl<'a> Numbered<'a> {
    pub(crate) fn name(&self) -> &'a str {
        self.process.name.as_deref().unwrap_or("a process")
    }

    /// Returns whether `thread` is the main thread of this process.
    pub(crate) fn has_main(&self, thread: &Thread) -> bool {
        self.process.pid.is_some_and(|pid| u64::from(pid) == thread.tid())
    }
}

/// The processes of a list of threads.
#[derive(Debug)]
pub(crate) struct Processes<'a> {
    list: Vec<Numbered<'a>>,
    of_thread: Vec<usize>,
}

impl<'a> Processes<'a> {
    /// Collects the processes in the order of their first threads. A process without an id gets 1, because readers take
    /// 0 for the idle process.
    pub(crate) fn new(trace: &'a Trace, threads: &[&'a Thread]) -> Self {
        let mut list: Vec<Numbered<'_>> = Vec::new();
        let mut of_thread = Vec::with_capacity(threads.len());
        for thread in threads {
            let process = thread.process().unwrap_or_else(|| trace.process());
            let known = list.iter().position(|known| std::ptr::eq(known.process, process));
            of_thread.push(known.unwrap_or_else(|| {
                let taken = |pid: &u32| list.iter().any(|known| known.pid == *pid);
                let own = process.pid.unwrap_or(1);
                let free = || (BEYOND..=u32::MAX).find(|pid| !taken(pid)).unwrap_or(own);
                let pid = if taken(&own) { free() } else { own };
                list.push(Numbered { pid, process });
                list.len() - 1
            }));
        }
        Self { list, of_thread }
    }

    /// Returns all processes; at least one if there are threads.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Numbered<'a>> + '_ {
        self.list.iter().copied()
    }

    /// Returns the index of the process of the thread with index `thread`.
    pub(crate) fn place(&self, thread: usize) -> usize {
        self.of_thread[thread]
    }

    /// Returns the process of the thread with index `thread`.
    pub(crate) fn of(&self, thread: usize) -> Numbered<'a> {
        self.list[self.place(thread)]
    }

    /// Returns for each thread whether it represents its process: the main thread, or the first one if that is missing.
    pub(crate) fn main_threads(&self, threads: &[&Thread]) -> Vec<bool> {
        let mut shown: Vec<Option<usize>> = vec![None; self.list.len()];
        for (index, thread) in threads.iter().enumerate() {
            let slot = &mut shown[self.place(index)];
            if slot.is_none() || self.of(index).has_main(thread) {
                *slot = Some(index);
            }
        }
        (0..threads.len()).map(|index| shown[self.place(index)] == Some(index)).collect()
    }
}
