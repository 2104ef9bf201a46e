//! What was never called: dead code, as far as runs can show it.
//!
//! Owns: [`NeverCalled`], the methods of an inventory that no run has called, by class, with the bytes of their code, and
//! the reasons why one of them may have been called all the same ([`Caveat`]). Classes that report nothing, by an agent's
//! word, are listed apart: nobody knows what of them was called.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::coverage::build::seen_of;
use crate::coverage::doubts::Doubts;
use crate::coverage::inventory::{Class, Inventory, Method};
use crate::coverage::model::package;
use crate::coverage::observed::{Observed, Unknown};
use crate::coverage::patterns::Patterns;

/// What is known of a class of which not everything was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassState {
    /// Another method of it was called.
    Called,
    /// It was loaded and reports its calls, and there were none.
    Loaded,
    /// Agents have said of other classes that these were loaded, and not of this one.
    NotLoaded,
    /// No agent has said which classes were loaded.
    Unknown,
}

/// A class with methods that were never called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeverClass<'a> {
    /// Its internal name.
    pub name: &'a str,
    /// What the inventory has of it.
    pub class: &'a Class,
    /// What is known of it.
    pub state: ClassState,
    /// Its methods that were never called, in the order of the class file.
    pub methods: Vec<&'a Method>,
    /// How many others were called.
    pub called: u64,
}

/// How much of something was never called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Classes of which nothing was called.
    pub classes: u64,
    /// All classes.
    pub all_classes: u64,
    /// Methods that were never called.
    pub methods: u64,
    /// All methods.
    pub all_methods: u64,
    /// Bytes of code of the methods that were never called.
    pub code: u64,
    /// Bytes of code of all methods.
    pub all_code: u64,
}

/// Why a method may have been called although it is listed, or may be missing in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Caveat {
    /// Events are missing.
    #[error("{0} events are missing: methods of the list may have been called in them")]
    Events(u64),
    /// Nobody knows how many events are missing.
    #[error(
        "events were dropped {0} times without being counted: methods of the list may have been called in them"
    )]
    UncountedDrops(u64),
    /// Recording was suspended.
    #[error("recording was suspended {0} times: what was called then is not known")]
    Suspensions(u64),
    /// There was no room for some methods, threads or places.
    #[error("{0} events had no room in the trace: methods of the list may have been called in them")]
    Beyond(u64),
    /// Methods were called of which no agent has said the name.
    #[error("{0} methods were called whose names are not known: they may be in the list")]
    Nameless(u64),
    /// Methods were called whose signature is none.
    #[error("{0} methods were called whose signatures can't be read: they may be in the list")]
    Unparsed(u64),
    /// There was no room for all that agents have said of classes.
    #[error(
        "{0} messages about classes had no room: a class of the list may have been loaded, or not been traced"
    )]
    ClassReports(u64),
    /// No agent has said which classes were loaded, left alone or failed.
    #[error("no agent has said which classes it traces: classes of the list may have been called untraced")]
    NoClassReports,
    /// Classes that agents have left alone.
    #[error(
        "{0} classes were not traced, because they were excluded or loaded by the boot loader: not in the list"
    )]
    Ignored(u64),
    /// Classes that agents could not change.
    #[error("{0} classes were not traced, because the agent could not change them: not in the list")]
    Failed(u64),
    /// Classes of which every method that was not called was running when the trace began.
    #[error(
        "{0} classes were running when the trace began, and calls from then are not seen: not in the list"
    )]
    AlreadyRunning(u64),
    /// Methods whose class was loaded before the trace began.
    #[error(
        "{0} methods were not called since the trace began, and may have been called before: the agent was attached \
         when their classes were loaded already: not in the list"
    )]
    NotSinceAttach(u64),
    /// Classes that agents were told not to trace.
    #[error("{0} classes are outside of the classes that the agent was told to trace: not in the list")]
    Outside(u64),
    /// Classes that agents may not have been told to trace.
    #[error("of {0} classes it is not known whether the agent was told to trace them: not in the list")]
    UnreadableFilter(u64),
    /// Methods of other classes.
    #[error("of {0} more methods it is not known whether they were called: not in the list")]
    UnknownMethods(u64),
    /// Agents that were killed, or whose connections were lost.
    #[error(
        "{0} agents ended before they had sent everything: of methods without calls it is not known whether they were called"
    )]
    Unsent(u64),
    /// Entries of archives that could not be read.
    #[error("{0} entries of the jars could not be read: not in the list")]
    Unread(u64),
    /// Classes with the name of another one.
    #[error("{0} classes have the name of one in an earlier jar, which was taken in their place")]
    Duplicates(u64),
    /// Classes that are not the right ones for each run, or of which that is not known.
    #[error(
        "{0} classes of multi-release jars are others in other releases of Java, and the runs had several, or it is not \
         known which: their methods and lines are those for the newest"
    )]
    Releases(u64),
    /// Methods that were called and that are not in their class.
    #[error(
        "{0} methods were called that their classes do not have: the program had other versions of these classes"
    )]
    OtherVersion(u64),
}

