//! Finds the clients of a process's diagnostics server, and the one that blocks it.
//!
//! A server reads from one client at a time without a time-out, so a client that sends nothing blocks all others. A socket's
//! credentials show who created it, not who holds it now. That is found out from the kernel's list of sockets and from the
//! descriptors of all processes ([`holders`](super::holders)), as far as permissions allow. The system call in which the server's
//! thread blocks shows for which connection it waits. Nothing is guessed if none of that can be read.

use runtap_transport::linux::ProcDir;

use super::System;
use super::proc_files::ProcFiles as _;

/// A process that holds one end of a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// The kernel's short name.
    pub comm: String,
    /// The arguments, program first. Empty if not readable.
    pub command_line: Vec<String>,
}

/// The clients of a diagnostics server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clients {
    /// The accepted connections. `None` if the kernel does not report them.
    pub connections: Option<Vec<Connection>>,
    /// A child of the process that is writing its dump, for which the server waits.
    pub createdump: Option<u32>,
    /// The number of processes of which not all descriptors were checked because there were too many. Any of them may be a client.
    pub not_looked_at: usize,
}

/// A connection to a diagnostics server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// The processes at the other end. Several if a program passed the socket to its children; empty if they cannot be seen.
    pub holders: Vec<Holder>,
    /// What the server's thread does with the connection.
    pub wait: Wait,
}

/// What a server's thread does with a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Nothing at the moment, or unknown. A recording session is such a connection.
    #[default]
    No,
    /// It waits until the client sends data.
    Reading,
    /// It waits until the client reads data.
    Writing,
}

impl Clients {
    /// Returns the connection that blocks other clients, if known.
    pub fn blocking(&self) -> Option<&Connection> {
        let connections = self.connections.as_deref()?;
        let waiting = |wait: Wait| connections.iter().find(|connection| connection.wait == wait);
        let only = || connections.first().filter(|_| connections.len() == 1);
        waiting(Wait::Reading).or_else(|| waiting(Wait::Writing)).or_else(only)
    }
}

/// A thread that blocks in a system call on a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub fd: u32,
    pub wait: Wait,
}

impl System {
    /// Describes a process as the holder of a socket.
    pub fn holder(&self, pid: u32) -> Holder {
        let Ok(dir) = ProcDir::open(self.proc_root(), pid) else {
            return Holder { pid, ..Holder::default() };
        };
        let comm = dir.stat().map(|(comm, _)| comm).unwrap_or_default();
        Holder { pid, comm, command_line: dir.command_line() }
    }
}

/// The number of threads that are checked. The server's thread is among the first ones.
const MAX_THREADS: usize = 1000;

/// Returns the threads of a process that block in a system call on a descriptor. Requires permission to trace the process.
pub(super) fn calls(dir: &ProcDir) -> Vec<Call> {
    let tasks = dir.names("task").unwrap_or_default();
    tasks
        .iter()
        .take(MAX_THREADS)
        .filter_map(|task| parse_call(&dir.read(&format!("task/{task}/syscall")).ok()?))
        .collect()
}

/// Parses `45 0x2b 0x7f996c00ddc0 …`: the number and arguments of the system call that a thread is in. The text is `running` if it
/// is in none.
pub(super) fn parse_call(text: &[u8]) -> Option<Call> {
    let mut fields = str::from_utf8(text).ok()?.split_ascii_whitespace();
    let number = fields.next()?.parse().ok()?;
    let fd = u32::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
    let wait = if READING.contains(&number) {
        Wait::Reading
    } else if WRITING.contains(&number) {
        Wait::Writing
    } else {
        return None;
    };
    Some(Call { fd, wait })
}

// `read`, `recvfrom`, `recvmsg`; `write`, `sendto`, `sendmsg`. Unknown on other architectures.
#[cfg(target_arch = "x86_64")]
const READING: [u32; 3] = [0, 45, 47];
#[cfg(target_arch = "x86_64")]
const WRITING: [u32; 3] = [1, 44, 46];
#[cfg(target_arch = "aarch64")]
const READING: [u32; 3] = [63, 207, 212];
#[cfg(target_arch = "aarch64")]
const WRITING: [u32; 3] = [64, 206, 211];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const READING: [u32; 0] = [];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const WRITING: [u32; 0] = [];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_wait_for_a_descriptor() {
        let read = format!("{} 0x2b 0x7f99 0x14 0x0 0x0 0x0 0x7ffe 0x7f00\n", READING[1]);
        assert_eq!(parse_call(read.as_bytes()), Some(Call { fd: 43, wait: Wait::Reading }));
        let write = format!("{} 0x7 0x1", WRITING[1]);
        assert_eq!(parse_call(write.as_bytes()), Some(Call { fd: 7, wait: Wait::Writing }));
        for other in ["running", "-1 0x7ffe 0x7f00", "202 0x7fd641a0ed78 0x1", "", "45"] {
            assert_eq!(parse_call(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_awaited_connection_is_the_blocking_one() {
        let connection = |pid, wait| Connection { holders: vec![Holder { pid, ..Holder::default() }], wait };
        let blocking = |connections: &[Connection]| {
            let clients = Clients { connections: Some(connections.to_vec()), ..Clients::default() };
            clients.blocking().map(|connection| connection.holders[0].pid)
        };
        let (session, silent, deaf) =
            (connection(1, Wait::No), connection(2, Wait::Reading), connection(3, Wait::Writing));
        assert_eq!(blocking(&[session.clone(), deaf.clone(), silent]), Some(2));
        assert_eq!(blocking(&[session.clone(), deaf]), Some(3));
        assert_eq!(blocking(std::slice::from_ref(&session)), Some(1), "there is no other");
        assert_eq!(blocking(&[session.clone(), session]), None);
        assert_eq!(Clients::default().blocking(), None);
    }
}
