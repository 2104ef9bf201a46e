//! Placeholder for Windows, whose pipes do not transfer file handles.

/// A received file handle; never exists.
#[derive(Debug)]
pub enum Descriptor {}

/// A file handle to send.
pub type BorrowedDescriptor<'a> = &'a Descriptor;

/// Borrows a file handle to send it.
pub fn lend(descriptor: &Descriptor) -> BorrowedDescriptor<'_> {
    descriptor
}

/// Returns the maximum, because Windows has no practical limit.
pub fn most_descriptors() -> usize {
    usize::MAX
}
