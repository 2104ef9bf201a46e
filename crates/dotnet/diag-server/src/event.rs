//! An event that can be written, from any thread.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use runtap_nettrace::Metadata;

use crate::definition::{Definition, EventData};
use crate::state::PipeState;

/// An event that was defined. Cheap to clone; usable from any thread.
#[derive(Debug, Clone)]
pub struct Event {
    pub(crate) definition: Arc<Definition>,
    pub(crate) pipe: Arc<PipeState>,
}

impl Event {
    /// Whether any session wants it: one load. Ask before you gather what to write.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.definition.wanted_by.load(Ordering::Relaxed) != 0
    }

    /// How the event was defined.
    pub fn metadata(&self) -> &Metadata {
        &self.definition.metadata
    }

    /// Puts the event into this thread's buffer of every session that wants it, with the time of this moment. If a buffer
    /// is full, the event is lost there, and the reader sees the gap; nobody waits for a reader, unless its session asked
    /// for that, and then for [`Limits::blocked_writer`](crate::Limits::blocked_writer) at most. Not written is what the
    /// destructor of a thread-local value writes while its thread ends.
    #[inline]
    pub fn write(&self, data: &EventData<'_>) {
        if self.is_enabled() {
            self.pipe.write(&self.definition, data);
        }
    }

    /// [`write`](Self::write) for this thread, without a stack.
    #[inline]
    pub fn write_here(&self, payload: &[u8]) {
        self.write(&EventData { payload, ..EventData::default() });
    }
}

/// The operating system's id of this thread; 0 where it can't be had.
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
