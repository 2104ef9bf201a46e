//! Who holds a process's diagnostics server: the other ends of its connections, and the one that it waits for.
//!
//! A server reads from one client at a time, without a limit, so a client that says nothing keeps everybody out. The
//! credentials of a socket tell who made it, not who has it now; the kernel's list of sockets and the descriptors of all
//! processes do, as far as we may look into them. Which connection the server waits for is told by the system call that
//! its thread is in. Refuses to guess where none of that can be read.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::linux::{self, ProcDir};
use super::unix_diag::{self, UnixSocket};
use super::{System, naming::SocketName};

/// A process that holds an end of a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// The kernel's short name.
    pub comm: String,
    /// The arguments, program first. Empty where we may not look.
    pub command_line: Vec<String>,
}

/// The clients of a diagnostics server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clients {
    /// Connections that the server has taken; `None` where the kernel does not tell.
    pub connections: Option<Vec<Connection>>,
    /// A child of the process that is writing its dump: the server waits for it.
    pub createdump: Option<u32>,
}

/// A connection to a diagnostics server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// Who has the other end. Several, if a program passed it on to its children; none, where we may not look.
    pub holders: Vec<Holder>,
    /// What the server's thread does with it.
    pub wait: Wait,
}

/// What a server's thread does with a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Nothing at this moment, or it can't be told. A session that records is such a connection.
    #[default]
    No,
    /// It waits for the client to say something.
    Reading,
    /// It waits for the client to take something.
    Writing,
}

impl Clients {
    /// The connection that keeps others out, if it can be told.
    pub fn blocking(&self) -> Option<&Connection> {
        let connections = self.connections.as_deref()?;
        let waiting = |wait: Wait| connections.iter().find(|connection| connection.wait == wait);
        let only = || connections.first().filter(|_| connections.len() == 1);
        waiting(Wait::Reading).or_else(|| waiting(Wait::Writing)).or_else(only)
    }
}

/// A thread in a system call on a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    fd: u32,
    wait: Wait,
}

impl System {
    /// The clients of a process's diagnostics server.
    pub fn clients(&self, pid: u32) -> Clients {
        let createdump = self.tree(pid).into_iter().skip(1).find(|child| {
            let stat = ProcDir::open(self.proc_root(), child).ok().and_then(|dir| dir.stat());
            stat.is_some_and(|(comm, _)| comm == "createdump")
        });
        let dir = ProcDir::open(self.proc_root(), pid).ok();
        Clients { connections: dir.and_then(|dir| self.connections(&dir)), createdump }
    }

    /// A process by its id, as one that holds something.
    pub fn holder(&self, pid: u32) -> Holder {
        let Ok(dir) = ProcDir::open(self.proc_root(), pid) else {
            return Holder { pid, ..Holder::default() };
        };
        let comm = dir.stat().map(|(comm, _)| comm).unwrap_or_default();
        Holder { pid, comm, command_line: dir.command_line() }
    }

    /// Who listens on the socket whose file this is. Empty where nobody does, or where we may not look.
    pub fn listeners(&self, file: &Metadata) -> Vec<Holder> {
        let Ok(sockets) = unix_diag::sockets() else { return Vec::new() };
        let file = Some(low(file.ino()));
        let here = |socket: &&UnixSocket| socket.listening && socket.file == file;
        let inodes: Vec<u32> = sockets.iter().filter(here).map(|socket| socket.inode).collect();
        self.holders(&inodes).into_values().flatten().collect()
    }

    /// Whether a socket that listens has this file; `None` where the kernel does not tell. Sockets of other network
    /// namespaces are not seen.
    pub fn is_listened_on(&self, file: &Metadata) -> Option<bool> {
        let file = Some(low(file.ino()));
        Some(unix_diag::sockets().ok()?.iter().any(|socket| socket.listening && socket.file == file))
    }

    fn connections(&self, dir: &ProcDir) -> Option<Vec<Connection>> {
        let descriptors = sockets_of(dir)?;
        let sockets = unix_diag::sockets().ok()?;
        let calls = calls(dir);
        let mut peers = Vec::new();
        for (fd, inode) in descriptors {
            let Some(socket) = sockets.iter().find(|socket| socket.inode == inode) else { continue };
            if let Some(peer) = socket.peer.filter(|_| is_diagnostic(socket)) {
                let wait = calls.iter().find(|call| call.fd == fd).map_or(Wait::No, |call| call.wait);
                peers.push((peer, wait));
            }
        }
        let inodes: Vec<u32> = peers.iter().map(|(peer, _)| *peer).collect();
        let mut holders = self.holders(&inodes);
        let connection =
            |(peer, wait)| Connection { holders: holders.remove(&peer).unwrap_or_default(), wait };
        Some(peers.into_iter().map(connection).collect())
    }

