//! Searches for processes and their sockets.
//!
//! Cheap checks come first. Sockets of this process's namespaces are found by listing this process's temporary directory once and by reading the
//! kernel's table of bound sockets once, which covers every TMPDIR. Of all other processes only the mount namespace is read.
//! Processes in another mount namespace are examined more closely; so are all processes if the table can't be read or has sockets
//! without a process.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use runtap_transport::Socket;
use runtap_transport::linux::{self, Location, ProcDir, Root, Status};
use runtap_transport::naming::{SocketKind, SocketName, bound_path, temp_dir};
use rustix::fs::{Mode, OFlags};

use super::budget::UserBudgets;
use super::candidate::Candidate;
use super::environment::Environment;
use super::gather::{self, FoundProcess};
use super::java::JvmFiles;
use super::key::{Clock, Key};
use super::listings::{Identity, Listing, Listings};
use super::own_counters;
use super::path_cache::PathCache;
use super::proc_files::{self, ProcFiles as _};
use super::sockets::{self, Bound};
use super::system::System;
use crate::jvm;
use crate::rank::FoundSocket;
use crate::{Options, Process, ProcessKind};

/// A search, with what it has read so far.
pub(super) struct Search<'a> {
    pub(super) system: &'a System,
    own_mount: Option<OsString>,
    own_pid: Option<OsString>,
    clock: Option<Clock>,
    pub(super) bound: Option<Bound>,
    listings: Listings,
    pub(super) paths: PathCache,
    /// The budgets for reading memory maps.
    pub(super) map_budgets: UserBudgets,
    /// The number of bytes that may still be read of environments.
    environments: u64,
    /// The identity of this process's temporary directory, if it has been listed.
    temp: OnceCell<Option<Identity>>,
    /// The files of Java virtual machines, by the temporary directory.
    jvms: HashMap<Identity, Jvms>,
    /// The number of bytes that may still be read of performance counters.
    counters: u64,
    /// The counters of the last virtual machine that was found.
    perf_file: Option<File>,
    passwd: Option<Vec<u8>>,
    /// How many more times the lists of sockets may be read again.
    rereads: u8,
}

type Jvms = Rc<JvmFiles>;

/// The budget for all environments. When it is used up, only as much as ordinary programs have is read of each further one.
const MAX_ENVIRONMENT_BYTES: u64 = 64 << 20;

/// The number of times that one search reads the lists of sockets again.
const MAX_REREADS: u8 = 2;

/// What was read from a process. Consistent, because a directory in `/proc` never refers to another process.
pub(super) struct Snapshot {
    pub status: Status,
    pub comm: String,
    pub start: u64,
}

/// Which namespaces of processes are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamespaceCheck {
    None,
    Mount,
    All,
}

impl<'a> Search<'a> {
    pub(super) fn new(system: &'a System) -> Self {
        let me = ProcDir::open(&system.proc_root, "self").ok();
        let own = |kind| me.as_ref().and_then(|me| me.namespace(kind));
        Self {
            system,
            own_mount: own("mnt"),
            own_pid: own("pid"),
            clock: me.as_ref().map(Clock::of),
            bound: sockets::bound(&system.proc_root),
            listings: Listings::new(),
            paths: PathCache::new(system.uid),
            map_budgets: UserBudgets::new(gather::MAX_TOTAL, system.uid),
            environments: MAX_ENVIRONMENT_BYTES,
            temp: OnceCell::new(),
            jvms: HashMap::new(),
            counters: jvm::MAX_READ,
            perf_file: None,
            passwd: None,
            rereads: MAX_REREADS,
        }
    }

    /// Forgets the lists of sockets, so that they are read again. Returns false if that has been done too often: any number of
    /// processes may look as if they had just started.
    pub(super) fn read_lists_again(&mut self) -> bool {
        let Some(left) = self.rereads.checked_sub(1) else { return false };
        self.rereads = left;
        self.bound = sockets::bound(&self.system.proc_root);
        self.listings = Listings::new();
        self.temp = OnceCell::new();
        true
    }

