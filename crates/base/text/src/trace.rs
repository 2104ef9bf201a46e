//! What was recorded: `runtap.trace/1`, its figures, and the lines of its files.

use std::fmt;
use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::document::{OutputFile, Partial};
use crate::units::{Bytes, Lost, Span, Things};
use crate::{Clean, Print, TextOptions};

/// `runtap.trace/1`. With several processes the figures are sums, and what belongs to one process is that of the first.
#[derive(Debug, Clone, Serialize)]
pub struct TraceDocument {
    schema: &'static str,
    /// `None` where nothing was recorded.
    pid: Option<u64>,
    /// Every file.
    pub outputs: Vec<OutputFile>,
    events: u64,
    /// Events that the target dropped, at least.
    pub lost: u64,
    bytes: u64,
    duration_ns: u64,
    /// What is missing from the first recording that is not whole.
    pub partial: Option<Partial>,
    /// `None` where nothing was recorded.
    command: Option<String>,
    downgrades: Vec<String>,
    /// In the order in which they came.
    pub processes: Vec<TracedProcess>,
    /// What concerns no single process; nothing, most often.
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
    /// The files that it has alone.
    pub outputs: Vec<OutputFile>,
    /// Events received.
    pub events: u64,
    /// Events that the target dropped, at least.
    pub lost: u64,
    /// Bytes received.
    pub bytes: u64,
    /// How long it was recorded.
    pub duration_ns: u64,
    /// What is missing.
    pub partial: Option<Partial>,
    /// The session command that was accepted.
    pub command: String,
    /// What the runtime was too old for.
    pub downgrades: Vec<String>,
    /// What may be missing although nothing was lost.
    pub notes: Vec<String>,
    /// Whether what was received of a partial one can be read.
    #[serde(skip)]
    pub is_readable: bool,
}

/// What is to be said of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// Worth knowing.
    Note(String),
    /// The recording may be useless.
    Warning(String),
}

impl Default for TraceDocument {
    /// Of no process yet.
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
    /// One more process.
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

    /// Takes one process with its files, or several with the files that hold all of them.
    pub fn take(&mut self, mut processes: Vec<TracedProcess>, mut outputs: Vec<OutputFile>) {
        if let [process] = &mut processes[..] {
            process.outputs = std::mem::take(&mut outputs);
        }
        for process in processes {
            self.add(process);
        }
        self.outputs.extend(outputs);
    }

    /// What is to be said of each process, in their order.
    pub fn remarks(&self) -> impl Iterator<Item = Remark> {
        let several = self.processes.len() > 1;
        self.processes.iter().flat_map(move |process| {
            let whose = if several { format!(" of process {}", process.pid) } else { String::new() };
            let partial = process.partial.as_ref().map(|partial| {
                let rest = if process.is_readable { "; what was received is readable" } else { "" };
                Remark::Warning(format!("the recording{whose} is partial: {}{rest}", partial.reason))
            });
            let note = move |note: &String| Remark::Note(format!("note{whose}: {note}"));
            process.notes.iter().map(note).chain(partial)
        })
    }

    /// Events, losses, bytes and time in one line.
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

/// The lines of its files.
impl Print for TraceDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        self.outputs.iter().try_for_each(|file| file.print(out, options))
    }
}

/// The line of a file in a result: path, format, size.
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
