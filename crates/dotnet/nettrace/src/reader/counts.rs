//! Counts of unusual data in a stream. Does not count events or losses.

/// Counts of unusual data that does not end the reading, and of call stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Objects and blocks that were skipped because their name is unknown or they require a newer reader.
    pub unknown_objects: u64,
    /// The number of bytes of the skipped objects and blocks.
    pub unknown_bytes: u64,
    /// The stream offset of the first skipped object or block.
    pub first_unknown: Option<u64>,
    /// Definitions that replaced one with the same id.
    pub redefined_metadata: u64,
    /// Definitions that could not be read.
    pub damaged_metadata: u64,
    /// Events that were skipped because their metadata id has no definition. Events after such an event that were skipped
    /// with it are not counted.
    pub events_without_metadata: u64,
    /// Call stacks that were defined.
    pub stacks: u64,
    /// Threads that replaced one with the same index (Nettrace 6).
    pub redefined_threads: u64,
    /// Threads that could not be read (Nettrace 6).
    pub damaged_threads: u64,
    /// Blocks of labels that end with a label of an unknown kind (Nettrace 6).
    pub unknown_labels: u64,
    /// Bytes after the end marker.
    pub trailing_bytes: u64,
    /// The stream offset after the end marker. `None` if it was not found.
    pub end: Option<u64>,
}

impl Counts {
    /// Adds the counts of another part, except `stacks`, which the stack table counts.
    pub(super) fn add(&mut self, other: &Self) {
        let Self {
            unknown_objects,
            unknown_bytes,
            first_unknown,
            redefined_metadata,
            damaged_metadata,
            events_without_metadata,
            stacks: _,
            redefined_threads,
            damaged_threads,
            unknown_labels,
            trailing_bytes,
            end,
        } = other;
        self.unknown_objects += unknown_objects;
        self.unknown_bytes += unknown_bytes;
        self.first_unknown = self.first_unknown.into_iter().chain(*first_unknown).min();
        self.redefined_metadata += redefined_metadata;
        self.damaged_metadata += damaged_metadata;
        self.events_without_metadata += events_without_metadata;
        self.redefined_threads += redefined_threads;
        self.damaged_threads += damaged_threads;
        self.unknown_labels += unknown_labels;
        self.trailing_bytes += trailing_bytes;
        self.end = self.end.or(*end);
    }
}
