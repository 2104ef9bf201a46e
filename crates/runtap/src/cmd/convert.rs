//! `runtap convert FILE`, and the conversion that `trace` ends with.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use runtap_ingest::{DotnetTraceBuilder, ProfileBuilder, ProfileOptions};
use runtap_model::{Trace, View};
use runtap_nettrace::Item;
use runtap_sinks::Options;
use serde::Serialize;

use super::advice;
use super::recording::{Partial, Recording};
use super::side_by_side::Gather;
use super::trace::OutputFile;
use crate::cli::{AnyFormat, Compat, Content, Convert, FileFormat};
use crate::exit::{self, ExpectedError, usage};
use crate::files::{Destination, Planned, plan, without_extension, write_whole};
use crate::output::Output;
use crate::units::Count;

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
        return Err(usage(
            "no format given: choose one with --to (speedscope, folded, flamegraph, chrome, perfetto, firefox, pprof)",
        ));
    }
    if formats.contains(&FileFormat::Nettrace) {
        return Err(usage("the recording is in the nettrace format already"));
    }
    options.content.check(&formats).map_err(usage)?;
    if options.output.is_none() && fs::metadata(&options.file).is_ok_and(|meta| !meta.is_file()) {
        return Err(usage(format!(
            "{} is no file that a result could be put beside: give -o",
            options.file.display()
        )));
    }
    let planned = plan(&formats, options.output.as_deref(), &without_extension(&options.file))?;
    refuse_overwriting(&options.file, &planned)?;
    let (trace, recording) = profile_of(&options.file, options.content, &ProfileOptions::default(), output)?;
    if recording.lost() > 0 {
        output.warning(format_args!(
            "the target dropped {} events while it was recorded, because its buffer was full",
            Count(recording.lost())
        ));
    }
    let mut outputs = Vec::new();
    for Planned { format, to } in &planned {
        let bytes = write(&trace, *format, options.content, to, output)?;
        if let Destination::File(path) = to {
            let file = OutputFile::new(path, *format, bytes);
            if !output.json() {
                output.text(format_args!("{file}\n"))?;
            }
            outputs.push(file);
        }
    }
    if output.json() {
        let (file, lost, partial) =
            (options.file.display().to_string(), recording.lost(), recording.partial());
        let summary = Summary { schema: "runtap.convert/1", file, outputs, lost, partial };
        if planned.iter().any(|planned| planned.to == Destination::Stdout) {
            output.document_to_stderr(&summary)?;
        } else {
            output.document(&summary)?;
        }
    }
    Ok(recording.warn_if_partial(output))
}

/// A result in the place of its own recording would destroy it.
fn refuse_overwriting(recording: &Path, planned: &[Planned]) -> anyhow::Result<()> {
    let id = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    let ours = id(recording);
    for Planned { to, .. } in planned {
        if let Destination::File(path) = to
            && ours.is_some()
            && id(path) == ours
            && fs::metadata(path).is_ok_and(|meta| meta.is_file())
        {
            return Err(usage(format!("{} is the recording itself: give another -o", path.display())));
        }
    }
    Ok(())
}

impl Gather for ProfileBuilder {
    #[inline]
    fn item(&mut self, item: &Item<'_>) {
        self.item(item);
    }

    fn join(&mut self, next: Self) -> bool {
        self.join(next)
    }
}

/// Reads what `content` needs of a recording into a profile.
pub(super) fn profile_of(
    file: &Path,
    content: Content,
    options: &ProfileOptions,
    output: Output,
) -> anyhow::Result<(Trace, Recording)> {
    let mut recording = Recording::open(file)?;
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
            Some(part) => recording.read_side_by_side(&mut builder, part)?,
            None => recording.read(|item| builder.item(item))?,
        }
        (builder.malformed(), builder.finish(options))
    };
    if malformed > 0 {
        output.warning(format_args!(
            "{malformed} events have a payload that can't be read; they were left out"
        ));
    }
    Ok((trace, recording))
}

/// Writes a profile in a format; returns the size of the file.
pub(super) fn write(
    trace: &Trace,
    format: FileFormat,
    content: Content,
    to: &Destination,
    output: Output,
) -> anyhow::Result<u64> {
    let Some(sink) = format.sink() else {
        return Err(usage("a profile can't be written as nettrace"));
    };
    let view = content.view.map_or_else(|| default_view(trace, sink, output), Into::into);
    let mut options = Options::new(view);
    options.evented = content.evented;
    options.dotnet_trace = content.compat == Some(Compat::DotnetTrace);
    write_whole(to, |out| sink.write(trace, out, &options).map_err(no_samples))
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
        hint: Some(hint.to_owned()),
    })
}
