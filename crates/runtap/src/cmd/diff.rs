//! `runtap diff BEFORE AFTER`: compares two recordings frame by frame.

use std::path::Path;

use runtap_clr::ProfileOptions;
use runtap_clr::report::{DiffOrder, DiffReport, Report};
use runtap_convert::source::{ProfileSource as _, Recording, has_view, is_heap_file, read_heap};
use runtap_convert::{
    Content, FileFormat, Note, Planned, Profile, limit_depth, plan, reject_overwriting, write_difference,
};
use runtap_jvm::recording::JavaSource;
use runtap_model::{Comparison, Trace};
use runtap_os::output::{Destination, with_extension, without_extension};
use runtap_sinks::Format;

use runtap_text::{DiffText, Output, advice, conversion_message, document, unsuitable};

use super::recording::{loss_message, partial_of, warn_if_partial};
use super::report::table_options;
use super::{convert, jvm};
use crate::cli::{AnyFormat, Diff};
use crate::exit::{self, usage};

pub(crate) fn run(options: &Diff, output: Output) -> anyhow::Result<u8> {
    if is_heap_file(&options.before) || is_heap_file(&options.after) {
        return heaps(options, output);
    }
    match [jvm::find_operand(&options.before)?, jvm::find_operand(&options.after)?] {
        [None, None] => {}
        [Some(before), Some(after)] => return jvm::diff(&before, &after, options, output),
        operands => {
            let [before, after] = operands.map(|operand| match operand {
                Some(_) => JavaSource::DESCRIPTION,
                None => Recording::DESCRIPTION,
            });
            return Err(usage(format!(
                "{} is {before}, and {} is {after}: compare recordings of one kind",
                options.before.display(),
                options.after.display()
            )));
        }
    }
    let content = Content { view: options.view, ..Content::default() };
    has_view::<Recording>(&content).map_err(|why| usage(unsuitable(why)))?;
    let planned = planned(options, &without_extension(&options.after))?;
    reject_overwriting(&[&options.before, &options.after], &planned)?;
    let (mut before, first) = read(&options.before, options, output)?;
    let (mut after, second) = read(&options.after, options, output)?;
    if !planned.is_empty() {
        // Each line of a file contains all frames of a stack, so deep stacks are limited.
        for trace in [&mut before, &mut after] {
            limit_depth(trace, &Content::default(), &mut |note: Note| {
                output.messages(conversion_message(&note));
            });
        }
    }
    let recordings = [(&before, first.file), (&after, second.file)];
    let compared = || advice::compared_view(recordings);
    let (view, messages) = options.view.map_or_else(compared, |view| (view, Vec::new()));
    output.messages(messages);
    let comparison = Comparison::new(&before, &after, view);
    drop((before, after));
    for (side, source) in [(comparison.before(), &first), (comparison.after(), &second)] {
        if side.stacks().total_weight() == 0 {
            output.warning(format_args!("{} has no samples in the view '{view}'", source.file.display()));
        }
    }

    let partial = first.partial.is_some() || second.partial.is_some();
    let order = DiffOrder { absolute: options.absolute, inclusive: options.inclusive };
    let mut report = DiffReport::new(&comparison, order);
    let files = [&*options.before, &*options.after];
    let made = write_difference(&comparison, files, &planned, options.absolute);
    let outputs: Vec<_> = made.files.iter().map(document::OutputFile::from).collect();
    // Stdout carries the comparison, so written files are only noted.
    for file in &outputs {
        output.note(file);
    }
    let written = convert::first(made.failures, output);
    let to_stdout = planned.iter().any(|planned| planned.to == Destination::Stdout);
    if output.json() {
        report.limit(options.number.unwrap_or(usize::MAX));
        let document = document::DiffDocument::new(&report, [first, second], outputs);
        output.document_on_free_stream(&document, to_stdout)?;
    } else if !to_stdout {
        let text = DiffText { report: &report, files };
        output.print(&text, &table_options(options.number, output))?;
    }
    written?;
    Ok(if partial { exit::PARTIAL } else { exit::OK })
}

/// Plans the files to write. Default names are made from that of the later recording, without an extension.
pub(super) fn planned(options: &Diff, after: &Path) -> anyhow::Result<Vec<Planned>> {
    let formats = AnyFormat::files(&options.to, options.format, options.output.as_deref());
    let is_for_stacks =
        |format: &FileFormat| matches!(format.sink(), Some(Format::Folded | Format::Flamegraph));
    if !formats.iter().all(is_for_stacks) {
        return Err(usage("a difference can be written as folded or flamegraph"));
    }
    if formats.is_empty() {
        return match options.output {
            Some(_) => Err(usage(
                "no format specified for -o; choose one with --to (folded, flamegraph), or use the extension .folded or .svg",
            )),
            None => Ok(Vec::new()),
        };
    }
    let base = with_extension(after, ".diff");
    Ok(plan(&formats, options.output.as_deref(), &base)?)
}

/// Reads the profile of a recording, and the loss and damage of the recording.
fn read<'a>(file: &'a Path, options: &Diff, output: Output) -> anyhow::Result<(Trace, document::Source<'a>)> {
    let content = Content { view: options.view, ..Content::default() };
    let mut on_note = |note: Note| output.messages(conversion_message(&note));
    let Profile { trace, recording, .. } =
        Profile::read(Recording::open(file)?, &content, &ProfileOptions::default(), &mut on_note)?;
    if let Some(loss) = loss_message(&recording) {
        output.warning(format_args!("{}: {loss}", file.display()));
    }
    warn_if_partial(&recording, output);
    let source = document::Source { file, lost: recording.lost(), partial: partial_of(&recording) };
    Ok((trace, source))
}

/// Compares heaps by type.
fn heaps(options: &Diff, output: Output) -> anyhow::Result<u8> {
    let is_plain = options.view.is_none() && planned(options, &options.after)?.is_empty();
    if !is_plain || options.inclusive || options.absolute {
        return Err(usage("heaps are compared by type: --view, --inclusive, --absolute, --to do not apply"));
    }
    let [before, after] = [read_heap(&options.before)?, read_heap(&options.after)?];
    let mut report = document::HeapDiffDocument::new([(&options.before, &before), (&options.after, &after)]);
    report.limit(options.number.filter(|_| output.json()).unwrap_or(usize::MAX));
    output.show_with(&report, &table_options(options.number, output))?;
    let missing = report.missing();
    for text in &missing {
        output.warning(text);
    }
    Ok(if missing.is_empty() { exit::OK } else { exit::PARTIAL })
}
