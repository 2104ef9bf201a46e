//! The definition and the contents of an event, which pipe and sessions share.

use std::sync::atomic::AtomicU64;

use runtap_nettrace::Metadata;
use uuid::Uuid;

/// The contents of one event.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventData<'a> {
    /// The thread that the event is about, such as the sampled thread of a CPU sample. `None` means the writing thread.
    pub thread_id: Option<u64>,
    /// Instruction pointers from the leaf to the root.
    pub stack: &'a [u64],
    /// The activity that the event belongs to.
    pub activity_id: Option<Uuid>,
    /// The activity that started `activity`.
    pub related_activity_id: Option<Uuid>,
    /// The encoded fields, as defined.
    pub payload: &'a [u8],
}

/// The definition of an event, shared by all sessions.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The index of the definition in its pipe.
    pub index: usize,
    pub metadata: Metadata,
    /// The sessions that record the event: one bit per session place.
    pub wanted_by: AtomicU64,
}
