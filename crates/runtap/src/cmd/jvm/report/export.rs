//! Export of recordings to files for viewers, with the same writers as for other recordings.

use std::path::Path;

use runtap_bytefrog::Detail;
use runtap_convert::{Content, FileFormat, Note, Planned, WrittenFiles, plan, reject_overwriting, write_all};
use runtap_jvm::recording::{
    CALLS, LoadedAgent, LoadedRecording, Operand, ProfileKind, SELF_TIME, TreeMeasure, profile,
};
use runtap_model::{KindInfo, Trace, View};
use runtap_os::output::{Destination, OutputSink};
use runtap_sinks::Format;
use runtap_text::document::ConvertDocument;
use runtap_text::jvm::missing_calls_hint;

use super::{classify_error, warn};
use crate::cli::{JvmReport, JvmView, unsuitable};
use crate::cmd::convert;
use crate::exit::{self, usage};
use crate::output::Output;
use crate::units::Things;

/// The maximum number of segments of a timeline, of all agents together: 480 MB.
const MAX_SEGMENTS: u64 = 20_000_000;

/// Returns the view for the samples of a kind.
fn view_of(trace: &Trace, info: KindInfo) -> View {
    let kind = trace.kinds().iter().find(|(_, known)| *known == info).map(|(kind, _)| kind);
    kind.map_or(View::Cpu, |kind| View::Kind(kind, info))
}

/// Returns whether a format shows events over time instead of sums.
fn is_timeline(format: FileFormat) -> bool {
    let shown = [Format::Speedscope, Format::Chrome, Format::Perfetto, Format::Firefox];
    format.sink().is_some_and(|format| shown.contains(&format))
}

pub(super) fn run(
    options: &JvmReport,
    operand: &Operand,
    formats: &[FileFormat],
    output: Output,
) -> anyhow::Result<u8> {
    let files = &options.files;
    let (streams, formats): (Vec<_>, Vec<_>) =
        formats.iter().copied().partition(|format| format.sink().is_none());
    if !streams.is_empty() || formats.is_empty() {
        let names: Vec<&str> =
            FileFormat::all().filter(|format| format.sink().is_some()).map(FileFormat::name).collect();
        return Err(usage(format!("choose a format with --to ({})", names.join(", "))));
    }
    let is_timed = files.view.unwrap_or(JvmView::Time) == JvmView::Time;
    let mut content = Content {
        merge_threads: files.merge_threads,
        max_depth: files.max_depth,
        max_size: files.max_size,
        ..Content::default()
    };
    content.check(&formats).map_err(|why| usage(unsuitable(why)))?;
    if let Some(format) = formats
        .iter()
        .find(|format| !is_timed && is_timeline(**format) && format.sink() != Some(Format::Speedscope))
    {
        return Err(usage(format!(
            "calls have no time axis, which {} needs: use speedscope, folded, flamegraph or pprof",
            format.name()
        )));
    }
    let planned = plan(&formats, files.output.as_deref(), &operand.base())?;
    let loaded = operand.load(&options.agent, options.slow()).map_err(classify_error)?;
    refuse_without_calls(&loaded)?;
    let inputs: Vec<&Path> = loaded
        .agents
        .iter()
        .flat_map(|agent| &agent.recorded.streams)
        .flat_map(|stream| std::iter::once(&*stream.bytes).chain(stream.index.as_deref()))
        .collect();
    reject_overwriting(&inputs, &planned)?;
    let to_stdout = planned.iter().any(|planned| planned.to == Destination::Stdout);
    let (lines, sums): (Vec<Planned>, Vec<Planned>) =
        planned.into_iter().partition(|planned| is_timed && is_timeline(planned.format));
    let mut written = WrittenFiles::default();
    let mut print_result = Ok(());
    let mut left_out = 0;
    let recorded = loaded.agents.iter().map(|agent| agent.recorded.bytes()).sum();
    let lost = loaded.agents.iter().map(|agent| agent.replayed.model.counters().missing);
    let lost = lost.fold(0, u64::saturating_add);
    let code = warn(&loaded, output);
    let mut loaded = Some(loaded);
    let measure = if is_timed { TreeMeasure::Time } else { TreeMeasure::Calls };
    let is_last = |with_time: bool| !with_time || sums.is_empty();
    for (planned, with_time) in [(&lines, true), (&sums, false)] {
        if planned.is_empty() {
            continue;
        }
        let Some(whole) = &loaded else { break };
        let trace = trace(whole, (!with_time).then_some(measure))?;
        if is_last(with_time) {
            // The files are written from the profile, so free the traces.
            loaded = None;
        }
        left_out += trace.left_out();
        content.view = Some(view_of(&trace, if is_timed { SELF_TIME } else { CALLS }));
        // Calls have a start and an end; they are not samples.
        content.evented = with_time;
        let outlets =
            planned.iter().map(|planned| (planned.format, OutputSink::open(&planned.to).map_err(Into::into)));
        let mut report_note = |note: Note| match &note {
            Note::Written(file) if !output.json() => {
                let line = output.print(&convert::output_file(file), &output.options());
                if print_result.is_ok() {
                    print_result = line;
                }
            }
            note => convert::say(note, output),
        };
        let more = write_all(&trace, recorded, outlets, &content, &mut report_note);
        written.files.extend(more.files);
        written.is_cut |= more.is_cut;
        written.failures.extend(more.failures);
    }
    if left_out > 0 {
        output.warning(format_args!(
            "{} of time left out at the end: choose a part, {}#1s..2s",
            Things(left_out, "piece"),
            operand.path.display()
        ));
    }
    let outputs: Vec<_> = written.files.iter().map(convert::output_file).collect();
    let hint = written.failures.iter().any(runtap_convert::Error::is_nothing_to_show);
    if output.json() && !outputs.is_empty() {
        output.document_beside(&ConvertDocument::new(&operand.path, outputs, lost, None), to_stdout)?;
    }
    if hint {
        let advice = if is_timed {
            "no call takes as long as a step of the agent's clock: --view calls shows how often methods are called"
        } else {
            "no method was called"
        };
        return Err(exit::expected(exit::FAILED, format!("there is nothing to show: {advice}"), None));
    }
    convert::first(written.failures, output).and(print_result)?;
    Ok(if written.is_cut || left_out > 0 { exit::PARTIAL } else { code })
}

/// Returns the profile of all agents: sums, or a timeline if `sums` is `None`.
fn trace(loaded: &LoadedRecording, sums: Option<TreeMeasure>) -> anyhow::Result<Trace> {
    let share = MAX_SEGMENTS / (loaded.agents.len() as u64).max(1);
    let of = sums.map_or(ProfileKind::Timeline(share), ProfileKind::Tree);
    let one = |LoadedAgent { recorded, replayed, options }: &LoadedAgent| {
        profile(recorded, replayed, options, of).map_err(classify_error)
    };
    if let [agent] = &loaded.agents[..] {
        return one(agent);
    }
    Ok(Trace::merge(loaded.agents.iter().map(one).collect::<Result<Vec<_>, _>>()?))
}

/// Rejects recordings without calls, because callers are unknown.
fn refuse_without_calls(loaded: &LoadedRecording) -> anyhow::Result<()> {
    let details: Vec<Detail> = loaded.agents.iter().map(|agent| agent.report().detail()).collect();
    let all =
        details.first().filter(|first| **first != Detail::Calls && details.iter().all(|it| it == *first));
    match all.copied().and_then(missing_calls_hint) {
        None => Ok(()),
        Some(hint) => Err(exit::expected(exit::FAILED, format!("there are no calls to show: {hint}"), None)),
    }
}