    /// The processes that have one of these sockets open.
    fn holders(&self, inodes: &[u32]) -> HashMap<u32, Vec<Holder>> {
        let mut found: HashMap<u32, Vec<Holder>> = HashMap::new();
        if inodes.is_empty() {
            return found;
        }
        for pid in linux::pids(self.proc_root()) {
            let Ok(dir) = ProcDir::open(self.proc_root(), pid) else { continue };
            let mut has: Vec<u32> =
                sockets_of(&dir).unwrap_or_default().into_iter().map(|(_, inode)| inode).collect();
            has.sort_unstable();
            has.dedup();
            for inode in has.into_iter().filter(|inode| inodes.contains(inode)) {
                found.entry(inode).or_default().push(self.holder(pid));
            }
        }
        found
    }
}

/// An end of a connection that a diagnostics socket has accepted.
fn is_diagnostic(socket: &UnixSocket) -> bool {
    let name = socket.name.as_deref().and_then(|name| str::from_utf8(name).ok());
    let file = name.and_then(|name| Path::new(name).file_name()?.to_str());
    !socket.listening && file.and_then(SocketName::parse).is_some()
}

/// The sockets that a process has open: descriptor and inode. `None` where we may not look.
fn sockets_of(dir: &ProcDir) -> Option<Vec<(u32, u32)>> {
    let socket = |fd: String| {
        let link = dir.link(&format!("fd/{fd}")).ok()?;
        let fd = fd.parse().ok()?;
        let inode: u64 = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((fd, low(inode)))
    };
    Some(dir.names("fd").ok()?.into_iter().filter_map(socket).collect())
}

/// As the kernel's list of sockets has it.
fn low(inode: u64) -> u32 {
    let [a, b, c, d, ..] = inode.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The threads of a process that wait in a system call on a descriptor. Needs the right to trace it.
fn calls(dir: &ProcDir) -> Vec<Call> {
    let tasks = dir.names("task").unwrap_or_default();
    tasks.iter().filter_map(|task| parse_call(&dir.read(&format!("task/{task}/syscall")).ok()?)).collect()
}

/// `45 0x2b 0x7f996c00ddc0 …`: number and arguments of the call that a thread is in; `running` if it is in none.
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

// `read`, `recvfrom`, `recvmsg`; `write`, `sendto`, `sendmsg`. On other architectures they are not told apart.
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
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

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
    fn the_one_that_is_waited_for_blocks() {
        let connection = |pid, wait| Connection { holders: vec![Holder { pid, ..Holder::default() }], wait };
        let blocking = |connections: &[Connection]| {
            let clients = Clients { connections: Some(connections.to_vec()), createdump: None };
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

    /// A server of ours that waits for a client of ours, as a runtime does.
    #[test]
    fn a_real_connection() {
        let system = System::current();
        let me = std::process::id();
        let dir = tempfile::tempdir().unwrap();
        let name = SocketName::runtime(me, system.start_time(me).unwrap());
        let path = dir.path().join(name.to_string());
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1]);
            drop(listener);
        });
        // Other tests of this process may have connections of their own.
        let blocked = || {
            let connections = system.clients(me).connections.expect("the kernel tells");
            connections.into_iter().find(|connection| connection.wait == Wait::Reading)
        };
        let connection = loop {
            match blocked() {
                Some(connection) => break connection,
                None => thread::yield_now(),
            }
        };
        assert_eq!(connection.holders.iter().map(|holder| holder.pid).collect::<Vec<_>>(), [me]);
        assert!(!connection.holders[0].comm.is_empty() && !connection.holders[0].command_line.is_empty());
        assert_eq!(
            system.listeners(&path.metadata().unwrap()).iter().map(|holder| holder.pid).collect::<Vec<_>>(),
            [me]
        );
        assert_eq!(system.listeners(&dir.path().metadata().unwrap()), []);
        drop(client);
        server.join().unwrap();
    }
}
