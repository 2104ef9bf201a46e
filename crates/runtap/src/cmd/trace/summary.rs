//! What `trace` says when it is over.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::one::Taken;
use crate::cli::FileFormat;
use crate::cmd::convert::Written;
use crate::cmd::recording::Partial;
use crate::output::{Clean, Output};
use crate::units::{Bytes, Count, Span, Things};

/// `runtap.trace/1`. With several processes the figures are sums, and what belongs to one process is that of the first.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    schema: &'static str,
    pid: u64,
    outputs: Vec<OutputFile>,
    events: u64,
    lost: u64,
    bytes: u64,
    duration_ns: u64,
    partial: Option<Partial>,
    command: String,
    downgrades: Vec<String>,
    /// In the order in which they came.
    processes: Vec<Part>,
    #[serde(skip)]
    stdout_is_taken: bool,
}

/// The recording of one process.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Part {
    pid: u64,
    name: String,
    pub(super) outputs: Vec<OutputFile>,
    events: u64,
    lost: u64,
    bytes: u64,
    duration_ns: u64,
    partial: Option<Partial>,
    command: String,
    downgrades: Vec<String>,
    /// What may be missing although nothing was lost.
    notes: Vec<String>,
    #[serde(skip)]
    readable: bool,
}

/// A file that was written.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct OutputFile {
    path: String,
    format: &'static str,
    bytes: u64,
    /// Stacks of which the middle was left out.
    deep_stacks: usize,
    /// Where it ends early, since the start of the session.
    cut_at_ns: Option<u64>,
}

impl OutputFile {
    pub(crate) fn new(path: &Path, format: FileFormat, bytes: u64) -> Self {
        Self {
            path: path.display().to_string(),
            format: format.name(),
            bytes,
            deep_stacks: 0,
            cut_at_ns: None,
        }
    }

    pub(crate) fn converted(path: &Path, format: FileFormat, written: Written) -> Self {
        let Written { bytes, deep_stacks, cut_at_ns } = written;
        Self { deep_stacks, cut_at_ns, ..Self::new(path, format, bytes) }
    }

    /// Whether something is missing in it.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_at_ns.is_some()
    }

    pub(super) fn is(&self, format: FileFormat) -> bool {
        self.format == format.name()
    }
}

/// The line of a file in a result: path, format, size.
impl fmt::Display for OutputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}  {}", Clean(&self.path), self.format, Bytes(self.bytes))
    }
}

impl Part {
    /// Without files yet.
    pub(super) fn new(taken: &Taken) -> Self {
        let Taken { pid, name, ended, .. } = taken;
        let recorded = &ended.recorded;
        let offset = recorded.partial.as_ref().map_or(recorded.bytes, |partial| partial.offset);
        Self {
            pid: *pid,
            name: name.clone(),
            outputs: Vec::new(),
            events: recorded.events,
            lost: recorded.lost,
            bytes: recorded.bytes,
            duration_ns: u64::try_from(ended.duration.as_nanos()).unwrap_or(u64::MAX),
            partial: ended.why_partial.clone().map(|reason| Partial { offset, reason }),
            command: ended.command.clone(),
            downgrades: ended.downgrades.clone(),
            notes: ended.notes.clone(),
            readable: recorded.readable,
        }
    }
}

impl Summary {
    /// Of no process yet. With `stdout_is_taken` by a result, the summary goes to stderr.
    pub(super) fn new(stdout_is_taken: bool) -> Self {
        Self {
            schema: "runtap.trace/1",
            pid: 0,
            outputs: Vec::new(),
            events: 0,
            lost: 0,
            bytes: 0,
            duration_ns: 0,
            partial: None,
            command: String::new(),
            downgrades: Vec::new(),
            processes: Vec::new(),
            stdout_is_taken,
        }
    }

    /// One more process.
    pub(super) fn add(&mut self, part: Part) {
        if self.processes.is_empty() {
            self.pid = part.pid;
            self.command.clone_from(&part.command);
            self.downgrades.clone_from(&part.downgrades);
        }
        self.outputs.extend(part.outputs.iter().cloned());
        self.events += part.events;
        self.lost += part.lost;
        self.bytes += part.bytes;
        self.duration_ns = self.duration_ns.max(part.duration_ns);
        if self.partial.is_none() {
            self.partial.clone_from(&part.partial);
        }
        self.processes.push(part);
    }

    /// Files that hold several processes.
    pub(super) fn add_files(&mut self, files: Vec<OutputFile>) {
        self.outputs.extend(files);
    }

    /// What files lack of what was recorded; it names what is missing from the recording too.
    pub(super) fn lacks(&mut self, partial: Partial) {
        self.partial = Some(partial);
    }

    /// Whether a file was written, or something went to stdout.
    pub(super) fn has_files(&self) -> bool {
        self.stdout_is_taken || !self.outputs.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    pub(super) fn is_partial(&self) -> bool {
        let files = self.processes.iter().flat_map(|part| &part.outputs).chain(&self.outputs);
        self.partial.is_some() || files.into_iter().any(OutputFile::is_cut)
    }

    /// Prints it: as JSON on stdout; as text the files on stdout, the figures on stderr.
    pub(super) fn print(&self, output: Output) -> anyhow::Result<()> {
        let several = self.processes.len() > 1;
        for part in &self.processes {
            let whose = if several { format!(" of process {}", part.pid) } else { String::new() };
            for note in &part.notes {
                output.note(format_args!("note{whose}: {note}"));
            }
            let Some(partial) = &part.partial else { continue };
            let rest = if part.readable { "; what was received is readable" } else { "" };
            output.warning(format_args!("the recording{whose} is partial: {}{rest}", partial.reason));
        }
        if self.lost > 0 {
            output.warning(format_args!(
                "the target dropped {}, because its buffer was full: a larger --buffersize or fewer events help",
                Things(self.lost, "event")
            ));
        }
        if output.json() && !self.stdout_is_taken {
            return output.document(self);
        }
        let duration = Span(Duration::from_nanos(self.duration_ns));
        let processes = if several { format!("{} processes, ", self.processes.len()) } else { String::new() };
        output.note(format_args!(
            "{processes}{}, {} lost, {} in {duration}",
            Things(self.events, "event"),
            Count(self.lost),
            Bytes(self.bytes)
        ));
        if self.stdout_is_taken {
            return if output.json() { output.document_to_stderr(self) } else { Ok(()) };
        }
        let mut lines = String::new();
        for file in &self.outputs {
            // Writing to a String can't fail.
            let _ = writeln!(lines, "{file}");
        }
        output.text(lines)
    }
}
