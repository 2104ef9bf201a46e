//! `runtap jvm report RECORDING`: reports on a recording of Bytefrog connections, as tables, documents or files.

mod diff;
mod export;
mod kinds;
pub(super) mod load;
mod losses;
mod marked;
mod merged;
mod place;
mod refuse;
mod sets;
mod tables;

use runtap_jvm::coverage::Observed;
use runtap_text::{Print, TextOptions};

use self::load::{LoadedAgent, LoadedRecording, Operand};
use super::coverage;
use super::document::{AgentDocument, JvmDocument};
use super::text::ReportText;
use crate::cli::{AnyFormat, JvmReport};
use crate::cmd::report::table_options;
use crate::exit::{self, usage};
use crate::output::Output;

pub(super) fn run(options: &JvmReport, output: Output) -> anyhow::Result<u8> {
    refuse::ineffective(options)?;
    let shown = rows(options.number, output);
    let operand = Operand::parse(&options.recording)?;
    if options.coverage.is_wanted() {
        return report_coverage(options, &operand, &shown, output);
    }
    let sets = &options.sets;
    if !(sets.or.is_empty() && sets.and.is_empty() && sets.minus.is_empty()) {
        return sets::run(options, &operand, &shown, output);
    }
    if let Some(before) = &options.diff {
        return diff::run(options, &Operand::parse(before)?, &operand, &shown, output);
    }
    let files = &options.files;
    let formats = AnyFormat::files(&files.to, options.format, files.output.as_deref());
    if !formats.is_empty() || files.output.is_some() {
        return export::run(options, &operand, &formats, output);
    }
    if options.merge_agents {
        return merged::run(options, &operand, &shown, output);
    }
    let loaded = operand.load(&options.agent, options.slow())?;
    match options.kind {
        None => print_summaries(std::slice::from_ref(&loaded), &shown, output)?,
        Some(kind) => {
            let document = kinds::document(kind, options, &operand, &loaded)?;
            if output.json() {
                output.document(&document)?;
            } else {
                output.print(&document, &shown)?;
            }
        }
    }
    Ok(ended(&[&loaded], output))
}

/// Returns the options of tables; 0 shows all rows.
pub(super) fn rows(number: Option<usize>, output: Output) -> TextOptions<'static> {
    let shown = table_options(number, output);
    TextOptions { width: output.columns(), rows: shown.rows.filter(|rows| *rows > 0), ..shown }
}

/// Reports the combined coverage of this recording and those of `--or`.
fn report_coverage(
    options: &JvmReport,
    operand: &Operand,
    shown: &TextOptions<'_>,
    output: Output,
) -> anyhow::Result<u8> {
    let file = options.format.filter(|format| !AnyFormat::files(&[], Some(*format), None).is_empty());
    if file.is_some() {
        return Err(usage("coverage has files of its own: --coverage FORMAT=FILE; --format is text or json"));
    }
    let (mut observed, mut code, mut began) = (Observed::default(), exit::OK, None);
    let mut add = |operand: &Operand, agents: &[String]| -> anyhow::Result<()> {
        let told =
            operand.each(agents, options.slow(), output, |agent @ LoadedAgent { replayed, .. }| {
                let wall = replayed.process.as_ref().map(|process| process.wall / 1_000_000);
                began = began.into_iter().chain(wall).min();
                let report = replayed.model.report();
                let mut one = coverage::observed(&report, &replayed.classes, replayed.class_counts);
                one.traced.insert(coverage::traced(replayed.configuration.as_ref()));
                let jvm = replayed.process.as_ref().map(|process| process.jvm.to_string());
                one.releases.add(jvm.as_deref());
                one.unsent = agent.ended_early().into();
                if one.unsent > 0 {
                    code = code.max(exit::PARTIAL);
                }
                observed.add(one);
            })?;
        code = code.max(told);
        Ok(())
    };
    add(operand, &options.agent)?;
    for other in &options.sets.or {
        add(&Operand::parse(other)?, &[])?;
    }
    let recording = coverage::Recording { base: &place::base(operand), began_ms: began };
    coverage::run(&options.coverage, &observed, &recording, shown, output)?;
    Ok(code)
}

/// Prints the same summary that the collector prints at its end.
pub(super) fn print_summaries(
    all: &[LoadedRecording],
    shown: &TextOptions<'_>,
    output: Output,
) -> anyhow::Result<()> {
    let agents = || all.iter().flat_map(|loaded| &loaded.agents);
    if output.json() {
        let documents =
            agents().map(|agent| AgentDocument::new(agent.replayed.run, &agent.report(), agent.classes()));
        return output.document(&JvmDocument::new(documents.collect()));
    }
    for (index, agent) in agents().enumerate() {
        if index > 0 {
            output.text("\n")?;
        }
        let report = agent.report();
        let text = ReportText {
            title: agent.title(),
            report: &report,
            classes: agent.classes(),
            broken: agent.broken().with_report(&report),
        };
        output.print(&text as &dyn Print, shown)?;
    }
    Ok(())
}

/// Warns of missing data, and returns the exit code.
fn ended(all: &[&LoadedRecording], output: Output) -> u8 {
    let is_partial = all.iter().map(|loaded| loaded.warn(output)).fold(false, |a, b| a | b);
    if is_partial { exit::PARTIAL } else { exit::OK }
}
