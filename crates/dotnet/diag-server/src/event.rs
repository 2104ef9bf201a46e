//! A defined event, which any thread can write.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use runtap_nettrace::Metadata;

use crate::definition::{Definition, EventData};
use crate::state::PipeState;

/// A defined event. Cheap to clone; usable from any thread.
#[derive(Debug, Clone)]
pub struct Event {
    pub(crate) definition: Arc<Definition>,
    pub(crate) pipe: Arc<PipeState>,
}

impl Event {
    /// Returns whether any session records the event, with a single load. Check this before gathering data.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.definition.wanted_by.load(Ordering::Relaxed) != 0
    }

    /// Returns the definition of the event.
    pub fn metadata(&self) -> &Metadata {
        &self.definition.metadata
    }

    /// Adds the event, with the current time, to this thread's buffer of every session that records it. If a buffer is full,
    /// the event is lost there, and the reader sees the gap; the thread blocks only if the session requested that, at most
    /// for [`Limits::blocked_writer`](crate::Limits::blocked_writer). Events from destructors of thread-local values are not
    /// written.
    #[inline]
    pub fn write(&self, data: &EventData<'_>) {
        if self.is_enabled() {
            self.pipe.write(&self.definition, data);
        }
    }

    /// Writes the event for this thread, without a stack; see [`write`](Self::write).
    #[inline]
    pub fn write_here(&self, payload: &[u8]) {
        self.write(&EventData { payload, ..EventData::default() });
    }
}

/// Returns the operating system's id of this thread; 0 if unknown.
pub fn current_thread_id() -> u64 {
    thread_local!(static ID: OnceCell<u64> = const { OnceCell::new() });
    ID.with(|id| *id.get_or_init(read_thread_id))
}

#[cfg(windows)]
fn read_thread_id() -> u64 {
    u64::from(runtap_os::windows::process::current_thread_id())
}

#[cfg(not(windows))]
fn read_thread_id() -> u64 {
    // A link to `PID/task/TID`.
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    link.file_name().and_then(|tid| tid.to_str()?.parse().ok()).unwrap_or_default()
}