/// What is listed.
#[derive(Debug, Clone, Default)]
pub struct NeverOptions {
    /// Which classes.
    pub patterns: Patterns,
    /// Methods of the compiler's making too ([`Filtered`](crate::coverage::Filtered)).
    pub compiler_methods: bool,
}

/// A method of which it is not known whether it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMethod<'a> {
    /// The internal name of its class.
    pub class: &'a str,
    /// What the inventory has of it.
    pub method: &'a Method,
    /// Why it is not known.
    pub why: Unknown,
}

/// What was never called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NeverCalled<'a> {
    /// By name.
    pub classes: Vec<NeverClass<'a>>,
    /// Classes of the inventory of which it is not known of any method whether it was called, and why.
    pub untraced: Vec<(&'a str, Unknown)>,
    /// Methods of other classes of which it is not known.
    pub unknown: Vec<UnknownMethod<'a>>,
    /// How much it is, by package (`com/example`).
    pub packages: BTreeMap<&'a str, Size>,
    /// Methods in either of the two that were not called since the trace began, and whose class was loaded before.
    pub not_called_since_attach: u64,
    /// In this order.
    pub caveats: Vec<Caveat>,
}

impl NeverClass<'_> {
    /// Bytes of code of the methods that were never called.
    pub fn code(&self) -> u64 {
        self.methods.iter().map(|method| u64::from(method.code)).sum()
    }
}

impl<'a> NeverCalled<'a> {
    /// What of `inventory` was never called in what was observed.
    pub fn of(observed: &Observed, inventory: &'a Inventory, options: &NeverOptions) -> Self {
        let mut never = Self::default();
        let mut foreign = 0;
        let doubts = Doubts::new(observed);
        for (name, class) in &inventory.classes {
            let hidden = class.filtered.is_some() && !options.compiler_methods;
            if hidden || class.methods.is_empty() || !options.patterns.keep(name) {
                continue;
            }
            foreign += never.class((observed, &doubts), name, class, options);
        }
        never.caveats = caveats(observed, inventory, &never, foreign);
        never
    }

    /// How much it is in all.
    pub fn total(&self) -> Size {
        self.packages.values().copied().fold(Size::default(), Size::plus)
    }

