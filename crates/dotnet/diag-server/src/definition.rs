//! What is known of an event before it is written, and what is written: the values that pipe and sessions share.

use std::sync::atomic::AtomicU64;

use runtap_nettrace::Metadata;
use uuid::Uuid;

/// One occurrence of an event.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventData<'a> {
    /// The thread that the event is about, as a CPU sample's is the sampled one. `None`: the thread that writes it.
    pub thread_id: Option<u64>,
    /// Instruction pointers from the leaf to the root.
    pub stack: &'a [u64],
    /// The activity that the event belongs to.
    pub activity_id: Option<Uuid>,
    /// The activity that started that one.
    pub related_activity_id: Option<Uuid>,
    /// The fields, as the definition says.
    pub payload: &'a [u8],
}

/// An event as all sessions share it.
#[derive(Debug)]
pub(crate) struct Definition {
    /// Its place among all definitions of its pipe.
    pub index: usize,
    pub metadata: Metadata,
    /// The sessions that want it: one bit for each place.
    pub wanted_by: AtomicU64,
}
