//! `runtap convert FILE`, and the conversion that `trace` ends with.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_ingest::{DotnetTraceBuilder, ProfileBuilder, ProfileOptions};
use runtap_model::{DeepStacks, Trace, View};
use runtap_nettrace::Observe;
use runtap_sinks::Options;
use serde::Serialize;

use super::advice;
use super::recording::{Partial, has_become, partial_of, room_of, warn_if_partial};
use super::renew::renew;
use super::trace::OutputFile;
use crate::cli::{AnyFormat, Compat, Content, Convert, FileFormat, STDIN};
use crate::exit::{self, ExpectedError, usage};
use crate::files::{Destination, Outlet, Planned, format_of, plan, refuse_overwriting, without_extension};
use crate::output::Output;
use crate::units::{Bytes, Count, Things};
use runtap_files::Recording;

/// `runtap.convert/1`
#[derive(Serialize)]
struct Summary {
    schema: &'static str,
    file: String,
    outputs: Vec<OutputFile>,
    lost: u64,
    partial: Option<Partial>,
}

pub(crate) fn run(options: &Convert, output: Output) -> anyhow::Result<u8> {
    let mut formats = options.to.clone();
    if let Some(AnyFormat::File(format)) = options.format {
        formats.push(format);
    }
    if formats.is_empty() {
        formats.extend(format_of(options.output.as_deref()));
    }
    if formats.is_empty() {
        return Err(usage(
            "no format given: choose one with --to (speedscope, folded, flamegraph, chrome, perfetto, firefox, pprof)",
        ));
    }
    options.content.check(&formats).map_err(usage)?;
    if options.output.is_none() && is_no_place(&options.file) {
        return Err(usage(format!(
            "{} is no file that a result could be put beside: give -o",
            options.file.display()
        )));
    }
    let planned = plan(&formats, options.output.as_deref(), &without_extension(&options.file))?;
    refuse_overwriting(&[&options.file], &planned)?;
    let to_stdout = planned.iter().any(|planned| planned.to == Destination::Stdout);
    let made = |file: &OutputFile| if output.json() { Ok(()) } else { output.text(format_args!("{file}\n")) };
    let (renewed, planned): (Vec<_>, Vec<_>) =
        planned.into_iter().partition(|planned| planned.format == FileFormat::Nettrace);
    let mut outputs = Vec::new();
    for Planned { format, to } in renewed {
        let mut recording = Recording::open(&options.file)?;
        let (path, bytes) = Outlet::open(&to)?.write_whole(|out| renew(&mut recording, out))?;
        if let Some(path) = path {
            let file = OutputFile::new(&path, format, bytes);
            made(&file)?;
            outputs.push(file);
        }
        if planned.is_empty() {
            let converted = Converted { files: outputs, is_cut: false };
            return conclude(options, converted, Ok(()), &recording, to_stdout, output);
        }
    }
    let recording = Recording::open(&options.file)?;
    let (trace, recording) = profile_of(recording, options.content, &ProfileOptions::default(), output)?;
    if recording.lost() > 0 {
        output.warning(format_args!(
            "the target dropped {} while it was recorded, because its buffer was full",
            Things(recording.lost(), "event")
        ));
    }
    let outlets = planned.iter().map(|planned| (planned.format, Outlet::open(&planned.to)));
    let recorded = fs::metadata(&options.file).map_or(0, |meta| meta.len());
    let (mut converted, written) = write_all((&trace, recorded), outlets, options.content, output, made);
    converted.files.splice(0..0, outputs);
    conclude(options, converted, written, &recording, to_stdout, output)
}

/// What there is, is told; then why not all is there.
fn conclude(
    options: &Convert,
    converted: Converted,
    written: anyhow::Result<()>,
    recording: &Recording,
    to_stdout: bool,
    output: Output,
) -> anyhow::Result<u8> {
    let Converted { files: outputs, is_cut } = converted;
    if outputs.is_empty() {
        written?;
        let code = warn_if_partial(recording, output);
        return Ok(if is_cut { exit::PARTIAL } else { code });
    }
    if output.json() {
        let (file, lost, partial) =
            (options.file.display().to_string(), recording.lost(), partial_of(recording));
        let summary = Summary { schema: "runtap.convert/1", file, outputs, lost, partial };
        if to_stdout {
            output.document_to_stderr(&summary)?;
        } else {
            output.document(&summary)?;
        }
    }
    let code = warn_if_partial(recording, output);
    written.map(|()| if is_cut { exit::PARTIAL } else { code })
}

