//! Errors that occur while a target is selected.

use std::io;

use crate::doctor::Finding;
use runtap_discover::{Facts, NotFound, Process};
use runtap_transport::BindError;
use runtap_transport::remote::RemoteAddress;

use crate::jvm::JvmTarget;
use crate::remote::RemoteError;

/// A process as a row in a list of matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchingProcess {
    /// The process id in this process's PID namespace.
    pub pid: u32,
    /// The name of the user, or the number if the user has no name.
    pub user: String,
    /// The arguments, separated by spaces.
    pub command_line: String,
}

impl From<&Process> for MatchingProcess {
    fn from(process: &Process) -> Self {
        let Process { pid, user, command_line, .. } = process;
        Self { pid: *pid, user: user.clone(), command_line: command_line.join(" ") }
    }
}

impl From<&Facts> for MatchingProcess {
    fn from(facts: &Facts) -> Self {
        Self { pid: facts.pid, user: facts.user.clone(), command_line: facts.command_line.join(" ") }
    }
}

/// An error that occurs while a target is selected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process does not exist or cannot be reached.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The process has no diagnostic socket.
    #[error("process {0} has no diagnostic socket")]
    NoSocket(u32),
    /// The process is a Java program, and the request is for .NET processes.
    #[error("{0} is a Java program")]
    Java(JvmTarget),
    /// The environment of a Java program can't be read.
    #[error("cannot read the environment of process {pid}: {source}")]
    Environment {
        /// The process id.
        pid: u32,
        /// The cause.
        source: io::Error,
    },
    /// The process is stopped and would not answer.
    #[error("process {pid} {}", finding.detail)]
    Stopped {
        /// The process.
        pid: u32,
        /// Why the process is stopped.
        finding: Finding,
    },
    /// No user has this name.
    #[error("there is no user '{0}' in /etc/passwd")]
    UnknownUser(String),
    /// No process of any user that can be selected has this name.
    #[error("no .NET or Java process is named '{name}'")]
    NoMatch {
        /// The name.
        name: String,
        /// The user whose processes were searched. `None` for the current user.
        user: Option<String>,
        /// The processes that did not report their names in time.
        silent: Vec<u32>,
        /// Several Java programs that have this name, if only .NET processes can be selected.
        java: Vec<MatchingProcess>,
    },
    /// Only processes of other users have this name.
    #[error("no process of the selected user is named '{name}'")]
    OtherUsersOnly {
        /// The name.
        name: String,
        /// The user whose processes were searched. `None` for the current user.
        user: Option<String>,
        /// The processes of other users.
        processes: Vec<MatchingProcess>,
    },
    /// No process that looks like .NET or Java has this name, reachable or not. See [`NoMatch`](Self::NoMatch).
    #[error("no process that looks like .NET or Java is named '{name}'")]
    NoManagedMatch {
        /// The name.
        name: String,
        /// The processes that did not report their names in time.
        silent: Vec<u32>,
    },
    /// Several processes match.
    #[error("multiple processes are {} '{name}'", if RemoteAddress::is_meant(name) { "offered as" } else { "named" })]
    Ambiguous {
        /// The name.
        name: String,
        /// The matching processes.
        processes: Vec<MatchingProcess>,
    },
    /// No target was specified, and the user cannot be asked or did not answer.
    #[error("no target specified")]
    NotSpecified,
    /// The router does not offer the selected process.
    #[error("{address}: the router offers no such process")]
    NotOffered {
        /// The remote address.
        address: String,
    },
    /// The router could not be queried.
    #[error("router {address}: {source}")]
    Remote {
        /// The address of the router.
        address: String,
        /// The cause.
        source: RemoteError,
    },
    /// Remote processes cannot be examined.
    #[error("{0} is on another machine, whose files and kernel can't be examined from here")]
    OnAnotherMachine(String),
    /// There is no process to choose from.
    #[error("no .NET or Java process is running")]
    NoneRunning,
    /// The answer does not select a process of the list.
    #[error("'{answer}' is not in the list")]
    NotInList {
        /// The answer.
        answer: String,
        /// The number of processes in the list.
        of: usize,
    },
    /// The port cannot be listened on.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The runtime behind a port does not report its identity.
    #[error(transparent)]
    Runtime(#[from] runtap_diag::Error),
    /// A Java program cannot be attached to.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Attach(#[from] runtap_jvm_attach::AttachError),
    /// A thread cannot be started, or input cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}
