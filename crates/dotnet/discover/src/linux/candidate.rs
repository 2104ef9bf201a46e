//! A process that a search examines, with what has been read of it.

use std::cell::OnceCell;
use std::path::Path;

use runtap_transport::linux::{Location, ProcDir, Status};
use runtap_transport::naming::{SocketName, temp_dir};
use runtap_transport::{Socket, SocketState};

use super::key::Key;
use super::path_cache::{PathCache, PathOwner};
use super::{Environment, System};
use crate::rank::{FoundSocket, Ranked, rank};

pub(super) struct Candidate {
    pub pid: u32,
    pub dir: ProcDir,
    /// Whether its mount namespace differs from this process's.
    pub other_mount: bool,
    pub other_pid: bool,
    foreign: OnceCell<bool>,
}

impl Candidate {
    pub(super) fn new(pid: u32, dir: ProcDir, other_mount: bool, other_pid: bool) -> Self {
        Self { pid, dir, other_mount, other_pid, foreign: OnceCell::new() }
    }

    /// Whether its paths differ from this process's, because of its mount namespace or its root directory.
    fn is_foreign(&self) -> bool {
        *self.foreign.get_or_init(|| self.other_mount || self.dir.has_other_root())
    }

    /// Locates a path that the process has bound or that is in its environment.
    pub(super) fn location(&self, path: &Path) -> Location {
        Location::of(path, self.is_foreign())
    }

    /// Returns the location of its temporary directory.
    pub(super) fn temp_dir(&self, environment: &Environment, system: &System) -> Location {
        match environment.tmpdir.as_deref().filter(|dir| !dir.is_empty()) {
            None if !self.is_foreign() => Location::Own(system.default_temp.clone()),
            tmpdir => self.location(&temp_dir(tmpdir)),
        }
    }

    /// Creates the entry for a socket name that was found in a directory.
    pub(super) fn found_socket(&self, at: Location, name: SocketName) -> FoundSocket {
        let socket = Socket::of_process(&self.dir, at, name, SocketState::Unknown);
        FoundSocket { socket, in_own_dir: false, is_bound: false }
    }

    /// Returns the identity with which its paths are resolved.
    pub(super) fn path_owner(&self, status: &Status) -> PathOwner<'_> {
        PathOwner { pid: self.pid, dir: &self.dir, user: status.uid }
    }

    pub(super) fn rank(
        &self,
        found: Vec<FoundSocket>,
        key: Option<Key>,
        status: &Status,
        paths: &mut PathCache,
    ) -> Ranked {
        // The owner of a file is the file-system user of the process that created it.
        let [.., files] = status.uids;
        let whose = self.path_owner(status);
        let is_key = key.map(|key| move |number| key.is(number));
        rank(found, is_key.as_ref(), files, |socket| paths.look(whose, socket.location()))
    }
}
