//! `runtap convert FILE`, and the conversion that `trace` ends with.

use std::path::Path;

use runtap_ingest::{ProfileBuilder, ProfileOptions};
use runtap_model::Trace;
use runtap_sinks::{Format, Options};

use super::recording::Recording;
use crate::cli::{AnyFormat, Convert, FileFormat, View};
use crate::exit::{self, expected, usage};
use crate::files::{Destination, Planned, plan, without_extension, write_whole};
use crate::output::Output;
use crate::units::Bytes;

pub(crate) fn run(options: &Convert, output: Output) -> anyhow::Result<u8> {
    let mut formats = options.to.clone();
    if let Some(AnyFormat::File(format)) = options.format {
        formats.push(format);
    }
    if formats.is_empty() {
        return Err(usage("no format given: choose one with --to (speedscope, folded, flamegraph)"));
    }
    if formats.contains(&FileFormat::Nettrace) {
        return Err(usage("the recording is in the nettrace format already"));
    }
    let planned = plan(&formats, options.output.as_deref(), &without_extension(&options.file))?;
    let (trace, recording) = profile_of(&options.file, &ProfileOptions::default(), output)?;
    for Planned { format, to } in &planned {
        let bytes = write(&trace, *format, options.view, to)?;
        if let Destination::File(path) = to {
            output.note(format_args!("{}  {}  {}", path.display(), format.name(), Bytes(bytes)));
        }
    }
    Ok(recording.warn_if_partial(output))
}

/// Reads a recording into a profile.
pub(super) fn profile_of(
    file: &Path,
    options: &ProfileOptions,
    output: Output,
) -> anyhow::Result<(Trace, Recording)> {
    let mut recording = Recording::open(file)?;
    let mut builder = ProfileBuilder::new();
    recording.read(|item| builder.item(item))?;
    if builder.malformed() > 0 {
        output.warning(format_args!(
            "{} events have a payload that can't be read; they were left out",
            builder.malformed()
        ));
    }
    if recording.lost() > 0 {
        output.warning(format_args!(
            "the target dropped {} events: its buffer was full; a larger --buffersize or fewer events help",
            recording.lost()
        ));
    }
    Ok((builder.finish(options), recording))
}

/// Writes a profile in a format; returns the size of the file.
pub(super) fn write(
    trace: &Trace,
    format: FileFormat,
    view: Option<View>,
    to: &Destination,
) -> anyhow::Result<u64> {
    let sink = match format {
        FileFormat::Speedscope => Format::Speedscope,
        FileFormat::Folded => Format::Folded,
        FileFormat::Flamegraph => Format::Flamegraph,
        FileFormat::Nettrace => return Err(usage("a profile can't be written as nettrace")),
    };
    let view = match view {
        Some(View::ThreadTime) => runtap_model::View::ThreadTime,
        Some(View::Cpu) => runtap_model::View::Cpu,
        None => sink.default_view(),
    };
    write_whole(to, |out| sink.write(trace, out, &Options::new(view)).map_err(no_samples))
}

/// Says what to do about a recording without samples.
fn no_samples(error: runtap_sinks::Error) -> anyhow::Error {
    let hint = match &error {
        runtap_sinks::Error::NoSamples { recorded: 0, .. } => {
            "CPU samples come with the default profiles of 'runtap trace', or with --profile dotnet-sampled-thread-time"
        }
        runtap_sinks::Error::NoSamples { .. } => "--view thread-time shows waiting threads too",
        _ => return error.into(),
    };
    expected(exit::FAILED, error.to_string(), hint.to_owned())
}
