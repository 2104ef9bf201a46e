//! The events of one thread for one session: filled by that thread, emptied by the task that serves the reader. The lock
//! is the thread's own but for the moment in which it is emptied.

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
    /// The number of the last event, lost ones included.
    pub sequence: u32,
    /// Bytes that were taken of the session's room and are not in use.
    pub left: usize,
    /// The session takes no more.
    pub closed: bool,
}

impl ThreadBuffer {
    /// Numbers go on behind `sequence`, where a thread before had the same id.
    pub(crate) fn new(thread: u64, sequence: u32) -> Self {
        Self { thread, held: Mutex::new(Held { sequence, ..Held::default() }) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
