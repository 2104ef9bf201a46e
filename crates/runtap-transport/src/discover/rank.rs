//! Which of several sockets with a process's id is its own. The same on every system.

use std::collections::{HashMap, HashSet};

use super::naming::SocketKind;
use super::{Socket, SocketState};

/// What was seen of a socket's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Device and number.
    pub identity: (u64, u64),
    pub owner: u32,
    /// Seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
}

/// Puts the sockets of one process in order, each once, and says what each can be: its own by the key in the name, then
/// those that can't be compared, then what it is not reached by. Of equals those of its own user come first, then the
/// newer ones.
pub(super) fn rank(
    found: impl IntoIterator<Item = Socket>,
    start_time: u64,
    uid: u32,
    comparable: bool,
    look: impl Fn(&Socket) -> Option<Seen>,
) -> Vec<Socket> {
    let mut sockets: Vec<Socket> = Vec::new();
    // Anybody can make thousands of such names: none is compared with all others.
    let (mut paths, mut names) = (HashSet::new(), HashMap::new());
    for mut socket in found {
        // By two ways to the same place: the first one is the shorter.
        if !paths.insert(socket.path.clone()) {
            continue;
        }
        *names.entry(socket.name).or_insert(0_usize) += 1;
        socket.state = match socket.name.kind {
            SocketKind::Router => SocketState::Router,
            SocketKind::Runtime if socket.name.key == start_time => SocketState::Matching,
            SocketKind::Runtime if comparable => SocketState::Stale,
            SocketKind::Runtime => SocketState::Unknown,
        };
        sockets.push(socket);
    }
    if sockets.len() <= 1 {
        return sockets;
    }
    let mut ranked: Vec<(Socket, Option<Seen>)> = Vec::with_capacity(sockets.len());
    let mut files = HashSet::new();
    for socket in sockets {
        // Of what is left behind only the name counts, unless two paths may lead to the one file.
        let matters = socket.may_be_its_own() || names.get(&socket.name).is_some_and(|n| *n > 1);
        let seen = if matters { look(&socket) } else { None };
        if seen.is_none_or(|seen| files.insert((socket.name, seen.identity))) {
            ranked.push((socket, seen));
        }
    }
    ranked.sort_by_cached_key(|(socket, seen)| {
        let foreign = seen.is_none_or(|seen| seen.owner != uid);
        let newest_first = std::cmp::Reverse(seen.map(|seen| seen.modified));
        (socket.state, foreign, newest_first, socket.path.clone())
    });
    ranked.into_iter().map(|(socket, _)| socket).collect()
}
