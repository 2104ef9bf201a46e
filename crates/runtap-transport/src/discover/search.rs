//! The search itself: from sockets to processes, from a process to its socket or the reason that there is none.
//!
//! What is cheap comes first. Sockets of our own namespaces are found by one listing of our temporary directory
//! and one read of the kernel's table of bound sockets, which knows every TMPDIR. All that is asked of any other
//! process is its mount namespace; only those of another one, or all if the table can't be read or has sockets
//! without a process, are looked at more closely.

use std::collections::HashMap;
use std::ffi::OsString;

use rustix::fs::OFlags;

use super::environment::Environment;
use super::facts::{Facts, Life};
use super::gather::{self, Found};
use super::linux::{self, ProcDir, Status};
use super::location::Location;
use super::naming::{SocketKind, SocketName, temp_dir};
use super::rank::{Seen, rank};
use super::runtime::Runtime;
use super::sockets::{self, Bound, Listing};
use super::{Kind, NotFound, Options, Process, Reason, Socket, SocketState, jvm};

use super::system::System;
use crate::root::{POINT, Root};

/// One search, with what it read so far.
pub(super) struct Search<'a> {
    system: &'a System,
    own_mount: Option<OsString>,
    own_pid: Option<OsString>,
    own_time: Option<OsString>,
    pub(super) bound: Option<Bound>,
    /// Listings by mount namespace (empty for ours) and directory as the process sees it.
    listings: HashMap<(OsString, Location), Listing>,
    passwd: Option<Vec<u8>>,
}

/// How closely the namespaces of processes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Nowhere,
    AtMounts,
    Everywhere,
}

