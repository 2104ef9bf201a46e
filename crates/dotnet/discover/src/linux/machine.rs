//! What concerns all processes of a machine: who looks, the security settings, and what dead runtimes left behind.
//! Only reads; whether somebody answers on a leftover is the caller's to find out before it is deleted.

use std::fs;
use std::path::PathBuf;

use runtap_transport::Folder;
use runtap_transport::linux::ProcDir;
use runtap_transport::naming::{SocketKind, SocketName};

use super::System;
use super::facts::{TempDir, Viewer};
use super::gather::temp_state;
use super::search::Search;
use super::security::Policy;

/// Entries of our temporary directory that are looked at, and sockets of dead processes among them that are reported: each is
/// going to be dialled.
const MAX_ENTRIES: usize = 1_000_000;
const MAX_LEFTOVERS: usize = 10_000;

/// The machine, as this process sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// Who looks.
    pub viewer: Viewer,
    /// Our own temporary directory.
    pub temp: TempDir,
    /// The security settings.
    pub policy: Policy,
    /// Runtimes' sockets in our temporary directory whose process is gone and on which, by the kernel's table of our
    /// network namespace, nobody listens; of very many the first.
    pub leftovers: Vec<PathBuf>,
    /// Whether `/proc` shows us no process of other users.
    pub hides_others: bool,
}

impl System {
    /// What concerns all processes.
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
        found.sort();
        found
    }

    /// The machine's security settings.
    pub fn policy(&self) -> Policy {
        Policy::read(self.proc_root(), self.sys_root())
    }

    /// Who looks.
    pub fn viewer(&self) -> Viewer {
        let me = ProcDir::open(self.proc_root(), "self").ok().and_then(|me| me.status());
        Viewer {
            uid: self.uid(),
            capabilities: me.map(|status| status.capabilities).unwrap_or_default(),
            temp: self.temp_dir().to_owned(),
        }
    }
}
