//! The API of this crate on systems other than Linux. It lists processes, but cannot see the progress of a runtime's startup, the
//! clients of a runtime, or the ports that a runtime connects to.
//!
//! Selects between `macos` and `windows`.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::PathBuf;

use runtap_transport::{Endpoint, Socket};

use super::{Java, NotFound, Options, PerfFile, Process, ProcessKind, Startup, Thread, Usage};

#[cfg(unix)]
mod native {
    //! macOS, and on Linux for the tests.

    use super::super::macos;
    use super::{NotFound, Options, Process};

    fn here() -> (std::path::PathBuf, u32) {
        (super::super::temp_dir(), runtap_os::my_uid())
    }

    pub(super) fn processes(options: Options) -> Vec<Process> {
        let (temp, uid) = here();
        macos::processes(&temp, uid, options)
    }

    pub(super) fn process(pid: u32) -> Result<Process, NotFound> {
        let (temp, uid) = here();
        macos::process(&temp, uid, pid)
    }

    pub(super) fn start_time(pid: u32) -> Option<u64> {
        macos::start_time(pid)
    }

    pub(super) fn tree(root: u32) -> Vec<u32> {
        vec![root]
    }

    pub(super) fn started_with(text: &[u8], asked: impl Fn(u32) -> bool) -> Vec<u32> {
        macos::started_with(text, asked)
    }

    pub(super) fn blind_spot() -> Option<String> {
        None
    }
}

#[cfg(windows)]
mod native {
    pub(super) use super::super::windows::{blind_spot, process, processes, tree};

    pub(super) fn start_time(pid: u32) -> Option<u64> {
        runtap_os::windows::process::start_time(pid).ok()
    }
}

/// The system that is examined: the running one.
#[derive(Debug, Clone)]
pub struct System(());

/// A problem with the system's list of processes. There are none on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcTrouble(Infallible);

impl ProcTrouble {
    /// Whether no processes can be found because of it.
    pub fn is_fatal(self) -> bool {
        match self.0 {}
    }

    /// Returns how to fix it.
    pub fn fix(self) -> &'static str {
        match self.0 {}
    }
}

impl fmt::Display for ProcTrouble {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

/// The facts about a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Facts {
    /// The process id.
    pub pid: u32,
    /// Whether the process exists.
    pub is_there: bool,
    /// The start time in the units of the system. 0 if unknown.
    pub start_time: u64,
    /// The user, as in [`Process::uid`].
    pub uid: u32,
    /// The name of that user.
    pub user: String,
    /// The short name of the program.
    pub comm: String,
    /// The arguments, program first. Empty if unknown.
    pub command_line: Vec<String>,
    /// The path of the program.
    pub exe: Option<PathBuf>,
    /// The description of a Java virtual machine. Always `None` on this system.
    pub java: Option<Java>,
    /// The sockets or the pipe of the process.
    pub sockets: Vec<Socket>,
    /// Why it can't be reached, if known.
    pub not_found: Option<NotFound>,
    endpoint: Option<Endpoint>,
}

impl Facts {
    fn of(found: Result<Process, NotFound>) -> Self {
        match found {
            Ok(process) => Self {
                pid: process.pid,
                is_there: true,
                endpoint: process.endpoint(),
                start_time: process.start_time,
                uid: process.uid,
                user: process.user,
                comm: process.comm,
                command_line: process.command_line,
                exe: process.exe,
                java: None,
                sockets: process.sockets,
                not_found: None,
            },
            Err(not_found) => Self {
                pid: not_found.pid,
                is_there: not_found.reason != crate::Reason::NoSuchProcess,
                not_found: Some(not_found),
                ..Self::default()
            },
        }
    }

    /// Whether it looks like a .NET program, reachable or not.
    pub fn is_dotnet(&self) -> bool {
        self.is_there && self.not_found.is_none()
    }

    /// Whether it runs a Java virtual machine. Always false on this system.
    pub fn is_jvm(&self) -> bool {
        self.java.is_some()
    }

    /// Returns the endpoint of its diagnostics server.
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint.clone()
    }

    /// Returns what was checked and found, one line per step.
    pub fn steps(&self) -> Vec<String> {
        if let Some(not_found) = &self.not_found {
            return not_found.looked_at.clone();
        }
        let sockets =
            self.sockets.iter().map(|socket| format!("{}: {}", socket.path.display(), socket.state));
        let program = self.exe.iter().map(|exe| format!("its program: {}", exe.display()));
        program.chain(sockets).collect()
    }
}

/// The processes that look like .NET.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Survey {
    /// The facts about the processes.
    pub processes: Vec<Facts>,
    /// The number of processes that could not be classified: always 0 on this system.
    pub not_looked_at: usize,
}

#[allow(clippy::unused_self, clippy::trivially_copy_pass_by_ref, reason = "the same questions as on Linux")]
impl System {
    /// Returns the running system.
    pub fn current() -> Self {
        Self(())
    }

