//! The processes of a trace, for formats that have a place for them: which thread is of which, and under which number.
//!
//! Two containers may each have a process 1. In one file every process needs a number of its own: the first to come
//! keeps it, another one gets one that no process of Linux has.
//!
//! Refuses to: tell processes apart by their names. A [`Process`] is another one if it is another value in memory.

use runtap_model::{Process, Thread, Trace};

/// Behind the last number that Linux gives a process (`PID_MAX_LIMIT`).
const BEYOND: u32 = 1 << 22;

/// A process, and its number in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered<'a> {
    pub(crate) pid: u32,
    pub(crate) process: &'a Process,
}

impl<'a> Numbered<'a> {
    pub(crate) fn name(&self) -> &'a str {
        self.process.name.as_deref().unwrap_or("a process")
    }

    /// Whether a thread is its main thread.
    pub(crate) fn has_main(&self, thread: &Thread) -> bool {
        self.process.pid.is_some_and(|pid| u64::from(pid) == thread.tid())
    }
}

/// The processes of some threads.
#[derive(Debug)]
pub(crate) struct Processes<'a> {
    list: Vec<Numbered<'a>>,
    of_thread: Vec<usize>,
}

impl<'a> Processes<'a> {
    /// In the order of their first threads. A process without a number gets 1: readers take 0 for the idle one.
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

    /// All of them; at least one where there is a thread.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Numbered<'a>> + '_ {
        self.list.iter().copied()
    }

    /// The place among all of the process of a thread, which is given by its place in the list of threads.
    pub(crate) fn place(&self, thread: usize) -> usize {
        self.of_thread[thread]
    }

    /// The process of a thread.
    pub(crate) fn of(&self, thread: usize) -> Numbered<'a> {
        self.list[self.place(thread)]
    }

    /// Which thread a process is shown by, for each thread: the main one, else the first of its process.
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
