//! Coverage files and methods that were never called: `runtap.jvm.coverage/1`, its text, and notes on what is missing.

use std::io;
use std::path::PathBuf;

use runtap_jvm::coverage::model::{Counter, Notes};
use runtap_jvm::coverage::{Format, NeverCalled};
use runtap_jvm::coverage_files::WrittenCoverage;
use serde::Serialize;

use super::never::NeverDocument;
use crate::document::OutputFile;
use crate::units::{Count, Things};
use crate::{Print, TextOptions};

/// A document of the schema `runtap.jvm.coverage/1`.
#[derive(Debug, Serialize)]
pub struct CoverageDocument<'a> {
    schema: &'static str,
    coverage: Option<FilesDocument>,
    never_called: Option<NeverDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct FilesDocument {
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

impl<'a> CoverageDocument<'a> {
    /// Creates the document for written files, and for a list of methods that were never called, with at most `limit` classes.
    pub fn new(
        written: Option<&WrittenCoverage>,
        never_called: Option<&'a NeverCalled<'a>>,
        limit: Option<usize>,
    ) -> Self {
        Self {
            schema: "runtap.jvm.coverage/1",
            coverage: written.map(Into::into),
            never_called: never_called.map(|never| NeverDocument::new(never, limit)),
        }
    }
}

impl From<&WrittenCoverage> for FilesDocument {
    fn from(WrittenCoverage { coverage, files, .. }: &WrittenCoverage) -> Self {
        let totals = coverage.totals();
        let file =
            |(path, format, bytes): &(PathBuf, Format, u64)| OutputFile::new(path, format.name(), *bytes);
        Self {
            files: files.iter().map(file).collect(),
            lines: coverage.has_lines.then(|| totals.lines.into()),
            methods: totals.methods.into(),
            classes: totals.classes.into(),
            notes: (&coverage.notes).into(),
        }
    }
}

/// Returns notes about what files of these formats do not contain.
pub fn coverage_notes(written: &WrittenCoverage, formats: &[Format]) -> Vec<String> {
    let WrittenCoverage { coverage, unread_entries, .. } = written;
    let notes = &coverage.notes;
    let mut lines = Vec::new();
    let mut note = |text: &str| lines.push(text.to_owned());
    if unread_entries.is_none() {
        note("only what was called is in the coverage: --classes JAR|DIR says what else there is");
    }
    // Lines left out because of other class versions are reported below.
    let lacks_lines = !coverage.has_lines && notes.other_versions == 0;
    if lacks_lines {
        note(
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
        (unread_entries.unwrap_or(0), "entry", "of jars that can't be read"),
    ] {
        if count > 0 {
            note(&format!("{} {what}", Things(count, noun)));
        }
    }
    if formats.contains(&Format::Cobertura) && coverage.totals().lines.total() == 0 {
        note("no line is known, so the rates of lines in the Cobertura file are 0 and say nothing");
    }
    if !formats.contains(&Format::Lcov) {
        return lines;
    }
    if !coverage.has_lines {
        let remedy = if lacks_lines { " (--entry-lines: first lines)" } else { "" };
        note(&format!("lcov and genhtml read no file without lines{remedy}"));
    }
    for (count, noun) in
        [(coverage.methods_without_line(), "method"), (coverage.sources_without_lines(), "source file")]
    {
        if count > 0 {
            let count = Things(count, noun);
            note(&format!("{count} not in the LCOV file: their lines are not known"));
        }
    }
    lines
}

impl Print for CoverageDocument<'_> {
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

impl Print for FilesDocument {
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
