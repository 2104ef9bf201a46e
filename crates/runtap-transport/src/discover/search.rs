//! The search itself: from sockets to processes, from a process to its socket or the reason that there is none.
//!
//! What is cheap comes first. Sockets of our own namespaces are found by one listing of our temporary directory
//! and one read of the kernel's table of bound sockets, which knows every TMPDIR. All that is asked of any other
//! process is its mount namespace; only those of another one, or all if the table can't be read or has sockets
//! without a process, are looked at more closely.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::OFlags;

use super::candidate::Candidate;
use super::environment::Environment;
use super::facts::{Facts, Life};
use super::gather::{self, Found, Inside};
use super::jvm::Counters;
use super::linux::{self, ProcDir, Status};
use super::listings::{Identity, Listing, Listings};
use super::location::Location;
use super::naming::{SocketKind, SocketName};
use super::rank::Sighting;
use super::runtime::Runtime;
use super::sockets::{self, Bound};
use super::{Kind, NotFound, Options, Process, Reason, Socket};

use super::system::System;
use crate::root::Root;

/// One search, with what it read so far.
pub(super) struct Search<'a> {
    system: &'a System,
    own_mount: Option<OsString>,
    own_pid: Option<OsString>,
    own_time: Option<OsString>,
    pub(super) bound: Option<Bound>,
    listings: Listings,
    /// How much of environments may still be read.
    environments: u64,
    /// Our own temporary directory, if it was listed: what it is.
    temp: OnceCell<Option<Identity>>,
    /// Where Java virtual machines keep their counters, by the folder that theirs are in.
    jvms: HashMap<Identity, Jvms>,
    passwd: Option<Vec<u8>>,
}

type Jvms = Rc<Counters>;

/// Of all processes that are looked at. When it is used up, what is read of each further one is what honest programs have.
const MOST_OF_ENVIRONMENTS: u64 = 64 << 20;

/// What a process said of itself, however long ago: the folder in `/proc` by which it was asked is that of no other.
struct SeenOf {
    status: Status,
    comm: String,
    start: u64,
}

/// How closely the namespaces of processes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Nowhere,
    AtMounts,
    Everywhere,
}

impl<'a> Search<'a> {
    pub(super) fn new(system: &'a System) -> Self {
        let me = ProcDir::open(&system.proc_root, "self").ok();
        let own = |kind| me.as_ref().and_then(|me| me.namespace(kind));
        Self {
            system,
            own_mount: own("mnt"),
            own_pid: own("pid"),
            own_time: own("time"),
            bound: sockets::bound(&system.proc_root),
            listings: Listings::new(),
            environments: MOST_OF_ENVIRONMENTS,
            temp: OnceCell::new(),
            jvms: HashMap::new(),
            passwd: None,
        }
    }

    pub(super) fn all(&mut self, options: Options) -> Vec<Process> {
        let own_jvms = if options.jvm { self.own_jvms() } else { Jvms::default() };
        let look = match options.namespaces {
            false => Look::Nowhere,
            true if self.has_orphans() => Look::Everywhere,
            true => Look::AtMounts,
        };
        let mut processes = Vec::new();
        for pid in linux::pids(&self.system.proc_root) {
            let Some(candidate) = self.candidate(pid, look) else { continue };
            let found = match self.dotnet(&candidate) {
                Some((sockets, seen)) => Some(self.describe(&candidate, Kind::Dotnet, sockets, seen)),
                None => options.jvm.then(|| self.jvm(&candidate, &own_jvms)).flatten(),
            };
            processes.extend(found.filter(|process| {
                options.all_users || self.system.uid == 0 || process.uid == self.system.uid
            }));
        }
        processes
    }

    /// Whether a diagnostics socket may belong to a process that has another pid for us.
    fn has_orphans(&self) -> bool {
        let start = |pid: u32| self.system.start_time(pid);
        let Some(bound) = &self.bound else { return true };
        let mut names = bound.values().flatten().map(|(_, name)| name);
        names.any(|name| name.kind == SocketKind::Runtime && start(name.pid) != Some(name.key))
    }

    fn candidate(&self, pid: u32, look: Look) -> Option<Candidate> {
        let dir = ProcDir::open(&self.system.proc_root, pid).ok()?;
        // What we may not read is taken for ours: at worst nothing is found there.
        let differs = |a: &Option<OsString>, b: &Option<OsString>| a.is_some() && a != b;
        let mount = if look == Look::Nowhere { None } else { dir.namespace("mnt") };
        let other_mount = differs(&mount, &self.own_mount);
        let other_pid =
            (look == Look::Everywhere || other_mount) && differs(&dir.namespace("pid"), &self.own_pid);
        Some(Candidate::new(pid, dir, other_mount, other_pid))
    }

