//! Errors of recordings.

use std::io;
use std::path::PathBuf;

use runtap_discover::System;
use runtap_target::doctor::Finding;
use runtap_transport::{BindError, Endpoint};

/// An error of a recording, or of the files that are created from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime returned an error or could not be reached.
    #[error(transparent)]
    Runtime(#[from] runtap_diag::Error),
    /// A file could not be created or converted.
    #[error(transparent)]
    Files(#[from] runtap_convert::Error),
    /// The port of a launched command could not be created.
    #[error(transparent)]
    Port(#[from] BindError),
    /// There is no directory in which the port of a launched command could be created.
    #[error("no directory is suitable for a socket; set TMPDIR to a directory that only you can write to")]
    NoPlace,
    /// The directory for the port of a launched command could not be created.
    #[error("can't create a directory for a socket in {}: {error}", place.display())]
    Place {
        /// The parent directory that was tried last.
        place: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A process did not answer, or can't answer.
    #[error("process {pid} {}", finding.detail)]
    NotReached {
        /// The process id.
        pid: u32,
        /// The result of an examination.
        finding: Finding,
    },
    /// A Java program has no performance counters.
    #[error(
        "process {pid} {}",
        if *is_running {
            "publishes no performance counters: its virtual machine was started with -XX:-UsePerfData, or may not write to /tmp, so restart it with -XX:+UsePerfData"
        } else {
            "has exited"
        }
    )]
    NoJvmCounters {
        /// The process id.
        pid: u32,
        /// Whether the process was still running.
        is_running: bool,
    },
    /// The performance counters of a Java program can't be read.
    #[error("the performance counters of process {pid} can't be read: {error}")]
    JvmCounters {
        /// The process id.
        pid: u32,
        /// The cause.
        error: runtap_wire::DecodeError,
    },
    /// The counters of Java programs can't be read without a monitor.
    #[error("a Java program can't be recorded")]
    NoMonitor,
    /// The command could not be started.
    #[error("can't start {program}")]
    Command {
        /// The program.
        program: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The command is empty.
    #[error("there is no command to start")]
    NoCommand,
    /// The children of a process behind a socket are unknown.
    #[error(
        "can't find the children of a process behind a port; specify a process, a command, or a port to listen on"
    )]
    NoParent,
    /// The stream was written to a pipe and can't be read again.
    #[error("the recording was not written to a file, so it can't be converted")]
    NoFile,
    /// Another process removed or replaced the recording while it was written.
    #[error("another process removed or replaced {} during the recording", .0.display())]
    Exchanged(PathBuf),
    /// The conversion was interrupted.
    #[error("interrupted while the recording was converted")]
    Interrupted,
    /// A thread can't be started, or another I/O error occurred.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<runtap_os::output::Error> for Error {
    fn from(error: runtap_os::output::Error) -> Self {
        Self::Files(error.into())
    }
}

impl From<runtap_convert::source::Error> for Error {
    fn from(error: runtap_convert::source::Error) -> Self {
        Self::Files(error.into())
    }
}

impl Error {
    /// Converts an error of the runtime. If the runtime did not answer, the process is examined to find out why.
    pub fn of_runtime(error: runtap_diag::Error) -> Self {
        let pid = error.unanswered().and_then(Endpoint::process_id);
        match (pid, runtap_target::doctor::explain(&System::current(), &error)) {
            (Some(pid), Some(finding)) => Self::NotReached { pid, finding },
            _ => Self::Runtime(error),
        }
    }

    /// Returns the underlying I/O error, if any.
    fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Io(error) | Self::Command { error, .. } | Self::Place { error, .. } => Some(error),
            Self::Files(error) => error.io(),
            _ => None,
        }
    }

    /// Whether the reader of an output closed it.
    pub fn is_closed_pipe(&self) -> bool {
        self.io().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether a disk is full. What was recorded before is kept.
    pub fn is_full_disk(&self) -> bool {
        self.io().is_some_and(|error| error.kind() == io::ErrorKind::StorageFull)
    }

    /// Whether a recording had nothing to show.
    pub fn is_nothing_to_show(&self) -> bool {
        matches!(self, Self::Files(error) if error.is_nothing_to_show())
    }
}
