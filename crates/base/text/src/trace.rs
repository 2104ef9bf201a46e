//! The result of recording: `runtap.trace/1`, its summary, and the lines of its files.

use std::fmt;
use std::io;
use std::time::Duration;

use runtap_model::Message;
use serde::Serialize;

use crate::document::{OutputFile, Partial};
use crate::units::{Bytes, Lost, Span, Things};
use crate::{Clean, Print, TextOptions};

/// The document `runtap.trace/1`. For several processes, numbers are sums, and properties of a process are those of the
/// first.
#[derive(Debug, Clone, Serialize)]
pub struct TraceDocument {
    schema: &'static str,
    /// `None` if nothing was recorded.
    pid: Option<u64>,
    /// All files written.
    pub outputs: Vec<OutputFile>,
    events: u64,
    /// Minimum number of events that the target dropped.
    pub lost: u64,
    bytes: u64,
    duration_ns: u64,
    /// What is missing from the first incomplete recording.
    pub partial: Option<Partial>,
    /// `None` if nothing was recorded.
    command: Option<String>,
    downgrades: Vec<String>,
    /// In the order in which they were recorded.
    pub processes: Vec<TracedProcess>,
    /// Notes that do not concern a single process; usually empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<&'static str>,
}

/// The recording of one process.
#[derive(Debug, Clone, Serialize)]
pub struct TracedProcess {
    /// Process id.
    pub pid: u64,
    /// Name of the program.
    pub name: String,
    /// Files that contain only this process.
    pub outputs: Vec<OutputFile>,
    /// Number of events received.
    pub events: u64,
    /// Minimum number of events that the target dropped.
    pub lost: u64,
    /// Number of bytes received.
    pub bytes: u64,
    /// Duration of the recording in nanoseconds.
    pub duration_ns: u64,
    /// What is missing.
    pub partial: Option<Partial>,
    /// The session command that the runtime accepted.
    pub command: String,
    /// Features that the runtime was too old for.
    pub downgrades: Vec<String>,
    /// Explanations why data may be missing although no events were lost.
    pub notes: Vec<String>,
    /// Whether the received part of an incomplete recording can be read.
    #[serde(skip)]
    pub is_readable: bool,
}

impl Default for TraceDocument {
    /// Creates the document without processes.
    fn default() -> Self {
        Self {
            schema: "runtap.trace/1",
            pid: None,
            outputs: Vec::new(),
            events: 0,
            lost: 0,
            bytes: 0,
            duration_ns: 0,
            partial: None,
            command: None,
            downgrades: Vec::new(),
            processes: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl TraceDocument {
    /// Adds a process.
    pub fn add(&mut self, process: TracedProcess) {
        if self.processes.is_empty() {
            self.pid = Some(process.pid);
            self.command = Some(process.command.clone());
            self.downgrades.clone_from(&process.downgrades);
        }
        self.outputs.extend(process.outputs.iter().cloned());
        self.events += process.events;
        self.lost += process.lost;
        self.bytes += process.bytes;
        self.duration_ns = self.duration_ns.max(process.duration_ns);
        if self.partial.is_none() {
            self.partial.clone_from(&process.partial);
        }
        self.processes.push(process);
    }

    /// Adds one process with its files, or several with the files that contain all of them.
    pub fn take(&mut self, mut processes: Vec<TracedProcess>, mut outputs: Vec<OutputFile>) {
        if let [process] = &mut processes[..] {
            process.outputs = std::mem::take(&mut outputs);
        }
        for process in processes {
            self.add(process);
        }
        self.outputs.extend(outputs);
    }

    /// Returns the messages about each process, in their order.
    pub fn messages(&self) -> impl Iterator<Item = Message> {
        let several = self.processes.len() > 1;
        self.processes.iter().flat_map(move |process| {
            let whose = if several { format!(" of process {}", process.pid) } else { String::new() };
            let partial = process.partial.as_ref().map(|partial| {
                let rest = if process.is_readable { "; what was received is readable" } else { "" };
                Message::Warning(format!("the recording{whose} is partial: {}{rest}", partial.reason))
            });
            let note = move |note: &String| Message::Note(format!("note{whose}: {note}"));
            process.notes.iter().map(note).chain(partial)
        })
    }

    /// Summarizes events, losses, bytes and duration in one line.
    pub fn figures(&self) -> String {
        let processes = match self.processes.len() {
            0 | 1 => String::new(),
            several => format!("{several} processes, "),
        };
        format!(
            "{processes}{}, {}, {} in {}",
            Things(self.events, "event"),
            Lost(self.lost),
            Bytes(self.bytes),
            Span(Duration::from_nanos(self.duration_ns))
        )
    }
}

/// Prints the lines of the files.
impl Print for TraceDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        self.outputs.iter().try_for_each(|file| file.print(out, options))
    }
}

/// Formats the line of a file: path, format, size.
impl fmt::Display for OutputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}  {}", Clean(&self.path), self.format, Bytes(self.bytes))
    }
}

impl Print for OutputFile {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        writeln!(out, "{self}")
    }
}
