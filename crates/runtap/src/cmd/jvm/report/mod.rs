//! `runtap jvm report RECORDING`: reports on a recording of Bytefrog connections, as tables, documents or files.

mod compare;
mod export;
mod refuse;

use std::io;
use std::path::Path;

use runtap_bytefrog::CombinedReport;
use runtap_convert::source::has_view;
use runtap_convert::{Content, FileFormat};
use runtap_jvm::BrokenRules;
use runtap_jvm::classpath::ClasspathError;
use runtap_jvm::coverage::{Format, Patterns, RecordedCoverage};
use runtap_jvm::coverage_files::{CoverageError, CoverageRequest};
use runtap_jvm::recording::{
    ClassCounts, DEFAULT_SLOW, Error, JavaSource, LoadedAgent, LoadedRecording, Operand, Order, views,
};
use runtap_jvm::report::{ReportKind, RowOptions, merged_methods};
use runtap_os::output::OutputSink;
use runtap_text::jvm::{
    AgentDocument, AgentReports, CoverageDocument, JvmDocument, ReportText, RowsDocument, coverage_notes,
    warnings,
};
use runtap_text::{Output, Print, TextOptions, unsuitable, with_causes};
use serde::Serialize;

use self::compare::Pair;
use self::export::Export;
use crate::cli::{self, AnyFormat, Convert, Diff, JvmReport, Report};
use crate::cmd::diff::planned;
use crate::cmd::report::table_options;
use crate::exit::{self, expected, usage};
use runtap_text::units::Things;

/// A requested report.
struct Reporter<'a> {
    options: &'a JvmReport,
    operand: &'a Operand,
    shown: TextOptions<'a>,
    output: Output,
}

pub(super) fn run(options: &JvmReport, output: Output) -> anyhow::Result<u8> {
    refuse::ineffective(options)?;
    let operand = parse_operand(&options.recording)?;
    let reporter = Reporter { options, operand: &operand, shown: rows(options.number, output), output };
    if options.coverage.is_wanted() {
        return reporter.coverage();
    }
    if options.sets.is_wanted() {
        return reporter.sets();
    }
    if let Some(before) = &options.diff {
        let pair = Pair {
            before: &parse_operand(before)?,
            after: &operand,
            agents: &options.agent,
            slow: options.slow(),
            order: options.sort,
            calls_option: "--sort calls",
            limit: options.document_rows(),
            files: Vec::new(),
            view: None,
            absolute: true,
        };
        return pair.compare(&reporter.shown, output);
    }
    let files = &options.files;
    let formats = AnyFormat::files(&files.to, options.format, files.output.as_deref());
    if !formats.is_empty() || files.output.is_some() {
        let export = Export {
            operand: &operand,
            agents: &options.agent,
            slow: options.slow(),
            formats: &formats,
            output: files.output.as_deref(),
            content: Content {
                view: files.view,
                merge_threads: files.merge_threads,
                max_depth: files.max_depth,
                max_size: files.max_size,
                ..Content::default()
            },
        };
        return export::run(&export, output);
    }
    if options.merge_agents {
        return reporter.merged();
    }
    let loaded = operand.load(&options.agent, options.slow()).map_err(classify_error)?;
    match options.kind {
        None => print_summaries(std::slice::from_ref(&loaded), &reporter.shown, output)?,
        Some(kind) => {
            if let Some(thread) = options.thread {
                loaded.check_thread(thread, operand.label()).map_err(classify_error)?;
            }
            let rows = runtap_jvm::report::rows(kind, &loaded, &reporter.row_options());
            reporter.show(&RowsDocument::new(kind, operand.label(), rows))?;
        }
    }
    Ok(warn(&loaded, output))
}