    pub(super) fn all(&mut self, options: Options) -> Vec<Process> {
        let own_jvms = if options.jvm { self.own_jvms() } else { Jvms::default() };
        let check = match options.namespaces {
            false => NamespaceCheck::None,
            true if self.has_orphans() => NamespaceCheck::All,
            true => NamespaceCheck::Mount,
        };
        let mut processes = Vec::new();
        for pid in proc_files::pids(&self.system.proc_root) {
            let Some(candidate) = self.candidate(pid, check) else { continue };
            let found = match self.dotnet(&candidate) {
                Some((sockets, seen)) => Some(self.describe(&candidate, ProcessKind::Dotnet, sockets, seen)),
                None => options.jvm.then(|| self.jvm(&candidate, &own_jvms, false)).flatten(),
            };
            processes.extend(found.filter(|process| {
                options.all_users || self.system.uid == 0 || process.uid == self.system.uid
            }));
        }
        processes
    }

    /// Whether a diagnostics socket may belong to a process that has another id in this process's PID namespace.
    fn has_orphans(&self) -> bool {
        let start = |pid: u32| self.system.start_time(pid);
        let Some(bound) = &self.bound else { return true };
        bound.names().any(|name| name.kind == SocketKind::Runtime && start(name.pid) != Some(name.key))
    }

    fn candidate(&self, pid: u32, check: NamespaceCheck) -> Option<Candidate> {
        let dir = ProcDir::open(&self.system.proc_root, pid).ok()?;
        // An unreadable namespace is assumed to be this process's; at worst no socket is found.
        let differs = |a: &Option<OsString>, b: &Option<OsString>| a.is_some() && a != b;
        let mount = if check == NamespaceCheck::None { None } else { dir.namespace("mnt") };
        let other_mount = differs(&mount, &self.own_mount);
        let other_pid =
            (check == NamespaceCheck::All || other_mount) && differs(&dir.namespace("pid"), &self.own_pid);
        Some(Candidate::new(pid, dir, other_mount, other_pid))
    }

    /// Returns the sockets of a process if one of them may be its own.
    fn dotnet(&mut self, candidate: &Candidate) -> Option<(Vec<Socket>, Snapshot)> {
        // All sockets of this process's namespaces are in its directory or in the kernel's table.
        let all_near = self.bound.is_some() && !candidate.other_mount && !candidate.other_pid;
        let is_near = self.has_sockets_by_our_pid(candidate.pid);
        let may_be_truncated = self.bound.as_ref().is_some_and(|bound| bound.may_be_truncated(candidate.pid));
        let all_near = all_near && !may_be_truncated;
        if all_near && !is_near {
            return None;
        }
        let (comm, start) = candidate.dir.stat()?;
        let key = self.key(candidate, start);
        let mut found_sockets =
            if is_near { self.sockets_by_our_pid(candidate, start, key) } else { Vec::new() };
        let is_own =
            |name: SocketName| name.kind == SocketKind::Runtime && key.is_none_or(|key| key.is(name.key));
        if all_near && !found_sockets.iter().any(|found_socket| is_own(found_socket.socket.name)) {
            return None;
        }
        let status = candidate.dir.status()?;
        // A socket is the process's own only if it is where the process would create it: any user can create such a name elsewhere.
        if let Ok(environment) = candidate.dir.environment(&mut self.environments) {
            found_sockets
                .extend(self.sockets_by_its_pid(candidate, &status, &environment, key).found_sockets);
        }
        let sockets = candidate.rank(found_sockets, key, &status, &mut self.paths).sockets;
        sockets.iter().any(Socket::may_be_its_own).then_some((sockets, Snapshot { status, comm, start }))
    }

