//! Finds the processes that hold sockets, with a single scan of the descriptors of all processes. As there may be hundreds of
//! processes with thousands of descriptors each, the scan is limited, and reports whether the limit was reached.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use runtap_model::order;
use runtap_transport::linux::{self, ProcDir};
use runtap_transport::naming::SocketName;
use rustix::fs::{OFlags, RawDir};

use super::budget::UserBudgets;
use super::clients::{Clients, Connection, Holder, Wait, calls};
use super::proc_files;
use super::unix_diag::{self, UnixSocket};
use super::{System, tree};

/// The number of descriptors that are checked. Takes half a second.
const MAX_DESCRIPTORS: u64 = 400_000;
/// The number of connections that are reported per server, and of holders per connection.
const MAX_CONNECTIONS: usize = 16;
const MAX_HOLDERS: usize = 4;

/// The sockets of this machine and their holders. A snapshot taken at the first query.
#[derive(Debug)]
pub struct Holders {
    system: System,
    most: u64,
    /// `None` if the kernel does not report sockets.
    sockets: OnceCell<Option<Vec<UnixSocket>>>,
    scanned: OnceCell<Descriptors>,
    /// The process ids of createdump, by the process that they dump.
    createdumps: OnceCell<HashMap<u32, u32>>,
}

/// The result of a scan of descriptors.
#[derive(Debug, Default)]
struct Descriptors {
    /// The processes that hold a socket, by the socket's inode number. Limited to [`MAX_HOLDERS`].
    holders: HashMap<u32, Vec<u32>>,
    /// The connections that a server has accepted, by its process id: descriptor and inode number. Processes that could not be
    /// scanned are missing.
    accepted: HashMap<u32, Vec<(u32, u32)>>,
    /// The processes of which not all descriptors were checked.
    truncated: HashSet<u32>,
}

impl System {
    /// Creates a lazy snapshot of the holders of sockets.
    pub fn holders(&self) -> Holders {
        Holders {
            system: self.clone(),
            most: MAX_DESCRIPTORS,
            sockets: OnceCell::new(),
            scanned: OnceCell::new(),
            createdumps: OnceCell::new(),
        }
    }
}

impl Holders {
    /// Returns the clients of a process's diagnostics server.
    pub fn clients(&self, pid: u32) -> Clients {
        let createdump = self.createdumps.get_or_init(|| createdumps(&self.system)).get(&pid).copied();
        let connections = self.connections(pid);
        Clients { connections, createdump, not_looked_at: self.not_looked_at() }
    }

    /// Returns the processes that listen on the socket with this file, at most 4. Empty if there are none or they
    /// can't be seen.
    pub fn listeners(&self, file: &Metadata) -> Vec<Holder> {
        let file = Some(low(file.ino()));
        let here = |socket: &&UnixSocket| socket.listening && socket.file == file;
        let sockets = self.sockets().unwrap_or_default().iter().filter(here);
        let pids = sockets.filter_map(|socket| self.scanned().holders.get(&socket.inode)).flatten();
        pids.take(MAX_HOLDERS).map(|pid| self.system.holder(*pid)).collect()
    }

    /// Whether something listens on the socket with this file. `None` if the kernel does not report sockets. Other network
    /// namespaces are not seen.
    pub fn is_listened_on(&self, file: &Metadata) -> Option<bool> {
        let file = Some(low(file.ino()));
        Some(self.sockets()?.iter().any(|socket| socket.listening && socket.file == file))
    }

    /// Returns the number of processes of which not all descriptors were checked because there were too many.
    pub fn not_looked_at(&self) -> usize {
        self.scanned.get().map_or(0, |scanned| scanned.truncated.len())
    }

    fn connections(&self, pid: u32) -> Option<Vec<Connection>> {
        let sockets = self.sockets()?;
        let scanned = self.scanned();
        let accepted = scanned.accepted.get(&pid)?;
        if accepted.is_empty() {
            // Some connections may be among the descriptors that were not checked.
            return (!scanned.truncated.contains(&pid)).then(Vec::new);
        }
        let calls = ProcDir::open(self.system.proc_root(), pid).map(|dir| calls(&dir)).unwrap_or_default();
        let peer = |inode: u32| sockets.iter().find(|socket| socket.inode == inode)?.peer;
        let wait = |fd: u32| calls.iter().find(|call| call.fd == fd).map_or(Wait::No, |call| call.wait);
        let mut accepted: Vec<(u32, Wait)> = accepted.iter().map(|(fd, inode)| (*inode, wait(*fd))).collect();
        order::sort_by_key(&mut accepted, |(_, wait)| *wait == Wait::No);
        accepted.truncate(MAX_CONNECTIONS);
        let connection = |(inode, wait)| {
            let pids = peer(inode).and_then(|peer| scanned.holders.get(&peer)).into_iter().flatten();
            let holders = pids.take(MAX_HOLDERS).map(|pid| self.system.holder(*pid)).collect();
            Connection { holders, wait }
        };
        Some(accepted.into_iter().map(connection).collect())
    }

    fn sockets(&self) -> Option<&[UnixSocket]> {
        self.sockets.get_or_init(|| unix_diag::sockets().ok()).as_deref()
    }

