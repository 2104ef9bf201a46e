//! Coverage files and methods that were never called, as `runtap.jvm.coverage/1` or as text. See [`runtap_jvm::coverage`] for
//! the computation.

mod classes;
mod never;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use runtap_bytefrog::Report;
use runtap_bytefrog_proto::{ClassOutcome, Configuration, JavaString};
use runtap_jvm::coverage::model::{Counter, Notes};
use runtap_jvm::coverage::{
    ClassFate, Coverage, Inventory, NeverCalled, NeverOptions, Observed, Options, Patterns, TracedClasses,
    WriteOptions,
};
use runtap_os::output::{Destination, OutputSink, with_extension};
use runtap_text::document::OutputFile;
use runtap_text::units::{Count, Things};
use runtap_text::{Print, TextOptions};
use serde::Serialize;

use self::never::NeverDocument;
use crate::cli::JvmCoverage;
use crate::exit::usage;
use crate::output::Output;

/// Returns what an agent's trace shows of its program. `classes` has the agent's reports on classes, by outcome and name;
/// `counts` is their number by outcome, which is higher if not all reports were kept.
pub(super) fn observed(
    report: &Report,
    classes: &BTreeMap<(ClassOutcome, String), u64>,
    counts: [u64; 3],
) -> Observed {
    let mut observed = Observed::of(report);
    for (outcome, name) in classes.keys() {
        let fate = match outcome {
            ClassOutcome::Transformed => ClassFate::Traced,
            ClassOutcome::Ignored => ClassFate::Ignored,
            ClassOutcome::Failed => ClassFate::Failed,
        };
        observed.class(name, fate);
    }
    observed.end_of_classes();
    let kept: u64 = classes.values().sum();
    observed.losses.class_reports = counts.iter().sum::<u64>().saturating_sub(kept);
    observed
}