    /// Adds a class; gives how many methods were called that it does not have.
    fn class(
        &mut self,
        (observed, doubts): (&Observed, &Doubts<'_>),
        name: &'a str,
        class: &'a Class,
        options: &NeverOptions,
    ) -> u64 {
        let called: BTreeSet<(&str, &str)> = seen_of(observed, name)
            .filter(|(_, seen)| seen.calls > 0)
            .map(|(id, _)| (id.name.as_str(), id.descriptor.as_str()))
            .collect();
        let fate = observed.classes.get(name).copied();
        let id = |method: &'a Method| (method.name.as_str(), method.descriptor.as_str());
        let known: BTreeSet<(&str, &str)> = class.methods.iter().map(id).collect();
        let foreign = called.difference(&known).count() as u64;
        let listed =
            class.methods.iter().filter(|method| method.filtered.is_none() || options.compiler_methods);
        let (ran, silent): (Vec<_>, Vec<_>) = listed.partition(|method| called.contains(&id(method)));
        let (mut never, mut unknown) = (Vec::new(), Vec::new());
        let doubts = doubts.of_class(name, !called.is_empty());
        for method in silent {
            match doubts.of(&method.name, &method.descriptor) {
                Some(why) => unknown.push(UnknownMethod { class: name, method, why }),
                None => never.push(method),
            }
        }
        let not_since =
            unknown.iter().filter(|unknown| unknown.why == Unknown::NotSinceAttach).count() as u64;
        self.not_called_since_attach += not_since;
        if ran.is_empty() && never.is_empty() {
            let first = unknown.into_iter().next().map(|first| (name, first.why));
            self.untraced.extend(
                first.map(|(name, why)| (name, if not_since > 0 { Unknown::NotSinceAttach } else { why })),
            );
            return foreign;
        }
        self.unknown.append(&mut unknown);
        let bytes = |methods: &[&Method]| methods.iter().map(|method| u64::from(method.code)).sum::<u64>();
        let all_methods = (ran.len() + never.len()) as u64;
        if all_methods == 0 {
            return foreign;
        }
        let size = self.packages.entry(package(name)).or_default();
        *size = size.plus(Size {
            // A method of the compiler's making that ran shows that the class is in use.
            classes: u64::from(called.is_empty()),
            all_classes: 1,
            methods: never.len() as u64,
            all_methods,
            code: bytes(&never),
            all_code: bytes(&ran) + bytes(&never),
        });
        let state = match fate {
            _ if !called.is_empty() => ClassState::Called,
            Some(_) => ClassState::Loaded,
            None if observed.classes.is_empty() => ClassState::Unknown,
            None => ClassState::NotLoaded,
        };
        if !never.is_empty() {
            let called = ran.len() as u64;
            self.classes.push(NeverClass { name, class, state, methods: never, called });
        }
        foreign
    }
}

impl Size {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            classes: self.classes + other.classes,
            all_classes: self.all_classes + other.all_classes,
            methods: self.methods + other.methods,
            all_methods: self.all_methods + other.all_methods,
            code: self.code + other.code,
            all_code: self.all_code + other.all_code,
        }
    }
}

fn caveats(observed: &Observed, inventory: &Inventory, never: &NeverCalled<'_>, foreign: u64) -> Vec<Caveat> {
    let losses = observed.losses;
    let with = |is: fn(&Unknown) -> bool| never.untraced.iter().filter(|(_, why)| is(why)).count() as u64;
    let other = never.unknown.iter().filter(|unknown| unknown.why != Unknown::NotSinceAttach).count() as u64;
    let mut caveats: Vec<Caveat> = [
        (losses.events, Caveat::Events as fn(u64) -> Caveat),
        (losses.unknown, Caveat::UncountedDrops),
        (losses.suspensions, Caveat::Suspensions),
        (losses.beyond, Caveat::Beyond),
        (losses.nameless, Caveat::Nameless),
        (observed.unparsed.len() as u64, Caveat::Unparsed),
        (losses.class_reports, Caveat::ClassReports),
        (with(|why| *why == Unknown::Ignored), Caveat::Ignored),
        (with(|why| matches!(why, Unknown::Failed(_))), Caveat::Failed),
        (with(|why| *why == Unknown::AlreadyRunning), Caveat::AlreadyRunning),
        (never.not_called_since_attach, Caveat::NotSinceAttach),
        (with(|why| *why == Unknown::Outside), Caveat::Outside),
        (with(|why| *why == Unknown::UnreadableFilter), Caveat::UnreadableFilter),
        (other, Caveat::UnknownMethods),
        (observed.unsent, Caveat::Unsent),
        (inventory.unread.len() as u64, Caveat::Unread),
        (inventory.duplicates, Caveat::Duplicates),
        (observed.releases.uncertain(inventory), Caveat::Releases),
        (foreign, Caveat::OtherVersion),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, caveat)| caveat(count))
    .collect();
    if observed.classes.is_empty() {
        caveats.push(Caveat::NoClassReports);
    }
    caveats.sort_unstable();
    caveats
}
