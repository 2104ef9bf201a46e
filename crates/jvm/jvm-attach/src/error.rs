//! Why a JVM can't be attached to.

use std::io;
use std::time::Duration;

use runtap_transport::ConnectError;
use thiserror::Error;

use crate::codec::{NotLoaded, ReplyError, RequestError};

/// Why a JVM can't be attached to, or did not do what it was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is no such process (any more).
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its id.
        pid: u32,
    },
    /// It may not be looked into: it is another user's.
    #[error("process {pid} may not be looked into: it belongs to another user ({user})")]
    NotPermitted {
        /// Its id.
        pid: u32,
        /// The id of its user, as far as that shows.
        user: u32,
    },
    /// It may not be looked into, although it is our own user's.
    #[error("process {pid} may not be looked into, although it is of our user")]
    Protected {
        /// Its id.
        pid: u32,
    },
    /// It runs no JVM. Nothing was sent.
    #[error("process {pid} runs no Java virtual machine (it has no libjvm.so)")]
    NotAJvm {
        /// Its id.
        pid: u32,
    },
    /// It is of another make. Nothing was sent.
    #[error("process {pid} runs OpenJ9, whose attach protocol is another one: HotSpot machines only")]
    OpenJ9 {
        /// Its id.
        pid: u32,
    },
    /// Its C library is not the one that our agent is made for. Nothing was loaded.
    #[error(
        "process {pid} runs on musl (Alpine Linux), and the agent is made for glibc: its JVM can't load it"
    )]
    Musl {
        /// Its id.
        pid: u32,
    },
    /// It is stopped, and so can't answer.
    #[error("process {pid} is stopped (by a signal or a debugger) and can't answer")]
    Stopped {
        /// Its id.
        pid: u32,
    },
    /// It does not handle SIGQUIT, which would end it. Nothing was sent.
    #[error("process {pid} does not handle SIGQUIT, which would end it: its JVM is not ready yet, or ends")]
    Deaf {
        /// Its id.
        pid: u32,
    },
    /// It was told not to be attached to. Nothing was sent.
    #[error("process {pid} was started with -XX:+DisableAttachMechanism: its JVM can't be attached to")]
    Disabled {
        /// Its id.
        pid: u32,
    },
    /// It was asked to listen, and does not.
    #[error(
        "the JVM of process {pid} did not begin to listen within {} s: it is busy, or attaching is disabled (-XX:+DisableAttachMechanism)",
        waited.as_secs()
    )]
    Silent {
        /// Its id.
        pid: u32,
        /// How long that was waited for.
        waited: Duration,
    },
    /// The file that asks it to listen can't be created.
    #[error("cannot create {name} where the JVM of process {pid} looks for it: {reason}")]
    Trigger {
        /// Its id.
        pid: u32,
        /// The file's name.
        name: String,
        /// In `/tmp`, and in its working directory.
        reason: String,
    },
    /// The JVM can't create its socket.
    #[error(
        "process {pid} cannot be attached to: its /tmp is read-only, where the JVM has to create its socket (/tmp/.java_pid{own_pid}; no option of the JVM changes that directory)"
    )]
    ReadOnlyTemp {
        /// Its id.
        pid: u32,
        /// Its id in its own namespace.
        own_pid: u32,
    },
    /// The library can't be written where the JVM can read it, and nobody else can exchange it.
    #[error("there is no folder from which process {pid} could load the agent: {reason}")]
    NoPlace {
        /// Its id.
        pid: u32,
        /// What is wrong with each.
        reason: String,
    },
    /// Its socket can't be used.
    #[error("cannot reach the JVM of process {pid}: {source}")]
    Connect {
        /// Its id.
        pid: u32,
        /// Why.
        source: ConnectError,
    },
    /// It has accepted the connection and says nothing, or does not come to an end.
    #[error("the JVM did not answer '{command}' within {} s", waited.as_secs())]
    NoReply {
        /// What it was asked.
        command: String,
        /// How long that was waited for.
        waited: Duration,
    },
    /// What it says is no answer.
    #[error("the JVM did not answer '{command}': {source}")]
    Reply {
        /// What it was asked.
        command: String,
        /// Why it is none.
        source: ReplyError,
    },
    /// It knows the command, or not, and did not carry it out.
    #[error("the JVM refused '{command}' with code {code}{}", match message.as_str() { "" => String::new(), text => format!(": {text}") })]
    Refused {
        /// What it was asked.
        command: String,
        /// Not 0.
        code: i32,
        /// What it says.
        message: String,
    },
    /// An agent was not loaded.
    #[error(transparent)]
    NotLoaded(#[from] NotLoaded),
    /// What is to be asked can't be said.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl AttachError {
    /// For `map_err`.
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
