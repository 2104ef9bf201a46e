//! Distribution of the tests of a module to several processes, which keeps related tests together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use runtap_model::order;

use super::cost::{Atom, Cost};

/// The percentage by which the longest process may become longer to keep tests of a class together.
const CLASS_COST_PERCENT: u64 = 10;

/// The tests of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Piece {
    /// The indexes of the atoms of the module, ascending.
    pub(super) atoms: Vec<usize>,
    sum: u64,
    longest: u64,
    /// The cost of the process.
    pub(super) estimate: u64,
}

impl Piece {
    fn add(&mut self, position: usize, atom: &Atom<'_>) {
        self.atoms.push(position);
        self.sum = self.sum.saturating_add(atom.time);
        self.longest = self.longest.max(atom.time);
    }

    fn absorb(&mut self, other: Self) {
        self.atoms.extend(other.atoms);
        self.sum = self.sum.saturating_add(other.sum);
        self.longest = self.longest.max(other.longest);
    }
}

/// Distributes the tests of a module to at most `parts` processes: whole classes if that is good enough, else with the
/// largest classes divided, else test by test.
pub(super) fn pack(cost: &Cost<'_>, parts: usize) -> Vec<Piece> {
    let singles = cost.atoms.iter().enumerate().map(|(position, atom)| {
        let mut single = Piece::default();
        single.add(position, atom);
        single
    });
    let by_test = deal(cost, singles.collect(), parts);
    let longest = |pieces: &[Piece]| pieces.iter().map(|piece| piece.estimate).max().unwrap_or_default();
    let best = longest(&by_test);
    let good_enough = best.saturating_add(best / 100 * CLASS_COST_PERCENT);
    let share = cost.work / u64::try_from(parts.max(1)).unwrap_or(u64::MAX);
    for limit in [u64::MAX, share] {
        let by_class = deal(cost, classes(cost, limit), parts);
        if longest(&by_class) <= good_enough {
            return by_class;
        }
    }
    by_test
}

/// Groups tests by class, in runs of consecutive tests that take at most `limit` together (or are a single test).
fn classes(cost: &Cost<'_>, limit: u64) -> Vec<Piece> {
    let mut open: BTreeMap<usize, Piece> = BTreeMap::new();
    let mut full = Vec::new();
    for (position, atom) in cost.atoms.iter().enumerate() {
        let piece = open.entry(atom.class).or_default();
        if !piece.atoms.is_empty() && piece.sum.saturating_add(atom.time) > limit {
            full.push(std::mem::take(piece));
        }
        piece.add(position, atom);
    }
    full.extend(open.into_values());
    full
}

/// Combines groups to at most `parts` pieces: the longest first, each to the piece with the least work.
fn deal(cost: &Cost<'_>, mut groups: Vec<Piece>, parts: usize) -> Vec<Piece> {
    order::sort_by_key(&mut groups, |group| (Reverse(group.sum), group.atoms.first().copied()));
    let mut pieces = vec![Piece::default(); parts.min(groups.len())];
    // Equal work is decided by the number of groups, so that tests of zero duration are distributed too.
    let mut least: BinaryHeap<Reverse<(u64, usize, usize)>> =
        (0..pieces.len()).map(|at| Reverse((0, 0, at))).collect();
    for group in groups {
        let Some(Reverse((_, groups, at))) = least.pop() else { break };
        if let Some(piece) = pieces.get_mut(at) {
            piece.absorb(group);
            least.push(Reverse((piece.sum, groups + 1, at)));
        }
    }
    for piece in &mut pieces {
        piece.atoms.sort_unstable();
        piece.estimate = cost.process(piece.sum, piece.longest);
    }
    pieces
}
