//! The structure of coverage reports: packages, classes, methods and lines, each with what ran.
//!
//! Everything is sorted, so that equal runs give equal files.

use std::collections::BTreeMap;

/// The numbers of missed and covered items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// The number of items that did not run.
    pub missed: u64,
    /// The number of items that ran.
    pub covered: u64,
}

/// A method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// The name; `<init>` for constructors.
    pub name: String,
    /// The descriptor: `(I)V`.
    pub descriptor: String,
    /// The first line; `None` if unknown.
    pub line: Option<u32>,
    /// The number of calls.
    pub calls: u64,
    /// The lines for which it is known whether they ran, with the number of times.
    pub lines: BTreeMap<u32, u64>,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// The source file, without a folder.
    pub source: String,
    /// Whether the class file names the source file; otherwise it is assumed to be the outermost class's name with
    /// `.java`.
    pub source_is_known: bool,
    /// The methods, sorted by first line, name and descriptor.
    pub methods: Vec<Method>,
}

/// A package.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Package {
    /// The classes, by internal name: `demo/Program$Inner`.
    pub classes: BTreeMap<String, Class>,
}

/// The coverage of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// The packages, by name with slashes: `com/example`; the unnamed package is empty.
    pub packages: BTreeMap<String, Package>,
    /// Whether any lines are known.
    pub has_lines: bool,
    /// What is omitted.
    pub notes: Notes,
}

/// The numbers of items that coverage omits or could not determine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notes {
    /// Classes that are omitted because it is unknown for all of their methods whether they ran.
    pub untraced_classes: u64,
    /// Methods of other classes that are omitted because it is unknown whether they ran.
    pub unknown_methods: u64,
    /// Methods, counted above or in classes counted above, that were not called since the trace began and whose
    /// class was loaded before.
    pub not_called_since_attach: u64,
    /// Called methods of classes that were loaded before the trace began: their lines that have not run since are
    /// omitted.
    pub partly_seen_methods: u64,
    /// Classes that patterns exclude.
    pub excluded_classes: u64,
    /// Classes of multi-release JAR files that may not be the ones for the Java release of every run.
    pub uncertain_classes: u64,
    /// Classes that were called and are in none of the JAR files.
    pub foreign_classes: u64,
    /// Classes of which another version ran, and whose lines are therefore omitted.
    pub other_versions: u64,
    /// Methods that were called but are not in their class: another version of it ran, or an agent added them.
    pub foreign_methods: u64,
    /// Lines that ran but are not in their method: another version of it ran.
    pub foreign_lines: u64,
    /// Methods that were called and whose lines are unknown.
    pub blind_methods: u64,
    /// Classes whose source file is unknown.
    pub assumed_sources: u64,
    /// Methods that were called and whose signature is invalid.
    pub unparsed_methods: u64,
    /// Methods that are omitted because the compiler generated them.
    pub filtered_methods: u64,
}

impl Counter {
    /// Counts one item.
    pub fn one(covered: bool) -> Self {
        Self { missed: u64::from(!covered), covered: u64::from(covered) }
    }

    /// Returns the number of all items.
    pub fn total(self) -> u64 {
        self.missed.saturating_add(self.covered)
    }

    /// Returns the sum of two counters.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            missed: self.missed.saturating_add(other.missed),
            covered: self.covered.saturating_add(other.covered),
        }
    }

    fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), Self::plus)
    }

    /// Counts lines by their hits.
    pub fn of_lines(lines: &BTreeMap<u32, u64>) -> Self {
        Self::sum(lines.values().map(|hits| Self::one(*hits > 0)))
    }
}

impl Method {
    /// Returns whether the method was called.
    pub fn is_covered(&self) -> bool {
        self.calls > 0
    }

    /// Counts the lines of the method.
    pub fn line_counter(&self) -> Counter {
        Counter::of_lines(&self.lines)
    }
}

impl Class {
    /// Returns whether any method of the class was called.
    pub fn is_covered(&self) -> bool {
        self.methods.iter().any(Method::is_covered)
    }

    /// Counts the methods of the class.
    pub fn method_counter(&self) -> Counter {
        Counter::sum(self.methods.iter().map(|method| Counter::one(method.is_covered())))
    }

    /// Returns the lines of the class. A line of several methods (such as that of a lambda) occurs once, with the
    /// hits of all.
    pub fn lines(&self) -> BTreeMap<u32, u64> {
        merged(self.methods.iter())
    }
}

impl Package {
    /// Returns the source files of the package by name, with their classes.
    pub fn sources(&self) -> BTreeMap<&str, Source<'_>> {
        let mut sources: BTreeMap<&str, Source<'_>> = BTreeMap::new();
        for (name, class) in &self.classes {
            sources.entry(&class.source).or_default().classes.push((name, class));
        }
        sources
    }

    /// Returns the totals of the package. Lines are those of its source files.
    pub fn totals(&self) -> CoverageTotals {
        let sources = self.sources();
        sources.values().map(Source::totals).fold(CoverageTotals::default(), CoverageTotals::plus)
    }
}

/// A source file with its classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source<'a> {
    /// The classes, sorted by name.
    pub classes: Vec<(&'a str, &'a Class)>,
}

impl Source<'_> {
    /// Returns the lines of the file, with the hits of all methods that contain them.
    pub fn lines(&self) -> BTreeMap<u32, u64> {
        merged(self.classes.iter().flat_map(|(_, class)| &class.methods))
    }

    /// Returns the totals of the file.
    pub fn totals(&self) -> CoverageTotals {
        let classes = self.classes.iter();
        CoverageTotals {
            lines: Counter::of_lines(&self.lines()),
            methods: Counter::sum(classes.clone().map(|(_, class)| class.method_counter())),
            classes: Counter::sum(classes.map(|(_, class)| Counter::one(class.is_covered()))),
        }
    }
}

/// The counters of lines, methods and classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoverageTotals {
    /// Lines.
    pub lines: Counter,
    /// Methods.
    pub methods: Counter,
    /// Classes.
    pub classes: Counter,
}

impl CoverageTotals {
    /// Returns the sum of two totals.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            lines: self.lines.plus(other.lines),
            methods: self.methods.plus(other.methods),
            classes: self.classes.plus(other.classes),
        }
    }
}

impl Coverage {
    /// Returns the totals of all packages.
    pub fn totals(&self) -> CoverageTotals {
        self.packages.values().map(Package::totals).fold(CoverageTotals::default(), CoverageTotals::plus)
    }
}

fn merged<'a>(methods: impl Iterator<Item = &'a Method>) -> BTreeMap<u32, u64> {
    let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, hits) in methods.flat_map(|method| &method.lines) {
        let line = lines.entry(*number).or_default();
        *line = line.saturating_add(*hits);
    }
    lines
}

/// Returns the package of a class: `demo` for `demo/Program`.
pub(crate) fn package(class: &str) -> &str {
    class.rsplit_once('/').map_or("", |(package, _)| package)
}

/// Returns the name of a class without its package: `Program$Inner` for `demo/Program$Inner`.
pub(crate) fn simple(class: &str) -> &str {
    class.rsplit_once('/').map_or(class, |(_, simple)| simple)
}

/// Returns the conventional source file of a class: the name of the outermost class (JLS 7.6).
pub(crate) fn assumed_source(class: &str) -> String {
    let simple = simple(class);
    let outermost = simple.split('$').next().filter(|name| !name.is_empty()).unwrap_or(simple);
    format!("{outermost}.java")
}
