//! Methods that were never called: dead code, as far as runs can show it.
//!
//! [`NeverCalled`] lists the methods of an inventory that no run has called, by class, with the size of their code,
//! and the reasons why some of them may have been called nevertheless ([`Caveat`]). Classes that were not traced
//! are listed separately, because their calls are unknown.

use std::collections::{BTreeMap, BTreeSet};

use runtap_model::order;
use thiserror::Error;

use crate::coverage::build::seen_of;
use crate::coverage::doubts::Doubts;
use crate::coverage::inventory::{Class, Inventory, Method};
use crate::coverage::model::package;
use crate::coverage::observed::{Observed, Unknown};
use crate::coverage::patterns::Patterns;

/// The state of a class with methods that were not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassState {
    /// Another method of the class was called.
    Called,
    /// The class was loaded and traced, but not called.
    Loaded,
    /// Agents reported other classes as loaded, but not this one.
    NotLoaded,
    /// No agent reported which classes were loaded.
    Unknown,
}

/// A class with methods that were never called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeverClass<'a> {
    /// The internal name.
    pub name: &'a str,
    /// The class in the inventory.
    pub class: &'a Class,
    /// The state of the class.
    pub state: ClassState,
    /// The methods that were never called, in the order of the class file.
    pub methods: Vec<&'a Method>,
    /// The number of methods that were called.
    pub called: u64,
}

/// The amount of code that was never called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// The number of classes without calls.
    pub classes: u64,
    /// The number of all classes.
    pub all_classes: u64,
    /// The number of methods that were never called.
    pub methods: u64,
    /// The number of all methods.
    pub all_methods: u64,
    /// The size of the code of methods that were never called, in bytes.
    pub code: u64,
    /// The size of the code of all methods, in bytes.
    pub all_code: u64,
}

/// A reason why listed methods may have been called, or why methods may be missing in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Caveat {
    /// Events are missing.
    #[error("{0} events are missing: listed methods may have been called in them")]
    Events(u64),
    /// Events were dropped without a count.
    #[error(
        "events were dropped {0} times without being counted: listed methods may have been called in them"
    )]
    UncountedDrops(u64),
    /// Recording was suspended.
    #[error("recording was suspended {0} times: calls during that time are unknown")]
    Suspensions(u64),
    /// Some methods, threads or locations exceeded a limit.
    #[error("{0} events exceeded a limit of the trace: listed methods may have been called in them")]
    Beyond(u64),
    /// Methods were called whose names no agent reported.
    #[error("{0} methods were called whose names are unknown: they may be in the list")]
    Nameless(u64),
    /// Methods were called whose signatures are invalid.
    #[error("{0} methods were called whose signatures are invalid: they may be in the list")]
    Unparsed(u64),
    /// The reports of agents on classes exceeded a limit.
    #[error(
        "{0} messages about classes exceeded a limit: a listed class may have been loaded, or not been traced"
    )]
    ClassReports(u64),
    /// No agent reported which classes were loaded, ignored or failed.
    #[error("no agent reported which classes it traces: listed classes may have been called untraced")]
    NoClassReports,
    /// Classes were ignored by agents.
    #[error(
        "{0} classes were not traced, because they were excluded or loaded by the boot loader: not listed"
    )]
    Ignored(u64),
    /// Classes could not be instrumented by agents.
    #[error("{0} classes were not traced, because the agent could not instrument them: not listed")]
    Failed(u64),
    /// In some classes, every method without calls was running when the trace began.
    #[error("{0} classes were running when the trace began, and calls from before are not seen: not listed")]
    AlreadyRunning(u64),
    /// The classes of some methods were loaded before the trace began.
    #[error(
        "{0} methods were not called since the trace began, but may have been called before: the agent was attached \
         after their classes were loaded: not listed"
    )]
    NotSinceAttach(u64),
    /// Classes are outside of the agents' filters.
    #[error("{0} classes are outside of the classes that the agent was configured to trace: not listed")]
    Outside(u64),
    /// Classes may be outside of the agents' filters.
    #[error("for {0} classes it is unknown whether the agent was configured to trace them: not listed")]
    UnreadableFilter(u64),
    /// Methods of other classes are unknown.
    #[error("for {0} more methods it is unknown whether they were called: not listed")]
    UnknownMethods(u64),
    /// Agents were killed, or their connections were lost.
    #[error(
        "{0} agents stopped before they had sent everything: for methods without calls it is unknown whether they were called"
    )]
    Unsent(u64),
    /// Entries of archives could not be read.
    #[error("{0} entries of the JAR files could not be read: not listed")]
    Unread(u64),
    /// Classes have the name of an earlier one.
    #[error("{0} classes have the same name as one in an earlier JAR file, which was used instead")]
    Duplicates(u64),
    /// Classes may not be the ones for the Java release of every run.
    #[error(
        "{0} classes of multi-release JAR files differ between releases of Java, and the runs used several releases, or \
         unknown ones: the listed methods and lines are those for the newest"
    )]
    Releases(u64),
    /// Methods were called that are not in their class.
    #[error(
        "{0} methods were called that their classes do not have: the program ran other versions of these classes"
    )]
    OtherVersion(u64),
}

/// The options of [`NeverCalled::of`].
#[derive(Debug, Clone, Default)]
pub struct NeverOptions {
    /// The classes to include.
    pub patterns: Patterns,
    /// Whether to include methods that the compiler generated ([`Filtered`](crate::coverage::Filtered)).
    pub compiler_methods: bool,
}

/// A method for which it is unknown whether it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMethod<'a> {
    /// The internal name of its class.
    pub class: &'a str,
    /// The method in the inventory.
    pub method: &'a Method,
    /// The reason.
    pub why: Unknown,
}

/// The methods that were never called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NeverCalled<'a> {
    /// The classes with such methods, sorted by name.
    pub classes: Vec<NeverClass<'a>>,
    /// The classes of the inventory for which it is unknown for all methods whether they were called, and the reason.
    pub untraced: Vec<(&'a str, Unknown)>,
    /// The methods of other classes for which it is unknown whether they were called.
    pub unknown: Vec<UnknownMethod<'a>>,
    /// The amount of code by package (`com/example`).
    pub packages: BTreeMap<&'a str, Size>,
    /// The number of methods in `untraced` and `unknown` that were not called since the trace began, and whose
    /// class was loaded before.
    pub not_called_since_attach: u64,
    /// The caveats, sorted.
    pub caveats: Vec<Caveat>,
}

impl NeverClass<'_> {
    /// Returns the size of the code of the methods that were never called, in bytes.
    pub fn code(&self) -> u64 {
        self.methods.iter().map(|method| u64::from(method.code)).sum()
    }
}

impl<'a> NeverCalled<'a> {
    /// Determines which methods of `inventory` were never called in the observed runs.
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

    /// Returns the total over all packages.
    pub fn total(&self) -> Size {
        self.packages.values().copied().fold(Size::default(), Size::plus)
    }

    /// Adds a class. Returns the number of called methods that the class does not have.
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
        let known = order::to_set(class.methods.iter().map(id));
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
            // A generated method that ran shows that the class is in use.
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
    /// Returns the sum of two sizes.
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
    order::sort(&mut caveats);
    caveats
}
