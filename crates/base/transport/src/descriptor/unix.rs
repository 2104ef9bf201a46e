//! Open files that pass a socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Resource, getrlimit};

/// An open file that came with a message.
pub type Descriptor = OwnedFd;

/// One that goes along with a message.
pub type Lent<'a> = BorrowedFd<'a>;

/// Lends one to a message.
pub fn lend(descriptor: &Descriptor) -> Lent<'_> {
    descriptor.as_fd()
}

/// How many we may have, sockets and all.
pub fn most_descriptors() -> usize {
    getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}
