//! What a module costs. Owns: medians in the place of what is not known. All times are whole microseconds; sums that do
//! not fit are the largest number.

use std::collections::HashMap;
use std::time::Duration;

use super::{Module, ScheduleOptions};

/// A uid and all that it stands for: it is never divided.
#[derive(Debug)]
pub(super) struct Atom<'a> {
    pub(super) uid: &'a str,
    /// Tests with the same number have the same class.
    pub(super) class: usize,
    pub(super) time: u64,
}

/// A module in numbers.
#[derive(Debug)]
pub(super) struct Cost<'a> {
    /// The position of the module.
    pub(super) module: usize,
    pub(super) start: u64,
    concurrency_percent: u32,
    /// In the order of the module; empty if it can't be split.
    pub(super) atoms: Vec<Atom<'a>>,
    /// The sum of its tests.
    pub(super) work: u64,
    /// One process for all, also if that is only assumed.
    pub(super) estimate: u64,
    /// Whether anything is known of how long its tests take.
    pub(super) known: bool,
}

impl<'a> Cost<'a> {
    /// Those of all modules that need a process.
    pub(super) fn all(modules: &[Module<'a>], options: &ScheduleOptions) -> Vec<Self> {
        let durations = |module: &Module<'_>| -> Vec<u64> {
            module.tests.iter().filter_map(|test| test.duration).map(micros).collect()
        };
        let of_all = median(modules.iter().flat_map(durations).collect());
        let needed =
            modules.iter().enumerate().filter(|(_, module)| !(module.listed && module.tests.is_empty()));
        let mut costs: Vec<Self> = needed
            .map(|(position, module)| {
                let known = durations(module);
                let of_module = median(known.clone()).or(of_all);
                Self::of(position, module, !known.is_empty(), of_module.unwrap_or_default(), options)
            })
            .collect();
        let known = costs.iter().filter(|cost| cost.known).map(|cost| cost.estimate).collect();
        let assumed = median(known).unwrap_or_default();
        for cost in costs.iter_mut().filter(|cost| !cost.known && cost.estimate < assumed) {
            cost.estimate = assumed;
            // There is nothing to go by when it comes to dividing it.
            cost.atoms.clear();
        }
        costs
    }

    fn of(module: usize, facts: &Module<'a>, known: bool, median: u64, options: &ScheduleOptions) -> Self {
        let time = |duration: Option<Duration>| duration.map_or(median, micros);
        let mut classes = HashMap::new();
        let mut places = HashMap::new();
        let mut atoms: Vec<Atom<'a>> = Vec::new();
        for test in &facts.tests {
            let time = time(test.duration);
            let place = *places.entry(test.uid).or_insert(atoms.len());
            if let Some(atom) = atoms.get_mut(place) {
                atom.time = atom.time.saturating_add(time);
                continue;
            }
            // A test without a class is alone.
            let new = classes.len();
            let class = *classes.entry(test.class.ok_or(test.uid)).or_insert(new);
            atoms.push(Atom { uid: test.uid, class, time });
        }
        let mut work = atoms.iter().fold(0, |sum: u64, atom| sum.saturating_add(atom.time));
        let longest = atoms.iter().map(|atom| atom.time).max().unwrap_or_default();
        if atoms.is_empty() {
            let count = u64::try_from(facts.count.unwrap_or_default()).unwrap_or(u64::MAX);
            work = median.saturating_mul(count);
        }
        if !facts.listed {
            atoms.clear();
        }
        let start = micros(facts.start.unwrap_or(options.start));
        let concurrency_percent = facts.concurrency_percent.max(100);
        let mut cost = Self { module, start, concurrency_percent, atoms, work, estimate: 0, known };
        cost.estimate = cost.process(work, longest);
        cost
    }

    /// What a process costs that runs tests of this sum, the longest of which takes `longest`.
    pub(super) fn process(&self, sum: u64, longest: u64) -> u64 {
        let shared = u128::from(sum) * 100 / u128::from(self.concurrency_percent);
        self.start.saturating_add(u64::try_from(shared).unwrap_or(u64::MAX).max(longest))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
