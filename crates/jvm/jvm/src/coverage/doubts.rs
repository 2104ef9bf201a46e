//! The reasons why methods without calls may have run nevertheless.
//!
//! [`Doubts`] covers all runs; [`ClassDoubts`] covers one class, and examines all reports on it at once: a class
//! may have 65,535 methods, and agents may have reported as many. Both come from recordings, so the work of
//! matching a recording's expressions is limited; beyond the limit they count as unreadable.

use std::cell::Cell;
use std::collections::HashMap;

use runtap_bytefrog_proto::f1::ALREADY_RUNNING;

use crate::coverage::observed::{ClassFate, Observed, Unknown};
use crate::coverage::patterns::Patterns;
use crate::coverage::signature::Signature;

/// The [work](Patterns::work) of matching that each class may take.
const FREE_WORK: u64 = 1 << 21;
/// The work of matching that all classes together may take in addition.
const MAX_WORK: u64 = 1 << 34;

/// The start of the reason for a method whose calls are traced, but whose lines are not.
const LINES_ONLY: &str = "lines not known: ";

/// The data for determining why methods without calls are [`Unknown`].
pub(crate) struct Doubts<'a> {
    observed: &'a Observed,
    /// The filters of runs; empty if everything was traced, as far as known.
    filters: Vec<Patterns>,
    /// Whether the filter of a run is unreadable: it uses Java-only syntax, or exceeds the limits.
    has_unreadable: bool,
    /// The remaining part of [`MAX_WORK`].
    work: Cell<u64>,
}

/// The reasons why methods of one class without calls are [`Unknown`].
pub(crate) struct ClassDoubts<'a> {
    /// The reason that applies to all methods.
    all: Option<RankedReason<'a>>,
    /// The reasons of single methods, by name and descriptor.
    methods: HashMap<&'a str, RankedReason<'a>>,
    /// The reason that applies to all other methods.
    others: Option<Unknown>,
}

/// A reason, with the number of reasons before it.
type RankedReason<'a> = (usize, &'a str);

impl<'a> Doubts<'a> {
    pub(crate) fn new(observed: &'a Observed) -> Self {
        let runs = observed.traced.len();
        let mut doubts =
            Self { observed, filters: Vec::new(), has_unreadable: false, work: Cell::new(MAX_WORK) };
        for traced in &observed.traced {
            // Agents trace all classes that are not excluded.
            if traced.exclusions.is_empty() {
                return Self { filters: Vec::new(), has_unreadable: false, ..doubts };
            }
            match Patterns::one_of(runs, &traced.inclusions, &traced.exclusions) {
                Ok(filter) => doubts.filters.push(filter),
                Err(_) => doubts.has_unreadable = true,
            }
        }
        doubts
    }

    /// Returns the doubts about a class. `was_called` tells whether one of its methods was called.
    pub(crate) fn of_class(&self, class: &str, was_called: bool) -> ClassDoubts<'a> {
        // A class that failed completely in one class loader may have been traced in another.
        let was_traced = self.observed.classes.get(class) == Some(&ClassFate::Traced);
        let mut doubts = ClassDoubts { all: None, methods: HashMap::new(), others: None };
        let (first, reasons) = (class.to_owned(), format!("{class} ("));
        let bare = self.observed.failed.range(first.clone()..=first);
        let listed = self.observed.failed.range(reasons.clone()..);
        let listed = listed.take_while(|report| report.starts_with(&reasons));
        for (number, report) in bare.chain(listed).enumerate() {
            doubts.add(number, report.strip_prefix(class).unwrap_or_default(), was_traced);
        }
        doubts.others = self.others(class, was_called, was_traced);
        doubts
    }

    fn others(&self, class: &str, was_called: bool, was_traced: bool) -> Option<Unknown> {
        if !was_called {
            if self.observed.classes.get(class) == Some(&ClassFate::Ignored) {
                return Some(Unknown::Ignored);
            }
            let has_filters = self.has_unreadable || !self.filters.is_empty();
            let keeps = if has_filters { self.keeps(class) } else { Some(true) };
            if keeps != Some(true) {
                if keeps.is_some() && !self.has_unreadable {
                    return Some(Unknown::Outside);
                }
                // The agent may have reported that it traces the class.
                if !was_traced {
                    return Some(Unknown::UnreadableFilter);
                }
            }
        }
        if self.observed.unsent > 0 {
            return Some(Unknown::Unsent);
        }
        self.observed.loaded_before.contains(class).then_some(Unknown::NotSinceAttach)
    }

    /// Returns whether any readable filter includes a class; `None` if matching would take too much work.
    fn keeps(&self, class: &str) -> Option<bool> {
        let work = self.filters.iter().map(|filter| filter.work(class)).fold(0, u64::saturating_add);
        let left = self.work.get().checked_sub(work.saturating_sub(FREE_WORK))?;
        self.work.set(left);
        Some(self.filters.iter().any(|filter| filter.keep(class)))
    }
}

