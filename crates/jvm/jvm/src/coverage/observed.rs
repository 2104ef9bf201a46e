//! What runs have shown: which methods were called how often, which lines have run, what became of classes.
//!
//! Owns: [`Observed`], made of reports and added up over runs, and [`Losses`], what could be missing in it.
//!
//! - **Calls** of a method are its entries, or its ends, if these are more (an end without a beginning follows a break), and
//!   those that the agent has only counted. A method of which only coverage is known counts as called once.
//! - **Lines** come from line visits only (versions 2 to 4, coverage of F1). In versions 2 to 4 a line counts once for each
//!   call in which it ran; in F1 it counts once. A place of several lines counts for each of them.
//! - A method that was called in a run without a visit of one of its lines is *blind*: what did not run in it is not known.
//!   Visits come with the end of a call, so a call that has not ended is one too.

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

/// How many lines a single place may have; of a longer one only the first line counts.
const LONGEST_PLACE: u32 = 1000;

/// Lines that are kept of all methods together. 60 bytes each.
const MOST_LINES: u64 = 4 << 20;

/// A method, by what identifies it in its program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodId {
    /// The internal name of its class.
    pub class: String,
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub descriptor: String,
}

/// What was seen of a method.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// How often it was called.
    pub calls: u64,
    /// Lines that have run, and how often.
    pub lines: BTreeMap<u32, u64>,
    /// Those of [`lines`](Self::lines) that are within a place of several lines: some may have no code.
    pub spanned: BTreeSet<u32>,
    /// Whether it was called without any line being told.
    pub blind: bool,
    /// Visits whose place was never told, or has no line.
    pub unplaced: u64,
    /// Whether the compiler has made it, as far as its flags and its name say: a bridge, or another synthetic method that is
    /// not in the source.
    pub is_synthetic: bool,
}

/// What became of a class, by an agent's word. Of two words the later one in this order stays: a class may be ignored for
/// one loader and traced for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassFate {
    /// Left alone: excluded, or loaded by the boot loader.
    Ignored,
    /// It could not be changed.
    Failed,
    /// It tells of its calls.
    Traced,
}

/// Why it is not known whether a method ran.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Unknown {
    /// The agent could not give it probes.
    #[error("the agent could not trace it: {0}")]
    Failed(String),
    /// A call of it had begun before its class got its probes, and the end of such a call is not seen.
    #[error("it was running when the trace began, and the agent does not see the end of such a call")]
    AlreadyRunning,
    /// The agent left its class alone.
    #[error("its class was not traced: excluded, or loaded by the boot loader")]
    Ignored,
    /// The agent was told to trace other classes.
    #[error("its class is outside of the classes that the agent was told to trace")]
    Outside,
    /// The expressions that say which classes the agent was told to trace can't be read.
    #[error("the expressions that say which classes the agent was told to trace can't be read")]
    UnreadableFilter,
    /// Its class was loaded before the trace began, as those of an agent that was attached are, and no call came since.
    #[error("it was not called since the trace began, and may have been called before")]
    NotSinceAttach,
    /// The agent, or its process, ended before it had sent everything.
    #[error("the agent ended before it had sent everything")]
    Unsent,
}

/// Which classes an agent was told to trace: expressions, as in its configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TracedClasses {
    /// Classes to trace, also if they are excluded.
    pub inclusions: Vec<String>,
    /// Classes to leave alone.
    pub exclusions: Vec<String>,
}

/// What is missing, so that something may have run though it was not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Events that never came, or were dropped and counted.
    pub events: u64,
    /// Drops of which nobody knows how many events they are.
    pub unknown: u64,
    /// Times that recording was suspended.
    pub suspensions: u64,
    /// Events of methods, threads or places that had no room.
    pub beyond: u64,
    /// Methods that were called and have no name.
    pub nameless: u64,
    /// Words of agents about classes that had no room ([`Observed::classes`]).
    pub class_reports: u64,
}

/// What runs have shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// What was seen of each method.
    pub methods: BTreeMap<MethodId, Seen>,
    /// Methods whose signature is none, by what the agent called them, with their calls.
    pub unparsed: BTreeMap<String, u64>,
    /// What became of classes, by internal name.
    pub classes: BTreeMap<String, ClassFate>,
    /// Classes of which agents could not change everything, as they have said it: the name, and in brackets which methods and
    /// why.
    pub failed: BTreeSet<String>,
    /// Classes that were loaded before the trace began: what ran of them before is not known. A class is not among them if another
    /// run has traced it from its loading on.
    pub loaded_before: BTreeSet<String>,
    /// What each run was told to trace. If that is not known of a run, its entry is the default: everything.
    pub traced: BTreeSet<TracedClasses>,
    /// Agents that ended before they had sent everything.
    pub unsent: u64,
    /// Whether any run has told of lines.
    pub lines: bool,
    /// How many lines [`methods`](Self::methods) have together.
    pub kept_lines: u64,
    /// The releases of Java that the runs had.
    pub releases: Releases,
    /// How many runs it is.
    pub runs: u64,
    /// What is missing.
    pub losses: Losses,
}