/// Whether nothing can be put beside it: it is no file, or comes on stdin.
fn is_no_place(file: &Path) -> bool {
    file == Path::new(STDIN) || fs::metadata(file).is_ok_and(|meta| !meta.is_file())
}

/// Reads what `content` needs of a recording into a profile.
pub(super) fn profile_of(
    mut recording: Recording,
    content: Content,
    options: &ProfileOptions,
    output: Output,
) -> anyhow::Result<(Trace, Recording)> {
    let options = &ProfileOptions { room: room_of(&recording), ..options.clone() };
    let (malformed, trace) = if content.compat == Some(Compat::DotnetTrace) {
        let mut builder = DotnetTraceBuilder::new();
        recording.read(|item| builder.item(item))?;
        if recording.partial().is_some() {
            builder.cut_off();
        }
        (builder.malformed(), builder.finish(options))
    } else {
        let mut builder =
            content.view.map_or_else(ProfileBuilder::new, |view| ProfileBuilder::of(view.into()));
        match builder.parts() {
            Some(part) => recording.read_parallel(&mut builder, part)?,
            None => recording.read(|item| builder.item(item))?,
        }
        (builder.malformed(), builder.finish(options))
    };
    has_become(&mut recording, &trace);
    if malformed > 0 {
        output.warning(format_args!(
            "left out, because the payload can't be read: {}",
            Things(malformed, "event")
        ));
    }
    advice::say_if_nameless(&trace, output);
    Ok((trace, recording))
}

/// Writes a profile of so many recorded bytes in several formats, and tells `made` of each file. One that fails does not
/// stop the others: the files that there are, and the first failure. The others are told.
pub(super) fn write_all(
    (trace, recorded): (&Trace, u64),
    outlets: impl IntoIterator<Item = (FileFormat, anyhow::Result<Outlet>)>,
    content: Content,
    output: Output,
    made: impl Fn(&OutputFile) -> anyhow::Result<()>,
) -> (Converted, anyhow::Result<()>) {
    let (mut converted, mut failures) = (Converted::default(), Failures::default());
    for (format, outlet) in outlets {
        match outlet.and_then(|outlet| write((trace, recorded), format, content, outlet, output)) {
            Ok((path, written)) => {
                converted.is_cut |= written.cut_at_ns.is_some();
                let Some(path) = path else { continue };
                let file = OutputFile::converted(&path, format, written);
                if let Err(error) = made(&file) {
                    failures.add(error);
                }
                converted.files.push(file);
            }
            Err(error) => failures.add(error),
        }
    }
    (converted, failures.first(output))
}

/// Why some of several outputs are not there.
#[derive(Debug, Default)]
pub(super) struct Failures(Vec<anyhow::Error>);

impl Failures {
    pub(super) fn add(&mut self, error: anyhow::Error) {
        // Several formats may lack the same.
        let text = format!("{error:#}");
        if self.0.iter().all(|known| format!("{known:#}") != text) {
            self.0.push(error);
        }
    }

    /// The first; the others are told.
    pub(super) fn first(self, output: Output) -> anyhow::Result<()> {
        let mut failures = self.0.into_iter();
        let Some(first) = failures.next() else { return Ok(()) };
        for error in failures {
            let hint = error.downcast_ref::<ExpectedError>().and_then(|expected| expected.hint.clone());
            output.error(&error, hint.as_deref());
        }
        Err(first)
    }
}

/// What became of a profile in several formats.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) files: Vec<OutputFile>,
    /// Whether one of them, or what went to stdout, ends early.
    is_cut: bool,
}

/// What became of a profile in one format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) bytes: u64,
    /// Stacks of which the middle was left out.
    pub(super) deep_stacks: usize,
    /// Where it ends early, since the start of the session.
    pub(super) cut_at_ns: Option<u64>,
}