/// What was read of one process on the way.
struct Candidate {
    pid: u32,
    dir: ProcDir,
    mount: Option<OsString>,
    other_mount: bool,
    other_pid: bool,
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
            listings: HashMap::new(),
            passwd: None,
        }
    }

    pub(super) fn all(&mut self, options: Options) -> Vec<Process> {
        let own_jvms = if options.jvm { self.own_jvms() } else { HashMap::new() };
        let look = match options.namespaces {
            false => Look::Nowhere,
            true if self.has_orphans() => Look::Everywhere,
            true => Look::AtMounts,
        };
        let mut processes = Vec::new();
        for pid in linux::pids(&self.system.proc_root) {
            let Some(candidate) = self.candidate(pid, look) else { continue };
            let found = match self.dotnet(&candidate) {
                Some((sockets, start)) => self.describe(&candidate, Kind::Dotnet, sockets, start),
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
        Some(Candidate { pid, dir, mount, other_mount, other_pid })
    }

    /// The sockets of a process, if one of them can be its own, and its start time.
    fn dotnet(&mut self, candidate: &Candidate) -> Option<(Vec<Socket>, u64)> {
        if self.has_near(candidate.pid) {
            let (_, start) = candidate.dir.stat()?;
            let near = self.near(candidate, start);
            let uid = if near.len() > 1 { candidate.dir.status()?.uid } else { 0 };
            let sockets = ranked(candidate, near, start, uid, true);
            if sockets.iter().any(Socket::may_be_its_own) {
                return Some((sockets, start));
            }
        }
        if self.bound.is_some() && !candidate.other_mount && !candidate.other_pid {
            return None;
        }
        let status = candidate.dir.status()?;
        let environment = candidate.dir.environment().ok()?;
        let (_, start) = candidate.dir.stat()?;
        let far = self.far(candidate, &status, &environment, start);
        let sockets = ranked(candidate, far, start, status.uid, self.comparable(candidate));
        sockets.iter().any(Socket::may_be_its_own).then_some((sockets, start))
    }

    /// Start times are those of the reader's time namespace, the key is that of the process's own.
    fn comparable(&self, candidate: &Candidate) -> bool {
        let other = candidate.dir.namespace("time");
        other.is_none() || other == self.own_time
    }

    fn has_near(&mut self, pid: u32) -> bool {
        let directory = Location::Ours(self.system.temp.clone());
        self.bound.as_ref().is_some_and(|bound| bound.contains_key(&pid)) || {
            let listing = self.listing(None, &directory);
            listing.is_cut || !listing.of(pid).is_empty()
        }
    }

    /// Sockets that bear the pid as we see it: in our own directory, and those that the kernel lists.
    fn near(&mut self, candidate: &Candidate, start: u64) -> Vec<Socket> {
        let directory = Location::Ours(self.system.temp.clone());
        let mut found = self.listed(None, candidate, &directory, SocketName::runtime(candidate.pid, start));
        for (path, name) in self.bound.iter().filter_map(|bound| bound.get(&candidate.pid)).flatten() {
            // Somebody listens there: with another key it is the same pid of another pid namespace.
            if name.kind == SocketKind::Router || name.key == start {
                // A path that was bound in another mount namespace is below its root for us.
                found.push(socket(candidate, Location::of(path, candidate.other_mount), *name));
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
        start: u64,
    ) -> Vec<Socket> {
        let directory = self.directory(candidate, environment);
        self.listed(Some(candidate), candidate, &directory, SocketName::runtime(status.ns_pid, start))
    }

    /// Sockets in a folder with the process id of this name. Where there are too many to list them all, the one of this
    /// name is there all the same.
    fn listed(
        &mut self,
        of: Option<&Candidate>,
        candidate: &Candidate,
        directory: &Location,
        name: SocketName,
    ) -> Vec<Socket> {
        let listing = self.listing(of, directory);
        let mut names = listing.of(name.pid).to_vec();
        if listing.is_cut && !names.contains(&name) {
            names.push(name);
        }
        names.into_iter().map(|name| socket(candidate, directory.join(name.to_string()), name)).collect()
    }

    /// The temporary directory of a process.
    fn directory(&self, candidate: &Candidate, environment: &Environment) -> Location {
        match environment.tmpdir.as_deref().filter(|dir| !dir.is_empty()) {
            None if !candidate.other_mount => Location::Ours(self.system.default_temp.clone()),
            tmpdir => Location::of(&temp_dir(tmpdir), candidate.other_mount),
        }
    }

    /// A listing that is read once a directory; containers with many processes share theirs.
    fn listing(&mut self, of: Option<&Candidate>, directory: &Location) -> &Listing {
        let namespace = match (of, directory) {
            // Each process has its own.
            (Some(candidate), Location::WorkingDirectory(_)) => candidate.pid.to_string().into(),
            (Some(candidate), Location::Root(_)) => candidate.mount.clone().unwrap_or_default(),
            _ => OsString::new(),
        };
        self.listings.entry((namespace, directory.clone())).or_insert_with(|| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            Listing::read(match of {
                Some(candidate) => directory.open(&candidate.dir, flags),
                None => Root::ours().and_then(|root| root.open(directory.path(), flags)),
            })
        })
    }

    fn own_jvms(&mut self) -> HashMap<u32, u32> {
        let directory = Location::Ours(self.system.default_temp.clone());
        let folders = self.listing(None, &directory).hsperfdata.clone();
        let opened = |folder| Root::ours()?.open(directory.join(folder).path(), FOLDER_ITSELF);
        folders.iter().filter_map(|folder| opened(folder).ok()).flat_map(jvm::candidates).collect()
    }

    fn jvm(&mut self, candidate: &Candidate, own: &HashMap<u32, u32>) -> Option<Process> {
        let owner = if candidate.other_mount {
            let directory = Location::Root("/tmp".into());
            let folders = self.listing(Some(candidate), &directory).hsperfdata.clone();
            if folders.is_empty() {
                return None;
            }
            let ns_pid = candidate.dir.status()?.ns_pid;
            let opened = |folder: &OsString| directory.join(folder).open(&candidate.dir, FOLDER_ITSELF).ok();
            let mut files = folders.iter().filter_map(opened).flat_map(jvm::candidates);
            files.find(|(pid, _)| *pid == ns_pid)?.1
        } else if candidate.other_pid {
            *own.get(&candidate.dir.status()?.ns_pid)?
        } else {
            *own.get(&candidate.pid)?
        };
        let (_, start) = candidate.dir.stat()?;
        self.describe(candidate, Kind::Jvm, Vec::new(), start).filter(|process| process.uid == owner)
    }

    fn describe(
        &mut self,
        candidate: &Candidate,
        kind: Kind,
        sockets: Vec<Socket>,
        start_time: u64,
    ) -> Option<Process> {
        let status = candidate.dir.status()?;
        let (comm, start) = candidate.dir.stat()?;
        let elsewhere = candidate.other_mount || candidate.other_pid;
        // Another process may have got the pid in the meantime.
        (start == start_time).then(|| Process {
            pid: candidate.pid,
            ns_pid: status.ns_pid,
            kind,
            start_time,
            uid: status.uid,
            user: self.user(status.uid),
            comm,
            exe: candidate.dir.exe(),
            command_line: candidate.dir.command_line(),
            sockets,
            other_mount_namespace: candidate.other_mount,
            other_pid_namespace: candidate.other_pid,
            container: if elsewhere { candidate.dir.container() } else { None },
        })
    }

    fn user(&mut self, uid: u32) -> String {
        let passwd = self.passwd.get_or_insert_with(|| linux::read(&self.system.passwd).unwrap_or_default());
        linux::user_name(passwd, uid)
    }

    pub(super) fn one(&mut self, pid: u32) -> Result<Process, NotFound> {
        if let Some((candidate, found)) = self.find(pid)
            && found.is_reachable(pid)
            && let Some(process) =
                self.describe(&candidate, Kind::Dotnet, found.sockets.clone(), found.start_time)
        {
            return Ok(process);
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
            Some((candidate, found)) => self.system.gather(&candidate.dir, pid, found),
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
        let interesting = found.is_reachable(pid) || candidate.dir.runtime() != Runtime::None;
        let facts = (alive && interesting).then(|| self.system.gather(&candidate.dir, pid, found))?;
        (facts.is_dotnet() || facts.runtime.is_too_old()).then_some(facts)
    }

    /// A process and all sockets that may be its own.
    fn find(&mut self, pid: u32) -> Option<(Candidate, Found)> {
        let candidate = self.candidate(pid, Look::Everywhere)?;
        let (status, (_, start_time)) = (candidate.dir.status()?, candidate.dir.stat()?);
        let environment = candidate.dir.environment();
        let mut sockets = self.near(&candidate, start_time);
        if let Ok(environment) = &environment {
            sockets.extend(self.far(&candidate, &status, environment, start_time));
        }
        let sockets = ranked(&candidate, sockets, start_time, status.uid, self.comparable(&candidate));
        let found = Found {
            user: self.user(status.uid),
            other_mount: candidate.other_mount,
            // Told by the number where the namespace itself may not be seen.
            other_pid: candidate.other_pid || status.ns_pid != pid,
            deleted: gather::deleted(&candidate.dir, &sockets),
            sockets,
            status,
            start_time,
            environment,
        };
        Some((candidate, found))
    }
}

/// A folder to list, not one that a link leads to.
const FOLDER_ITSELF: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

fn socket(of: &Candidate, at: Location, name: SocketName) -> Socket {
    Socket { path: at.shown(&of.dir), at, name, state: SocketState::Unknown }
}

fn ranked(of: &Candidate, sockets: Vec<Socket>, start: u64, uid: u32, comparable: bool) -> Vec<Socket> {
    rank(sockets, start, uid, comparable, |socket| {
        let entry = socket.at.open(&of.dir, POINT | OFlags::NOFOLLOW).ok()?;
        let stat = rustix::fs::fstat(entry).ok()?;
        // Seconds are unsigned on some systems, and far from the end of either type.
        #[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast, reason = "as the platform has it")]
        let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
        Some(Seen { identity: (stat.st_dev, stat.st_ino), owner: stat.st_uid, modified })
    })
}
