//! The costs of modules, with medians for unknown durations. Times are whole microseconds; sums saturate.

use std::collections::HashMap;
use std::time::Duration;

use super::{Module, ScheduleOptions};

/// A uid with all of its tests, which is never divided.
#[derive(Debug)]
pub(super) struct Atom<'a> {
    pub(super) uid: &'a str,
    /// Tests with equal numbers have the same class.
    pub(super) class: usize,
    pub(super) time: u64,
}

/// The costs of a module.
#[derive(Debug)]
pub(super) struct Cost<'a> {
    /// The index of the module.
    pub(super) module: usize,
    pub(super) start: u64,
    concurrency_percent: u32,
    /// The tests in the order of the module; empty if the module cannot be split.
    pub(super) atoms: Vec<Atom<'a>>,
    /// The sum of the durations of its tests.
    pub(super) work: u64,
    /// The estimated duration of one process for all tests, which may be assumed.
    pub(super) estimate: u64,
    /// Whether any duration of its tests is known.
    pub(super) known: bool,
}

impl<'a> Cost<'a> {
    /// Returns the costs of all modules that need a process.
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
            // Without durations, the module cannot be divided sensibly.
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
            // A test without a class forms its own group.
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

    /// Returns the cost of a process with tests of this sum, the longest of which takes `longest`.
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
