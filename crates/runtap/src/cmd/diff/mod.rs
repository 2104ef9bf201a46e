//! `runtap diff BEFORE AFTER`: what changed from one recording to another, frame by frame.

mod document;
mod table;

use std::path::{Path, PathBuf};

use runtap_ingest::ProfileOptions;
use runtap_model::{Comparison, FrameHandle, ShareChange, Trace, View};
use runtap_sinks::difference;

use self::document::Document;
use super::convert::{self, Failures};
use super::recording::{Partial, partial_of, warn_if_partial};
use super::trace::OutputFile;
use crate::cli::{AnyFormat, Content, Diff, FileFormat};
use crate::exit::{self, usage};
use crate::files::{
    Destination, Planned, plan, refuse_overwriting, with_extension, without_extension, write_whole,
};
use crate::output::Output;
use crate::units::Things;
use runtap_files::Recording;

/// What is known of a recording beside its profile.
struct Source {
    file: PathBuf,
    lost: u64,
    partial: Option<Partial>,
}

/// A frame and how it changed.
struct Row {
    frame: FrameHandle,
    own: ShareChange,
    total: ShareChange,
    /// By which the rows are sorted: the larger, the earlier.
    weight: f64,
}

pub(crate) fn run(options: &Diff, output: Output) -> anyhow::Result<u8> {
    let planned = planned(options)?;
    refuse_overwriting(&[&options.before, &options.after], &planned)?;
    let (mut before, first) = read(&options.before, options, output)?;
    let (mut after, second) = read(&options.after, options, output)?;
    if !planned.is_empty() {
        // A line of a file has all frames of a stack.
        for trace in [&mut before, &mut after] {
            convert::limit_depth(trace, Content::default(), output);
        }
    }
    let view = options.view.map_or_else(|| default_view(&before, &after, output), Into::into);
    let comparison = Comparison::new(&before, &after, view);
    drop((before, after));
    for (side, source) in [(comparison.before(), &first), (comparison.after(), &second)] {
        if side.stacks().total_ns() == 0 {
            output.warning(format_args!("{} has nothing in the view '{view}'", source.file.display()));
        }
    }

    let rows = rows(&comparison, options);
    let (outputs, written) = write(&comparison, &planned, options, output);
    let to_stdout = planned.iter().any(|planned| planned.to == Destination::Stdout);
    if output.json() {
        let document = Document::new(&comparison, [&first, &second], &rows, options, outputs);
        if to_stdout { output.document_to_stderr(&document)? } else { output.document(&document)? }
    } else if !to_stdout {
        output.text(table::text(&comparison, [&first, &second], &rows, options))?;
    }
    written?;
    let partial = first.partial.is_some() || second.partial.is_some();
    Ok(if partial { exit::PARTIAL } else { exit::OK })
}

/// Which files to write.
fn planned(options: &Diff) -> anyhow::Result<Vec<Planned>> {
    let mut formats = options.to.clone();
    if let Some(AnyFormat::File(format)) = options.format {
        formats.push(format);
    }
    if formats.iter().any(|format| !matches!(format, FileFormat::Folded | FileFormat::Flamegraph)) {
        return Err(usage("a difference can be written as folded or flamegraph"));
    }
    if formats.is_empty() {
        return match options.output {
            Some(_) => Err(usage("no format given for -o: choose one with --to (folded, flamegraph)")),
            None => Ok(Vec::new()),
        };
    }
    plan(&formats, options.output.as_deref(), &with_extension(&without_extension(&options.after), ".diff"))
}

fn read(file: &Path, options: &Diff, output: Output) -> anyhow::Result<(Trace, Source)> {
    let content = Content { view: options.view, ..Content::default() };
    let recording = Recording::open(file)?;
    let (trace, recording) = convert::profile_of(recording, content, &ProfileOptions::default(), output)?;
    if recording.lost() > 0 {
        let lost = Things(recording.lost(), "event");
        output.warning(format_args!("{}: the target dropped {lost} meanwhile", file.display()));
    }
    warn_if_partial(&recording, output);
    let source = Source { file: file.to_owned(), lost: recording.lost(), partial: partial_of(&recording) };
    Ok((trace, source))
}

/// Managed samples, unless one of the recordings would show next to nothing of it: see `convert`.
fn default_view(before: &Trace, after: &Trace, output: Output) -> View {
    let shows = |trace: &Trace| {
        let all = trace.ticks(View::ThreadTime);
        all == 0 || trace.ticks(View::Cpu).saturating_mul(100) >= all
    };
    if shows(before) && shows(after) {
        return View::Cpu;
    }
    output.warning(
        "less than one sample in a hundred is in the view 'cpu', so all of them are compared; --view cpu insists",
    );
    View::ThreadTime
}

/// Every frame with weight in one of the recordings, those that changed most first.
fn rows(comparison: &Comparison, options: &Diff) -> Vec<Row> {
    let sides = [comparison.before(), comparison.after()];
    let mut rows: Vec<Row> = comparison
        .tables()
        .all_frames()
        .filter(|(frame, _)| sides.iter().any(|side| side.frames().total_ns(*frame) > 0))
        .map(|(frame, _)| {
            let (own, total) = (comparison.self_change(frame), comparison.total_change(frame));
            let (share, weights) = if options.inclusive {
                (total, sides.map(|side| side.frames().total_ns(frame)))
            } else {
                (own, sides.map(|side| side.frames().self_ns(frame)))
            };
            let weight = if options.absolute {
                #[expect(clippy::cast_precision_loss, reason = "only the order is wanted")]
                let weight = weights[0].abs_diff(weights[1]) as f64;
                weight
            } else {
                share.change().abs()
            };
            Row { frame, own, total, weight }
        })
        .collect();
    let name = |row: &Row| comparison.tables().frame(row.frame).to_string();
    rows.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| name(a).cmp(&name(b))));
    rows
}

fn write(
    comparison: &Comparison,
    planned: &[Planned],
    options: &Diff,
    output: Output,
) -> (Vec<OutputFile>, anyhow::Result<()>) {
    let mut how = difference::Options::default();
    how.absolute = options.absolute;
    how.names = [&options.before, &options.after].map(|file| name_of(file));
    let (mut outputs, mut failures) = (Vec::new(), Failures::default());
    for Planned { format, to } in planned {
        let written = write_whole(to, |out| {
            let written = match format {
                FileFormat::Folded => difference::write_folded(comparison, out, &how),
                _ => difference::write_flamegraph(comparison, out, &how),
            };
            written.map_err(convert::no_samples)
        });
        match (written, to) {
            (Ok(bytes), Destination::File(path)) => {
                let file = OutputFile::new(path, *format, bytes);
                // The result on stdout is the comparison.
                output.note(&file);
                outputs.push(file);
            }
            (Ok(_), Destination::Stdout) => {}
            (Err(error), _) => failures.add(error),
        }
    }
    (outputs, failures.first(output))
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}
