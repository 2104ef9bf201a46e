//! The result of a recording.

use std::time::Duration;

use runtap_convert::OutputFile;
use runtap_convert::source::Partial;
use runtap_diag::Downgrade;

use crate::Error;
use crate::missing::Missing;
use crate::one::EndedStream;
use crate::silence::Silence;

/// The result of a recording.
#[derive(Debug, Default)]
pub struct RecordingOutcome {
    /// Each process with its files, in the order of arrival; or all processes with their common files.
    pub made: Vec<Files>,
    /// The processes that could not be recorded: name and error.
    pub failed: Vec<(String, Error)>,
    /// Whether a result was written to standard output.
    pub to_stdout: bool,
    /// Whether the reader of standard output closed it.
    pub is_unread: bool,
}

impl RecordingOutcome {
    /// Adds the result of other processes.
    pub(crate) fn append(&mut self, other: Self) {
        self.made.extend(other.made);
        self.failed.extend(other.failed);
        self.to_stdout |= other.to_stdout;
        self.is_unread |= other.is_unread;
    }
}

/// The files created from one recording, or from all together.
#[derive(Debug, Default)]
pub struct Files {
    /// The processes.
    pub parts: Vec<Part>,
    /// The files that were created.
    pub files: Vec<OutputFile>,
    /// Whether a file or standard output is truncated.
    pub is_cut: bool,
    /// What the files lack of the recording.
    pub left_out: Option<Partial>,
    /// The errors because of which files are missing.
    pub errors: Vec<Error>,
}

/// The recording of one process.
#[derive(Debug)]
pub struct Part {
    /// The process id.
    pub pid: u64,
    /// The name of the program.
    pub name: String,
    /// The command that started the session.
    pub command: String,
    /// How the session differs from the request.
    pub downgrades: Vec<Downgrade>,
    /// The number of events received.
    pub events: u64,
    /// The number of events that the target dropped.
    pub lost: u64,
    /// Whether the target's buffer may have been full. If not, the dropped events were too large for any buffer.
    pub may_have_filled: bool,
    /// The number of bytes received.
    pub bytes: u64,
    /// The duration from start to stop, excluding the names sent after it.
    pub duration: Duration,
    /// The length of the readable part of the stream in bytes.
    pub readable_to: u64,
    /// Whether the stream has a header, without which it can't be read.
    pub is_readable: bool,
    /// Why something is missing, if so.
    pub missing: Option<Missing>,
    /// The requested events that were not received.
    pub silence: Vec<Silence>,
}

impl Part {
    /// Creates the result of reading the counters of a Java program.
    pub(crate) fn of_jvm(pid: u32, name: String, duration: Duration, missing: Option<Missing>) -> Self {
        Self {
            pid: pid.into(),
            name,
            command: String::new(),
            downgrades: Vec::new(),
            events: 0,
            lost: 0,
            may_have_filled: false,
            bytes: 0,
            duration,
            readable_to: 0,
            is_readable: true,
            missing,
            silence: Vec::new(),
        }
    }

    pub(crate) fn new(taken: &mut EndedStream) -> Self {
        let EndedStream { pid, name, ended, .. } = taken;
        let recorded = &ended.recorded;
        Self {
            pid: *pid,
            name: name.clone(),
            command: ended.command.clone(),
            downgrades: ended.downgrades.clone(),
            events: recorded.events,
            lost: recorded.lost,
            may_have_filled: ended.may_have_filled,
            bytes: recorded.bytes,
            duration: ended.duration,
            readable_to: recorded.partial.as_ref().map_or(recorded.bytes, |partial| partial.offset),
            is_readable: recorded.readable,
            missing: ended.missing.take(),
            silence: std::mem::take(&mut ended.notes),
        }
    }
}
