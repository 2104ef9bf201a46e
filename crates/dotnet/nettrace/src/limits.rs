//! How much memory a [`Reader`](crate::Reader) may take for a stream that it does not trust.

/// Upper bounds. The defaults are far above what any runtime writes: blocks of about 100 KiB, a few thousand
/// definitions, a few thousand stacks between two sequence points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest block in bytes; a block is held in memory until it is whole. A larger one ends the reading.
    pub max_block: u32,
    /// Most event definitions that are live at the same time.
    pub max_metadata: usize,
    /// Largest event definition in bytes on the wire; a larger one counts as damaged.
    pub max_definition: usize,
    /// Most bytes that all live event definitions take together in memory, about.
    pub max_metadata_bytes: usize,
    /// Most bytes that the stacks between two sequence points take in memory, about; at most `u32::MAX` has an effect.
    pub max_stack_bytes: usize,
    /// The same for labels (Nettrace 6).
    pub max_label_bytes: usize,
    /// The same for the descriptions of all live threads (Nettrace 6).
    pub max_thread_bytes: usize,
    /// Most bytes that [`InOrder`](crate::InOrder) holds back: those of the stream, and what it remembers of runs. What
    /// is more is given at once, in the order that the stream has.
    pub max_held_back: usize,
    /// Most capture threads whose sequence numbers are remembered. One more, and all are forgotten: losses are
    /// then counted anew from the next event of each thread on.
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
