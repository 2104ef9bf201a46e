//! What there is in the end.

use std::time::Duration;

use runtap_convert::OutputFile;
use runtap_convert::source::Partial;
use runtap_diag::Downgrade;

use crate::Error;
use crate::missing::Missing;
use crate::one::EndedStream;
use crate::silence::Silence;

/// What there is in the end.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Each process with its files, in the order in which they came; or all of them with the files that hold all.
    pub made: Vec<Files>,
    /// Those that could not be recorded: how to call them, and why.
    pub failed: Vec<(String, Error)>,
    /// A result went to standard output.
    pub to_stdout: bool,
    /// Nobody read what went there.
    pub is_unread: bool,
}

/// What was made of one recording, or of all together.
#[derive(Debug, Default)]
pub struct Files {
    /// The processes.
    pub parts: Vec<Part>,
    /// The files that there are.
    pub files: Vec<OutputFile>,
    /// Whether a file, or what went to standard output, ends early.
    pub is_cut: bool,
    /// What files lack of what was recorded.
    pub left_out: Option<Partial>,
    /// Why not all files are there.
    pub errors: Vec<Error>,
}

/// The recording of one process.
#[derive(Debug)]
pub struct Part {
    /// Process id.
    pub pid: u64,
    /// Name of the program.
    pub name: String,
    /// The command that began the session.
    pub command: String,
    /// What the session has less than what was asked for.
    pub downgrades: Vec<Downgrade>,
    /// Events received.
    pub events: u64,
    /// Events that the target dropped.
    pub lost: u64,
    /// Whether the target's buffer can have been full. If not, the events were too large for any buffer.
    pub may_have_filled: bool,
    /// Bytes received.
    pub bytes: u64,
    /// From the start to the stop, without the names that come after it.
    pub duration: Duration,
    /// Where the readable part of the stream ends, in bytes.
    pub readable_to: u64,
    /// Whether it has a header: without one nobody can read it.
    pub is_readable: bool,
    /// Why something is missing, if it is.
    pub missing: Option<Missing>,
    /// What did not come although it was asked for.
    pub silence: Vec<Silence>,
}

impl Part {
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
