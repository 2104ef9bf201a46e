//! Fair sharing of a limited number of slots.

use std::collections::BTreeMap;

/// The number of slots held by each user, or by each other origin of connections.
///
/// When all slots are taken, the origin with the most slots gives one up, so a flood of connections from one origin
/// displaces only its own.
#[derive(Debug, Clone, Default)]
pub struct Shares<K>(BTreeMap<K, usize>);

impl<K: Ord> FromIterator<K> for Shares<K> {
    /// Counts slots by the origin of their holders.
    fn from_iter<I: IntoIterator<Item = K>>(holders: I) -> Self {
        let mut shares = BTreeMap::new();
        for origin in holders {
            *shares.entry(origin).or_insert(0) += 1;
        }
        Self(shares)
    }
}

impl<K: Ord> Shares<K> {
    /// Returns the number of slots that `origin` holds.
    pub fn held_by(&self, origin: &K) -> usize {
        self.0.get(origin).copied().unwrap_or_default()
    }

    /// Returns whether no other origin holds more slots than `origin`.
    pub fn has_most(&self, origin: &K) -> bool {
        self.0.values().all(|held| *held <= self.held_by(origin))
    }

    /// Returns the origin that should give up a slot for `newcomer`: the one with the most slots among those for which
    /// `may_leave` returns true. `None` if that origin would then hold fewer slots than the newcomer, which would make
    /// both alternate.
    pub fn gives_way_to(&self, newcomer: &K, may_leave: impl Fn(&K) -> bool) -> Option<&K> {
        let origin = self.most(|origin| origin != newcomer && may_leave(origin))?;
        (self.held_by(origin) > self.held_by(newcomer) + 1).then_some(origin)
    }

    /// Returns the origin with the most slots among those for which `counts` returns true.
    pub fn most(&self, counts: impl Fn(&K) -> bool) -> Option<&K> {
        let counted = self.0.iter().filter(|(origin, _)| counts(origin));
        counted.max_by_key(|(_, held)| **held).map(|(origin, _)| origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_with_most_gives_way_until_both_hold_the_same() {
        let mut held = [0, 64];
        loop {
            let shares: Shares<usize> = (0..2).flat_map(|user| vec![user; held[user]]).collect();
            assert!(shares.has_most(&1));
            let Some(user) = shares.gives_way_to(&0, |_| true) else { break };
            assert_eq!((*user, shares.gives_way_to(&1, |_| true)), (1, None));
            held = [held[0] + 1, held[1] - 1];
        }
        assert_eq!(held, [32, 32]);
    }

    #[test]
    fn an_origin_that_may_not_leave_keeps_its_slots() {
        let shares: Shares<&str> = ["own"; 5].into_iter().chain(["one"; 3]).chain(["other"; 4]).collect();
        assert_eq!(shares.gives_way_to(&"new", |origin| *origin != "own"), Some(&"other"));
        assert_eq!(shares.gives_way_to(&"new", |origin| *origin == "new"), None);
        assert_eq!((shares.held_by(&"one"), shares.held_by(&"new")), (3, 0));
        assert_eq!(shares.most(|_| true), Some(&"own"));
        assert_eq!(shares.most(|origin| *origin == "new"), None);
    }
}
