//! The errors of attaching to a JVM.

use std::io;
use std::time::Duration;

use runtap_transport::ConnectError;
use thiserror::Error;

use crate::codec::{LoadError, ReplyError, RequestError, ThreadDumpError};

/// An error that occurs when attaching to a JVM, or sending it a command.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The process does not exist, or has ended.
    #[error("process {pid} does not exist")]
    NoProcess {
        /// The process ID.
        pid: u32,
    },
    /// The process belongs to another user, and cannot be inspected.
    #[error("cannot inspect process {pid}: it belongs to another user ({user})")]
    NotPermitted {
        /// The process ID.
        pid: u32,
        /// The user ID of the process, as far as known.
        user: u32,
    },
    /// The process cannot be inspected, although it belongs to the same user.
    #[error("cannot inspect process {pid}, although it belongs to your user")]
    Protected {
        /// The process ID.
        pid: u32,
    },
    /// The process does not run a JVM. Nothing was sent to it.
    #[error("process {pid} does not run a Java virtual machine (it has not loaded libjvm.so)")]
    NotAJvm {
        /// The process ID.
        pid: u32,
    },
    /// The process runs another JVM. Nothing was sent to it.
    #[error(
        "process {pid} runs OpenJ9, which has a different attach protocol; only HotSpot JVMs are supported"
    )]
    OpenJ9 {
        /// The process ID.
        pid: u32,
    },
    /// The process has another C library than the agent. Nothing was loaded.
    #[error(
        "process {pid} runs on musl (Alpine Linux), where a JVM cannot load the agent, because it is built for glibc"
    )]
    Musl {
        /// The process ID.
        pid: u32,
    },
    /// The process is stopped, and cannot reply.
    #[error("process {pid} is stopped (by a signal or a debugger) and cannot reply")]
    Stopped {
        /// The process ID.
        pid: u32,
    },
    /// The process does not handle SIGQUIT, which would terminate it. The signal was not sent.
    #[error(
        "process {pid} does not handle SIGQUIT, which would terminate it: its JVM is not ready yet, or is exiting"
    )]
    SignalNotHandled {
        /// The process ID.
        pid: u32,
    },
    /// The JVM was started with attaching disabled. Nothing was sent to it.
    #[error("process {pid} was started with -XX:+DisableAttachMechanism, which disables attaching")]
    Disabled {
        /// The process ID.
        pid: u32,
    },
    /// The JVM was asked to listen, but does not.
    #[error(
        "the JVM of process {pid} did not start to listen within {} s: it is busy, or attaching is disabled (-XX:+DisableAttachMechanism)",
        waited.as_secs()
    )]
    NotListening {
        /// The process ID.
        pid: u32,
        /// The time that was waited.
        waited: Duration,
    },
    /// The file that makes the JVM listen cannot be created.
    #[error("cannot create {name} where the JVM of process {pid} looks for it: {reason}")]
    Trigger {
        /// The process ID.
        pid: u32,
        /// The name of the file.
        name: String,
        /// The reasons for `/tmp` and for the working directory.
        reason: String,
    },
    /// The JVM cannot create its socket.
    #[error(
        "process {pid} cannot be attached to: its /tmp is read-only, where the JVM has to create its socket (/tmp/.java_pid{own_pid}; no option of the JVM changes that directory)"
    )]
    ReadOnlyTemp {
        /// The process ID.
        pid: u32,
        /// The process ID in its own namespace.
        own_pid: u32,
    },
    /// There is no folder where the JVM can load the library and other users cannot replace it.
    #[error("no directory is suitable for process {pid} to load the agent from: {reason}")]
    NoFolder {
        /// The process ID.
        pid: u32,
        /// The reason for each folder.
        reason: String,
    },
    /// The JVM's socket cannot be connected to.
    #[error("cannot reach the JVM of process {pid}: {source}")]
    Connect {
        /// The process ID.
        pid: u32,
        /// The cause.
        source: ConnectError,
    },
    /// The JVM accepted the connection, but its reply is missing or incomplete.
    #[error("the JVM did not reply to '{command}' within {} s", waited.as_secs())]
    NoReply {
        /// The command.
        command: String,
        /// The time that was waited.
        waited: Duration,
    },
    /// The reply of the JVM is invalid.
    #[error("the JVM's reply to '{command}' is invalid: {source}")]
    Reply {
        /// The command.
        command: String,
        /// The cause.
        source: ReplyError,
    },
    /// The JVM rejected the command, or does not know it.
    #[error("the JVM rejected '{command}' with code {code}{}", match message.as_str() { "" => String::new(), text => format!(": {text}") })]
    Rejected {
        /// The command.
        command: String,
        /// The code of the reply, not 0.
        code: i32,
        /// The text of the reply.
        message: String,
    },
    /// There is no folder where the JVM can write its heap and other users cannot replace the file.
    #[error("no directory is suitable for process {pid} to write its heap to: {reason}")]
    NoDumpFolder {
        /// The process ID.
        pid: u32,
        /// The reason for each folder.
        reason: String,
    },
    /// The JVM has not written its heap.
    #[error("the JVM of process {pid} did not write its heap: {}", if text.is_empty() { "it states no reason" } else { text })]
    NotDumped {
        /// The process ID.
        pid: u32,
        /// The text of its reply.
        text: String,
    },
    /// The threads that the JVM reported cannot be parsed.
    #[error("the thread dump of process {pid} cannot be parsed: {source}")]
    ThreadDump {
        /// The process ID.
        pid: u32,
        /// The cause.
        source: ThreadDumpError,
    },
    /// The agent was loaded, and reports why it does not start.
    #[error("the agent in process {pid} did not start: {why}")]
    AgentRefused {
        /// The process ID.
        pid: u32,
        /// The reason.
        why: String,
    },
    /// An agent was not loaded.
    #[error(transparent)]
    NotLoaded(#[from] LoadError),
    /// The request cannot be encoded.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The attempted action.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl AttachError {
    /// Returns a function for `map_err`.
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