    /// Returns the key in the name of a process's socket, if known. Start times are in the reader's time namespace, the key is in
    /// the process's own.
    fn key(&self, candidate: &Candidate, start: u64) -> Option<Key> {
        match &self.clock {
            Some(clock) => clock.key_of(&candidate.dir, start),
            None => Some(start.into()),
        }
    }

    fn has_sockets_by_our_pid(&mut self, pid: u32) -> bool {
        self.bound.as_ref().is_some_and(|bound| !bound.of(pid).is_empty()) || {
            let listing = self.own_temp();
            listing.is_truncated || !listing.of(pid).is_empty()
        }
    }

    /// Returns the entries of this process's temporary directory, which is read once.
    fn own_temp(&mut self) -> &Listing {
        if let Some(known) = self.temp.get() {
            return self.listings.known(*known);
        }
        let read = self.listings.of(Root::own().and_then(|root| root.open(&self.system.temp, FOLDER)));
        self.temp.get_or_init(|| read.folder);
        read
    }

    /// Returns the sockets with the process id in this process's namespace: those in its directory, and those in the kernel's table.
    fn sockets_by_our_pid(
        &mut self,
        candidate: &Candidate,
        start: u64,
        key: Option<Key>,
    ) -> Vec<FoundSocket> {
        let directory = Location::Own(self.system.temp.clone());
        let mut found: Vec<_> = names(self.own_temp(), candidate.pid, key)
            .0
            .into_iter()
            .map(|name| candidate.found_socket(directory.join(name.to_string()), name))
            .collect();
        for (path, name) in self.bound.iter().flat_map(|bound| bound.of(candidate.pid)) {
            // The socket is listened on. With another key it belongs to an equal process id in another PID namespace.
            if name.kind == SocketKind::Router || key.map_or(name.key == start, |key| key.is(name.key)) {
                // A path that was bound in another mount namespace is below that process's root from here.
                let found_socket = candidate.found_socket(candidate.location(path), *name);
                found.push(FoundSocket { is_bound: true, ..found_socket });
            }
        }
        found
    }

    /// Returns the sockets with the process id in its own namespace, in the process's temporary directory.
    fn sockets_by_its_pid(
        &mut self,
        candidate: &Candidate,
        status: &Status,
        environment: &Environment,
        key: Option<Key>,
    ) -> SocketsByItsPid {
        let near = self.own_temp().folder;
        let directory = candidate.temp_dir(environment, self.system);
        let listing = self.paths.open(candidate.path_owner(status), &directory, FOLDER);
        let listing = self.listings.of(listing);
        let is_near = listing.folder.is_some() && listing.folder == near && status.ns_pid == candidate.pid;
        let is_in_own_dir = |name: SocketName| key.is_none_or(|key| key.is(name.key));
        let (names, is_truncated) = names(listing, status.ns_pid, key);
        let found_sockets = truncated_names(candidate, status, environment, key);
        let found_sockets = names
            .into_iter()
            // Others were found by our listing.
            .filter(|name| !is_near || is_in_own_dir(*name))
            .map(|name| FoundSocket {
                in_own_dir: name.kind == SocketKind::Runtime && is_in_own_dir(name),
                ..candidate.found_socket(directory.join(name.to_string()), name)
            })
            .chain(found_sockets)
            .collect();
        SocketsByItsPid { found_sockets, is_truncated }
    }

    fn own_jvms(&mut self) -> Jvms {
        let folder = Root::own().and_then(|root| root.open(&self.system.default_temp, FOLDER));
        let listing = self.listings.of(folder);
        jvms(&mut self.jvms, listing, |name| self.system.open_default_temp(name))
    }

    /// Returns the process with this id and a virtual machine's library, which was found in its memory map.
    pub(super) fn known_jvm(&mut self, pid: u32) -> Option<Process> {
        let candidate = self.candidate(pid, NamespaceCheck::All)?;
        let own = self.own_jvms();
        self.jvm(&candidate, &own, true)
    }

