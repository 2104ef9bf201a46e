//! The search for the splits with the shortest run, and the decision whether a split pays.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use runtap_model::order;

use super::cost::Cost;
use super::pack::{Piece, pack};
use super::{Process, ProcessTests, Schedule, ScheduleOptions};

/// The number of targets for the longest process that are tried between the theoretical optimum and no split.
const TARGETS_ABOVE: u64 = 16;

/// The number of targets that are tried below the optimum. Smaller processes leave smaller gaps at the end: ten modules
/// of equal length on sixteen slots need thirty processes, not twenty.
const TARGETS_BELOW: u64 = 8;

/// The number of processes of each module; 1 means no split.
type Parts = Vec<usize>;

pub(super) struct Search<'s, 'a> {
    costs: &'s [Cost<'a>],
    options: &'s ScheduleOptions,
    /// The divisions by module and number of parts, because the same division is requested often.
    packed: BTreeMap<(usize, usize), Vec<Piece>>,
    best: Parts,
    makespan: u64,
    unsplit: u64,
}

impl<'s, 'a> Search<'s, 'a> {
    pub(super) fn new(costs: &'s [Cost<'a>], options: &'s ScheduleOptions) -> Self {
        let best = vec![1; costs.len()];
        let mut search = Self { costs, options, packed: BTreeMap::new(), best, makespan: 0, unsplit: 0 };
        search.unsplit = search.makespan(&search.best.clone());
        search.makespan = search.unsplit;
        search
    }

    /// Searches for splits that pay.
    pub(super) fn run(&mut self) {
        if !self.options.split || self.options.parallel.get() == 1 {
            return;
        }
        let total: u128 = self.costs.iter().map(|cost| u128::from(cost.estimate)).sum();
        // Assume that all work can be divided evenly among the slots.
        let ideal = u64::try_from(total / self.options.parallel.get() as u128).unwrap_or(u64::MAX);
        let above = self.unsplit.saturating_sub(ideal);
        let part = |of: u64, step: u64, steps: u64| {
            u64::try_from(u128::from(of) * u128::from(step) / u128::from(steps)).unwrap_or(of)
        };
        let targets_above =
            (0..TARGETS_ABOVE).map(|step| ideal.saturating_add(part(above, step, TARGETS_ABOVE)));
        let targets_below = (1..TARGETS_BELOW).map(|step| part(ideal, step, TARGETS_BELOW));
        let (mut best, mut shortest) = (self.best.clone(), self.unsplit);
        for target in targets_above.chain(targets_below) {
            let parts = self.parts_for(target);
            if parts == best {
                continue;
            }
            let makespan = self.makespan(&parts);
            let fewer = parts.iter().sum::<usize>() < best.iter().sum();
            if makespan < shortest || makespan == shortest && fewer {
                (best, shortest) = (parts, makespan);
            }
        }
        if !self.pays(shortest) {
            return;
        }
        self.economize(&mut best, &mut shortest);
        (self.best, self.makespan) = (best, shortest);
    }

    fn pays(&self, makespan: u64) -> bool {
        let gain = self.unsplit.saturating_sub(makespan);
        let percent =
            u128::from(gain) * 100 >= u128::from(self.unsplit) * u128::from(self.options.min_gain_percent);
        gain > 0 && percent && Duration::from_micros(gain) >= self.options.min_gain
    }

    /// Returns the minimum number of parts with which each process stays below the target, as far as this is possible
    /// and useful.
    fn parts_for(&self, target: u64) -> Parts {
        let parts = |cost: &Cost<'_>| {
            if cost.atoms.len() < 2 || cost.estimate <= target {
                return 1;
            }
            // The tests of a process must take at least as long as its start.
            let work = cost.estimate.saturating_sub(cost.start);
            let useful = work / cost.start.max(1);
            let needed = work.div_ceil(target.saturating_sub(cost.start).max(1)).max(2);
            let most = self.options.parallel.get().min(cost.atoms.len());
            usize::try_from(needed.min(useful)).unwrap_or(usize::MAX).clamp(1, most)
        };
        self.costs.iter().map(parts).collect()
    }

    /// Reverts splits that do not shorten the run.
    fn economize(&mut self, parts: &mut Parts, shortest: &mut u64) {
        for module in 0..parts.len() {
            loop {
                let mut fewer = parts.clone();
                match fewer.get_mut(module) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => break,
                }
                let makespan = self.makespan(&fewer);
                if makespan > *shortest {
                    break;
                }
                (*parts, *shortest) = (fewer, makespan);
            }
        }
    }

    /// Returns the time at which the last process ends.
    fn makespan(&mut self, parts: &Parts) -> u64 {
        let order = self.order(parts);
        let places = self.options.parallel.get().min(order.len());
        let mut free: BinaryHeap<Reverse<u64>> = (0..places).map(|_| Reverse(0)).collect();
        let mut last = 0;
        for started in order {
            let Some(Reverse(now)) = free.pop() else { break };
            let end = now.saturating_add(started.estimate);
            last = last.max(end);
            free.push(Reverse(end));
        }
        last
    }

    /// Returns the processes in the order in which they start.
    fn order(&mut self, parts: &Parts) -> Vec<Started> {
        let mut order = Vec::new();
        for (index, (cost, parts)) in self.costs.iter().zip(parts).enumerate() {
            if *parts == 1 {
                order.push(Started { index, piece: None, known: cost.known, estimate: cost.estimate });
                continue;
            }
            let pieces = self.packed.entry((index, *parts)).or_insert_with(|| pack(cost, *parts));
            order.extend(pieces.iter().enumerate().map(|(at, piece)| Started {
                index,
                piece: Some(at),
                known: cost.known,
                estimate: piece.estimate,
            }));
        }
        // Stable: equal processes start in the order of modules, and unknown durations cannot be compared.
        order::sort_by_key(&mut order, |started| {
            (started.known, Reverse(if started.known { started.estimate } else { 0 }))
        });
        order
    }

    pub(super) fn into_schedule(mut self) -> Schedule<'a> {
        let parts = std::mem::take(&mut self.best);
        let order = self.order(&parts);
        let process = |started: &Started| {
            let cost = self.costs.get(started.index)?;
            let count = parts.get(started.index)?;
            let pieces = self.packed.get(&(started.index, *count));
            let piece = started.piece.and_then(|piece| pieces?.get(piece));
            let uids = |piece: &Piece| {
                piece.atoms.iter().filter_map(|at| cost.atoms.get(*at)).map(|atom| atom.uid).collect()
            };
            Some(Process {
                module: cost.module,
                which: piece.map_or(ProcessTests::All, |piece| ProcessTests::Uids(uids(piece))),
                estimate: started.known.then_some(Duration::from_micros(started.estimate)),
            })
        };
        Schedule {
            processes: order.iter().filter_map(process).collect(),
            makespan: Duration::from_micros(self.makespan),
            unsplit: Duration::from_micros(self.unsplit),
        }
    }
}

/// A process in the start order.
struct Started {
    /// The index of its costs.
    index: usize,
    /// The piece of the module, if it is split.
    piece: Option<usize>,
    known: bool,
    estimate: u64,
}
