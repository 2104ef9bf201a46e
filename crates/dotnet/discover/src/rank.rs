//! Which of several sockets with a process's id is its own. The same on every system.
//!
//! Whoever can write to a folder can make names there, and files of any time and owner: links to those of others. So what
//! lies where the process itself makes its socket comes first, whatever the others look like.

use std::collections::HashMap;
use std::path::PathBuf;

use runtap_transport::naming::SocketKind;
use runtap_transport::{Socket, SocketState};

/// A name that was found somewhere.
#[derive(Debug)]
pub(super) struct FoundSocket {
    pub socket: Socket,
    /// The process itself would make its socket there, under this name.
    pub in_own_dir: bool,
    /// The kernel says that somebody listens who has bound this path.
    pub is_bound: bool,
}

/// What lies at such a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Socket(SocketFile),
    /// Something else.
    NoSocket,
    Gone,
    /// We may not look.
    Hidden,
    /// It takes too long to get there.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there nobody is in the way"))]
    TooFar,
}

/// What was seen of a socket's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketFile {
    /// Device and number.
    pub identity: (u64, u64),
    pub owner: u32,
    /// Seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
}

/// A process makes one socket. More that are gone are somebody else's.
const MAX_DELETED: usize = 16;

/// The sockets of one process, in order.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    pub sockets: Vec<Socket>,
    /// Those of them that somebody has bound, and whose file is not there any more; of very many the first.
    #[cfg_attr(
        target_os = "macos",
        expect(dead_code, reason = "only on Linux it is said why nobody answers")
    )]
    pub deleted: Vec<PathBuf>,
}

/// Puts the sockets of one process in order, each once, and says what each can be: its own by the key in the name, then
/// those that can't be compared (where `is_key` is not known), then what it is not reached by. Of equals the one where
/// the process makes its own comes first, then those that are there, those of its own user, those that somebody has bound,
/// and the newer ones.
pub(super) fn rank(
    found: impl IntoIterator<Item = FoundSocket>,
    is_key: Option<&impl Fn(u64) -> bool>,
    uid: u32,
    mut look: impl FnMut(&Socket) -> Seen,
) -> Ranked {
    let mut found_sockets: Vec<FoundSocket> = Vec::new();
    // Anybody can make thousands of such names: none is compared with all others.
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
    let mut ranked: Vec<(FoundSocket, Seen)> = Vec::with_capacity(found_sockets.len());
    let mut files = HashMap::new();
    for found_socket in found_sockets {
        let socket = &found_socket.socket;
        // Of what is left behind only the name counts, unless two paths may lead to the one file.
        let matters = socket.may_be_its_own()
            || found_socket.is_bound
            || names.get(&socket.name).is_some_and(|number| *number > 1);
        let seen = if matters { look(socket) } else { Seen::Hidden };
        match seen {
            Seen::NoSocket => continue,
            Seen::Gone if !found_socket.is_bound => continue,
            Seen::TooFar if !found_socket.in_own_dir => continue,
            Seen::Socket(file) => {
                let next = ranked.len();
                let known = *files.entry((socket.name, file.identity)).or_insert(next);
                // By two ways to the same place: the first one is the shorter.
                if let Some((known, _)) = ranked.get_mut(known) {
                    known.merge(found_socket);
                    continue;
                }
            }
            Seen::Gone | Seen::Hidden | Seen::TooFar => {}
        }
        ranked.push((found_socket, seen));
    }
    ranked.sort_by_cached_key(|(found_socket, seen)| {
        let file = if let Seen::Socket(file) = seen { Some(file) } else { None };
        (
            found_socket.socket.state,
            !found_socket.in_own_dir,
            *seen == Seen::Gone,
            file.is_none_or(|file| file.owner != uid),
            !found_socket.is_bound,
            std::cmp::Reverse(file.map(|file| file.modified)),
            found_socket.socket.path.clone(),
        )
    });
    let mut deleted = Vec::new();
    ranked.retain(|(found_socket, seen)| {
        if *seen != Seen::Gone {
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
    /// Takes what is known by another way to the same file. It is dialled where the process has it: on another way
    /// somebody may put another file in its place.
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

    /// Whoever has laid the other name may put something else there before it is dialled.
    #[test]
    fn a_file_by_two_names_is_dialled_where_the_process_has_it() {
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
        let ranked = rank(found, Some(&|key| key == 900), 0, |_| Seen::Socket(file)).sockets;
        assert_eq!(ranked.len(), 1);
        let Location::Ours(dialled) = ranked[0].location() else { panic!("{ranked:?}") };
        assert!(dialled.starts_with("/home") && ranked[0].path.starts_with("/short"), "{ranked:?}");
    }

    #[test]
    fn of_what_is_gone_little_is_told() {
        let found_socket = |n: u64| {
            let name = SocketName::runtime(42, 900);
            let socket = Socket::new(format!("/{n}/{name}"), name, SocketState::Unknown);
            FoundSocket { socket, in_own_dir: false, is_bound: n != 7 }
        };
        let ranked = rank((0..10).map(found_socket), Some(&|key| key == 900), 0, |_| Seen::Gone);
        assert_eq!((ranked.sockets.len(), ranked.deleted.len()), (9, 9), "one was never bound");
        let ranked = rank((0..1000).map(found_socket), Some(&|key| key == 900), 0, |_| Seen::Gone);
        assert_eq!((ranked.sockets.len(), ranked.deleted.len()), (MAX_DELETED, MAX_DELETED));
    }
}
