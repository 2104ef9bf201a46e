//! Determines which of several sockets with a process's id is its own, on every system.
//!
//! Any user who can write to a directory can create names there, and files with any time and owner by linking to those of others. So
//! a socket where the process itself would create it ranks first, whatever the others look like.

use std::collections::HashMap;
use std::path::PathBuf;

use runtap_model::order;
use runtap_transport::naming::SocketKind;
use runtap_transport::{Socket, SocketState};

/// A socket name that was found.
#[derive(Debug)]
pub(super) struct FoundSocket {
    pub socket: Socket,
    /// Whether the process itself would create its socket there, under this name.
    pub in_own_dir: bool,
    /// Whether the kernel reports a listener that has bound this path.
    pub is_bound: bool,
}

/// What exists at the location of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStatus {
    Socket(SocketFile),
    /// Another type of file.
    NoSocket,
    Gone,
    /// Access is denied.
    Hidden,
    /// Resolving the path takes too long.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "used on Linux only"))]
    TooFar,
}

/// The file of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketFile {
    /// The device and inode number.
    pub identity: (u64, u64),
    pub owner: u32,
    /// The seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
}

/// The maximum number of deleted sockets. A process creates one socket, so more are another user's.
const MAX_DELETED: usize = 16;

/// The sockets of one process, best match first.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    pub sockets: Vec<Socket>,
    /// The paths that are listened on but whose files are deleted. At most [`MAX_DELETED`].
    #[cfg_attr(target_os = "macos", expect(dead_code, reason = "used on Linux only"))]
    pub deleted: Vec<PathBuf>,
}

/// Sorts the sockets of one process, removes duplicates, and determines the state of each. Matching keys come first, then unknown
/// ones (if `is_key` is `None`), then the rest. Among equals the order is: where the process creates its own, existing files, files
/// of its own user, bound paths, newer files.
pub(super) fn rank(
    found: impl IntoIterator<Item = FoundSocket>,
    is_key: Option<&impl Fn(u64) -> bool>,
    uid: u32,
    mut look: impl FnMut(&Socket) -> FileStatus,
) -> Ranked {
    let mut found_sockets: Vec<FoundSocket> = Vec::new();
    // Any user can create thousands of such names, so avoid comparing each with all others.
    let (mut paths, mut names) = (HashMap::new(), HashMap::new());
    for mut found_socket in found {
        let socket = &mut found_socket.socket;
        let next = found_sockets.len();
        let known = *paths.entry(socket.path.clone()).or_insert(next);
        if let Some(known) = found_sockets.get_mut(known) {
            known.merge(found_socket);
            continue;
        }
        *names.entry(socket.name).or_insert(0_usize) += 1;
        socket.state = match (socket.name.kind, is_key) {
            (SocketKind::Router, _) => SocketState::Router,
            (SocketKind::Runtime, None) => SocketState::Unknown,
            (SocketKind::Runtime, Some(is_key)) if is_key(socket.name.key) => SocketState::Matching,
            (SocketKind::Runtime, Some(_)) => SocketState::Stale,
        };
        found_sockets.push(found_socket);
    }
    let mut ranked: Vec<(FoundSocket, FileStatus)> = Vec::with_capacity(found_sockets.len());
    let mut files = HashMap::new();
    for found_socket in found_sockets {
        let socket = &found_socket.socket;
        // For stale sockets the name is enough, unless two paths may lead to one file.
        let matters = socket.may_be_its_own()
            || found_socket.is_bound
            || names.get(&socket.name).is_some_and(|number| *number > 1);
        let seen = if matters { look(socket) } else { FileStatus::Hidden };
        match seen {
            FileStatus::NoSocket => continue,
            FileStatus::Gone if !found_socket.is_bound => continue,
            FileStatus::TooFar if !found_socket.in_own_dir => continue,
            FileStatus::Socket(file) => {
                let next = ranked.len();
                let known = *files.entry((socket.name, file.identity)).or_insert(next);
                // Two paths lead to one file; the first path is the shorter.
                if let Some((known, _)) = ranked.get_mut(known) {
                    known.merge(found_socket);
                    continue;
                }
            }
            FileStatus::Gone | FileStatus::Hidden | FileStatus::TooFar => {}
        }
        ranked.push((found_socket, seen));
    }
    order::sort_by_cached_key(&mut ranked, |(found_socket, seen)| {
        let file = if let FileStatus::Socket(file) = seen { Some(file) } else { None };
        (
            found_socket.socket.state,
            !found_socket.in_own_dir,
            *seen == FileStatus::Gone,
            file.is_none_or(|file| file.owner != uid),
            !found_socket.is_bound,
            std::cmp::Reverse(file.map(|file| file.modified)),
            found_socket.socket.path.clone(),
        )
    });
    let mut deleted = Vec::new();
    ranked.retain(|(found_socket, seen)| {
        if *seen != FileStatus::Gone {
            return true;
        }
        let is_told = deleted.len() < MAX_DELETED;
        if is_told {
            deleted.push(found_socket.socket.path.clone());
        }
        is_told
    });
    Ranked { sockets: ranked.into_iter().map(|(found_socket, _)| found_socket.socket).collect(), deleted }
}

impl FoundSocket {
    /// Merges what is known about another path to the same file. The location where the process created it is kept, because on
    /// another path an attacker may replace the file.
    fn merge(&mut self, other: Self) {
        self.is_bound |= other.is_bound;
        if other.in_own_dir && !self.in_own_dir {
            self.in_own_dir = true;
            self.socket.relocate(other.socket);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use runtap_transport::linux::Location;
    use runtap_transport::naming::SocketName;

    /// The owner of the other name could replace the file before a connection is made.
    #[test]
    fn a_file_with_two_names_is_used_where_the_process_created_it() {
        let found_socket = |folder: &str, in_own_dir| {
            let name = SocketName::runtime(42, 900);
            let path = format!("{folder}/{name}");
            FoundSocket {
                socket: Socket::new(path, name, SocketState::Unknown),
                in_own_dir,
                is_bound: !in_own_dir,
            }
        };
        let file = SocketFile { identity: (1, 2), owner: 0, modified: (0, 0) };
        let found =
            [found_socket("/short", false), found_socket("/home", true), found_socket("/third", false)];
        let ranked = rank(found, Some(&|key| key == 900), 0, |_| FileStatus::Socket(file)).sockets;
        assert_eq!(ranked.len(), 1);
        let Location::Own(path) = ranked[0].location() else { panic!("{ranked:?}") };
        assert!(path.starts_with("/home") && ranked[0].path.starts_with("/short"), "{ranked:?}");
    }

    #[test]
    fn few_deleted_sockets_are_reported() {
        let found_socket = |n: u64| {
            let name = SocketName::runtime(42, 900);
            let socket = Socket::new(format!("/{n}/{name}"), name, SocketState::Unknown);
            FoundSocket { socket, in_own_dir: false, is_bound: n != 7 }
        };
        let ranked = rank((0..10).map(found_socket), Some(&|key| key == 900), 0, |_| FileStatus::Gone);
        assert_eq!((ranked.sockets.len(), ranked.deleted.len()), (9, 9), "one was never bound");
        let ranked = rank((0..1000).map(found_socket), Some(&|key| key == 900), 0, |_| FileStatus::Gone);
        assert_eq!((ranked.sockets.len(), ranked.deleted.len()), (MAX_DELETED, MAX_DELETED));
    }
}
