//! JSON documents. Their members and the order of members are a stable interface.

use std::path::Path;

use runtap_clr::EventCount;
use runtap_clr::report::{DiffReport, DiffSide, FrameChange, Report, ReportKind};
use runtap_convert::source::Reason;
use runtap_model::MAX_THREADS;
use runtap_nettrace::TraceHeader;
use serde::Serialize;

pub use crate::dump::DumpDocument;
pub use crate::findings::{Examined, FindingRow, FindingsDocument};
pub use crate::heap_file::HeapFileDocument;
pub use crate::info::{EnvironmentDocument, InfoDocument, JvmInfo, Variable};
pub use crate::perf_map::{MapFile, PerfMapDocument};
pub use crate::profiles::{ProfileRow, ProfilesDocument, ProviderRow};
pub use crate::program::{LicensesDocument, VersionDocument};
pub use crate::repair::RepairDocument;
pub use crate::report::{HeapDiffDocument, HeapDocument, HeapSource};
pub use crate::router::RouterDocument;
pub use crate::trace::{TraceDocument, TracedProcess};
pub use crate::tracepoints::TracepointsDocument;
pub use crate::transcript::{DifferenceRow, ExchangeRow, RecordDocument, ReplayDocument, TranscriptTail};

use crate::ProcessRow;
use crate::units::{Bytes, Count, Things};

/// Describes what is missing from a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Partial {
    /// End of the readable part, in bytes from the start.
    pub offset: u64,
    /// Why the readable part ends.
    pub reason: String,
}

impl From<runtap_convert::source::Partial> for Partial {
    fn from(partial: runtap_convert::source::Partial) -> Self {
        Self { offset: partial.offset, reason: text_of(&partial.reason) }
    }
}

impl From<&runtap_nettrace::Partial> for Partial {
    fn from(partial: &runtap_nettrace::Partial) -> Self {
        runtap_convert::source::Partial::from(partial.clone()).into()
    }
}

fn text_of(reason: &Reason) -> String {
    match reason {
        Reason::Memory { most } => {
            format!("decoding it takes more than {} of memory, so the rest was skipped", Bytes(*most))
        }
        Reason::LeftOut { samples, besides } => {
            let what = format!(
                "{} omitted, because of too many threads (more than {}), or because of limits on memory or decoding steps",
                Things(*samples, "sample"),
                Count(MAX_THREADS as u64)
            );
            match besides {
                Some(reason) => format!("{what}; {}", text_of(reason)),
                None => what,
            }
        }
        reason => reason.to_string(),
    }
}

/// A file that was written.
#[derive(Debug, Clone, Serialize)]
pub struct OutputFile {
    /// Path of the file.
    pub path: String,
    /// Name of its format.
    pub format: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of stacks whose middle was omitted.
    pub deep_stacks: usize,
    /// End of the file in nanoseconds since the start of the session, if it was truncated.
    pub cut_at_ns: Option<u64>,
}

impl OutputFile {
    /// Creates a value for a complete file.
    pub fn new(path: &Path, format: &'static str, bytes: u64) -> Self {
        Self { path: path.display().to_string(), format, bytes, deep_stacks: 0, cut_at_ns: None }
    }
}

impl From<&runtap_convert::OutputFile> for OutputFile {
    fn from(file: &runtap_convert::OutputFile) -> Self {
        let (deep_stacks, cut_at_ns) = (file.deep_stacks, file.cut_at_ns);
        Self { deep_stacks, cut_at_ns, ..Self::new(&file.path, file.format.name(), file.bytes) }
    }
}

/// The document `runtap.report.KIND/1`.
#[derive(Debug, Serialize)]
pub struct ReportDocument<'a, R> {
    schema: String,
    file: &'a str,
    lost: u64,
    partial: Option<Partial>,
    #[serde(flatten)]
    report: R,
}

