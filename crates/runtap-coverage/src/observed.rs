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

use std::collections::{BTreeMap, BTreeSet};

use runtap_bytefrog::{MethodReport, Report};
use runtap_bytefrog_proto::f1::ALREADY_RUNNING;
use runtap_classfile::AccessFlags;
use thiserror::Error;

use crate::patterns::Patterns;
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
    /// What each run was told to trace. If that is not known of a run, its entry is the default: everything.
    pub traced: BTreeSet<TracedClasses>,
    /// Agents that ended before they had sent everything.
    pub unsent: u64,
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
                    seen.is_synthetic = is_synthetic(&signature);
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

    /// What an agent says of a class. The name of one that could not be changed may have the reason behind it.
    pub fn class(&mut self, name: &str, fate: ClassFate) {
        let mut class = name;
        if fate == ClassFate::Failed {
            self.failed.insert(name.to_owned());
            class = name.split_once(" (").map_or(name, |(class, _)| class);
        }
        let known = self.classes.entry(class.to_owned()).or_insert(fate);
        *known = fate.max(*known);
    }

    /// What is needed to ask why methods that were not called are [`Unknown`].
    pub(crate) fn doubts(&self) -> Doubts<'_> {
        let runs = self.traced.len();
        let mut doubts = Doubts { observed: self, filters: Vec::new(), has_unreadable: false };
        for traced in &self.traced {
            // Agents trace what nothing excludes.
            if traced.exclusions.is_empty() {
                return Doubts { observed: self, filters: Vec::new(), has_unreadable: false };
            }
            match Patterns::one_of(runs, &traced.inclusions, &traced.exclusions) {
                Ok(filter) => doubts.filters.push(filter),
                Err(_) => doubts.has_unreadable = true,
            }
        }
        doubts
    }

    /// Adds what other runs have shown: counts are added up.
    pub fn add(&mut self, other: Self) {
        for (method, new) in other.methods {
            let seen = self.methods.entry(method).or_default();
            seen.calls = seen.calls.saturating_add(new.calls);
            seen.blind |= new.blind;
            seen.is_synthetic |= new.is_synthetic;
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
        self.failed.extend(other.failed);
        self.traced.extend(other.traced);
        self.unsent = self.unsent.saturating_add(other.unsent);
        self.lines |= other.lines;
        self.runs = self.runs.saturating_add(other.runs);
        self.losses.add(other.losses);
    }
}

/// Why methods that were not called may have run all the same.
pub(crate) struct Doubts<'a> {
    observed: &'a Observed,
    /// What runs were told to trace. Empty: everything, as far as it is known.
    filters: Vec<Patterns>,
    /// What a run was told to trace can't be read: what only Java understands, or too much.
    has_unreadable: bool,
}

impl Doubts<'_> {
    /// Why it is not known whether a method of this class that was not called ran. `was_called`: another one of it was.
    pub(crate) fn of(&self, class: &str, name: &str, descriptor: &str, was_called: bool) -> Option<Unknown> {
        let told = self.observed.failed.range(class.to_owned()..);
        let told = told.take_while(|told| told.starts_with(class));
        let mut failures = told.filter_map(|told| failure(told.strip_prefix(class)?, name, descriptor));
        // A class that failed in one loader as a whole may have been traced in another.
        let was_traced = self.observed.classes.get(class) == Some(&ClassFate::Traced);
        if let Some((_, reason)) = failures.find(|(of_all, _)| !(*of_all && was_traced)) {
            return Some(if reason == ALREADY_RUNNING {
                Unknown::AlreadyRunning
            } else {
                Unknown::Failed(reason)
            });
        }
        if !was_called {
            if self.observed.classes.get(class) == Some(&ClassFate::Ignored) {
                return Some(Unknown::Ignored);
            }
            let has_filters = self.has_unreadable || !self.filters.is_empty();
            if has_filters && !self.filters.iter().any(|filter| filter.keep(class)) {
                if !self.has_unreadable {
                    return Some(Unknown::Outside);
                }
                // The agent itself may have said that it traces the class.
                if !was_traced {
                    return Some(Unknown::UnreadableFilter);
                }
            }
        }
        (self.observed.unsent > 0).then_some(Unknown::Unsent)
    }
}

/// Begins the reason of a method whose calls are traced, and whose lines are not.
const LINES_ONLY: &str = "lines not known: ";

/// Why a method was not traced, by what an agent has said behind the name of its class: ` (run()V: why; x(I)V: why)` of single
/// methods, ` (why)` or nothing of all of them: whether that is of all, and the reason. `None`: it was traced, or another class
/// is meant.
fn failure(behind: &str, name: &str, descriptor: &str) -> Option<(bool, String)> {
    if behind.is_empty() {
        return Some((true, "no reason was given".to_owned()));
    }
    let listed = behind.strip_prefix(" (")?;
    // A text without its end was too long: which other methods are meant is not known.
    let Some(all) = listed.strip_suffix(')') else { return Some((true, listed.to_owned())) };
    let mut mine = None;
    for item in all.split("; ") {
        let method = item.split_once(": ").filter(|(method, _)| is_method(method));
        let Some((method, why)) = method else { return Some((true, all.to_owned())) };
        if method.strip_prefix(name) == Some(descriptor) && !why.starts_with(LINES_ONLY) {
            mine = Some((false, why.to_owned()));
        }
    }
    mine
}

/// Whether it is a name with a descriptor: `run(I)V`.
fn is_method(text: &str) -> bool {
    text.find('(').is_some_and(|at| {
        let (name, descriptor) = text.split_at(at);
        !name.is_empty() && Signature::parse(&format!("C.{name};1;{descriptor}")).is_ok()
    })
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

/// Whether the compiler has made a method. Bodies of lambdas, of Scala's function literals, and of Kotlin's open suspending
/// functions are in the source.
fn is_synthetic(signature: &Signature<'_>) -> bool {
    let name = signature.name;
    let is_body = name.starts_with("lambda$")
        || name.ends_with("$suspendImpl")
        || (name.contains("$anonfun$") && !name.ends_with("$adapted"));
    signature.access & u32::from(AccessFlags::SYNTHETIC.0) != 0 && !is_body
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
