//! What the other systems have, by the same names as on Linux: which processes there are, and what can be known of them
//! from outside. That is less: nothing shows how far a runtime has come, who is connected to it, or what it dials.
//!
//! Chooses between `macos` and `windows`, and knows neither.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::PathBuf;

use runtap_transport::{Endpoint, Socket};

use super::{NotFound, Options, Process, Startup, Thread};

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

/// The system that is looked at: the one that runs.
#[derive(Debug, Clone)]
pub struct System(());

/// What is wrong with what the system shows of its processes: nothing that would be known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcTrouble(Infallible);

impl ProcTrouble {
    /// Whether there is no use in going on.
    pub fn is_fatal(self) -> bool {
        match self.0 {}
    }

    /// What to do about it.
    pub fn fix(self) -> &'static str {
        match self.0 {}
    }
}

impl fmt::Display for ProcTrouble {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

/// What the system shows of a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Facts {
    /// Its id.
    pub pid: u32,
    /// Whether it is there at all.
    pub is_there: bool,
    /// When it was started, in the units of the system; 0 where that is not known.
    pub start_time: u64,
    /// Its user, as [`Process::uid`] has it.
    pub uid: u32,
    /// The name of that user.
    pub user: String,
    /// The short name of its program.
    pub comm: String,
    /// The arguments, program first. Empty where they are not known.
    pub command_line: Vec<String>,
    /// Its program.
    pub exe: Option<PathBuf>,
    /// Its sockets, or its pipe.
    pub sockets: Vec<Socket>,
    /// Why it can't be reached, where that is known.
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

    /// Where its diagnostics server is to be dialled.
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint.clone()
    }

    /// What was looked at, a line each.
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

/// The facts of all processes that look like .NET.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Those.
    pub processes: Vec<Facts>,
    /// Of how many it is not known what they are: none here.
    pub not_looked_at: usize,
}

#[allow(clippy::unused_self, clippy::trivially_copy_pass_by_ref, reason = "the same questions as on Linux")]
impl System {
    /// The one that runs.
    pub fn current() -> Self {
        Self(())
    }

    /// The managed processes.
    pub fn processes(&self, options: Options) -> Vec<Process> {
        native::processes(options)
    }

    /// One .NET process.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn process(&self, pid: u32) -> Result<Process, NotFound> {
        native::process(pid)
    }

    /// What is known of a process.
    pub fn facts(&self, pid: u32) -> Facts {
        Facts::of(native::process(pid))
    }

    /// The same of several.
    pub fn facts_of(&self, pids: &[u32]) -> Vec<Facts> {
        pids.iter().map(|pid| self.facts(*pid)).collect()
    }

    /// The same of all that look like .NET, whosever they are.
    pub fn dotnet_facts(&self) -> Survey {
        let options = Options { jvm: false, ..Options::default() }.all_users(true);
        let processes =
            native::processes(options).into_iter().map(|process| Facts::of(Ok(process))).collect();
        Survey { processes, not_looked_at: 0 }
    }

    /// Whether it is stopped by a signal or a debugger: that does not show here.
    pub fn is_stopped(&self, _pid: u32) -> bool {
        false
    }

    /// A process and all below it, as far as the system tells who has started whom.
    pub fn tree(&self, root: u32) -> Vec<u32> {
        native::tree(root)
    }

    /// The processes that were started with `text` somewhere in their environment, as far as the system shows it.
    /// Ourselves left out, and whoever is not `asked`.
    #[cfg(unix)]
    pub fn started_with(&self, text: &[u8], asked: impl Fn(u32) -> bool) -> Vec<u32> {
        native::started_with(text, asked)
    }

    /// When a process was started.
    pub fn start_time(&self, pid: u32) -> Option<u64> {
        native::start_time(pid)
    }

    /// Whether the process that was started then still runs.
    pub fn is_running(&self, pid: u32, start_time: u64) -> bool {
        is_running(pid, start_time)
    }

    /// What is wrong with what the system shows of its processes.
    pub fn proc_trouble(&self) -> Option<ProcTrouble> {
        None
    }

    /// What a list of processes lacks here, for people.
    pub fn blind_spot(&self) -> Option<String> {
        native::blind_spot()
    }
}

/// The managed processes of the running system.
pub fn processes(options: Options) -> Vec<Process> {
    native::processes(options)
}

/// One .NET process of the running system.
///
/// # Errors
/// What stands in the way.
pub fn process(pid: u32) -> Result<Process, NotFound> {
    native::process(pid)
}

/// When a process was started, in the units of the system.
pub fn start_time(pid: u32) -> Option<u64> {
    native::start_time(pid)
}

/// Whether the process that was started then still runs.
pub fn is_running(pid: u32, start_time: u64) -> bool {
    self::start_time(pid) == Some(start_time)
}

/// How far a runtime has come: that does not show here.
pub fn startup(_pid: u32) -> Startup {
    Startup::Unknown
}

/// The threads of a process: their names do not show here.
///
/// # Errors
/// Always.
pub fn threads(_pid: u32) -> io::Result<Vec<Thread>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_no_runtime_and_runs() {
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