impl<'a> ClassDoubts<'a> {
    /// Adds an agent's report on a class that it could not instrument, without the name of the class: ` (run()V:
    /// why; x(I)V: why)` for single methods, ` (why)` or nothing for all of them.
    fn add(&mut self, number: usize, report: &'a str, was_traced: bool) {
        let mut of_all = |reason| {
            if !was_traced {
                self.all.get_or_insert((number, reason));
            }
        };
        if report.is_empty() {
            return of_all("no reason was given");
        }
        let listed = report.strip_prefix(" (").unwrap_or_default();
        // A text without its end was truncated: the other methods are unknown.
        let Some(all) = listed.strip_suffix(')') else { return of_all(listed) };
        let items = all.split("; ").map(|item| item.split_once(": ").filter(|(method, _)| is_method(method)));
        let Some(items) = items.collect::<Option<Vec<(&str, &str)>>>() else { return of_all(all) };
        // Of two reasons in one report the last one counts, of two reports the first.
        for (method, why) in items.into_iter().rev().filter(|(_, why)| !why.starts_with(LINES_ONLY)) {
            self.methods.entry(method).or_insert((number, why));
        }
    }

    /// Returns why it is unknown whether a method without calls ran; `None` if it did not run.
    pub(crate) fn of(&self, name: &str, descriptor: &str) -> Option<Unknown> {
        let reason = if self.methods.is_empty() {
            self.all
        } else {
            let own = self.methods.get(format!("{name}{descriptor}").as_str()).copied();
            self.all.into_iter().chain(own).min()
        };
        match reason {
            Some((_, ALREADY_RUNNING)) => Some(Unknown::AlreadyRunning),
            Some((_, reason)) => Some(Unknown::Failed(reason.to_owned())),
            None => self.others.clone(),
        }
    }
}

/// Returns whether a text is a name with a descriptor: `run(I)V`.
fn is_method(text: &str) -> bool {
    text.find('(').is_some_and(|at| {
        let (name, descriptor) = text.split_at(at);
        !name.is_empty() && Signature::parse(&format!("C.{name};1;{descriptor}")).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::observed::TracedClasses;

    #[test]
    fn expressions_that_take_too_much_work_are_unreadable() {
        let traced = |pattern: &str| Observed {
            traced: [TracedClasses {
                inclusions: vec![pattern.to_owned()],
                exclusions: vec![".*".to_owned()],
            }]
            .into(),
            ..Observed::default()
        };
        let (large, usual) = (traced("(?:.?){20000}z"), traced("^com/example/"));
        let (large, usual) = (Doubts::new(&large), Doubts::new(&usual));
        let class = "some/package/of/usual/length/Class";
        let outside = |doubts: &Doubts<'_>| doubts.of_class(class, false).of("x", "()V");
        assert_eq!(outside(&large), Some(Unknown::Outside));
        let once = MAX_WORK - large.work.get();
        assert!(once > 0);
        large.work.set(once - 1);
        assert_eq!(outside(&large), Some(Unknown::UnreadableFilter));
        for _ in 0..1000 {
            assert_eq!(outside(&usual), Some(Unknown::Outside));
        }
        assert_eq!(usual.work.get(), MAX_WORK);
    }

    #[test]
    fn reports_on_a_class_are_parsed_once() {
        let methods: Vec<String> = (0..1000).map(|number| format!("m{number}()V: why {number}")).collect();
        let mut observed = Observed::default();
        observed.class(&format!("a/A ({})", methods.join("; ")), ClassFate::Failed);
        observed.class("a/AB (all of it)", ClassFate::Failed);
        let doubts = Doubts::new(&observed);
        let class = doubts.of_class("a/A", true);
        assert_eq!((class.methods.len(), class.all), (1000, None));
        assert_eq!(class.of("m7", "()V"), Some(Unknown::Failed("why 7".to_owned())));
        assert_eq!(class.of("m7", "(I)V"), None);
        assert_eq!(
            doubts.of_class("a/AB", true).of("x", "()V"),
            Some(Unknown::Failed("all of it".to_owned()))
        );
    }
}