    /// Returns the managed processes.
    pub fn processes(&self, options: Options) -> Vec<Process> {
        native::processes(options)
    }

    /// Returns one .NET process.
    ///
    /// # Errors
    /// Returns the reason why it can't be reached.
    pub fn process(&self, pid: u32) -> Result<Process, NotFound> {
        native::process(pid)
    }

    /// Opens the performance counters of a Java virtual machine. Always `None` on this system.
    pub fn perf_file(&self, _pid: u32, _start_time: u64) -> Option<PerfFile> {
        None
    }

    /// Gathers the facts about a process.
    pub fn facts(&self, pid: u32) -> Facts {
        Facts::of(native::process(pid))
    }

    /// Gathers the facts about several processes.
    pub fn facts_of(&self, pids: &[u32]) -> Vec<Facts> {
        pids.iter().map(|pid| self.facts(*pid)).collect()
    }

    /// Returns a process if it has performance counters of a Java virtual machine.
    pub fn jvm(&self, pid: u32) -> Option<Process> {
        let listed = native::processes(Options::default().all_users(true));
        listed.into_iter().find(|process| process.pid == pid && process.kind == ProcessKind::Jvm)
    }

    /// Returns the environment with which a process was started. Not supported on this system.
    ///
    /// # Errors
    /// Always returns an error.
    pub fn variables(&self, _pid: u32) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the processor that the program of a process was compiled for. Always unknown on this system.
    pub fn arch(&self, _pid: u32) -> Option<&'static str> {
        None
    }

    /// Returns what a process uses. Always unknown on this system.
    pub fn usage(&self, _pid: u32, _start_time: u64) -> Option<Usage> {
        None
    }

    /// Gathers the facts about all processes that look like .NET, of all users. Java programs are not examined on this system.
    pub fn managed_facts(&self) -> Survey {
        let options = Options { jvm: false, ..Options::default() }.all_users(true);
        let processes =
            native::processes(options).into_iter().map(|process| Facts::of(Ok(process))).collect();
        Survey { processes, not_looked_at: 0 }
    }

    /// Whether a process is stopped by a signal or a debugger. Always false on this system.
    pub fn is_stopped(&self, _pid: u32) -> bool {
        false
    }

    /// Returns a process and its descendants, as far as the system reports parents.
    pub fn tree(&self, root: u32) -> Vec<u32> {
        native::tree(root)
    }

    /// Returns the processes that were started with `text` in their environment, as far as visible. This process, and those for
    /// which `asked` returns false, are skipped.
    #[cfg(unix)]
    pub fn started_with(&self, text: &[u8], asked: impl Fn(u32) -> bool) -> Vec<u32> {
        native::started_with(text, asked)
    }

    /// Returns the start time of a process.
    pub fn start_time(&self, pid: u32) -> Option<u64> {
        native::start_time(pid)
    }

    /// Whether the process with this id and start time is still running.
    pub fn is_running(&self, pid: u32, start_time: u64) -> bool {
        is_running(pid, start_time)
    }

    /// Returns the problem with the system's list of processes, if any.
    pub fn proc_trouble(&self) -> Option<ProcTrouble> {
        None
    }

    /// Describes what is missing in a list of processes here.
    pub fn blind_spot(&self) -> Option<String> {
        native::blind_spot()
    }
}

/// Returns the managed processes of the running system.
pub fn processes(options: Options) -> Vec<Process> {
    native::processes(options)
}

/// Returns one .NET process of the running system.
///
/// # Errors
/// Returns the reason why it can't be reached.
pub fn process(pid: u32) -> Result<Process, NotFound> {
    native::process(pid)
}

/// Returns the start time of a process in the units of the system.
pub fn start_time(pid: u32) -> Option<u64> {
    native::start_time(pid)
}

/// Whether the process with this id and start time is still running.
pub fn is_running(pid: u32, start_time: u64) -> bool {
    self::start_time(pid) == Some(start_time)
}

/// Returns the progress of the startup of a runtime. Always unknown on this system.
pub fn startup(_pid: u32) -> Startup {
    Startup::Unknown
}

/// Returns the threads of a process. Not supported on this system.
///
/// # Errors
/// Always returns an error.
pub fn threads(_pid: u32) -> io::Result<Vec<Thread>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_running_without_a_runtime() {
        #[cfg(unix)]
        runtap_testkit::require!(crate::macos::process_list::is_there());
        let me = std::process::id();
        assert_eq!(process(me).unwrap_err().pid, me);
        assert!(processes(Options::default()).iter().all(|found| found.pid != me));
        let start = start_time(me).unwrap();
        assert!(is_running(me, start) && !is_running(me, start - 1));
        assert_eq!(threads(me).unwrap_err().kind(), io::ErrorKind::Unsupported);
        let facts = System::current().facts(me);
        assert!(facts.is_there && facts.endpoint().is_none() && facts.not_found.is_some());
        assert_eq!(System::current().tree(me), [me]);
    }
}