    fn scanned(&self) -> &Descriptors {
        self.scanned.get_or_init(|| self.scan())
    }

    fn scan(&self) -> Descriptors {
        let sockets = self.sockets().unwrap_or_default();
        let accepted: HashMap<u32, u32> = sockets
            .iter()
            .filter(|socket| is_diagnostic(socket))
            .filter_map(|socket| Some((socket.inode, socket.peer?)))
            .collect();
        let listening = sockets.iter().filter(|socket| socket.listening).map(|socket| socket.inode);
        // Other sockets are ignored.
        let asked: HashSet<u32> = accepted.values().copied().chain(listening).collect();
        let mut scanned = Descriptors::default();
        let mut budgets = UserBudgets::new(self.most, self.system.uid());
        for pid in proc_files::pids(self.system.proc_root()) {
            let Ok(dir) = ProcDir::open(self.system.proc_root(), pid) else { continue };
            // The directory's owner is not used: it is root if the program is not dumpable.
            let Some(user) = dir.status().map(|status| status.uid) else { continue };
            let left = budgets.left(user);
            let mut connections = Vec::new();
            let looked = sockets_of(&dir, left, |fd, inode| {
                if accepted.contains_key(&inode) {
                    connections.push((fd, inode));
                }
                if asked.contains(&inode) {
                    let by = scanned.holders.entry(inode).or_default();
                    if by.len() < MAX_HOLDERS && by.last() != Some(&pid) {
                        by.push(pid);
                    }
                }
            });
            let Ok((n, is_truncated)) = looked else { continue };
            budgets.spend(user, n);
            scanned.accepted.insert(pid, connections);
            if is_truncated {
                scanned.truncated.insert(pid);
            }
        }
        scanned
    }
}

/// Calls `visit` for each socket that the process has open, with descriptor and inode number. Returns how many descriptors were
/// checked, at most `most`, and whether there are more.
fn sockets_of(dir: &ProcDir, most: u64, mut visit: impl FnMut(u32, u32)) -> io::Result<(u64, bool)> {
    let folder = dir.open_file("fd", OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(&folder, buffer.spare_capacity_mut());
    let mut looked_at = 0;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        let Some(fd) = name.to_str().ok().and_then(|name| name.parse().ok()) else { continue };
        if looked_at == most {
            return Ok((looked_at, true));
        }
        looked_at += 1;
        // A longer link is not a socket.
        let mut link = [0; 32];
        let n = rustix::fs::readlinkat_raw(&folder, name, &mut link).unwrap_or_default();
        if let Some(inode) = link.get(..n).and_then(number_of) {
            visit(fd, low(inode));
        }
    }
    Ok((looked_at, false))
}

/// Parses `socket:[NUMBER]`.
fn number_of(link: &[u8]) -> Option<u64> {
    let number = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    str::from_utf8(number).ok()?.parse().ok()
}

/// Whether the socket is a connection that was accepted on a diagnostics socket.
fn is_diagnostic(socket: &UnixSocket) -> bool {
    let name = socket.name.as_deref().and_then(|name| str::from_utf8(name).ok());
    let file = name.and_then(|name| Path::new(name).file_name()?.to_str());
    !socket.listening && file.and_then(SocketName::parse).is_some()
}

/// Returns the lower 32 bits, as in the kernel's list of sockets.
fn low(inode: u64) -> u32 {
    let [a, b, c, d, ..] = inode.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Finds createdump processes, by the id of the parent that they dump.
fn createdumps(system: &System) -> HashMap<u32, u32> {
    let of = |pid: u32| {
        let stat = ProcDir::open(system.proc_root(), pid).ok()?.read("stat").ok()?;
        let (comm, _) = linux::parse_stat(&stat)?;
        (comm == "createdump").then_some((tree::parse(&stat)?.parent, pid))
    };
    proc_files::pids(system.proc_root()).into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

    use super::*;

    /// A server in this process that waits for a client in this process, as a runtime does.
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
            let connections = system.holders().clients(me).connections.expect("the kernel lists them");
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
        let holders = system.holders();
        let pids = |file: &Path| {
            let listeners = holders.listeners(&file.metadata().unwrap());
            listeners.iter().map(|holder| holder.pid).collect::<Vec<_>>()
        };
        assert_eq!((pids(&path), pids(dir.path())), (vec![me], vec![]));
        assert_eq!(holders.is_listened_on(&path.metadata().unwrap()), Some(true));

        // If descriptors were not checked, that is reported and nothing is concluded.
        let mut few = system.holders();
        few.most = 3;
        let clients = few.clients(me);
        assert!(clients.connections.is_none() && clients.not_looked_at > 0, "{clients:?}");
        assert_eq!(few.listeners(&path.metadata().unwrap()), []);
        drop(client);
        server.join().unwrap();
    }

    #[test]
    fn sockets_by_their_links() {
        assert_eq!(number_of(b"socket:[4711]"), Some(4711));
        for other in [&b"/dev/null"[..], b"pipe:[4711]", b"socket:[4711", b"socket:[]", b""] {
            assert_eq!(number_of(other), None);
        }
    }
}
