//! Facts about the machine: who is looking, the security settings, and the sockets that dead runtimes left behind. Before a socket
//! is deleted, the caller must check that nothing listens on it.

use std::fs;
use std::path::PathBuf;

use runtap_model::order;
use runtap_transport::Folder;
use runtap_transport::linux::ProcDir;
use runtap_transport::naming::{SocketKind, SocketName};

use super::System;
use super::facts::{TempDir, Viewer};
use super::gather::temp_state;
use super::search::Search;
use super::security::Policy;

/// The number of entries of the temporary directory that are checked, and of stale sockets that are reported. The caller connects to
/// each of them.
const MAX_ENTRIES: usize = 1_000_000;
const MAX_LEFTOVERS: usize = 10_000;

/// The machine, as seen by this process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// The identity of this process.
    pub viewer: Viewer,
    /// The temporary directory of this process.
    pub temp: TempDir,
    /// The security settings.
    pub policy: Policy,
    /// The sockets of runtimes in this process's temporary directory whose processes have exited and on which nothing listens, according to the
    /// kernel's table of this process's network namespace. At most 10,000.
    pub leftovers: Vec<PathBuf>,
    /// Whether `/proc` hides the processes of other users.
    pub hides_others: bool,
}

impl System {
    /// Gathers the facts about the machine.
    pub fn machine(&self) -> Machine {
        let me = ProcDir::open(self.proc_root(), "self").ok().and_then(|me| me.status()).unwrap_or_default();
        let path = self.temp_dir().to_owned();
        let state = temp_state(Folder::open(&path), &me);
        Machine {
            viewer: self.viewer(),
            policy: self.policy(),
            temp: TempDir { host: path.clone(), path, state },
            leftovers: self.leftovers(),
            hides_others: self.hides_others(),
        }
    }

    fn leftovers(&self) -> Vec<PathBuf> {
        let search = Search::new(self);
        let listening = |name: SocketName| {
            let bound = search.bound.as_ref().map(|bound| bound.of(name.pid));
            bound.is_some_and(|sockets| sockets.iter().any(|(_, bound)| *bound == name))
        };
        let entries = fs::read_dir(self.temp_dir()).into_iter().flatten().flatten().take(MAX_ENTRIES);
        let mut found: Vec<PathBuf> = entries
            .filter(|entry| {
                let name = entry.file_name().to_str().and_then(SocketName::parse);
                name.is_some_and(|name| {
                    name.kind == SocketKind::Runtime
                        && self.start_time(name.pid) != Some(name.key)
                        && !listening(name)
                })
            })
            .map(|entry| entry.path())
            .take(MAX_LEFTOVERS)
            .collect();
        order::sort(&mut found);
        found
    }

    /// Returns the security settings of the machine.
    pub fn policy(&self) -> Policy {
        Policy::read(self.proc_root(), self.sys_root())
    }

    /// Returns the identity of this process.
    pub fn viewer(&self) -> Viewer {
        let me = ProcDir::open(self.proc_root(), "self").ok().and_then(|me| me.status());
        Viewer {
            uid: self.uid(),
            capabilities: me.map(|status| status.capabilities).unwrap_or_default(),
            temp: self.temp_dir().to_owned(),
        }
    }
}