impl<'a, R: Report> ReportDocument<'a, R> {
    /// Creates the document for a report on a file.
    pub fn new(kind: ReportKind, file: &'a str, lost: u64, partial: Option<Partial>, report: R) -> Self {
        Self { schema: kind.schema(), file, lost, partial, report }
    }
}

/// The document `runtap.counts/1`.
#[derive(Debug, Serialize)]
pub struct CountsDocument<'a> {
    schema: &'static str,
    file: &'a str,
    format: Option<&'static str>,
    version: Option<u32>,
    pointer_size: Option<u32>,
    process_id: Option<u32>,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    partial: Option<Partial>,
    pub(crate) counts: Vec<EventCount>,
}

impl<'a> CountsDocument<'a> {
    /// Creates the document for a file with this header.
    pub fn new(
        file: &'a str,
        header: Option<&TraceHeader>,
        counts: &runtap_clr::EventCounts,
        lost: u64,
        partial: Option<Partial>,
    ) -> Self {
        Self {
            schema: "runtap.counts/1",
            file,
            format: header.map(TraceHeader::format_name),
            version: header.map(|header| header.version),
            pointer_size: header.map(|header| header.pointer_size),
            process_id: header.map(|header| header.process_id).filter(|id| *id != 0),
            events: counts.total(),
            lost,
            partial,
            counts: counts.rows(),
        }
    }
}

/// A recording that is compared.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// Path of the file.
    pub file: &'a Path,
    /// Number of events that the target dropped.
    pub lost: u64,
    /// What is missing from the recording.
    pub partial: Option<Partial>,
}

/// The document `runtap.diff/1`.
#[derive(Debug, Serialize)]
pub struct DiffDocument<'a> {
    schema: &'static str,
    view: &'static str,
    unit: &'static str,
    normalized: bool,
    before: Compared,
    after: Compared,
    frames: &'a [FrameChange],
    frames_count: usize,
    outputs: Vec<OutputFile>,
}

#[derive(Debug, Serialize)]
struct Compared {
    file: String,
    #[serde(flatten)]
    profile: DiffSide,
    lost: u64,
    partial: Option<Partial>,
}

impl<'a> DiffDocument<'a> {
    /// Creates the document for the difference of two recordings and the files written from it.
    pub fn new(report: &'a DiffReport, [before, after]: [Source<'a>; 2], outputs: Vec<OutputFile>) -> Self {
        let compared = |profile, Source { file, lost, partial }: Source<'a>| Compared {
            file: file.display().to_string(),
            profile,
            lost,
            partial,
        };
        Self {
            schema: "runtap.diff/1",
            view: report.view.name(),
            unit: report.unit.name(),
            normalized: report.normalized,
            before: compared(report.before, before),
            after: compared(report.after, after),
            frames: &report.frames,
            frames_count: report.frames_count,
            outputs,
        }
    }
}

/// The document `runtap.convert/1`.
#[derive(Debug, Serialize)]
pub struct ConvertDocument {
    schema: &'static str,
    file: String,
    outputs: Vec<OutputFile>,
    lost: u64,
    partial: Option<Partial>,
}

impl ConvertDocument {
    /// Creates the document for the files converted from a recording.
    pub fn new(file: &Path, outputs: Vec<OutputFile>, lost: u64, partial: Option<Partial>) -> Self {
        Self { schema: "runtap.convert/1", file: file.display().to_string(), outputs, lost, partial }
    }
}

/// The document `runtap.ps/1`.
#[derive(Debug, Serialize)]
pub struct ProcessesDocument {
    schema: &'static str,
    processes: Vec<ProcessRow>,
    of_other_users: usize,
}

impl ProcessesDocument {
    /// Creates the document for a list of processes. `of_other_users` is the number of processes not listed.
    pub fn new(processes: Vec<ProcessRow>, of_other_users: usize) -> Self {
        Self { schema: "runtap.ps/1", processes, of_other_users }
    }
}
