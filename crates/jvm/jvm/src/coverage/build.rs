//! Coverage from observed calls and an inventory of classes.
//!
//! [`Options`] and [`Coverage::of`] determine which lines and methods count as missed. With an inventory, coverage
//! is that of its classes; without an inventory, only what ran is known.
//!
//! | | counts as |
//! | --- | --- |
//! | method that was called | covered |
//! | method of the inventory that was not called, in a class that was traced or never loaded | missed |
//! | method for which it is unknown whether it ran ([`Unknown`](crate::coverage::Unknown)) | neither: it is omitted |
//! | line of a called method, in a class that was loaded before the trace began, without a visit since | neither |
//! | line that was visited | covered, with its visits |
//! | other line of a method whose lines were visited, or that was never called, if any run reported lines | missed |
//! | line of a method that was called without reported lines | neither |
//! | line of a class of which another version ran, as lines or methods that it does not have show | neither |
//! | line, if no run reported lines | neither, unless [`Options::entry_lines`] is set |

use std::collections::{BTreeMap, BTreeSet};

use runtap_model::order;

use crate::coverage::doubts::Doubts;
use crate::coverage::inventory::{self, Inventory};
use crate::coverage::model::{Class, Coverage, Method, assumed_source, package};
use crate::coverage::observed::{MethodId, Observed, ObservedMethod, Unknown};
use crate::coverage::patterns::Patterns;

/// The options of coverage.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The classes to include.
    pub patterns: Patterns,
    /// Whether to include methods that the compiler generated ([`Filtered`](crate::coverage::Filtered)).
    pub compiler_methods: bool,
    /// Whether the first line of each method represents the method if no run reported lines: the line ran as often
    /// as the method was called. For formats and readers that support only lines.
    pub entry_lines: bool,
}

impl Coverage {
    /// Returns the coverage of the classes in `inventory`; without an inventory, of all methods that were called.
    pub fn of(observed: &Observed, inventory: Option<&Inventory>, options: &Options) -> Self {
        let doubts = Doubts::new(observed);
        let mut build = CoverageBuilder {
            observed,
            doubts,
            options,
            coverage: Self::default(),
            skipped: BTreeSet::new(),
        };
        build.coverage.notes.unparsed_methods = observed.unparsed.len() as u64;
        match inventory {
            Some(inventory) => {
                build.coverage.notes.uncertain_classes = observed.releases.uncertain(inventory);
                for (name, class) in &inventory.classes {
                    build.add_listed(name, class);
                }
                build.count_foreign(inventory);
            }
            None => build.add_observed(),
        }
        build.coverage
    }
}

struct CoverageBuilder<'a> {
    observed: &'a Observed,
    doubts: Doubts<'a>,
    options: &'a Options,
    coverage: Coverage,
    /// The classes that patterns exclude.
    skipped: BTreeSet<&'a str>,
}

/// What is known about the lines of a class.
#[derive(Debug, Clone, Copy)]
struct LineKnowledge {
    /// Whether another version of the class ran.
    is_other_version: bool,
    /// Whether the class was loaded before the trace began.
    was_loaded: bool,
}

impl<'a> CoverageBuilder<'a> {
    /// Adds a class of the inventory.
    fn add_listed(&mut self, name: &str, listed: &inventory::Class) {
        if listed.filtered.is_some() && !self.options.compiler_methods {
            self.coverage.notes.filtered_methods += listed.methods.len() as u64;
            return;
        }
        if listed.methods.is_empty() {
            return;
        }
        if !self.options.patterns.keep(name) {
            self.coverage.notes.excluded_classes += 1;
            return;
        }
        let seen = seen_of(self.observed, name);
        let seen = order::to_map(seen.map(|(id, seen)| ((id.name.as_str(), id.descriptor.as_str()), seen)));
        let doubts = self.doubts.of_class(name, !seen.is_empty());
        let lines = LineKnowledge {
            is_other_version: self.is_other_version(listed, &seen),
            was_loaded: self.observed.loaded_before.contains(name),
        };
        self.coverage.notes.other_versions += u64::from(lines.is_other_version);
        let (mut methods, mut unknown) = (Vec::new(), 0);
        for method in &listed.methods {
            if method.filtered.is_some() && !self.options.compiler_methods {
                self.coverage.notes.filtered_methods += 1;
                continue;
            }
            let seen = seen.get(&(method.name.as_str(), method.descriptor.as_str())).copied();
            if seen.is_none()
                && let Some(why) = doubts.of(&method.name, &method.descriptor)
            {
                unknown += 1;
                let not_since = why == Unknown::NotSinceAttach;
                self.coverage.notes.not_called_since_attach += u64::from(not_since);
                continue;
            }
            methods.push(self.method(method, seen, lines));
        }
        if unknown > 0 && methods.is_empty() {
            self.coverage.notes.untraced_classes += 1;
        } else {
            self.coverage.notes.unknown_methods += unknown;
        }
        self.insert(name, listed.source_file.as_deref(), methods);
    }

