//! Changes of stacks, call by call, from which timelines are drawn.
//!
//! The log of [`Change`]s is written only on request, and must be taken regularly, because it grows with every event.

/// A change of a thread's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The thread, an index into [`Report::threads`](crate::Report::threads).
    pub thread: usize,
    /// The time, in nanoseconds of the agent's clock. It does not decrease within a thread.
    pub time: i64,
    /// The change.
    pub kind: StackChange,
}

/// The kind of a change of a stack. Calls outside of the [`Selection`](crate::Selection) are not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackChange {
    /// A call has begun. [`Model::method`](crate::Model::method) returns its name.
    Opened(u32),
    /// The call on top has ended.
    Closed,
    /// The calls on top, of this number, will not end: their exits were not seen.
    Cut(usize),
}