impl Losses {
    /// Whether anything is missing.
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
    /// What one run has shown.
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
        // Those of a method are side by side.
        let mut last: Option<(&Arc<str>, Option<MethodId>)> = None;
        for line in &report.lines {
            if last.as_ref().is_none_or(|(signature, _)| !Arc::ptr_eq(signature, &line.signature)) {
                // Its method is in the list above too.
                let id = Signature::parse(&line.signature).ok().map(|signature| MethodId::of(&signature));
                last = Some((&line.signature, id));
            }
            let Some((_, Some(id))) = &last else { continue };
            observed.lines = true;
            if !observed.methods.contains_key(id) {
                observed.methods.insert(id.clone(), Seen::default());
            }
            let Some(seen) = observed.methods.get_mut(id) else { continue };
            let Some(place) = line.location.filter(|place| place.start_line > 0) else {
                seen.unplaced = seen.unplaced.saturating_add(line.count);
                continue;
            };
            let length = place.end_line.saturating_sub(place.start_line);
            let last = if length < LONGEST_PLACE { place.start_line + length } else { place.start_line };
            for number in place.start_line..=last {
                if !add_line(&mut seen.lines, number, line.count, &mut observed.kept_lines) {
                    add(&mut observed.losses.beyond, 1);
                    // Of other lines it is not known whether they were left out.
                    seen.blind = true;
                    break;
                }
                if number > place.start_line {
                    seen.spanned.insert(number);
                }
            }
        }
        for seen in observed.methods.values_mut() {
            // A visit is the end of a call whose beginning may be missing.
            seen.calls = seen.calls.max(u64::from(!seen.lines.is_empty()));
            seen.blind |= seen.lines.is_empty();
        }
        observed
    }

    /// What an agent says of a class. Behind the name may be that it was loaded before the trace began and, of one that could not
    /// be changed, the reason.
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

    /// To be called after all classes of one run: an agent that does not say which classes were loaded before, and of which a
    /// method was running already, was attached, so each of its classes may have been loaded before.
    pub fn end_of_classes(&mut self) {
        if self.loaded_before.is_empty() && self.failed.iter().any(|report| report.contains(ALREADY_RUNNING))
        {
            let reported = self.classes.iter().filter(|(_, fate)| **fate != ClassFate::Ignored);
            self.loaded_before = reported.map(|(class, _)| class.clone()).collect();
        }
    }

    /// Whether a run has traced this class from its loading on.
    fn has_all_of(&self, class: &str) -> bool {
        self.classes.get(class) == Some(&ClassFate::Traced) && !self.loaded_before.contains(class)
    }

    /// Adds what other runs have shown: counts are added up.
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

/// Whether the compiler has made a method, in whatever language.
fn is_synthetic(signature: &Signature<'_>) -> bool {
    signature.access & u32::from(AccessFlags::SYNTHETIC.0) != 0 && !may_keep_synthetic(signature.name)
}

/// Adds to a line, if it is kept or there is room for it among all that are.
fn add_line(lines: &mut BTreeMap<u32, u64>, number: u32, count: u64, kept: &mut u64) -> bool {
    match lines.entry(number) {
        Entry::Occupied(mut line) => add(line.get_mut(), count),
        Entry::Vacant(_) if *kept >= MOST_LINES => return false,
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

/// Whether it is what a report calls a method that has no name: `(method 17)`.
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

    /// A recording of a few bytes may tell of a thousand lines with each place.
    #[test]
    fn lines_are_bounded_in_total() {
        let id = MethodId { class: "a/A".to_owned(), name: "x".to_owned(), descriptor: "()V".to_owned() };
        let lines = (1..=5).map(|number| (number, 1)).collect();
        let run =
            Observed { methods: [(id, Seen { lines, ..Seen::default() })].into(), ..Observed::default() };
        let mut all = Observed { kept_lines: MOST_LINES - 3, ..Observed::default() };
        all.add(run.clone());
        all.add(run);
        assert!(all.methods.values().all(|seen| seen.blind), "what else ran in it is not known");
        let kept: Vec<(u32, u64)> = all.methods.into_values().flat_map(|seen| seen.lines).collect();
        assert_eq!(kept, [(1, 2), (2, 2), (3, 2)]);
        assert_eq!((all.kept_lines, all.losses.beyond), (MOST_LINES, 4));
    }
}
