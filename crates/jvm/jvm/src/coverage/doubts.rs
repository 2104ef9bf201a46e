//! Why methods that were not called may have run all the same.
//!
//! Owns: [`Doubts`] of all runs, and [`ClassDoubts`] of one class, in which everything about the class is looked at once: it
//! may have 65,535 methods, and agents may have said as much of it. Both come from recordings, so the work of matching the
//! expressions of a recording is bounded; beyond the bound they count as unreadable.

use std::cell::Cell;
use std::collections::HashMap;

use runtap_bytefrog_proto::f1::ALREADY_RUNNING;

use crate::coverage::observed::{ClassFate, Observed, Unknown};
use crate::coverage::patterns::Patterns;
use crate::coverage::signature::Signature;

/// The [work](Patterns::work) of matching that each class may take.
const FREE_WORK: u64 = 1 << 21;
/// What all classes together may take beyond that.
const MOST_WORK: u64 = 1 << 34;

/// Begins the reason of a method whose calls are traced, and whose lines are not.
const LINES_ONLY: &str = "lines not known: ";

/// What is needed to ask why methods that were not called are [`Unknown`].
pub(crate) struct Doubts<'a> {
    observed: &'a Observed,
    /// What runs were told to trace. Empty: everything, as far as it is known.
    filters: Vec<Patterns>,
    /// What a run was told to trace can't be read: what only Java understands, or too much.
    has_unreadable: bool,
    /// What is left of [`MOST_WORK`].
    work: Cell<u64>,
}

/// Why methods of one class that were not called are [`Unknown`].
pub(crate) struct ClassDoubts<'a> {
    /// Why all methods are unknown.
    all: Option<Told<'a>>,
    /// Why single methods are, by name and descriptor.
    methods: HashMap<&'a str, Told<'a>>,
    /// Why all others are.
    others: Option<Unknown>,
}

/// A reason, and how many came before it.
type Told<'a> = (usize, &'a str);

impl<'a> Doubts<'a> {
    pub(crate) fn new(observed: &'a Observed) -> Self {
        let runs = observed.traced.len();
        let mut doubts =
            Self { observed, filters: Vec::new(), has_unreadable: false, work: Cell::new(MOST_WORK) };
        for traced in &observed.traced {
            // Agents trace what nothing excludes.
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

    /// What is in doubt of a class. `was_called`: one of its methods was.
    pub(crate) fn of_class(&self, class: &str, was_called: bool) -> ClassDoubts<'a> {
        // A class that failed in one loader as a whole may have been traced in another.
        let was_traced = self.observed.classes.get(class) == Some(&ClassFate::Traced);
        let mut doubts = ClassDoubts { all: None, methods: HashMap::new(), others: None };
        let (first, reasons) = (class.to_owned(), format!("{class} ("));
        let bare = self.observed.failed.range(first.clone()..=first);
        let listed = self.observed.failed.range(reasons.clone()..);
        let listed = listed.take_while(|told| told.starts_with(&reasons));
        for (number, told) in bare.chain(listed).enumerate() {
            doubts.add(number, told.strip_prefix(class).unwrap_or_default(), was_traced);
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
                // The agent itself may have said that it traces the class.
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

    /// Whether any of the filters that can be read keeps a class. `None`: to find out takes too much work.
    fn keeps(&self, class: &str) -> Option<bool> {
        let work = self.filters.iter().map(|filter| filter.work(class)).fold(0, u64::saturating_add);
        let left = self.work.get().checked_sub(work.saturating_sub(FREE_WORK))?;
        self.work.set(left);
        Some(self.filters.iter().any(|filter| filter.keep(class)))
    }
}

impl<'a> ClassDoubts<'a> {
    /// Takes what an agent has said behind the name of a class that it could not change: ` (run()V: why; x(I)V: why)` of
    /// single methods, ` (why)` or nothing of all of them.
    fn add(&mut self, number: usize, behind: &'a str, was_traced: bool) {
        let mut of_all = |reason| {
            if !was_traced {
                self.all.get_or_insert((number, reason));
            }
        };
        if behind.is_empty() {
            return of_all("no reason was given");
        }
        let listed = behind.strip_prefix(" (").unwrap_or_default();
        // A text without its end was too long: which other methods are meant is not known.
        let Some(all) = listed.strip_suffix(')') else { return of_all(listed) };
        let items = all.split("; ").map(|item| item.split_once(": ").filter(|(method, _)| is_method(method)));
        let Some(items) = items.collect::<Option<Vec<(&str, &str)>>>() else { return of_all(all) };
        // Of two reasons in one text the last one counts, of two texts the first.
        for (method, why) in items.into_iter().rev().filter(|(_, why)| !why.starts_with(LINES_ONLY)) {
            self.methods.entry(method).or_insert((number, why));
        }
    }

    /// Why it is not known whether a method that was not called ran.
    pub(crate) fn of(&self, name: &str, descriptor: &str) -> Option<Unknown> {
        let told = if self.methods.is_empty() {
            self.all
        } else {
            let own = self.methods.get(format!("{name}{descriptor}").as_str()).copied();
            self.all.into_iter().chain(own).min()
        };
        match told {
            Some((_, ALREADY_RUNNING)) => Some(Unknown::AlreadyRunning),
            Some((_, reason)) => Some(Unknown::Failed(reason.to_owned())),
            None => self.others.clone(),
        }
    }
}

/// Whether it is a name with a descriptor: `run(I)V`.
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
        let told = |pattern: &str| Observed {
            traced: [TracedClasses {
                inclusions: vec![pattern.to_owned()],
                exclusions: vec![".*".to_owned()],
            }]
            .into(),
            ..Observed::default()
        };
        let (large, usual) = (told("(?:.?){20000}z"), told("^com/example/"));
        let (large, usual) = (Doubts::new(&large), Doubts::new(&usual));
        let class = "some/package/of/usual/length/Class";
        let outside = |doubts: &Doubts<'_>| doubts.of_class(class, false).of("x", "()V");
        assert_eq!(outside(&large), Some(Unknown::Outside));
        let once = MOST_WORK - large.work.get();
        assert!(once > 0);
        large.work.set(once - 1);
        assert_eq!(outside(&large), Some(Unknown::UnreadableFilter));
        for _ in 0..1000 {
            assert_eq!(outside(&usual), Some(Unknown::Outside));
        }
        assert_eq!(usual.work.get(), MOST_WORK);
    }

    #[test]
    fn what_is_told_of_a_class_is_taken_apart_once() {
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