    /// The sockets of a process, if one of them can be its own.
    fn dotnet(&mut self, candidate: &Candidate) -> Option<(Vec<Socket>, SeenOf)> {
        // All of ours are near: in our own directory, or listed by the kernel.
        let all_near = self.bound.is_some() && !candidate.other_mount && !candidate.other_pid;
        let is_near = self.has_near(candidate.pid);
        if all_near && !is_near {
            return None;
        }
        let (comm, start) = candidate.dir.stat()?;
        let key = self.key(candidate, start);
        let mut sightings = if is_near { self.near(candidate, start) } else { Vec::new() };
        let is_own =
            |name: SocketName| name.kind == SocketKind::Runtime && key.is_none_or(|key| name.key == key);
        if all_near && !sightings.iter().any(|sighting| is_own(sighting.socket.name)) {
            return None;
        }
        let status = candidate.dir.status()?;
        // What has its name is its own only where it would make it itself: anybody can make such a name elsewhere.
        if let Ok(environment) = candidate.dir.environment(&mut self.environments) {
            sightings.extend(self.far(candidate, &status, &environment, key));
        }
        let sockets = candidate.rank(sightings, key, &status).sockets;
        sockets.iter().any(Socket::may_be_its_own).then_some((sockets, SeenOf { status, comm, start }))
    }

    /// The key in the name of a process's socket, where it can be told: start times are those of the reader's time
    /// namespace, the key is that of the process's own.
    fn key(&self, candidate: &Candidate, start: u64) -> Option<u64> {
        let other = candidate.dir.namespace("time");
        (other.is_none() || other == self.own_time).then_some(start)
    }

    fn has_near(&mut self, pid: u32) -> bool {
        self.bound.as_ref().is_some_and(|bound| bound.contains_key(&pid)) || {
            let listing = self.own_temp();
            listing.is_cut || !listing.of(pid).is_empty()
        }
    }

    /// What lies in our own temporary directory, which is read once.
    fn own_temp(&mut self) -> &Listing {
        if let Some(known) = self.temp.get() {
            return self.listings.known(*known);
        }
        let read = self.listings.of(Root::ours().and_then(|root| root.open(&self.system.temp, FOLDER)));
        self.temp.get_or_init(|| read.folder);
        read
    }

    /// Sockets that bear the pid as we see it: in our own directory, and those that the kernel lists.
    fn near(&mut self, candidate: &Candidate, start: u64) -> Vec<Sighting> {
        let own = SocketName::runtime(candidate.pid, start);
        let directory = Location::Ours(self.system.temp.clone());
        let mut found: Vec<_> = names(self.own_temp(), own.pid, Some(own))
            .into_iter()
            .map(|name| candidate.sighting(directory.join(name.to_string()), name))
            .collect();
        for (path, name) in self.bound.iter().filter_map(|bound| bound.get(&candidate.pid)).flatten() {
            // Somebody listens there: with another key it is the same pid of another pid namespace.
            if name.kind == SocketKind::Router || name.key == start {
                // A path that was bound in another mount namespace is below its root for us.
                let sighting = candidate.sighting(candidate.location(path), *name);
                found.push(Sighting { is_bound: true, ..sighting });
            }
        }
        found
    }

    /// Sockets that bear the pid of the process's own namespace, in its own directory.
    fn far(
        &mut self,
        candidate: &Candidate,
        status: &Status,
        environment: &Environment,
        key: Option<u64>,
    ) -> Vec<Sighting> {
        let near = self.own_temp().folder;
        let directory = candidate.temp_dir(environment, self.system);
        let own = key.map(|key| SocketName::runtime(status.ns_pid, key));
        let listing = self.listings.of(directory.open(&candidate.dir, FOLDER));
        let is_near = listing.folder.is_some() && listing.folder == near && status.ns_pid == candidate.pid;
        let is_at_home = |name: SocketName| own.is_none_or(|own| own == name);
        names(listing, status.ns_pid, own)
            .into_iter()
            // By this way they are there already.
            .filter(|name| !is_near || is_at_home(*name))
            .map(|name| Sighting {
                at_home: name.kind == SocketKind::Runtime && is_at_home(name),
                ..candidate.sighting(directory.join(name.to_string()), name)
            })
            .collect()
    }

    fn own_jvms(&mut self) -> Jvms {
        let folder = Root::ours().and_then(|root| root.open(&self.system.default_temp, FOLDER));
        let listing = self.listings.of(folder);
        jvms(&mut self.jvms, listing, |name| self.system.open_default_temp(name))
    }

    fn jvm(&mut self, candidate: &Candidate, own: &Jvms) -> Option<Process> {
        let theirs = candidate.other_mount.then(|| Location::Root("/tmp".into()));
        let open = |name: &OsStr| match &theirs {
            Some(directory) => directory.join(name).open(&candidate.dir, FOLDER_ITSELF),
            None => self.system.open_default_temp(name),
        };
        let counters = match &theirs {
            Some(directory) => {
                let listing = self.listings.of(directory.open(&candidate.dir, FOLDER));
                jvms(&mut self.jvms, listing, open)
            }
            None => Rc::clone(own),
        };
        // Most processes are out of the question without being read. Those that may not be looked into seem to be root's.
        if counters.is_empty() || !candidate.dir.owner().is_some_and(|it| it == 0 || counters.has_of(it)) {
            return None;
        }
        let status = candidate.dir.status()?;
        let elsewhere = candidate.other_mount || candidate.other_pid;
        let pid = if elsewhere { status.ns_pid } else { candidate.pid };
        if !counters.has(status.uid, pid, open) {
            return None;
        }
        let (comm, start) = candidate.dir.stat()?;
        let seen = SeenOf { status, comm, start };
        Some(self.describe(candidate, Kind::Jvm, Vec::new(), seen))
    }