/// Returns the patterns of the classes that an agent was configured to trace.
pub(super) fn traced(configuration: Option<&Configuration>) -> TracedClasses {
    let texts = |patterns: &[JavaString]| patterns.iter().map(ToString::to_string).collect();
    configuration.map_or_else(TracedClasses::default, |configuration| TracedClasses {
        inclusions: texts(&configuration.inclusions),
        exclusions: texts(&configuration.exclusions),
    })
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    coverage: Option<CoverageDocument>,
    never_called: Option<NeverDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct CoverageDocument {
    files: Vec<OutputFile>,
    /// `None` if no agent has reported lines.
    lines: Option<Covered>,
    methods: Covered,
    classes: Covered,
    notes: NotesDocument,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Covered {
    covered: u64,
    missed: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct NotesDocument {
    untraced_classes: u64,
    unknown_methods: u64,
    not_called_since_attach: u64,
    partly_seen_methods: u64,
    excluded_classes: u64,
    uncertain_classes: u64,
    foreign_classes: u64,
    other_versions: u64,
    foreign_methods: u64,
    foreign_lines: u64,
    blind_methods: u64,
    assumed_sources: u64,
    unparsed_methods: u64,
    filtered_methods: u64,
}

impl From<Counter> for Covered {
    fn from(Counter { missed, covered }: Counter) -> Self {
        Self { covered, missed }
    }
}

impl From<&Notes> for NotesDocument {
    fn from(notes: &Notes) -> Self {
        Self {
            untraced_classes: notes.untraced_classes,
            unknown_methods: notes.unknown_methods,
            not_called_since_attach: notes.not_called_since_attach,
            partly_seen_methods: notes.partly_seen_methods,
            excluded_classes: notes.excluded_classes,
            uncertain_classes: notes.uncertain_classes,
            foreign_classes: notes.foreign_classes,
            other_versions: notes.other_versions,
            foreign_methods: notes.foreign_methods,
            foreign_lines: notes.foreign_lines,
            blind_methods: notes.blind_methods,
            assumed_sources: notes.assumed_sources,
            unparsed_methods: notes.unparsed_methods,
            filtered_methods: notes.filtered_methods,
        }
    }
}

/// The source of the names and timestamps of coverage files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recording<'a> {
    /// The path of the recording; files get the same path with another extension.
    pub(super) base: &'a Path,
    /// The time at which the first program started, in milliseconds since 1970; `None` for agents of versions 1 to 4.
    pub(super) began_ms: Option<u64>,
}

/// Writes the requested coverage files, and prints the results.
pub(super) fn run(
    options: &JvmCoverage,
    observed: &Observed,
    recording: &Recording<'_>,
    shown: &TextOptions<'_>,
    output: Output,
) -> anyhow::Result<()> {
    let patterns =
        Patterns::new(&options.include, &options.exclude).map_err(|error| usage(error.to_string()))?;
    // Report an invalid output path before jars are read.
    let outlets = open(options, recording.base)?;
    let to_stdout = outlets.iter().any(|outlet| matches!(outlet, OutputSink::Stdout));
    let never_inventory = classes::inventory(&options.never_called, observed.releases.newest())?;
    let never = (!options.never_called.is_empty()).then(|| {
        let options = NeverOptions { patterns: patterns.clone(), compiler_methods: options.compiler_methods };
        NeverCalled::of(observed, &never_inventory, &options)
    });
    let coverage = if outlets.is_empty() {
        None
    } else {
        let began = recording.began_ms.unwrap_or(0);
        Some(write(options, patterns, observed, (&never_inventory, began), outlets, output)?)
    };
    let document = Document {
        schema: "runtap.jvm.coverage/1",
        coverage,
        never_called: never
            .as_ref()
            .map(|never| NeverDocument::new(never, shown.rows.filter(|_| output.json()))),
    };
    if output.json() {
        return output.document_beside(&document, to_stdout);
    }
    if to_stdout {
        return Ok(());
    }
    output.print(&document, shown)
}

fn open(options: &JvmCoverage, recording: &Path) -> anyhow::Result<Vec<OutputSink>> {
    let mut outlets = Vec::new();
    let mut places: Vec<Destination> = Vec::new();
    for file in &options.coverage {
        let to = match &file.path {
            Some(path) if path == Path::new("-") => Destination::Stdout,
            Some(path) => Destination::File(path.clone()),
            None => Destination::File(with_extension(recording, file.format.extension())),
        };
        if places.contains(&to) {
            return Err(usage(format!(
                "two coverage files have one place: give --coverage {}=FILE",
                file.format.name()
            )));
        }
        outlets.push(OutputSink::open(&to)?);
        places.push(to);
    }
    Ok(outlets)
}

fn write(
    options: &JvmCoverage,
    patterns: Patterns,
    observed: &Observed,
    (never, began_ms): (&Inventory, u64),
    outlets: Vec<OutputSink>,
    output: Output,
) -> anyhow::Result<CoverageDocument> {
    let release = observed.releases.newest();
    let own =
        (!options.classes.is_empty()).then(|| classes::inventory(&options.classes, release)).transpose()?;
    // The jars given for the list of never-called methods are part of the program too.
    let inventory = own.as_ref().or_else(|| (!options.never_called.is_empty()).then_some(never));
    let wanted =
        Options { patterns, compiler_methods: options.compiler_methods, entry_lines: options.entry_lines };
    let coverage = Coverage::of(observed, inventory, &wanted);
    let roots: Vec<String> = options.sources.iter().map(|root| root.to_string_lossy().into_owned()).collect();
    let locate = |path: &str| classes::locate(&options.sources, path);
    let how = WriteOptions {
        // The time of the recording, not the current time: equal traces give equal files.
        timestamp_ms: began_ms,
        roots: &roots,
        locate: Some(&locate),
        ..WriteOptions::default()
    };
    let mut files = Vec::new();
    for (file, outlet) in options.coverage.iter().zip(outlets) {
        let mut writer = outlet.begin()?;
        file.format.write(&coverage, &mut writer, &how).map_err(|error| writer.failed(error))?;
        let (path, bytes) = writer.finish()?;
        files.extend(path.map(|path| OutputFile::new(&path, file.format.name(), bytes)));
    }
    let totals = coverage.totals();
    print_notes(&coverage, inventory, options, output);
    Ok(CoverageDocument {
        files,
        lines: coverage.has_lines.then(|| totals.lines.into()),
        methods: totals.methods.into(),
        classes: totals.classes.into(),
        notes: (&coverage.notes).into(),
    })
}

/// Prints notes about what the files do not contain.
fn print_notes(coverage: &Coverage, inventory: Option<&Inventory>, options: &JvmCoverage, output: Output) {
    let notes = &coverage.notes;
    if inventory.is_none() {
        output.note("only what was called is in the coverage: --classes JAR|DIR says what else there is");
    }
    // Lines left out because of other class versions are reported below.
    let lacks_lines = !coverage.has_lines && notes.other_versions == 0;
    if lacks_lines {
        output.note(
            "the agents have told of no lines, so the coverage has methods only (--entry-lines: first lines)",
        );
    }
    for (count, noun, what) in [
        (
            notes.untraced_classes,
            "class",
            "left out, because it is not known of any method whether it ran: not traced, loaded before the trace began, \
             or the agent ended early",
        ),
        (
            notes.unknown_methods,
            "method",
            "left out, because it is not known whether they ran: not traced, loaded before the trace began, or the \
             agent ended early",
        ),
        (
            notes.not_called_since_attach,
            "method",
            "of these not called since the trace began: they may have been called before the agent was attached",
        ),
        (
            notes.partly_seen_methods,
            "method",
            "called of classes that were loaded before the trace began: lines that have not run since are left out",
        ),
        (
            notes.uncertain_classes,
            "class",
            "of multi-release jars others in other releases of Java, and the runs had several, or it is not known which: \
             methods and lines are those for the newest",
        ),
        (notes.foreign_classes, "class", "called and in none of the jars: left out"),
        (notes.foreign_methods, "method", "called that the class in the jar or directory does not have"),
        (notes.foreign_lines, "line", "that ran and that the method in the jar or directory does not have"),
        (
            notes.other_versions,
            "class",
            "of which another version ran than the one in the jar or directory: lines are left out, and methods are \
             those of equal names",
        ),
        (
            notes.blind_methods,
            "method",
            "called without a word about lines: what was missed in them is not known",
        ),
        (notes.unparsed_methods, "method", "called whose signature can't be read: left out"),
        (
            inventory.map_or(0, |inventory| inventory.unread.len() as u64),
            "entry",
            "of jars that can't be read",
        ),
    ] {
        if count > 0 {
            output.note(format_args!("{} {what}", Things(count, noun)));
        }
    }
    let cobertura =
        options.coverage.iter().any(|file| file.format == runtap_jvm::coverage::Format::Cobertura);
    if cobertura && coverage.totals().lines.total() == 0 {
        output.note("no line is known, so the rates of lines in the Cobertura file are 0 and say nothing");
    }
    let lcov = options.coverage.iter().any(|file| file.format == runtap_jvm::coverage::Format::Lcov);
    if !lcov {
        return;
    }
    if !coverage.has_lines {
        let remedy = if lacks_lines { " (--entry-lines: first lines)" } else { "" };
        output.note(format_args!("lcov and genhtml read no file without lines{remedy}"));
    }
    for (count, noun) in
        [(coverage.methods_without_line(), "method"), (coverage.sources_without_lines(), "source file")]
    {
        if count > 0 {
            let count = Things(count, noun);
            output.note(format_args!("{count} not in the LCOV file: their lines are not known"));
        }
    }
}

impl Print for Document<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        if let Some(coverage) = &self.coverage {
            coverage.print(out, options)?;
        }
        if self.coverage.is_some() && self.never_called.is_some() {
            writeln!(out)?;
        }
        self.never_called.as_ref().map_or(Ok(()), |never| never.print(out, options))
    }
}

impl Print for CoverageDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let of = |covered: Covered, what: &'static str| {
            let all = covered.covered + covered.missed;
            format!("{} of {}", Count(covered.covered), Things(all, what))
        };
        write!(out, "{}, {}", of(self.classes, "class"), of(self.methods, "method"))?;
        match self.lines {
            Some(lines) => writeln!(out, " and {} ran", of(lines, "line"))?,
            None => writeln!(out, " ran; nothing is known of lines")?,
        }
        self.files.iter().try_for_each(|file| file.print(out, options))
    }
}