    /// Returns the open performance counters of a virtual machine with this start time.
    pub(super) fn perf_file(&mut self, pid: u32, start_time: u64) -> Option<File> {
        self.perf_file = None;
        let process = self.known_jvm(pid)?;
        self.perf_file.take().filter(|_| process.start_time == start_time)
    }

    /// Returns the process if it has performance counters, or if a virtual machine's library `is_known` to be mapped or found.
    fn jvm(&mut self, candidate: &Candidate, own: &Jvms, is_known: bool) -> Option<Process> {
        // Processes control how their temporary directory is reached, so its path is resolved once.
        let (status, theirs) = if candidate.other_mount {
            let status = candidate.dir.status()?;
            let folder = Location::Root("/tmp".into());
            match self.paths.open(candidate.path_owner(&status), &folder, FOLDER) {
                Ok(folder) => (Some(status), Some(folder)),
                Err(_) if is_known => {
                    return self.jvm_without_counters(candidate, Some(status), &JvmFiles::default(), true);
                }
                Err(_) => return None,
            }
        } else {
            (None, None)
        };
        let open = |name: &OsStr| match &theirs {
            Some(folder) => {
                Ok(rustix::fs::openat(folder, name, FOLDER_ITSELF | OFlags::CLOEXEC, Mode::empty())?)
            }
            None => self.system.open_default_temp(name),
        };
        let files = match &theirs {
            Some(folder) => jvms(&mut self.jvms, self.listings.of(folder.try_clone()), open),
            None => Rc::clone(own),
        };
        let counters = &files.counters;
        // Most processes are excluded without reading them. A process that can't be inspected appears to be owned by root.
        let may_have = !counters.is_empty()
            && candidate.dir.owner().is_some_and(|it| it == 0 || counters.has_of(it))
            && candidate.dir.runs_a_program();
        let status = if may_have { status.or_else(|| candidate.dir.status()) } else { status };
        let java = status.as_ref().filter(|_| may_have).and_then(|status| {
            let (java, file) = counters.of_process(status.uid, status.ns_pid, &mut self.counters, open)?;
            let before = self.map_budgets.left(status.uid);
            let mut budget = before;
            // If unknown, assume that they belong to the process.
            let are_its_own =
                own_counters::are_mapped(&candidate.dir, status.ns_pid, &mut budget) != Some(false);
            self.map_budgets.spend(status.uid, before.saturating_sub(budget));
            if are_its_own {
                self.perf_file = Some(file);
            }
            are_its_own.then_some(java)
        });
        let (Some(java), Some(status)) = (java, &status) else {
            return self.jvm_without_counters(candidate, status, &files, is_known);
        };
        let (comm, start) = candidate.dir.stat()?;
        let seen = Snapshot { status: status.clone(), comm, start };
        let process = self.describe(candidate, ProcessKind::Jvm, Vec::new(), seen);
        Some(Process { java: Some(java), ..process })
    }

    pub(super) fn describe(
        &mut self,
        candidate: &Candidate,
        kind: ProcessKind,
        sockets: Vec<Socket>,
        seen: Snapshot,
    ) -> Process {
        let Snapshot { status, comm, start } = seen;
        let elsewhere = candidate.other_mount || candidate.other_pid;
        Process {
            pid: candidate.pid,
            ns_pid: status.ns_pid,
            kind,
            start_time: start,
            uid: status.uid,
            user: self.user(status.uid),
            comm,
            exe: candidate.dir.exe(),
            command_line: candidate.dir.command_line(),
            java: None,
            sockets,
            other_mount_namespace: candidate.other_mount,
            other_pid_namespace: candidate.other_pid,
            container: if elsewhere { candidate.dir.container() } else { None },
        }
    }

    fn user(&mut self, uid: u32) -> String {
        let passwd = self.passwd.get_or_insert_with(|| linux::read(&self.system.passwd).unwrap_or_default());
        linux::user_name(passwd, uid)
    }

