//! File descriptors that are sent over sockets.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Resource, getrlimit};

/// A received file descriptor.
pub type Descriptor = OwnedFd;

/// A file descriptor to send.
pub type BorrowedDescriptor<'a> = BorrowedFd<'a>;

/// Borrows a file descriptor to send it.
pub fn lend(descriptor: &Descriptor) -> BorrowedDescriptor<'_> {
    descriptor.as_fd()
}

/// Returns the maximum number of open files of this process, including sockets.
pub fn most_descriptors() -> usize {
    getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}
