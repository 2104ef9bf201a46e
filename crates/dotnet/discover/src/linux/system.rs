//! The places of a system to look at, and what can be asked of it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use runtap_transport::linux::{ProcDir, Root};

use super::FileView;
use super::environment::Environment;
use super::facts::{Facts, ProcessState, Survey};
use super::gather;
use super::memory::{self, Memory};
use super::proc_files::ProcFiles as _;
use super::search::{FOLDER_ITSELF, Search};
use crate::{NotFound, Options, Process, Startup, Thread};

/// The places to look at. Those of the running system, or a test's.
#[derive(Debug, Clone)]
pub struct System {
    pub(super) proc_root: PathBuf,
    /// `/sys`
    pub(super) sys_root: PathBuf,
    /// Our own temporary directory.
    pub(super) temp: PathBuf,
    /// `/tmp`: that of processes without TMPDIR, and of every Java virtual machine.
    pub(super) default_temp: PathBuf,
    pub(super) passwd: PathBuf,
    /// Our effective user.
    pub(super) uid: u32,
}

impl System {
    /// The running system, as this process sees it.
    pub fn current() -> Self {
        Self {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            temp: std::path::absolute(crate::temp_dir()).unwrap_or_else(|_| "/tmp".into()),
            default_temp: "/tmp".into(),
            passwd: "/etc/passwd".into(),
            uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// A system laid out below `root` (`proc`, `sys`, `tmp`, `etc/passwd`), looked at by user `uid`.
    pub fn at(root: &Path, uid: u32) -> Self {
        Self {
            proc_root: root.join("proc"),
            sys_root: root.join("sys"),
            temp: root.join("tmp"),
            default_temp: root.join("tmp"),
            passwd: root.join("etc/passwd"),
            uid,
        }
    }

    /// The same with another temporary directory of our own.
    #[must_use]
    pub fn with_temp_dir(mut self, temp: impl Into<PathBuf>) -> Self {
        self.temp = temp.into();
        self
    }

    /// A folder in our own `/tmp`, and none that a link leads to.
    pub(super) fn open_default_temp(&self, name: &OsStr) -> io::Result<OwnedFd> {
        Root::ours()?.open(&self.default_temp.join(name), FOLDER_ITSELF)
    }

    pub(super) fn sys_root(&self) -> &Path {
        &self.sys_root
    }

    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    pub(super) fn proc_root(&self) -> &Path {
        &self.proc_root
    }

    /// Our own temporary directory.
    pub fn temp_dir(&self) -> &Path {
        &self.temp
    }

    /// The managed processes that can be seen from here, by pid.
    pub fn processes(&self, options: Options) -> Vec<Process> {
        Search::new(self).all(options)
    }

    /// The .NET process `pid`, or what stands in the way.
    ///
    /// # Errors
    /// See [`Reason`](crate::Reason).
    pub fn process(&self, pid: u32) -> Result<Process, NotFound> {
        Search::new(self).for_one().one(pid)
    }

    /// Everything about the process `pid` that bears on whether it can be reached.
    pub fn facts(&self, pid: u32) -> Facts {
        Search::new(self).for_one().facts(pid)
    }

    /// The same of several, which share what is looked at in common.
    pub fn facts_of(&self, pids: &[u32]) -> Vec<Facts> {
        let mut search = Search::new(self);
        pids.iter().map(|pid| search.facts(*pid)).collect()
    }

    /// All processes that look like .NET, reachable or not, by pid. Looks at every process of the machine.
    pub fn dotnet_facts(&self) -> Survey {
        Search::new(self).dotnet_facts()
    }

    /// What a process was told of diagnostics when it was started, and its real user: [`Self::facts`] has both too, with
    /// much else.
    ///
    /// # Errors
    /// When the process is gone, or we may not look into it.
    pub fn environment(&self, pid: u32) -> io::Result<(Environment, u32)> {
        let dir = ProcDir::open(&self.proc_root, pid)?;
        let status = dir.status().ok_or(io::ErrorKind::NotFound)?;
        let mut alone = u64::MAX;
        Ok((dir.environment(&mut alone)?, status.uid))
    }

    /// Whether a process is stopped (`SIGSTOP`), which [`Self::facts`] has too, with much else.
    pub fn is_stopped(&self, pid: u32) -> bool {
        let status = ProcDir::open(&self.proc_root, pid).ok().and_then(|dir| dir.status());
        status.is_some_and(|status| matches!(gather::state(&status, pid), ProcessState::Stopped))
    }

    /// How far the runtime of a process has come.
    pub fn startup(&self, pid: u32) -> Startup {
        ProcDir::open(&self.proc_root, pid).map_or(Startup::Unknown, |dir| gather::startup(&dir))
    }

    /// The threads of a process, by id.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn threads(&self, pid: u32) -> io::Result<Vec<Thread>> {
        let dir = ProcDir::open(&self.proc_root, pid)?;
        let theirs = dir.namespace("pid");
        let ours = ProcDir::open(&self.proc_root, "self")?.namespace("pid");
        dir.threads(theirs.is_some() && theirs != ours)
    }

    /// How much memory a process has mapped.
    ///
    /// # Errors
    /// When the process is gone, or we may not look into it.
    pub fn memory(&self, pid: u32) -> io::Result<Memory> {
        Ok(memory::parse(&ProcDir::open(&self.proc_root, pid)?.read("maps")?))
    }

    /// The file system as a process sees it.
    ///
    /// # Errors
    /// When the process is gone, or we may not look into it.
    pub fn file_view(&self, pid: u32) -> io::Result<FileView> {
        self.file_view_of(ProcDir::open(&self.proc_root, pid)?)
    }

    pub(super) fn file_view_of(&self, process: ProcDir) -> io::Result<FileView> {
        FileView::new(process, ProcDir::open(&self.proc_root, "self")?)
    }

    /// The start time of a process in clock ticks since boot: the key in the name of its socket.
    pub fn start_time(&self, pid: u32) -> Option<u64> {
        ProcDir::open(&self.proc_root, pid).ok()?.stat().map(|(_, start)| start)
    }
}
