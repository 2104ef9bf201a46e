//! A process that a search looks at: what was read of it on the way, and where its files are.

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
    /// Its mount namespace is another one than ours.
    pub other_mount: bool,
    pub other_pid: bool,
    foreign: OnceCell<bool>,
}

impl Candidate {
    pub(super) fn new(pid: u32, dir: ProcDir, other_mount: bool, other_pid: bool) -> Self {
        Self { pid, dir, other_mount, other_pid, foreign: OnceCell::new() }
    }

    /// Whether its paths are other ones than ours: by its mounts, or by a root of its own.
    fn is_foreign(&self) -> bool {
        *self.foreign.get_or_init(|| self.other_mount || self.dir.has_other_root())
    }

    /// A path that it has bound, or that it was told.
    pub(super) fn location(&self, path: &Path) -> Location {
        Location::of(path, self.is_foreign())
    }

    /// Its temporary directory.
    pub(super) fn temp_dir(&self, environment: &Environment, system: &System) -> Location {
        match environment.tmpdir.as_deref().filter(|dir| !dir.is_empty()) {
            None if !self.is_foreign() => Location::Ours(system.default_temp.clone()),
            tmpdir => self.location(&temp_dir(tmpdir)),
        }
    }

    /// A name that was found in a folder; by default one among many.
    pub(super) fn found_socket(&self, at: Location, name: SocketName) -> FoundSocket {
        let socket = Socket::of_process(&self.dir, at, name, SocketState::Unknown);
        FoundSocket { socket, in_own_dir: false, is_bound: false }
    }

    /// As whose paths are gone.
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
        // A file belongs to whom the process is when it makes files.
        let [.., files] = status.uids;
        let whose = self.path_owner(status);
        let is_key = key.map(|key| move |number| key.is(number));
        rank(found, is_key.as_ref(), files, |socket| paths.look(whose, socket.location()))
    }
}
