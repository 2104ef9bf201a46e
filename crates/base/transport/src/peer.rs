//! The process at the other end of a connection.

/// The process at the other end of a connection, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its process id in our pid namespace; `None` if the kernel does not say.
    pub pid: Option<u32>,
    /// Its effective user id when it connected or began to listen. On Windows, where users have no numbers, as
    /// [`my_uid`](runtap_os::my_uid) has it.
    pub uid: u32,
}
