//! The search itself: from sockets to processes, from a process to its socket or the reason that there is none.
//!
//! What is cheap comes first. Sockets of our own namespaces are found by one listing of our temporary directory
//! and one read of the kernel's table of bound sockets, which knows every TMPDIR. All that is asked of any other
//! process is its mount namespace; only those of another one, or all if the table can't be read or has sockets
//! without a process, are looked at more closely.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::facts::{Facts, Life};
use super::gather::{self, Found};
use super::linux::{self, ProcDir, Status, seen_from_here};
use super::naming::{SocketKind, SocketName, temp_dir};
use super::rank::rank;
use super::runtime::Runtime;
use super::sockets::{self, Listing};
use super::{Kind, NotFound, Options, Process, Reason, Socket, SocketState, jvm};

use super::system::System;

/// One search, with what it read so far.
pub(super) struct Search<'a> {
    system: &'a System,
    own_mount: Option<OsString>,
    own_pid: Option<OsString>,
    own_time: Option<OsString>,
    pub(super) bound: Option<HashMap<u32, Vec<(PathBuf, SocketName)>>>,
    /// Listings by mount namespace (empty for ours) and directory as the process sees it.
    listings: HashMap<(OsString, PathBuf), Listing>,
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
        let me = ProcDir::new(&system.proc_root, "self");
        Self {
            system,
            own_mount: me.namespace("mnt"),
            own_pid: me.namespace("pid"),
            own_time: me.namespace("time"),
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
            let candidate = self.candidate(pid, look);
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

    fn candidate(&self, pid: u32, look: Look) -> Candidate {
        let dir = ProcDir::new(&self.system.proc_root, pid.to_string());
        // What we may not read is taken for ours: at worst nothing is found there.
        let differs = |a: &Option<OsString>, b: &Option<OsString>| a.is_some() && a != b;
        let mount = if look == Look::Nowhere { None } else { dir.namespace("mnt") };
        let other_mount = differs(&mount, &self.own_mount);
        let other_pid =
            (look == Look::Everywhere || other_mount) && differs(&dir.namespace("pid"), &self.own_pid);
        Candidate { pid, dir, mount, other_mount, other_pid }
    }

    /// The sockets of a process, if one of them can be its own, and its start time.
    fn dotnet(&mut self, candidate: &Candidate) -> Option<(Vec<Socket>, u64)> {
        if self.has_near(candidate.pid) {
            let (_, start) = candidate.dir.stat()?;
            let sockets = rank(self.near(candidate, start), start, true);
            if sockets.iter().any(|socket| socket.state != SocketState::Stale) {
                return Some((sockets, start));
            }
        }
        if self.bound.is_some() && !candidate.other_mount && !candidate.other_pid {
            return None;
        }
        let status = candidate.dir.status()?;
        let environment = candidate.dir.environment().ok()?;
        let (_, start) = candidate.dir.stat()?;
        let far = self.far(candidate, &status, &environment);
        let sockets = rank(far, start, self.comparable(candidate));
        sockets.iter().any(|socket| socket.state != SocketState::Stale).then_some((sockets, start))
    }

    /// Start times are those of the reader's time namespace, the key is that of the process's own.
    fn comparable(&self, candidate: &Candidate) -> bool {
        let other = candidate.dir.namespace("time");
        other.is_none() || other == self.own_time
    }

    fn has_near(&mut self, pid: u32) -> bool {
        let directory = self.system.temp.clone();
        self.bound.as_ref().is_some_and(|bound| bound.contains_key(&pid))
            || !self.listing(None, &directory).of(pid).is_empty()
    }

    /// Sockets that bear the pid as we see it: in our own directory, and those that the kernel lists.
    fn near(&mut self, candidate: &Candidate, start: u64) -> Vec<(PathBuf, SocketName)> {
        let directory = self.system.temp.clone();
        let names = self.listing(None, &directory).of(candidate.pid).to_vec();
        let mut found: Vec<_> =
            names.into_iter().map(|name| (directory.join(name.to_string()), name)).collect();
        for (path, name) in self.bound.iter().filter_map(|bound| bound.get(&candidate.pid)).flatten() {
            // Somebody listens there: with another key it is the same pid of another pid namespace.
            if name.kind == SocketKind::Router || name.key == start {
                // A path that was bound in another mount namespace is below its root for us.
                found.push((seen_from_here(&candidate.dir, path, candidate.other_mount), *name));
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
    ) -> Vec<(PathBuf, SocketName)> {
        let directory = self.directory(candidate, environment);
        let names = self.listing(Some(candidate), &directory).of(status.ns_pid).to_vec();
        names.into_iter().map(|name| (directory.join(name.to_string()), name)).collect()
    }

    /// The temporary directory of a process, as we have to write it.
    fn directory(&self, candidate: &Candidate, environment: &Environment) -> PathBuf {
        match environment.tmpdir.as_deref().filter(|dir| !dir.is_empty()) {
            None if !candidate.other_mount => self.system.default_temp.clone(),
            tmpdir => seen_from_here(&candidate.dir, &temp_dir(tmpdir), candidate.other_mount),
        }
    }

    /// A listing that is read once a directory; containers with many processes share theirs.
    fn listing(&mut self, of: Option<&Candidate>, directory: &Path) -> &Listing {
        let namespace = match of {
            Some(candidate) if candidate.other_mount => candidate.mount.clone().unwrap_or_default(),
            _ => OsString::new(),
        };
        // Below the root of a process the same directory has another path for each process.
        let key = match of {
            Some(candidate) if candidate.other_mount => directory
                .strip_prefix(candidate.dir.join("root"))
                .map_or_else(|_relative| directory.to_owned(), Path::to_owned),
            _ => directory.to_owned(),
        };
        self.listings.entry((namespace, key)).or_insert_with(|| Listing::read(directory))
    }

    fn own_jvms(&mut self) -> HashMap<u32, u32> {
        let directory = self.system.default_temp.clone();
        jvm::candidates(&directory, &self.listing(None, &directory).hsperfdata).into_iter().collect()
    }

    fn jvm(&mut self, candidate: &Candidate, own: &HashMap<u32, u32>) -> Option<Process> {
        let owner = if candidate.other_mount {
            let directory = seen_from_here(&candidate.dir, Path::new("/tmp"), true);
            let folders = &self.listing(Some(candidate), &directory).hsperfdata;
            if folders.is_empty() {
                return None;
            }
            let files = jvm::candidates(&directory, folders);
            let ns_pid = candidate.dir.status()?.ns_pid;
            files.into_iter().find(|(pid, _)| *pid == ns_pid)?.1
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
        let candidate = self.candidate(pid, Look::Everywhere);
        let (status, (_, start_time)) = (candidate.dir.status()?, candidate.dir.stat()?);
        let environment = candidate.dir.environment();
        let mut sockets = self.near(&candidate, start_time);
        if let Ok(environment) = &environment {
            sockets.extend(self.far(&candidate, &status, environment));
        }
        let sockets = rank(sockets, start_time, self.comparable(&candidate));
        let found = Found {
            user: self.user(status.uid),
            other_mount: candidate.other_mount,
            // Told by the number where the namespace itself may not be seen.
            other_pid: candidate.other_pid || status.ns_pid != pid,
            deleted: gather::deleted(&sockets),
            sockets,
            status,
            start_time,
            environment,
        };
        Some((candidate, found))
    }
}