    fn describe(&mut self, candidate: &Candidate, kind: Kind, sockets: Vec<Socket>, seen: SeenOf) -> Process {
        let SeenOf { status, comm, start } = seen;
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

    pub(super) fn one(&mut self, pid: u32) -> Result<Process, NotFound> {
        if let Some((candidate, found)) = self.find(pid)
            && found.is_reachable(pid)
        {
            let seen = SeenOf { status: found.status, comm: found.comm, start: found.start_time };
            return Ok(self.describe(&candidate, Kind::Dotnet, found.sockets, seen));
        }
        let facts = self.facts(pid);
        let looked_at = facts.steps();
        // What came in between: the socket was made while we looked.
        let reason = Reason::all(&facts).into_iter().next().unwrap_or(Reason::Starting);
        Err(NotFound { pid, reason, looked_at })
    }

    pub(super) fn facts(&mut self, pid: u32) -> Facts {
        match self.find(pid) {
            Some((_, Found { status, .. })) if status.tgid != pid => {
                self.system.nobody(pid, Life::Thread { tgid: status.tgid })
            }
            Some((candidate, found)) => {
                let inside = Inside::look(&candidate.dir);
                self.system.gather(&candidate.dir, pid, found, inside)
            }
            None if self.system.is_hidden(pid) => self.system.nobody(pid, Life::Hidden),
            None => self.system.nobody(pid, Life::Gone),
        }
    }

    pub(super) fn dotnet_facts(&mut self) -> Vec<Facts> {
        let pids = linux::pids(&self.system.proc_root);
        pids.into_iter().filter_map(|pid| self.dotnet_facts_of(pid)).collect()
    }

    fn dotnet_facts_of(&mut self, pid: u32) -> Option<Facts> {
        let (candidate, found) = self.find(pid)?;
        // Most processes are told by their memory map alone.
        let alive = !matches!(gather::life(&found.status, pid), Life::Thread { .. } | Life::Ended);
        if !alive {
            return None;
        }
        let inside = Inside::look(&candidate.dir);
        if !found.is_reachable(pid) && inside.runtime == Runtime::None {
            return None;
        }
        let facts = self.system.gather(&candidate.dir, pid, found, inside);
        (facts.is_dotnet() || facts.runtime.is_too_old()).then_some(facts)
    }

    /// A process and all sockets that may be its own.
    fn find(&mut self, pid: u32) -> Option<(Candidate, Found)> {
        let candidate = self.candidate(pid, Look::Everywhere)?;
        let (status, (comm, start_time)) = (candidate.dir.status()?, candidate.dir.stat()?);
        let environment = candidate.dir.environment(&mut self.environments);
        let key = self.key(&candidate, start_time);
        let mut sightings = self.near(&candidate, start_time);
        if let Ok(environment) = &environment {
            sightings.extend(self.far(&candidate, &status, environment, key));
        }
        let ranked = candidate.rank(sightings, key, &status);
        let found = Found {
            user: self.user(status.uid),
            other_mount: candidate.other_mount,
            // Told by the number where the namespace itself may not be seen.
            other_pid: candidate.other_pid || status.ns_pid != pid,
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
/// A folder to list, not one that a link leads to.
pub(super) const FOLDER_ITSELF: OFlags = FOLDER.union(OFlags::NOFOLLOW);

/// What lies in a folder with a process id in its name. Where there was too much to list it all, the process's own name is
/// among it: whether it is there is looked at later.
fn names(listing: &Listing, ns_pid: u32, own: Option<SocketName>) -> Vec<SocketName> {
    let all = listing.of(ns_pid);
    let mut names = all.get(..MOST_OF_A_PROCESS).unwrap_or(all).to_vec();
    let is_cut = listing.is_cut || names.len() < all.len();
    names.extend(own.filter(|own| is_cut && !names.contains(own)));
    names
}

/// Names with the id of one process that are looked at. Hundreds of processes may have the same id, each in a pid namespace
/// of its own, and the same folder.
const MOST_OF_A_PROCESS: usize = 1000;

/// The folders of counters in a temporary directory, which is looked at once.
fn jvms(
    known: &mut HashMap<Identity, Jvms>,
    listing: &Listing,
    open: impl Fn(&OsStr) -> io::Result<OwnedFd>,
) -> Jvms {
    let Some(folder) = listing.folder else { return Jvms::default() };
    Rc::clone(known.entry(folder).or_insert_with(|| Rc::new(Counters::of(&listing.hsperfdata, open))))
}
