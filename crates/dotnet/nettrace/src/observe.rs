//! What sees a stream: one item after the other, or parts of it that are put together.

use crate::Item;

/// Sees the items of a stream in the order in which a reader gives them: [`Reader`](crate::Reader), or
/// [`InOrder`](crate::InOrder) where times have to be in order. Keeps what it wants of them, and tells that by methods of
/// its own.
pub trait Observe {
    /// Takes the next item.
    fn item(&mut self, item: &Item<'_>);
}

/// An observer whose findings in neighbouring parts of a stream can be put together, so that several threads may read one.
pub trait Join: Observe + Sized {
    /// Takes in what the observer of the next [`Part`](crate::Part) has found, which began with nothing. `false` if that
    /// can't be done without having seen the items of that part: they have to be shown to this one.
    fn join(&mut self, next: Self) -> bool;
}
