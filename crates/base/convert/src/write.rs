//! Writes profiles to files.

use std::borrow::Cow;
use std::path::PathBuf;

use runtap_model::{DeepStacks, Trace, View};
use runtap_os::output::OutputSink;
use runtap_sinks::{Format, Options};

use crate::{Content, Error, FileFormat, Note};

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Path, as specified.
    pub path: PathBuf,
    /// Format of the file.
    pub format: FileFormat,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of stacks whose middle was omitted.
    pub deep_stacks: usize,
    /// End of the file in nanoseconds since the start of the session, if it was truncated.
    pub cut_at_ns: Option<u64>,
}

impl OutputFile {
    /// Creates a value for a complete file.
    pub fn new(path: PathBuf, format: FileFormat, bytes: u64) -> Self {
        Self { path, format, bytes, deep_stacks: 0, cut_at_ns: None }
    }
}

/// The results of writing several formats.
#[derive(Debug, Default)]
pub struct WrittenFiles {
    /// The files written.
    pub files: Vec<OutputFile>,
    /// Whether an output was truncated or lacks small branches.
    pub is_cut: bool,
    /// The errors, without duplicates.
    pub failures: Vec<Error>,
}

/// Writes a profile of a recording of `recorded` bytes in several formats. A failure of one format does not affect the
/// others.
pub fn write_all(
    trace: &Trace,
    recorded: u64,
    outlets: impl IntoIterator<Item = (FileFormat, Result<OutputSink, Error>)>,
    content: &Content,
    tell: &mut dyn FnMut(Note),
) -> WrittenFiles {
    let mut made = WrittenFiles::default();
    for (format, outlet) in outlets {
        match outlet.and_then(|outlet| write(trace, recorded, format, outlet, content, tell)) {
            Ok((file, is_cut)) => {
                made.is_cut |= is_cut;
                if let Some(file) = &file {
                    tell(Note::Written(file.clone()));
                }
                made.files.extend(file);
            }
            Err(error) => made.fail(error),
        }
    }
    made
}

impl WrittenFiles {
    /// Adds the results of writing other formats.
    pub(crate) fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.is_cut |= other.is_cut;
        self.failures.extend(other.failures);
    }

    fn fail(&mut self, error: Error) {
        // Several formats may fail for the same reason.
        let text = error.to_string();
        let is_known = |known: &Error| match (known.sink(), error.sink()) {
            // I/O errors are specific to a file.
            (Some(known), Some(error)) if !matches!(error, runtap_sinks::Error::Io(_)) => {
                known.to_string() == error.to_string()
            }
            _ => known.to_string() == text,
        };
        if !self.failures.iter().any(is_known) {
            self.failures.push(error);
        }
    }
}

/// Writes a profile in one format. Returns the file, `None` for standard output, and whether it was truncated or lacks
/// small branches.
fn write(
    trace: &Trace,
    recorded: u64,
    format: FileFormat,
    outlet: OutputSink,
    content: &Content,
    tell: &mut dyn FnMut(Note),
) -> Result<(Option<OutputFile>, bool), Error> {
    let sink = format.sink().ok_or(Error::NoSink)?;
    let view = content.view.unwrap_or_else(|| default_view(trace, sink, tell));
    let mut options = Options::new(view);
    options.evented = content.evented;
    options.merge_threads = content.merge_threads;
    options.dotnet_trace = content.dotnet_trace;
    options.max_bytes = content.bytes(recorded);
    let mut trace = Cow::Borrowed(trace);
    let deep = if trace.deepest() > content.depth() {
        limit_depth(trace.to_mut(), content, tell)
    } else {
        DeepStacks::default()
    };
    let cut_at_ns = sink.end_within(&trace, &options);
    if let Some(end_ns) = cut_at_ns {
        trace.to_mut().end_at(end_ns);
        tell(Note::EndsEarly { format: sink, end_ns, max_bytes: options.max_bytes });
    }
    let least = sink.least_within(&trace, &options);
    if let Some(least) = least {
        trace.to_mut().fold_branches(view, least);
        tell(Note::NarrowBranches { format: sink, view, least, max_bytes: options.max_bytes });
    }
    let mut out = outlet.begin()?;
    let written = sink.write(&trace, &mut out, &options);
    written.map_err(Error::of_sink(out.path()))?;
    let (path, bytes) = out.finish()?;
    let file = path.map(|path| OutputFile { path, format, bytes, deep_stacks: deep.stacks, cut_at_ns });
    Ok((file, cut_at_ns.is_some() || least.is_some()))
}

/// Omits the middle of stacks that are too deep.
pub fn limit_depth(trace: &mut Trace, content: &Content, tell: &mut dyn FnMut(Note)) -> DeepStacks {
    let most = content.depth();
    let deep = trace.limit_depth(most);
    if deep.stacks > 0 {
        tell(Note::DeepStacks { deep, most });
    }
    deep
}

/// Returns the default view of a format, or all samples if it would be almost empty.
fn default_view(trace: &Trace, format: Format, tell: &mut dyn FnMut(Note)) -> View {
    let view = format.default_view();
    if !trace.shows_little_in(view) {
        if view == View::Cpu
            && let Some(doubtful) = trace.doubtful_ticks()
        {
            tell(Note::Doubtful { format, shown: trace.ticks(view), doubtful });
        }
        return view;
    }
    let (shown, all) = (trace.ticks(view), trace.ticks(View::ThreadTime));
    tell(Note::AllSamples { format, view, shown, all });
    View::ThreadTime
}