/// Writes a profile of so many recorded bytes in a format, and says what was too much for it. Gives the path, if it is a
/// file.
fn write(
    (trace, recorded): (&Trace, u64),
    format: FileFormat,
    content: Content,
    outlet: Outlet,
    output: Output,
) -> anyhow::Result<(Option<PathBuf>, Written)> {
    let Some(sink) = format.sink() else {
        return Err(usage("a profile can't be written as nettrace"));
    };
    let view = content.view.map_or_else(|| default_view(trace, sink, output), Into::into);
    let mut options = Options::new(view);
    options.evented = content.evented;
    options.merge_threads = content.merge_threads;
    options.dotnet_trace = content.compat == Some(Compat::DotnetTrace);
    options.max_bytes = content.bytes(recorded);
    let mut trace = Cow::Borrowed(trace);
    let deep = if trace.deepest() > content.depth() {
        limit_depth(trace.to_mut(), content, output)
    } else {
        DeepStacks::default()
    };
    let cut_at_ns = sink.end_within(&trace, &options);
    if let Some(end_ns) = cut_at_ns {
        trace.to_mut().end_at(end_ns);
        output.warning(format_args!(
            "the {} file ends {:.3} s after the start of the recording: the whole would have more than {}; --max-size sets that",
            sink.name(),
            Duration::from_nanos(end_ns).as_secs_f64(),
            Bytes(options.max_bytes)
        ));
    }
    let (path, bytes) = outlet.write_whole(|out| sink.write(&trace, out, &options).map_err(no_samples))?;
    Ok((path, Written { bytes, deep_stacks: deep.stacks, cut_at_ns }))
}

/// Leaves out the middle of stacks that are too deep, and says so.
pub(super) fn limit_depth(trace: &mut Trace, content: Content, output: Output) -> DeepStacks {
    let most = content.depth();
    let deep = trace.limit_depth(most);
    if deep.stacks > 0 {
        output.note(format_args!(
            "up to {} deep: {}, of which the first and last {} frames are shown; --max-depth sets that",
            Things(deep.deepest as u64, "frame"),
            Things(deep.stacks as u64, "stack"),
            Count(most as u64 / 2)
        ));
    }
    deep
}

/// The view that people expect of a format, unless it would show next to nothing: .NET 9, and .NET 10 at first, call
/// nearly every sample of a running thread External (dotnet/runtime#123996).
fn default_view(trace: &Trace, sink: runtap_sinks::Format, output: Output) -> View {
    let view = sink.default_view();
    let (shown, all) = (trace.ticks(view), trace.ticks(View::ThreadTime));
    if all == 0 || shown.saturating_mul(100) >= all {
        return view;
    }
    output.warning(format_args!(
        "only {} of {} samples are in the view '{view}', so {} shows all of them: the threads waited, or this runtime \
         marks running threads as waiting (.NET 9 does); --view cpu insists",
        Count(shown),
        Count(all),
        sink.name()
    ));
    View::ThreadTime
}

/// Says what to do about a recording without samples.
pub(super) fn no_samples(error: runtap_sinks::Error) -> anyhow::Error {
    let hint = match &error {
        runtap_sinks::Error::NoSamples { view, recorded } if view.is_sampled() => match recorded {
            0 => {
                "CPU samples come with the default profiles of 'runtap trace', or with --profile dotnet-sampled-thread-time, \
                 once the program's own code runs; allocations, collections, locks and more have views of their own: \
                 'runtap convert --view alloc'"
            }
            _ => "--view thread-time shows waiting threads too",
        },
        runtap_sinks::Error::NoSamples { view, .. } => advice::for_view(*view),
        runtap_sinks::Error::NoTimeAxis(_) => "choose speedscope, firefox, pprof, folded or flamegraph",
        _ => return error.into(),
    };
    let message = error.to_string();
    anyhow::Error::new(error).context(ExpectedError {
        code: exit::FAILED,
        message,
        list: Vec::new(),
        hint: Some(hint.to_owned()),
    })
}
