//! What runs have shown: which methods were called how often, which lines have run, what became of classes.
//!
//! Owns: [`Observed`], made of reports and added up over runs, and [`Losses`], what could be missing in it.
//!
//! - **Calls** of a method are its entries; or the agent's own count, or its ends, if these are more: an end without a
//!   beginning follows a break. A method of which only coverage is known counts as called once.
//! - **Lines** come from line visits only (versions 2 to 4, coverage of F1). In versions 2 to 4 a line counts once for each
//!   call in which it ran; in F1 it counts once. A place of several lines counts for each of them.
//! - A method that was called in a run without a visit of one of its lines is *blind*: what did not run in it is not known.
//!   Visits come with the end of a call, so a call that has not ended is one too.

use std::collections::BTreeMap;

use runtap_bytefrog::{MethodReport, Report};

use crate::signature::Signature;

/// How many lines a single place may have; of a longer one only the first line counts.
const LONGEST_PLACE: u32 = 1000;

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
    /// Whether it was called without any line being told.
    pub blind: bool,
    /// Visits whose place was never told, or has no line.
    pub unplaced: u64,
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
    /// Whether any run has told of lines.
    pub lines: bool,
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
                }
                Err(_) if is_nameless(&method.signature) => observed.losses.nameless += 1,
                Err(_) => add(observed.unparsed.entry(method.signature.clone()).or_default(), calls),
            }
        }
        for line in &report.lines {
            // Its method is in the list above too.
            let Ok(signature) = Signature::parse(&line.signature) else { continue };
            observed.lines = true;
            let seen = observed.methods.entry(MethodId::of(&signature)).or_default();
            let Some(place) = line.location.filter(|place| place.start_line > 0) else {
                seen.unplaced = seen.unplaced.saturating_add(line.count);
                continue;
            };
            let length = place.end_line.saturating_sub(place.start_line);
            let last = if length < LONGEST_PLACE { place.start_line + length } else { place.start_line };
            for number in place.start_line..=last {
                add(seen.lines.entry(number).or_default(), line.count);
            }
        }
        for seen in observed.methods.values_mut() {
            // A visit is the end of a call whose beginning may be missing.
            seen.calls = seen.calls.max(u64::from(!seen.lines.is_empty()));
            seen.blind = seen.lines.is_empty();
        }
        observed
    }

    /// What an agent says of a class.
    pub fn class(&mut self, name: &str, fate: ClassFate) {
        let known = self.classes.entry(name.to_owned()).or_insert(fate);
        *known = fate.max(*known);
    }

    /// Adds what other runs have shown: counts are added up.
    pub fn add(&mut self, other: Self) {
        for (method, new) in other.methods {
            let seen = self.methods.entry(method).or_default();
            seen.calls = seen.calls.saturating_add(new.calls);
            seen.blind |= new.blind;
            seen.unplaced = seen.unplaced.saturating_add(new.unplaced);
            for (number, hits) in new.lines {
                add(seen.lines.entry(number).or_default(), hits);
            }
        }
        for (name, calls) in other.unparsed {
            add(self.unparsed.entry(name).or_default(), calls);
        }
        for (class, fate) in other.classes {
            self.class(&class, fate);
        }
        self.lines |= other.lines;
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

fn add(to: &mut u64, count: u64) {
    *to = to.saturating_add(count);
}

fn calls(method: &MethodReport) -> u64 {
    let counted = method.counted.map_or(0, |(calls, ..)| calls);
    let ends = method.exits.saturating_add(method.bubbles);
    method.entries.max(counted).max(ends).max(method.has_run.into())
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