    /// Returns whether another version of a listed class ran, which had lines or methods that the listed one does
    /// not have. Its line numbers then mean nothing for the listed class, even if they coincide.
    fn is_other_version(
        &mut self,
        listed: &inventory::Class,
        seen: &BTreeMap<(&str, &str), &ObservedMethod>,
    ) -> bool {
        let known = listed.methods.iter();
        let known = order::to_map(
            known.map(|method| ((method.name.as_str(), method.descriptor.as_str()), &*method.lines)),
        );
        let notes = &mut self.coverage.notes;
        let mut is_other = false;
        for (id, seen) in seen {
            let Some(lines) = known.get(id) else {
                notes.foreign_methods += 1;
                // Agents of other tools add synthetic methods while a class is loaded.
                is_other |= !seen.is_synthetic;
                continue;
            };
            let has = |line: u32| u16::try_from(line).is_ok_and(|line| lines.binary_search(&line).is_ok());
            let foreign = seen.lines.keys().filter(|line| !has(**line) && !seen.spanned.contains(line));
            let foreign = foreign.count() as u64;
            notes.foreign_lines += foreign;
            is_other |= foreign > 0;
        }
        is_other && self.observed.lines
    }

    fn method(
        &mut self,
        method: &inventory::Method,
        seen: Option<&ObservedMethod>,
        known: LineKnowledge,
    ) -> Method {
        let calls = seen.map_or(0, |seen| seen.calls);
        let first = method.first_line().map(u32::from);
        let mut lines = BTreeMap::new();
        if self.observed.lines && !known.is_other_version {
            let notes = &mut self.coverage.notes;
            if let Some(seen) = seen {
                let own = method.lines.iter().map(|number| u32::from(*number));
                lines.extend(own.filter_map(|number| Some((number, *seen.lines.get(&number)?))));
            }
            // Lines that an agent has not reported yet may have run too.
            if known.was_loaded {
                notes.partly_seen_methods += 1;
            } else if seen.is_none_or(|seen| !seen.blind) && self.observed.unsent == 0 {
                for number in &method.lines {
                    lines.entry((*number).into()).or_default();
                }
            } else {
                notes.blind_methods += 1;
            }
        } else if self.options.entry_lines && !self.observed.lines {
            lines.extend(first.map(|first| (first, calls)));
        }
        let line = first.or_else(|| lines.keys().next().copied());
        Method { name: method.name.clone(), descriptor: method.descriptor.clone(), line, calls, lines }
    }

    /// Counts the classes that were called and are in no JAR file.
    fn count_foreign(&mut self, inventory: &Inventory) {
        let called = order::to_set(self.observed.methods.keys().map(|id| id.class.as_str()));
        let foreign = called.iter().filter(|class| !inventory.classes.contains_key(**class));
        self.coverage.notes.foreign_classes = foreign.count() as u64;
    }

    /// Adds everything that was called, without an inventory.
    fn add_observed(&mut self) {
        let mut classes: BTreeMap<&'a str, Vec<Method>> = BTreeMap::new();
        for (id, seen) in &self.observed.methods {
            if !self.options.patterns.keep(&id.class) {
                self.skipped.insert(&id.class);
                continue;
            }
            if seen.is_synthetic && !self.options.compiler_methods {
                self.coverage.notes.filtered_methods += 1;
                continue;
            }
            if self.observed.lines && seen.blind {
                self.coverage.notes.blind_methods += 1;
            }
            classes.entry(&id.class).or_default().push(Method {
                name: id.name.clone(),
                descriptor: id.descriptor.clone(),
                line: seen.lines.keys().next().copied(),
                calls: seen.calls,
                lines: seen.lines.clone(),
            });
        }
        self.coverage.notes.excluded_classes = self.skipped.len() as u64;
        for (name, methods) in classes {
            self.insert(name, None, methods);
        }
    }

    fn insert(&mut self, name: &str, source: Option<&str>, mut methods: Vec<Method>) {
        if methods.is_empty() {
            return;
        }
        order::sort_by(&mut methods, |a, b| {
            let key = |method: &Method| method.line.unwrap_or(u32::MAX);
            (key(a), &a.name, &a.descriptor).cmp(&(key(b), &b.name, &b.descriptor))
        });
        self.coverage.has_lines |= methods.iter().any(|method| !method.lines.is_empty());
        self.coverage.notes.assumed_sources += u64::from(source.is_none());
        let class = Class {
            source: source.map_or_else(|| assumed_source(name), str::to_owned),
            source_is_known: source.is_some(),
            methods,
        };
        let package = self.coverage.packages.entry(package(name).to_owned()).or_default();
        package.classes.insert(name.to_owned(), class);
    }
}

/// Returns the methods of a class that were called.
pub(crate) fn seen_of<'a>(
    observed: &'a Observed,
    class: &str,
) -> impl Iterator<Item = (&'a MethodId, &'a ObservedMethod)> {
    let first = MethodId { class: class.to_owned(), name: String::new(), descriptor: String::new() };
    let class = class.to_owned();
    observed.methods.range(first..).take_while(move |(id, _)| id.class == class)
}