impl Reporter<'_> {
    fn show(&self, document: &(impl Serialize + Print)) -> io::Result<()> {
        self.output.show_with(document, &self.shown)
    }

    /// Returns the selection and order of rows; tables are limited when they are printed.
    fn row_options(&self) -> RowOptions {
        RowOptions {
            order: self.options.sort.unwrap_or_default(),
            thread: self.options.thread,
            limit: self.options.document_rows(),
        }
    }

    /// Reports the combined coverage of this recording and those of `--or`.
    fn coverage(&self) -> anyhow::Result<u8> {
        let options = self.options;
        let file = options.format.filter(|format| !AnyFormat::files(&[], Some(*format), None).is_empty());
        if file.is_some() {
            return Err(usage("coverage is written with --coverage FORMAT=FILE; --format is text or json"));
        }
        let mut recorded = RecordedCoverage::default();
        let mut code = self.each(self.operand, &options.agent, |agent| recorded.add(&agent))?;
        for other in &options.sets.or {
            code = code.max(self.each(&parse_operand(other)?, &[], |agent| recorded.add(&agent))?);
        }
        if recorded.observed.unsent > 0 {
            code = code.max(exit::PARTIAL);
        }
        let wanted = &options.coverage;
        let request = CoverageRequest {
            files: &wanted.coverage,
            never_called: &wanted.never_called,
            classes: &wanted.classes,
            sources: &wanted.sources,
            patterns: Patterns::new(&wanted.include, &wanted.exclude)
                .map_err(|error| usage(error.to_string()))?,
            compiler_methods: wanted.compiler_methods,
            entry_lines: wanted.entry_lines,
        };
        // Report an invalid output path before jars are read.
        let sinks = request.open(&self.operand.base()).map_err(coverage_error)?;
        let to_stdout = sinks.iter().any(|sink| matches!(sink, OutputSink::Stdout));
        let classes = request.read_never_called(&recorded.observed).map_err(coverage_error)?;
        let never = request.never_called(&recorded.observed, &classes);
        let written = (!sinks.is_empty()).then(|| request.write(&recorded, &classes, sinks)).transpose();
        let written = written.map_err(coverage_error)?;
        if let Some(written) = &written {
            let formats: Vec<Format> = request.files.iter().map(|file| file.format).collect();
            for note in coverage_notes(written, &formats) {
                self.output.note(note);
            }
        }
        let limit = self.shown.rows.filter(|_| self.output.json());
        let document = CoverageDocument::new(written.as_ref(), never.as_ref(), limit);
        if self.output.json() {
            self.output.document_on_free_stream(&document, to_stdout)?;
        } else if !to_stdout {
            self.output.print(&document, &self.shown)?;
        }
        Ok(code)
    }

    /// Reports on all agents together, such as the JVMs that a test run has started.
    fn merged(&self) -> anyhow::Result<u8> {
        let (mut sums, mut classes) = (CombinedReport::default(), ClassCounts::default());
        let code = self.each(self.operand, &self.options.agent, |agent| {
            sums.add(agent.report());
            classes = classes.and(agent.classes());
        })?;
        let (agents, report) = (sums.agents(), sums.report());
        let title = format!("{} together", Things(agents, "agent"));
        if self.options.kind.is_some() {
            let rows = merged_methods(&report, title, &self.row_options());
            self.show(&RowsDocument::new(ReportKind::Methods, self.operand.label(), vec![rows]))?;
        } else if self.output.json() {
            let document = AgentDocument::of_several(agents, &report, classes);
            self.output.document(&JvmDocument::new(vec![document]))?;
        } else {
            let broken = BrokenRules::default().with_report(&report);
            self.output.print(&ReportText { title, report: &report, classes, broken }, &self.shown)?;
        }
        Ok(code)
    }

    /// Replays agents one after the other, and warns of missing data. Returns the exit code.
    fn each(
        &self,
        operand: &Operand,
        agents: &[String],
        mut take: impl FnMut(LoadedAgent),
    ) -> anyhow::Result<u8> {
        let (mut is_first, mut code) = (true, exit::OK);
        let replayed = operand.each(agents, self.options.slow(), |agent| {
            let lines = warnings(&operand.path, &agent, is_first);
            is_first = false;
            code = code.max(code_of(&agent));
            take(agent);
            for line in lines {
                self.output.warning(line);
            }
        });
        replayed.map_err(classify_error)?;
        Ok(code)
    }
}

/// Returns the recording or part of a recording that a path names; `None` for other files.
pub(in crate::cmd) fn find_operand(path: &Path) -> anyhow::Result<Option<Operand>> {
    Operand::find(path).map_err(|problem| usage(format!("{}: {problem}", path.display())))
}

