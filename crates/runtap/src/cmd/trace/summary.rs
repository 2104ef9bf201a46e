//! What `trace` says when it is over.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::session::Ended;
use crate::cli::FileFormat;
use crate::cmd::recording::Partial;
use crate::output::Output;
use crate::units::{Bytes, Clock, Count};

/// `runtap.trace/1`
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    schema: &'static str,
    pid: u64,
    pub(super) outputs: Vec<OutputFile>,
    events: u64,
    lost: u64,
    bytes: u64,
    duration_ns: u64,
    partial: Option<Partial>,
    command: String,
    downgrades: Vec<String>,
    #[serde(skip)]
    readable: bool,
    #[serde(skip)]
    stdout_is_taken: bool,
}

/// A file that was written.
#[derive(Debug, Serialize)]
pub(crate) struct OutputFile {
    path: String,
    format: &'static str,
    bytes: u64,
}

impl OutputFile {
    pub(crate) fn new(path: &Path, format: FileFormat, bytes: u64) -> Self {
        Self { path: path.display().to_string(), format: format.name(), bytes }
    }
}

impl Summary {
    /// With `stdout_is_taken` by a result, the summary goes to stderr.
    pub(super) fn new(pid: u64, ended: &Ended, stdout_is_taken: bool) -> Self {
        let recorded = &ended.recorded;
        let offset = recorded.partial.as_ref().map_or(recorded.bytes, |partial| partial.offset);
        Self {
            schema: "runtap.trace/1",
            pid,
            outputs: Vec::new(),
            events: recorded.events,
            lost: recorded.lost,
            bytes: recorded.bytes,
            duration_ns: u64::try_from(ended.duration.as_nanos()).unwrap_or(u64::MAX),
            partial: ended.why_partial.clone().map(|reason| Partial { offset, reason }),
            command: ended.command.clone(),
            downgrades: ended.downgrades.clone(),
            readable: recorded.readable,
            stdout_is_taken,
        }
    }

    pub(super) fn is_partial(&self) -> bool {
        self.partial.is_some()
    }

    /// Prints it: as JSON on stdout; as text the files on stdout, the figures on stderr.
    pub(super) fn print(&self, output: Output) -> anyhow::Result<()> {
        if let Some(partial) = &self.partial {
            let rest = if self.readable { "; what was received is readable" } else { "" };
            output.warning(format_args!("the recording is partial: {}{rest}", partial.reason));
        }
        if self.lost > 0 {
            output.warning(format_args!(
                "the target dropped {} events, because its buffer was full: a larger --buffersize or fewer events help",
                Count(self.lost)
            ));
        }
        if output.json() && !self.stdout_is_taken {
            return output.document(self);
        }
        let duration = Clock(Duration::from_nanos(self.duration_ns));
        output.note(format_args!(
            "{} events, {} lost, {} in {duration}",
            Count(self.events),
            Count(self.lost),
            Bytes(self.bytes)
        ));
        if self.stdout_is_taken {
            return if output.json() { output.document_to_stderr(self) } else { Ok(()) };
        }
        let mut lines = String::new();
        for file in &self.outputs {
            // Writing to a String can't fail.
            let _ = writeln!(lines, "{}  {}  {}", file.path, file.format, Bytes(file.bytes));
        }
        output.text(lines)
    }
}
