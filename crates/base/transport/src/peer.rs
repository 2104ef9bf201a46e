//! The process at the other end of a connection.

/// The process at the other end of a connection, as reported by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Process id in the pid namespace of this process; `None` if unknown.
    pub pid: Option<u32>,
    /// Effective user id at the time of `connect` or `listen`. On Windows, where users have no numeric ids, a number
    /// like that of [`my_uid`](runtap_os::my_uid).
    pub uid: u32,
}