    /// Returns a process and all sockets that may be its own.
    pub(super) fn find(&mut self, pid: u32) -> Option<(Candidate, FoundProcess)> {
        let candidate = self.candidate(pid, NamespaceCheck::All)?;
        let (status, (comm, start_time)) = (candidate.dir.status()?, candidate.dir.stat()?);
        let environment = candidate.dir.environment(&mut self.environments);
        let key = self.key(&candidate, start_time);
        let mut found_sockets = self.sockets_by_our_pid(&candidate, start_time, key);
        let mut is_truncated = false;
        if let Ok(environment) = &environment {
            let far = self.sockets_by_its_pid(&candidate, &status, environment, key);
            found_sockets.extend(far.found_sockets);
            is_truncated = far.is_truncated;
        }
        let ranked = candidate.rank(found_sockets, key, &status, &mut self.paths);
        let found = FoundProcess {
            user: self.user(status.uid),
            other_mount: candidate.other_mount,
            // Compare the ids in case the namespace is not readable.
            other_pid: candidate.other_pid || status.ns_pid != pid,
            // If its own name is known, that name has been checked.
            crowded: is_truncated && key.is_none(),
            deleted: ranked.deleted,
            sockets: ranked.sockets,
            status,
            start_time,
            comm,
            environment,
        };
        Some((candidate, found))
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// Flags for a directory that is not a symbolic link.
pub(super) const FOLDER_ITSELF: OFlags = FOLDER.union(OFlags::NOFOLLOW);

/// The sockets in a process's own temporary directory.
struct SocketsByItsPid {
    found_sockets: Vec<FoundSocket>,
    /// Whether there may be more.
    is_truncated: bool,
}

/// Returns the process's own socket under its truncated name, if its path is too long for a socket address.
fn truncated_names(
    candidate: &Candidate,
    status: &Status,
    environment: &Environment,
    key: Option<Key>,
) -> Vec<FoundSocket> {
    let Some(tmpdir) = environment.tmpdir.as_deref().filter(|dir| !dir.is_empty()) else { return Vec::new() };
    let names = key.into_iter().flat_map(Key::all).map(|key| SocketName::runtime(status.ns_pid, key));
    let truncated = names.filter_map(|name| {
        let path = bound_path(&temp_dir(Some(tmpdir)), name)?;
        let is_complete = path.file_name().is_some_and(|file_name| *file_name == *name.to_string());
        let found_socket = || candidate.found_socket(candidate.location(&path), name);
        (!is_complete).then(|| FoundSocket { in_own_dir: true, ..found_socket() })
    });
    truncated.collect()
}

/// Returns the sockets in a directory with this process id, and whether the directory was too large to be listed completely. If so,
/// the process's own name is included without knowing whether it exists.
fn names(listing: &Listing, ns_pid: u32, key: Option<Key>) -> (Vec<SocketName>, bool) {
    let all = listing.of(ns_pid);
    let mut names = all.get(..MAX_PER_PROCESS).unwrap_or(all).to_vec();
    let is_truncated = listing.is_truncated || names.len() < all.len();
    if is_truncated {
        for own in key.into_iter().flat_map(Key::all).map(|key| SocketName::runtime(ns_pid, key)) {
            if !names.contains(&own) {
                names.push(own);
            }
        }
    }
    (names, is_truncated)
}

/// The number of names with one process id that are checked. Hundreds of processes may have equal ids in different PID namespaces
/// and share a directory.
const MAX_PER_PROCESS: usize = 1000;

/// Returns the files of virtual machines in a temporary directory, which are collected once.
fn jvms(
    known: &mut HashMap<Identity, Jvms>,
    listing: &Listing,
    open: impl Fn(&OsStr) -> io::Result<OwnedFd>,
) -> Jvms {
    let Some(folder) = listing.folder else { return Jvms::default() };
    Rc::clone(known.entry(folder).or_insert_with(|| Rc::new(JvmFiles::of(listing, open))))
}
