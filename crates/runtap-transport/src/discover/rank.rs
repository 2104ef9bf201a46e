//! Which of several sockets with a process's id is its own. The same on every system.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::naming::{SocketKind, SocketName};
use super::{Socket, SocketState};

/// Puts the sockets of one process in order: those that can be its own first, then newer before older.
pub(super) fn rank(
    found: impl IntoIterator<Item = (PathBuf, SocketName)>,
    start_time: u64,
    comparable: bool,
) -> Vec<Socket> {
    let mut sockets: Vec<(Socket, Option<SystemTime>)> = Vec::new();
    for (path, name) in found {
        // The same socket by two paths: the first one is the shorter.
        if sockets.iter().any(|(known, _)| known.name == name) {
            continue;
        }
        let state = match name.kind {
            SocketKind::Router => SocketState::Unknown,
            SocketKind::Runtime if name.key == start_time => SocketState::Matching,
            SocketKind::Runtime if comparable => SocketState::Stale,
            SocketKind::Runtime => SocketState::Unknown,
        };
        sockets.push((Socket { path, name, state }, None));
    }
    if sockets.len() > 1 {
        for (socket, modified) in &mut sockets {
            *modified = fs::symlink_metadata(&socket.path).and_then(|meta| meta.modified()).ok();
        }
        // A router's socket that is newer than the runtime's own wins, as in Microsoft's tools.
        sockets.sort_by(|(a, a_time), (b, b_time)| {
            let stale = |socket: &Socket| socket.state == SocketState::Stale;
            (stale(a).cmp(&stale(b))).then(b_time.cmp(a_time)).then_with(|| a.path.cmp(&b.path))
        });
    }
    sockets.into_iter().map(|(socket, _)| socket).collect()
}
