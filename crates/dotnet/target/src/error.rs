//! Why there is no target.

use std::io;

use crate::doctor::Finding;
use runtap_discover::{Facts, NotFound, Process};
use runtap_transport::BindError;
use runtap_transport::remote::RemoteAddress;

use crate::remote::RemoteError;

/// A process as it stands in a list of those that may be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Process id in our pid namespace.
    pub pid: u32,
    /// Its user, by name where there is one.
    pub user: String,
    /// Its arguments.
    pub command_line: String,
}

impl From<&Process> for Row {
    fn from(process: &Process) -> Self {
        let Process { pid, user, command_line, .. } = process;
        Self { pid: *pid, user: user.clone(), command_line: command_line.join(" ") }
    }
}

impl From<&Facts> for Row {
    fn from(facts: &Facts) -> Self {
        Self { pid: facts.pid, user: facts.user.clone(), command_line: facts.command_line.join(" ") }
    }
}

/// Why there is no target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such process, or something stands in the way to it.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// It has no socket to be asked on.
    #[error("process {0} has no diagnostic socket")]
    NoSocket(u32),
    /// It is stopped, and would answer nothing.
    #[error("process {pid} {}", finding.detail)]
    Stopped {
        /// The process.
        pid: u32,
        /// What is known of it.
        finding: Finding,
    },
    /// A user by name whom nobody knows.
    #[error("there is no user '{0}' in /etc/passwd")]
    UnknownUser(String),
    /// Nobody of any user is called so.
    #[error("no .NET process is called '{name}'")]
    Nobody {
        /// The name.
        name: String,
        /// Whose processes were meant, if somebody's in particular.
        user: Option<String>,
        /// Those that did not say in time how they are called.
        silent: Vec<u32>,
        /// Java programs that are called so.
        java: Vec<Row>,
    },
    /// Processes of others are called so, and none of the user who is meant.
    #[error("no .NET process of the user who is meant is called '{name}'")]
    OfOthers {
        /// The name.
        name: String,
        /// Who is meant, if somebody in particular.
        user: Option<String>,
        /// Those of others.
        processes: Vec<Row>,
    },
    /// As [`Nobody`](Self::Nobody), among all that look like .NET, whether they can be reached or not.
    #[error("no process that looks like .NET is called '{name}'")]
    NobodyLike {
        /// The name.
        name: String,
        /// Those that did not say in time how they are called.
        silent: Vec<u32>,
        /// Java programs that are called so.
        java: Vec<Row>,
    },
    /// Several are called so.
    #[error("several processes are {} '{name}'", if RemoteAddress::is_meant(name) { "offered as" } else { "called" })]
    Several {
        /// The name.
        name: String,
        /// Those.
        processes: Vec<Row>,
    },
    /// Nothing was said, and nobody is there to be asked, or has answered.
    #[error("no target given")]
    NotGiven,
    /// A router does not offer what is meant.
    #[error("{address}: the router offers no such process")]
    NoRemote {
        /// What was meant.
        address: String,
    },
    /// A router can't be asked.
    #[error("router {address}: {source}")]
    Remote {
        /// Where it is.
        address: String,
        /// Why.
        source: RemoteError,
    },
    /// Only processes of this machine can be examined.
    #[error("{0} is on another machine: its files and its kernel can't be seen from here")]
    Elsewhere(String),
    /// There is nothing to choose from.
    #[error("no .NET process is running")]
    NoneRuns,
    /// What was answered is not in the list.
    #[error("'{answer}' is not one of the list")]
    NotInList {
        /// The answer.
        answer: String,
        /// How many there are.
        of: usize,
    },
    /// The port can't be listened on.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The process behind a port does not say who it is.
    #[error(transparent)]
    Runtime(#[from] runtap_diag::Error),
    /// There is no thread to be had, or nothing can be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}
