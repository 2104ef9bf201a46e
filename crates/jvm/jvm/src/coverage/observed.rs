//! The observations of runs: how often methods were called, which lines have run, and what agents did with classes.
//!
//! [`Observed`] is derived from reports and can be added up over runs; [`Losses`] counts what could be missing in it.
//!
//! - **Calls** of a method are its entries, or its exits if these are more (an exit without an entry follows a
//!   break), plus those that the agent only counted. A method that is known from coverage only counts as called
//!   once.
//! - **Lines** come from line visits only (versions 2 to 4, and coverage of F1). In versions 2 to 4 a line counts
//!   once for each call in which it ran; in F1 it counts once. A location of several lines counts for each of them.
//! - A method that was called in a run without a visit of one of its lines is *blind*: which of its lines did not
//!   run is unknown. Visits are sent at the end of a call, so a method with an unfinished call is blind too.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use runtap_bytefrog::{MethodReport, Report};
use runtap_bytefrog_proto::f1::{ALREADY_RUNNING, strip_loaded_before};
use runtap_classfile::AccessFlags;
use thiserror::Error;

use crate::coverage::languages::may_keep_synthetic;
use crate::coverage::releases::Releases;
use crate::coverage::signature::Signature;

/// The maximum number of lines of a location; of a longer location only the first line counts.
const MAX_LOCATION_LINES: u32 = 1000;

/// The maximum number of lines that are kept for all methods together; 60 bytes each.
const MAX_LINES: u64 = 4 << 20;

/// The identity of a method in its program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodId {
    /// The internal name of the class.
    pub class: String,
    /// The name of the method.
    pub name: String,
    /// The descriptor of the method.
    pub descriptor: String,
}

/// The observations of a method.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedMethod {
    /// The number of calls.
    pub calls: u64,
    /// The lines that have run, with the number of times.
    pub lines: BTreeMap<u32, u64>,
    /// The part of [`lines`](Self::lines) inside of locations with several lines: some of these lines may have no
    /// code.
    pub spanned: BTreeSet<u32>,
    /// Whether the method was called without reported lines.
    pub blind: bool,
    /// The number of visits whose location was never reported, or has no line.
    pub unplaced: u64,
    /// Whether the compiler generated the method, judging by its flags and its name: a bridge, or another synthetic
    /// method that is not in the source.
    pub is_synthetic: bool,
}

/// What an agent did with a class, as reported. Of several reports the greatest in this order counts: a class may
/// be ignored for one class loader and traced for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassFate {
    /// The class was skipped: excluded, or loaded by the boot loader.
    Ignored,
    /// The class could not be instrumented.
    Failed,
    /// The class was instrumented.
    Traced,
}

/// The reason why it is unknown whether a method ran.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Unknown {
    /// The agent could not instrument the method.
    #[error("the agent could not trace it: {0}")]
    Failed(String),
    /// A call was running when the class was instrumented, and the end of such a call is not seen.
    #[error("it was running when the trace began, and the agent does not see the end of such a call")]
    AlreadyRunning,
    /// The agent skipped the class.
    #[error("its class was not traced: excluded, or loaded by the boot loader")]
    Ignored,
    /// The agent was configured to trace other classes.
    #[error("its class is outside of the classes that the agent was configured to trace")]
    Outside,
    /// The agent's filter expressions are unreadable.
    #[error("the expressions for the classes that the agent was configured to trace are unreadable")]
    UnreadableFilter,
    /// The class was loaded before the trace began, as with an attached agent, and no call was seen since.
    #[error("it was not called since the trace began, but may have been called before")]
    NotSinceAttach,
    /// The agent, or its process, stopped before it had sent everything.
    #[error("the agent stopped before it had sent everything")]
    Unsent,
}

/// The expressions for the classes that an agent was configured to trace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TracedClasses {
    /// The classes to trace, even if they are excluded.
    pub inclusions: Vec<String>,
    /// The classes not to trace.
    pub exclusions: Vec<String>,
}

/// Counts of what is missing, so that methods may have run without being observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Events that never arrived, or were dropped and counted.
    pub events: u64,
    /// Drops of an unknown number of events.
    pub unknown: u64,
    /// Suspensions of the recording.
    pub suspensions: u64,
    /// Events of methods, threads or locations that exceeded a limit.
    pub beyond: u64,
    /// Methods that were called and have no name.
    pub nameless: u64,
    /// Reports of agents on classes that exceeded a limit ([`Observed::classes`]).
    pub class_reports: u64,
}

