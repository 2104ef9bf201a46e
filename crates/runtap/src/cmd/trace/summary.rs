//! What `trace` says when it is over.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use runtap_convert::FileFormat;
use runtap_record::{Files, Outcome, Stops};
use serde::Serialize;

use crate::cmd::failure::of_recording;
use crate::cmd::recording::Partial;
use crate::cmd::silence;
use crate::exit;
use crate::output::{Clean, Output};
use crate::units::{Bytes, Count, Span, Things};

/// Says what there is; the exit code for it.
///
/// # Errors
/// Something that was asked for is not there. What could be made was told.
pub(super) fn conclude(outcome: Outcome, stops: &Stops, output: Output) -> anyhow::Result<u8> {
    let Outcome { made, failed, to_stdout, is_unread, .. } = outcome;
    if is_unread {
        return Ok(exit::OK);
    }
    let several = made.iter().map(|files| files.parts.len()).sum::<usize>() > 1;
    let mut summary = Summary::new(to_stdout);
    let mut verdict = Verdict::default();
    for files in made {
        let label = format!("process {}", files.parts.first().map_or(0, |part| part.pid));
        let mut errors = summary.take(files).into_iter();
        let first = errors.next();
        for error in errors {
            let error = of_recording(error);
            output.error(&error, exit::hint_of(&error).as_deref());
        }
        match first {
            None => {}
            Some(error) if error.is_closed_pipe() => return Ok(exit::OK),
            // What has run no managed code has nothing to show; the others have.
            Some(error) if several && error.is_nothing_to_show() => {
                let error = of_recording(error);
                output.warning(format_args!("{label}: {error}"));
                verdict.empty.get_or_insert(error);
            }
            Some(error) => {
                // A disk that is full keeps what it has.
                verdict.missing |= error.is_full_disk();
                verdict.error.get_or_insert_with(|| of_recording(error));
            }
        }
    }
    for (label, error) in failed {
        let error = of_recording(error);
        if summary.is_empty() && verdict.error.is_none() {
            verdict.error = Some(error);
        } else {
            verdict.missing = true;
            let text = format!("{error:#}");
            let why = text
                .strip_prefix(&format!("{label} "))
                .map_or_else(|| text.clone(), |rest| format!("it {rest}"));
            let hint = exit::hint_of(&error).map_or_else(String::new, |hint| format!(" ({hint})"));
            output.warning(format_args!("{label} was not recorded: {why}{hint}"));
        }
    }
    if summary.is_empty() {
        // Without an error somebody asked for the end before there was anything.
        if let Some(error) = verdict.error {
            return Err(error);
        }
        if output.json() {
            summary.print_nothing(output)?;
        }
        return Ok(stops.exit_code().unwrap_or(exit::OK));
    }
    let printed = summary.print(output);
    verdict.missing |= summary.is_partial();
    if !summary.has_files() {
        verdict.error = verdict.error.or(verdict.empty);
    }
    match verdict.error {
        // The rest is what is missing.
        Some(error) if verdict.missing => {
            output.error(&error, None);
            Ok(exit::PARTIAL)
        }
        Some(error) => Err(error),
        None => printed.map(|()| if verdict.missing { exit::PARTIAL } else { exit::OK }),
    }
}

/// What did not go well.
#[derive(Debug, Default)]
struct Verdict {
    /// The first failure.
    error: Option<anyhow::Error>,
    /// The first of several recordings that there was nothing to make of.
    empty: Option<anyhow::Error>,
    /// Something was recorded, and something is missing.
    missing: bool,
}

/// `runtap.trace/1`. With several processes the figures are sums, and what belongs to one process is that of the first.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    schema: &'static str,
    /// `None` where nothing was recorded.
    pid: Option<u64>,
    outputs: Vec<OutputFile>,
    events: u64,
    lost: u64,
    bytes: u64,
    duration_ns: u64,
    partial: Option<Partial>,
    /// `None` where nothing was recorded.
    command: Option<String>,
    downgrades: Vec<String>,
    /// In the order in which they came.
    processes: Vec<Part>,
    /// What concerns no single process; nothing, most often.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'static str>,
    #[serde(skip)]
    stdout_is_taken: bool,
    /// A file, or what went to stdout, ends early.
    #[serde(skip)]
    is_cut: bool,
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

impl From<&runtap_convert::OutputFile> for OutputFile {
    fn from(file: &runtap_convert::OutputFile) -> Self {
        let (deep_stacks, cut_at_ns) = (file.deep_stacks, file.cut_at_ns);
        Self { deep_stacks, cut_at_ns, ..Self::new(&file.path, file.format, file.bytes) }
    }
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
}

/// The line of a file in a result: path, format, size.
impl fmt::Display for OutputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}  {}", Clean(&self.path), self.format, Bytes(self.bytes))
    }
}

impl From<&runtap_record::Part> for Part {
    /// Without files yet.
    fn from(part: &runtap_record::Part) -> Self {
        let partial = |missing| Partial { offset: part.readable_to, reason: silence::reason(missing) };
        Self {
            pid: part.pid,
            name: part.name.clone(),
            outputs: Vec::new(),
            events: part.events,
            lost: part.lost,
            bytes: part.bytes,
            duration_ns: u64::try_from(part.duration.as_nanos()).unwrap_or(u64::MAX),
            partial: part.missing.as_ref().map(partial),
            command: part.command.clone(),
            downgrades: part.downgrades.iter().map(ToString::to_string).collect(),
            notes: part.silence.iter().map(silence::note).collect(),
            readable: part.is_readable,
        }
    }
}

impl Summary {
    /// Of no process yet. With `stdout_is_taken` by a result, the summary goes to stderr.
    pub(super) fn new(stdout_is_taken: bool) -> Self {
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
            stdout_is_taken,
            is_cut: false,
        }
    }

    /// One more process, or several with files that hold all of them; what went wrong comes back.
    fn take(&mut self, files: Files) -> Vec<runtap_record::Error> {
        let Files { parts, files, is_cut, left_out, errors } = files;
        let mut outputs: Vec<OutputFile> = files.iter().map(Into::into).collect();
        let mut parts: Vec<Part> = parts.iter().map(Into::into).collect();
        if let [part] = &mut parts[..] {
            part.outputs = std::mem::take(&mut outputs);
        }
        for part in parts {
            self.add(part);
        }
        self.outputs.extend(outputs);
        self.is_cut |= is_cut;
        if let Some(left_out) = left_out {
            // It names what is missing from the recording too.
            self.partial = Some(left_out.into());
        }
        errors
    }

    fn add(&mut self, part: Part) {
        if self.processes.is_empty() {
            self.pid = Some(part.pid);
            self.command = Some(part.command.clone());
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

    /// Whether a file was written, or something went to stdout.
    pub(super) fn has_files(&self) -> bool {
        self.stdout_is_taken || !self.outputs.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    pub(super) fn is_partial(&self) -> bool {
        self.partial.is_some() || self.is_cut
    }

    /// Prints that nothing was recorded, for whoever reads documents: why is told on stderr.
    pub(super) fn print_nothing(mut self, output: Output) -> anyhow::Result<()> {
        self.notes.push("nothing was recorded");
        if self.stdout_is_taken { output.document_to_stderr(&self) } else { output.document(&self) }
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
