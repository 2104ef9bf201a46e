//! The system that is examined, and queries of it.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use runtap_os::objfile::elf::Header;
use runtap_transport::linux::{ProcDir, Root};

use super::FileView;
use super::environment::Environment;
use super::facts::{Facts, ProcessState, Survey};
use super::gather;
use super::memory::{self, Memory};
use super::proc_files::ProcFiles as _;
use super::search::{FOLDER_ITSELF, Search};
use crate::{NotFound, Options, PerfFile, Process, Startup, Thread};

/// The paths of the system that is examined: the running system, or a test's.
#[derive(Debug, Clone)]
pub struct System {
    pub(super) proc_root: PathBuf,
    /// `/sys`
    pub(super) sys_root: PathBuf,
    /// The temporary directory of this process.
    pub(super) temp: PathBuf,
    /// `/tmp`, which is used by processes without TMPDIR and by every Java virtual machine.
    pub(super) default_temp: PathBuf,
    pub(super) passwd: PathBuf,
    /// the effective user id.
    pub(super) uid: u32,
}

impl System {
    /// Returns the running system, as seen by this process.
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

    /// Returns a system laid out below `root` (`proc`, `sys`, `tmp`, `etc/passwd`), examined by user `uid`.
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

    /// Replaces this process's temporary directory.
    #[must_use]
    pub fn with_temp_dir(mut self, temp: impl Into<PathBuf>) -> Self {
        self.temp = temp.into();
        self
    }

    /// Opens a directory in this process's `/tmp` without following symbolic links.
    pub(super) fn open_default_temp(&self, name: &OsStr) -> io::Result<OwnedFd> {
        Root::own()?.open(&self.default_temp.join(name), FOLDER_ITSELF)
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

    /// Returns this process's temporary directory.
    pub fn temp_dir(&self) -> &Path {
        &self.temp
    }

    /// Returns the managed processes that are visible, ordered by process id.
    pub fn processes(&self, options: Options) -> Vec<Process> {
        Search::new(self).all(options)
    }

    /// Returns the .NET process `pid`.
    ///
    /// # Errors
    /// Returns the reason why it can't be reached; see [`Reason`](crate::Reason).
    pub fn process(&self, pid: u32) -> Result<Process, NotFound> {
        Search::new(self).for_one().one(pid)
    }

    /// Gathers the facts that determine whether process `pid` can be reached.
    pub fn facts(&self, pid: u32) -> Facts {
        Search::new(self).for_one().facts(pid)
    }

    /// Gathers the facts about several processes. What they have in common is read once.
    pub fn facts_of(&self, pids: &[u32]) -> Vec<Facts> {
        let mut search = Search::new(self);
        pids.iter().map(|pid| search.facts(*pid)).collect()
    }

    /// Returns the process `pid` if it runs a Java virtual machine.
    pub fn jvm(&self, pid: u32) -> Option<Process> {
        let mut search = Search::new(self).for_one();
        search.facts(pid).is_jvm().then(|| search.known_jvm(pid)).flatten()
    }

    /// Opens the performance counters of a Java virtual machine. `None` if the process has none or has exited.
    pub fn perf_file(&self, pid: u32, start_time: u64) -> Option<PerfFile> {
        Search::new(self).for_one().perf_file(pid, start_time).map(PerfFile::new)
    }

    /// Returns all processes that look like .NET or Java, reachable or not, ordered by process id. Examines every process of the
    /// machine.
    pub fn managed_facts(&self) -> Survey {
        Search::new(self).managed_facts()
    }

    /// Returns the diagnostics settings in the environment of a process, and its real user id. [`Self::facts`] includes both, but
    /// takes longer.
    ///
    /// # Errors
    /// Returns an error if the process has exited or access is denied.
    pub fn environment(&self, pid: u32) -> io::Result<(Environment, u32)> {
        let dir = ProcDir::open(&self.proc_root, pid)?;
        let status = dir.status().ok_or(io::ErrorKind::NotFound)?;
        let mut alone = u64::MAX;
        Ok((dir.environment(&mut alone)?, status.uid))
    }

    /// Returns all variables of the environment with which a process was started, as `NAME=VALUE`. Limited in length.
    ///
    /// # Errors
    /// Returns an error if the process has exited or access is denied.
    pub fn variables(&self, pid: u32) -> io::Result<Vec<String>> {
        let environ = ProcDir::open(&self.proc_root, pid)?.environ()?;
        let entries = environ.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(entries.map(|entry| String::from_utf8_lossy(entry).into_owned()).collect())
    }

    /// Returns the processor that the program of a process was compiled for, in the words of .NET. `None` if unknown.
    pub fn arch(&self, pid: u32) -> Option<&'static str> {
        let mut header = [0; Header::LEN];
        let mut program = ProcDir::open(&self.proc_root, pid).and_then(|dir| dir.open_executable()).ok()?;
        program.read_exact(&mut header).ok()?;
        Header::decode(&header).ok()?.machine.name()
    }

    /// Whether a process is stopped (`SIGSTOP`). [`Self::facts`] includes this, but takes longer.
    pub fn is_stopped(&self, pid: u32) -> bool {
        let status = ProcDir::open(&self.proc_root, pid).ok().and_then(|dir| dir.status());
        status.is_some_and(|status| matches!(gather::state(&status, pid), ProcessState::Stopped))
    }

    /// Returns the progress of the startup of a process's runtime.
    pub fn startup(&self, pid: u32) -> Startup {
        ProcDir::open(&self.proc_root, pid).map_or(Startup::Unknown, |dir| gather::startup(&dir))
    }

    /// Returns the threads of a process, ordered by id.
    ///
    /// # Errors
    /// Returns an error if the process has exited.
    pub fn threads(&self, pid: u32) -> io::Result<Vec<Thread>> {
        let dir = ProcDir::open(&self.proc_root, pid)?;
        let theirs = dir.namespace("pid");
        let ours = ProcDir::open(&self.proc_root, "self")?.namespace("pid");
        dir.threads(theirs.is_some() && theirs != ours)
    }

    /// Returns the amount of memory that a process has mapped.
    ///
    /// # Errors
    /// Returns an error if the process has exited or access is denied.
    pub fn memory(&self, pid: u32) -> io::Result<Memory> {
        Ok(memory::parse(&ProcDir::open(&self.proc_root, pid)?.read("maps")?))
    }

    /// Returns the file system as a process sees it.
    ///
    /// # Errors
    /// Returns an error if the process has exited or access is denied.
    pub fn file_view(&self, pid: u32) -> io::Result<FileView> {
        self.file_view_of(ProcDir::open(&self.proc_root, pid)?)
    }

    pub(super) fn file_view_of(&self, process: ProcDir) -> io::Result<FileView> {
        FileView::new(process, ProcDir::open(&self.proc_root, "self")?)
    }

    /// Returns the start time of a process in clock ticks since boot, which is the key in the name of its socket.
    pub fn start_time(&self, pid: u32) -> Option<u64> {
        ProcDir::open(&self.proc_root, pid).ok()?.stat().map(|(_, start)| start)
    }
}