/// `runtap convert` on a Java recording.
pub(in crate::cmd) fn convert(
    operand: &Operand,
    formats: &[FileFormat],
    options: &Convert,
    output: Output,
) -> anyhow::Result<u8> {
    if options.content.compat.is_some() {
        return Err(usage("--compat applies only to .NET recordings"));
    }
    let (path, content) = (options.output.as_deref(), (&options.content).into());
    export::run(&Export { operand, agents: &[], slow: DEFAULT_SLOW, formats, output: path, content }, output)
}

/// `runtap diff` on two Java recordings.
pub(in crate::cmd) fn diff(
    before: &Operand,
    after: &Operand,
    options: &Diff,
    output: Output,
) -> anyhow::Result<u8> {
    let content = Content { view: options.view, ..Content::default() };
    has_view::<JavaSource>(&content).map_err(|why| usage(unsuitable(why)))?;
    let [time, calls] = views();
    let order = match options.view {
        Some(view) if view == calls => Some(Order::Calls),
        _ if options.inclusive => Some(Order::Total),
        Some(view) if view == time => Some(Order::Own),
        _ => None,
    };
    let pair = Pair {
        before,
        after,
        agents: &[],
        slow: DEFAULT_SLOW,
        order,
        calls_option: "--view calls",
        limit: options.number.filter(|number| *number > 0 && output.json()),
        files: planned(options, &after.base())?,
        view: options.view,
        absolute: options.absolute,
    };
    pair.compare(&rows(options.number, output), output)
}

/// `runtap report` on a Java recording.
pub(in crate::cmd) fn report_kind(operand: &Operand, options: &Report, output: Output) -> anyhow::Result<u8> {
    let kind: ReportKind = cli::report_kind(&options.kind)?;
    if options.view.is_some() || options.inclusive {
        return Err(usage("--view and --inclusive apply only to the report cpu of .NET recordings"));
    }
    let loaded = operand.load(&[], DEFAULT_SLOW).map_err(classify_error)?;
    let limit = options.number.filter(|number| *number > 0 && output.json());
    let rows_of_agents =
        runtap_jvm::report::rows(kind, &loaded, &RowOptions { limit, ..RowOptions::default() });
    let document = RowsDocument::new(kind, operand.label(), rows_of_agents);
    output.show_with(&document, &rows(options.number, output))?;
    Ok(warn(&loaded, output))
}

/// Parses a recording, or a part of a recording.
fn parse_operand(text: &str) -> anyhow::Result<Operand> {
    Operand::parse(text).map_err(|problem| usage(format!("{text}: {problem}")))
}

/// Returns the options of tables; 0 shows all rows.
pub(super) fn rows(number: Option<usize>, output: Output) -> TextOptions<'static> {
    let shown = table_options(number, output);
    TextOptions { width: output.columns(), rows: shown.rows.filter(|rows| *rows > 0), ..shown }
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
        return Ok(output.document(&JvmDocument::new(documents.collect()))?);
    }
    Ok(output.print(&AgentReports(agents().collect()), shown)?)
}

/// Warns of missing data, and returns the exit code.
pub(super) fn warn(loaded: &LoadedRecording, output: Output) -> u8 {
    for (index, agent) in loaded.agents.iter().enumerate() {
        for line in warnings(&loaded.path, agent, index == 0) {
            output.warning(line);
        }
    }
    loaded.agents.iter().map(code_of).max().unwrap_or(exit::OK)
}

fn code_of(agent: &LoadedAgent) -> u8 {
    if agent.is_partial() { exit::PARTIAL } else { exit::OK }
}

/// Adds an exit code and a hint to an error.
pub(in crate::cmd) fn classify_error(error: Error) -> anyhow::Error {
    if !error.is_rejection() {
        return error.into();
    }
    let text = with_causes(error.to_string(), std::error::Error::source(&error));
    expected(exit::USAGE, text, error.hint())
}

fn coverage_error(error: CoverageError) -> anyhow::Error {
    match error {
        CoverageError::Output(error) => error.into(),
        CoverageError::Classpath(error @ ClasspathError::NoClasses(_)) => {
            let hint = "Use a jar, or the directory of compiled classes.".to_owned();
            expected(exit::USAGE, error.to_string(), hint)
        }
        error => usage(error.to_string()),
    }
}