/// The observations of one or several runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// The observations, by method.
    pub methods: BTreeMap<MethodId, ObservedMethod>,
    /// The number of calls of methods whose signature is invalid, by that signature.
    pub unparsed: BTreeMap<String, u64>,
    /// What agents did with classes, by internal name.
    pub classes: BTreeMap<String, ClassFate>,
    /// The reports of agents on classes that they could not instrument completely: the name, and in parentheses the
    /// methods and reasons.
    pub failed: BTreeSet<String>,
    /// The classes that were loaded before the trace began, so that earlier calls are unknown. A class is not
    /// included if another run traced it from its loading on.
    pub loaded_before: BTreeSet<String>,
    /// The filters of the runs. An unknown filter is represented by the default: everything.
    pub traced: BTreeSet<TracedClasses>,
    /// The number of agents that stopped before they had sent everything.
    pub unsent: u64,
    /// Whether any run reported lines.
    pub lines: bool,
    /// The total number of lines in [`methods`](Self::methods).
    pub kept_lines: u64,
    /// The releases of Java that the runs used.
    pub releases: Releases,
    /// The number of runs.
    pub runs: u64,
    /// Counts of what is missing.
    pub losses: Losses,
}

impl Losses {
    /// Returns whether anything is missing.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    fn add(&mut self, other: Self) {
        self.events = self.events.saturating_add(other.events);
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.suspensions = self.suspensions.saturating_add(other.suspensions);
        self.beyond = self.beyond.saturating_add(other.beyond);
        self.nameless = self.nameless.saturating_add(other.nameless);
        self.class_reports = self.class_reports.saturating_add(other.class_reports);
    }
}

impl Observed {
    /// Returns the observations of one run.
    pub fn of(report: &Report) -> Self {
        let mut observed = Self { runs: 1, losses: losses(report), ..Self::default() };
        for method in &report.methods {
            let calls = calls(method);
            if calls == 0 {
                continue;
            }
            match Signature::parse(&method.signature) {
                Ok(signature) => {
                    let seen = observed.methods.entry(MethodId::of(&signature)).or_default();
                    seen.calls = seen.calls.saturating_add(calls);
                    seen.is_synthetic = is_synthetic(&signature);
                }
                Err(_) if is_nameless(&method.signature) => observed.losses.nameless += 1,
                Err(_) => add(observed.unparsed.entry(method.signature.clone()).or_default(), calls),
            }
        }
        // The lines of a method are adjacent.
        let mut last: Option<(&Arc<str>, Option<MethodId>)> = None;
        for line in &report.lines {
            if last.as_ref().is_none_or(|(signature, _)| !Arc::ptr_eq(signature, &line.signature)) {
                // The method is in the list above too.
                let id = Signature::parse(&line.signature).ok().map(|signature| MethodId::of(&signature));
                last = Some((&line.signature, id));
            }
            let Some((_, Some(id))) = &last else { continue };
            observed.lines = true;
            if !observed.methods.contains_key(id) {
                observed.methods.insert(id.clone(), ObservedMethod::default());
            }
            let Some(seen) = observed.methods.get_mut(id) else { continue };
            let Some(location) = line.location.filter(|location| location.start_line > 0) else {
                seen.unplaced = seen.unplaced.saturating_add(line.count);
                continue;
            };
            let length = location.end_line.saturating_sub(location.start_line);
            let last =
                if length < MAX_LOCATION_LINES { location.start_line + length } else { location.start_line };
            for number in location.start_line..=last {
                if !add_line(&mut seen.lines, number, line.count, &mut observed.kept_lines) {
                    add(&mut observed.losses.beyond, 1);
                    // Further lines may be missing too.
                    seen.blind = true;
                    break;
                }
                if number > location.start_line {
                    seen.spanned.insert(number);
                }
            }
        }
        for seen in observed.methods.values_mut() {
            // A visit implies a call, whose entry may be missing.
            seen.calls = seen.calls.max(u64::from(!seen.lines.is_empty()));
            seen.blind |= seen.lines.is_empty();
        }
        observed
    }

    /// Adds a report of an agent on a class: its name, with a mark if the class was loaded before the trace began,
    /// and with the reason if the class could not be instrumented.
    pub fn class(&mut self, report: &str, fate: ClassFate) {
        let (name, was_loaded) = strip_loaded_before(report);
        let name = &*name;
        let mut class = name;
        if fate == ClassFate::Failed {
            self.failed.insert(name.to_owned());
            class = name.split_once(" (").map_or(name, |(class, _)| class);
        }
        if was_loaded {
            self.loaded_before.insert(class.to_owned());
        }
        self.set_fate(class, fate);
    }

    fn set_fate(&mut self, class: &str, fate: ClassFate) {
        let known = self.classes.entry(class.to_owned()).or_insert(fate);
        *known = fate.max(*known);
    }

