//! Coverage as reports see it: packages, classes, methods and lines, each with what ran.
//!
//! Owns: [`Coverage`] and its parts, how they are counted, and in which order they come. Everything is sorted, so that
//! equal runs give equal files.

use std::collections::BTreeMap;

/// So many were missed, so many covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// Those that did not run.
    pub missed: u64,
    /// Those that did.
    pub covered: u64,
}

/// A method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its name, `<init>` for constructors.
    pub name: String,
    /// Its descriptor: `(I)V`.
    pub descriptor: String,
    /// Its first line, if a class file or a visit says it.
    pub line: Option<u32>,
    /// How often it was called.
    pub calls: u64,
    /// Its lines, as far as it is known whether they ran, and how often they did.
    pub lines: BTreeMap<u32, u64>,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its source file, without a folder.
    pub source: String,
    /// Whether the class file says so; else it is the outermost class's name with `.java`.
    pub source_is_known: bool,
    /// By their first line, then by name and descriptor.
    pub methods: Vec<Method>,
}

/// A package.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Package {
    /// By internal name: `demo/Program$Inner`.
    pub classes: BTreeMap<String, Class>,
}

/// What ran of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// By name, with slashes: `com/example`; the unnamed package is empty.
    pub packages: BTreeMap<String, Package>,
    /// Whether it is known of any line whether it ran.
    pub has_lines: bool,
    /// What is not in it.
    pub notes: Notes,
}

/// What coverage does not say, counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notes {
    /// Classes of which it is not known of any method whether it ran, and that are therefore left out.
    pub untraced_classes: u64,
    /// Methods of other classes of which it is not known whether they ran, and that are therefore left out.
    pub unknown_methods: u64,
    /// Methods of either kind that were not called since the trace began, and whose class was loaded before.
    pub not_called_since_attach: u64,
    /// Methods that were called, of classes that were loaded before the trace began: lines that have not run since are left out.
    pub partly_seen_methods: u64,
    /// Classes left out by patterns.
    pub excluded_classes: u64,
    /// Classes of multi-release jars that are not the right ones for each run, or of which that is not known.
    pub uncertain_classes: u64,
    /// Classes that were called and are in none of the jars.
    pub foreign_classes: u64,
    /// Classes of which another version ran, and whose lines are therefore left out.
    pub other_versions: u64,
    /// Methods that were called and that their class does not have: another version of it ran, or an agent has added them.
    pub foreign_methods: u64,
    /// Lines that ran and that their method does not have: another version of it ran.
    pub foreign_lines: u64,
    /// Methods that were called and whose lines are not known.
    pub blind_methods: u64,
    /// Classes whose source file is not known.
    pub assumed_sources: u64,
    /// Methods that were called and whose signature is none.
    pub unparsed_methods: u64,
    /// Methods of the compiler's making, left out.
    pub filtered_methods: u64,
}

impl Counter {
    /// One thing.
    pub fn one(covered: bool) -> Self {
        Self { missed: u64::from(!covered), covered: u64::from(covered) }
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.missed.saturating_add(self.covered)
    }

    /// Both together.
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

    /// Those of lines with their hits.
    pub fn of_lines(lines: &BTreeMap<u32, u64>) -> Self {
        Self::sum(lines.values().map(|hits| Self::one(*hits > 0)))
    }
}

impl Method {
    /// Whether it was called.
    pub fn is_covered(&self) -> bool {
        self.calls > 0
    }

    /// How many of its lines ran.
    pub fn line_counter(&self) -> Counter {
        Counter::of_lines(&self.lines)
    }
}

impl Class {
    /// Whether any of its methods was called.
    pub fn is_covered(&self) -> bool {
        self.methods.iter().any(Method::is_covered)
    }

    /// How many of its methods were called.
    pub fn method_counter(&self) -> Counter {
        Counter::sum(self.methods.iter().map(|method| Counter::one(method.is_covered())))
    }

    /// Its lines: one that several methods have (that of a lambda) is one, with the hits of all.
    pub fn lines(&self) -> BTreeMap<u32, u64> {
        merged(self.methods.iter())
    }
}

impl Package {
    /// Its source files by name, with their classes.
    pub fn sources(&self) -> BTreeMap<&str, Source<'_>> {
        let mut sources: BTreeMap<&str, Source<'_>> = BTreeMap::new();
        for (name, class) in &self.classes {
            sources.entry(&class.source).or_default().classes.push((name, class));
        }
        sources
    }

    /// Its counters: lines are those of its source files.
    pub fn totals(&self) -> Totals {
        let sources = self.sources();
        sources.values().map(Source::totals).fold(Totals::default(), Totals::plus)
    }
}

/// A source file with its classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source<'a> {
    /// By name.
    pub classes: Vec<(&'a str, &'a Class)>,
}

impl Source<'_> {
    /// Its lines, with the hits of all methods that have them.
    pub fn lines(&self) -> BTreeMap<u32, u64> {
        merged(self.classes.iter().flat_map(|(_, class)| &class.methods))
    }

    /// Its counters.
    pub fn totals(&self) -> Totals {
        let classes = self.classes.iter();
        Totals {
            lines: Counter::of_lines(&self.lines()),
            methods: Counter::sum(classes.clone().map(|(_, class)| class.method_counter())),
            classes: Counter::sum(classes.map(|(_, class)| Counter::one(class.is_covered()))),
        }
    }
}

/// The counters of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Lines.
    pub lines: Counter,
    /// Methods.
    pub methods: Counter,
    /// Classes.
    pub classes: Counter,
}

impl Totals {
    /// Both together.
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
    /// The counters of everything.
    pub fn totals(&self) -> Totals {
        self.packages.values().map(Package::totals).fold(Totals::default(), Totals::plus)
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

/// The package of a class: `demo` of `demo/Program`.
pub(crate) fn package(class: &str) -> &str {
    class.rsplit_once('/').map_or("", |(package, _)| package)
}

/// The name of a class without its package: `Program$Inner` of `demo/Program$Inner`.
pub(crate) fn simple(class: &str) -> &str {
    class.rsplit_once('/').map_or(class, |(_, simple)| simple)
}

/// Where the source of a class has to be if nothing says so: with the name of the outermost class (JLS 7.6).
pub(crate) fn assumed_source(class: &str) -> String {
    let simple = simple(class);
    let outermost = simple.split('$').next().filter(|name| !name.is_empty()).unwrap_or(simple);
    format!("{outermost}.java")
}
