//! Observers of a stream, and observers whose results for parts of a stream can be joined.

use crate::StreamItem;

/// Receives the items of a stream in the order of a reader: [`Reader`](crate::Reader), or [`InOrder`](crate::InOrder)
/// if times must be in order. Implementations provide methods for their results.
pub trait Observe {
    /// Handles the next item.
    fn item(&mut self, item: &StreamItem<'_>);
}

/// An observer whose results for adjacent parts of a stream can be joined, so that several threads can read one stream.
pub trait Join: Observe + Sized {
    /// Adds the results of `next`, an observer that was created for the next [`Part`](crate::Part). Returns `false` if the
    /// results cannot be added: the items of that part must be passed to this observer instead.
    fn join(&mut self, next: Self) -> bool;
}