    /// Completes the reports on classes of one run. If an agent does not report which classes were loaded before,
    /// but a method was already running, it was attached, and each of its classes may have been loaded before.
    pub fn end_of_classes(&mut self) {
        if self.loaded_before.is_empty() && self.failed.iter().any(|report| report.contains(ALREADY_RUNNING))
        {
            let reported = self.classes.iter().filter(|(_, fate)| **fate != ClassFate::Ignored);
            self.loaded_before = reported.map(|(class, _)| class.clone()).collect();
        }
    }

    /// Returns whether a run has traced this class from its loading on.
    fn has_all_of(&self, class: &str) -> bool {
        self.classes.get(class) == Some(&ClassFate::Traced) && !self.loaded_before.contains(class)
    }

    /// Adds the observations of other runs.
    pub fn add(&mut self, other: Self) {
        self.loaded_before.retain(|class| !other.has_all_of(class));
        for class in &other.loaded_before {
            if !self.has_all_of(class) {
                self.loaded_before.insert(class.clone());
            }
        }
        for (method, new) in other.methods {
            let seen = self.methods.entry(method).or_default();
            seen.calls = seen.calls.saturating_add(new.calls);
            seen.blind |= new.blind;
            seen.is_synthetic |= new.is_synthetic;
            seen.unplaced = seen.unplaced.saturating_add(new.unplaced);
            seen.spanned.extend(new.spanned);
            for (number, hits) in new.lines {
                if !add_line(&mut seen.lines, number, hits, &mut self.kept_lines) {
                    add(&mut self.losses.beyond, 1);
                    seen.blind = true;
                }
            }
        }
        for (name, calls) in other.unparsed {
            add(self.unparsed.entry(name).or_default(), calls);
        }
        for (class, fate) in other.classes {
            self.set_fate(&class, fate);
        }
        self.failed.extend(other.failed);
        self.traced.extend(other.traced);
        self.unsent = self.unsent.saturating_add(other.unsent);
        self.lines |= other.lines;
        self.releases.add_all(other.releases);
        self.runs = self.runs.saturating_add(other.runs);
        self.losses.add(other.losses);
    }
}

impl MethodId {
    fn of(signature: &Signature<'_>) -> Self {
        Self {
            class: signature.class.to_owned(),
            name: signature.name.to_owned(),
            descriptor: signature.descriptor.to_owned(),
        }
    }
}

/// Returns whether the compiler generated a method, in any language.
fn is_synthetic(signature: &Signature<'_>) -> bool {
    signature.access & u32::from(AccessFlags::SYNTHETIC.0) != 0 && !may_keep_synthetic(signature.name)
}

/// Adds to the count of a line. Returns `false` if the line is new and the limit of lines is reached.
fn add_line(lines: &mut BTreeMap<u32, u64>, number: u32, count: u64, kept: &mut u64) -> bool {
    match lines.entry(number) {
        Entry::Occupied(mut line) => add(line.get_mut(), count),
        Entry::Vacant(_) if *kept >= MAX_LINES => return false,
        Entry::Vacant(line) => {
            line.insert(count);
            *kept += 1;
        }
    }
    true
}

fn add(to: &mut u64, count: u64) {
    *to = to.saturating_add(count);
}

fn calls(method: &MethodReport) -> u64 {
    let counted = method.counted.map_or(0, |(calls, ..)| calls);
    let ends = method.exits.saturating_add(method.bubbles);
    method.entries.max(ends).saturating_add(counted).max(method.has_run.into())
}

/// Returns whether a signature is a report's placeholder for a method without a name: `(method 17)`.
fn is_nameless(signature: &str) -> bool {
    signature.starts_with("(method ")
}

fn losses(report: &Report) -> Losses {
    let counters = &report.counters;
    Losses {
        events: counters.missing.saturating_add(counters.dropped),
        unknown: counters.drops_unknown,
        suspensions: counters.data_breaks.saturating_add(counters.suspensions),
        beyond: report.beyond,
        nameless: 0,
        class_reports: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of a few bytes may report a thousand lines with each location.
    #[test]
    fn lines_are_bounded_in_total() {
        let id = MethodId { class: "a/A".to_owned(), name: "x".to_owned(), descriptor: "()V".to_owned() };
        let lines = (1..=5).map(|number| (number, 1)).collect();
        let run = Observed {
            methods: [(id, ObservedMethod { lines, ..ObservedMethod::default() })].into(),
            ..Observed::default()
        };
        let mut all = Observed { kept_lines: MAX_LINES - 3, ..Observed::default() };
        all.add(run.clone());
        all.add(run);
        assert!(all.methods.values().all(|seen| seen.blind), "what else ran in it is not known");
        let kept: Vec<(u32, u64)> = all.methods.into_values().flat_map(|seen| seen.lines).collect();
        assert_eq!(kept, [(1, 2), (2, 2), (3, 2)]);
        assert_eq!((all.kept_lines, all.losses.beyond), (MAX_LINES, 4));
    }
}
