//! Merging of two histories, independent of their order.

use std::collections::btree_map::Entry;

use super::{History, KEPT_OUTCOMES, KEPT_RUNS, ModuleHistory, Seen, TestHistory};

impl History {
    /// Adds another history, for example of another machine. Averages and facts of the newer history are kept; outcomes
    /// and runs of both are kept.
    pub fn merge(&mut self, other: Self) {
        for (key, module) in other.modules {
            match self.modules.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(module);
                }
                Entry::Occupied(mut entry) => entry.get_mut().merge(module),
            }
        }
    }
}

impl ModuleHistory {
    pub(super) fn merge(&mut self, other: Self) {
        // For equally old records, any symmetric rule is suitable.
        let facts = |of: &Self| (of.updated, of.fingerprint.clone(), of.start, of.wall, of.broken);
        if facts(&other) > facts(self) {
            (self.updated, self.broken) = (other.updated, other.broken);
            (self.fingerprint, self.start, self.wall) = (other.fingerprint, other.start, other.wall);
        }
        self.listing = self.listing.take().max(other.listing);
        for run in other.runs {
            insert_run(&mut self.runs, run);
        }
        for (uid, test) in other.tests {
            self.put(uid, test);
        }
    }

    /// Adds a test, or merges it with an existing test.
    pub(super) fn put(&mut self, uid: String, test: TestHistory) {
        match self.tests.entry(uid) {
            Entry::Vacant(entry) => {
                entry.insert(test);
            }
            Entry::Occupied(mut entry) => entry.get_mut().merge(test),
        }
    }
}

impl TestHistory {
    fn merge(&mut self, other: Self) {
        let facts = |of: &Self| (of.last_seen, of.duration, of.class.clone());
        if facts(&other) > facts(self) {
            self.last_seen = other.last_seen;
            (self.duration, self.class) = (other.duration, other.class);
        }
        for seen in other.outcomes {
            insert_outcome(&mut self.outcomes, seen);
        }
    }
}

/// Adds a run in order without duplicates, and removes the oldest run beyond the limit.
pub(super) fn insert_run(runs: &mut Vec<u64>, at: u64) {
    if let Err(place) = runs.binary_search(&at) {
        runs.insert(place, at);
        runs.drain(..runs.len().saturating_sub(KEPT_RUNS));
    }
}

/// Adds an outcome in order. Of two outcomes of a run, the worse is kept. Removes the oldest outcome beyond the limit.
pub(super) fn insert_outcome(outcomes: &mut Vec<Seen>, seen: Seen) {
    match outcomes.binary_search_by_key(&seen.at, |seen| seen.at) {
        Ok(place) => {
            if let Some(known) = outcomes.get_mut(place) {
                *known = seen.max(*known);
            }
        }
        Err(place) => {
            // Usually there are many tests with one outcome each.
            outcomes.reserve_exact(1);
            outcomes.insert(place, seen);
            outcomes.drain(..outcomes.len().saturating_sub(KEPT_OUTCOMES));
        }
    }
}
