//! `runtap diff BEFORE AFTER`: what changed from one recording to another, frame by frame.

use std::path::{Path, PathBuf};

use anyhow::Context;
use runtap_clr::ProfileOptions;
use runtap_clr::report::{DiffOrder, DiffReport, Report};
use runtap_convert::{
    Content, FileFormat, Note, Planned, Profile, format_of, limit_depth, plan, refuse_overwriting,
};
use runtap_files::Recording;
use runtap_model::{Comparison, Trace, View};
use runtap_outputs::{Destination, Outlet, with_extension, without_extension};
use runtap_sinks::{Format, difference};

use runtap_text::DiffText;
use runtap_text::document::{self, OutputFile};

use super::recording::{Partial, loss, partial_of, warn_if_partial};
use super::report::table_options;
use super::{advice, convert};
use crate::cli::{AnyFormat, Diff};
use crate::exit::{self, usage};
use crate::output::Output;

/// What is known of a recording beside its profile.
struct Source {
    file: PathBuf,
    lost: u64,
    partial: Option<Partial>,
}

impl Source {
    fn document(&self) -> document::Source<'_> {
        document::Source { file: &self.file, lost: self.lost, partial: self.partial.as_ref() }
    }
}

pub(crate) fn run(options: &Diff, output: Output) -> anyhow::Result<u8> {
    let planned = planned(options)?;
    refuse_overwriting(&[&options.before, &options.after], &planned)?;
    let (mut before, first) = read(&options.before, options, output)?;
    let (mut after, second) = read(&options.after, options, output)?;
    if !planned.is_empty() {
        // A line of a file has all frames of a stack.
        for trace in [&mut before, &mut after] {
            limit_depth(trace, &Content::default(), &mut |note: Note| convert::say(&note, output));
        }
    }
    let view = options.view.unwrap_or_else(|| default_view(&before, &after, output));
    if options.view.is_none() && view == View::Cpu {
        for (trace, source) in [(&before, &first), (&after, &second)] {
            if let Some(doubtful) = trace.doubtful_ticks() {
                let doubt = advice::doubtful(trace.ticks(view), doubtful);
                output.warning(format_args!("{}: {doubt}", source.file.display()));
            }
        }
    }
    let comparison = Comparison::new(&before, &after, view);
    drop((before, after));
    for (side, source) in [(comparison.before(), &first), (comparison.after(), &second)] {
        if side.stacks().total_weight() == 0 {
            output.warning(format_args!("{} has no samples in the view '{view}'", source.file.display()));
        }
    }

    let order = DiffOrder { absolute: options.absolute, inclusive: options.inclusive };
    let mut report = DiffReport::new(&comparison, order);
    let (outputs, written) = write(&comparison, &planned, options, output);
    let to_stdout = planned.iter().any(|planned| planned.to == Destination::Stdout);
    if output.json() {
        report.limit(options.number.unwrap_or(usize::MAX));
        let document = document::DiffDocument::new(&report, [first.document(), second.document()], outputs);
        output.document_beside(&document, to_stdout)?;
    } else if !to_stdout {
        let text = DiffText { report: &report, files: [&first.file, &second.file] };
        output.print(&text, &table_options(options.number, output))?;
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
    if formats.is_empty() {
        formats.extend(format_of(options.output.as_deref()));
    }
    let is_for_stacks =
        |format: &FileFormat| matches!(format.sink(), Some(Format::Folded | Format::Flamegraph));
    if !formats.iter().all(is_for_stacks) {
        return Err(usage("a difference can be written as folded or flamegraph"));
    }
    if formats.is_empty() {
        return match options.output {
            Some(_) => Err(usage(
                "no format given for -o: choose one with --to (folded, flamegraph), or give -o the extension .folded or .svg",
            )),
            None => Ok(Vec::new()),
        };
    }
    let base = with_extension(&without_extension(&options.after), ".diff");
    Ok(plan(&formats, options.output.as_deref(), &base)?)
}

fn read(file: &Path, options: &Diff, output: Output) -> anyhow::Result<(Trace, Source)> {
    let content = Content { view: options.view, ..Content::default() };
    let mut tell = |note: Note| convert::say(&note, output);
    let Profile { trace, recording, .. } =
        Profile::read(Recording::open(file)?, &content, &ProfileOptions::default(), &mut tell)?;
    if let Some(loss) = loss(&recording) {
        output.warning(format_args!("{}: {loss}", file.display()));
    }
    warn_if_partial(&recording, output);
    let source = Source { file: file.to_owned(), lost: recording.lost(), partial: partial_of(&recording) };
    Ok((trace, source))
}

/// Managed samples, unless one of the recordings would show next to nothing of it: see `convert`.
fn default_view(before: &Trace, after: &Trace, output: Output) -> View {
    if [before, after].into_iter().all(|trace| !trace.shows_little_in(View::Cpu)) {
        return View::Cpu;
    }
    output.warning(
        "less than 1% of the samples are in the view 'cpu', so all of them are compared; use --view cpu to compare only those",
    );
    View::ThreadTime
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
    let (mut outputs, mut failures) = (Vec::new(), Vec::new());
    for Planned { format, to } in planned {
        match write_one(comparison, *format, to, &how) {
            Ok((Some(path), bytes)) => {
                let file = OutputFile::new(&path, format.name(), bytes);
                // The result on stdout is the comparison.
                output.note(&file);
                outputs.push(file);
            }
            Ok((None, _)) => {}
            Err(error) => failures.push(error),
        }
    }
    (outputs, convert::first(failures, output))
}

fn write_one(
    comparison: &Comparison,
    format: FileFormat,
    to: &Destination,
    how: &difference::Options,
) -> anyhow::Result<(Option<PathBuf>, u64)> {
    let mut out = Outlet::open(to)?.begin()?;
    let written = match format.sink() {
        Some(Format::Folded) => difference::write_folded(comparison, &mut out, how),
        _ => difference::write_flamegraph(comparison, &mut out, how),
    };
    match out.path() {
        Some(path) => written.with_context(|| format!("can't write {}", path.display()))?,
        None => written?,
    }
    Ok(out.finish()?)
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}
