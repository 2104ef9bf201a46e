//! What happens on stacks, call by call: what a timeline is drawn from.
//!
//! Owns: [`Change`] and the log that holds them until somebody takes them. The log is written only if it was asked for, and
//! whoever asks takes it often: it grows with every event.

/// A change of a thread's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The thread, an index into [`Report::threads`](crate::Report::threads).
    pub thread: usize,
    /// When, in nanoseconds of the agent's clock. It does not go back within a thread.
    pub time: i64,
    /// What has changed.
    pub what: StackChange,
}

/// What has changed on a stack. Calls outside of the [`Selection`](crate::Selection) are not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackChange {
    /// A call has begun. [`Model::method`](crate::Model::method) has the name.
    Opened(u32),
    /// The call on top has ended.
    Closed,
    /// The end of this many calls on top was not seen.
    Cut(usize),
}
