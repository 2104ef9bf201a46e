//! Limits on the memory of a [`Reader`](crate::Reader), for streams that are not trusted.

/// Upper limits. The defaults are far above what any runtime writes: blocks of about 100 KiB, a few thousand
/// definitions, a few thousand stacks between two sequence points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest block in bytes; a block is held in memory until it is complete. A larger block ends the reading.
    pub max_block: u32,
    /// The most event definitions that are live at one time.
    pub max_metadata: usize,
    /// The largest encoded event definition in bytes; a larger one is treated as damaged.
    pub max_definition: usize,
    /// The approximate memory of all live event definitions in bytes.
    pub max_metadata_bytes: usize,
    /// The approximate memory of the stacks between two sequence points in bytes, at most `u32::MAX`.
    pub max_stack_bytes: usize,
    /// The approximate memory of the labels between two sequence points in bytes (Nettrace 6).
    pub max_label_bytes: usize,
    /// The approximate memory of the descriptions of all live threads in bytes (Nettrace 6).
    pub max_thread_bytes: usize,
    /// The most bytes that [`InOrder`](crate::InOrder) holds back: bytes of the stream and records of runs. Beyond this
    /// limit, events are returned at once in the order of the stream.
    pub max_held_back: usize,
    /// The most capture threads whose sequence numbers are remembered. At one more thread all are forgotten: losses are
    /// then counted from the next event of each thread on.
    pub max_threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_block: 64 << 20,
            max_metadata: 1 << 17,
            max_definition: 1 << 20,
            max_metadata_bytes: 64 << 20,
            max_stack_bytes: 64 << 20,
            max_label_bytes: 64 << 20,
            max_thread_bytes: 64 << 20,
            max_held_back: 256 << 20,
            max_threads: 1 << 20,
        }
    }
}
