//! The events of one thread for one session: added by that thread, removed by the task that serves the reader. The lock
//! is uncontended except while the buffer is emptied.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::records::Records;

/// The buffer of a thread.
#[derive(Debug)]
pub(crate) struct ThreadBuffer {
    pub thread: u64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
pub(crate) struct Held {
    pub records: Records,
    /// The number of the last event, including lost ones.
    pub sequence: u32,
    /// The bytes that were reserved from the session's memory and are unused.
    pub left: usize,
    /// Whether the session has ended.
    pub closed: bool,
}

impl ThreadBuffer {
    /// Creates a buffer. Numbers continue after `sequence` if a previous thread had the same id.
    pub(crate) fn new(thread: u64, sequence: u32) -> Self {
        Self { thread, held: Mutex::new(Held { sequence, ..Held::default() }) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
