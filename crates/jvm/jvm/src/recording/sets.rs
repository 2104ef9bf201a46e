//! Which methods ran in one recording and not in another.
//!
//! Owns: [`Called`], the methods that ran in a part with their calls, and [`combine`]: A − B, A ∩ B and A ∪ B, from left to
//! right. What is in the result is decided by whether a method ran; the calls of all operands stand beside it.

use std::collections::{BTreeMap, BTreeSet};

use runtap_bytefrog::Report;

/// Methods that ran, by signature, with their calls. Of what has run as coverage says, calls may be 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Called(BTreeMap<String, u64>);

/// What is done with the next operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Leaves out what ran there.
    Minus,
    /// Keeps what ran there too.
    And,
    /// Adds what ran there.
    Or,
}

impl Operation {
    /// Its sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Minus => "−",
            Self::And => "∩",
            Self::Or => "∪",
        }
    }
}

/// A method of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetRow {
    /// Its signature.
    pub signature: String,
    /// Its calls in each operand; `None`: it did not run there.
    pub calls: Vec<Option<u64>>,
}

impl SetRow {
    /// Its calls in all operands together.
    pub fn total(&self) -> u64 {
        self.calls.iter().flatten().fold(0, |sum, calls| sum.saturating_add(*calls))
    }
}

impl Called {
    /// Adds what ran by this report: that of another agent, too.
    pub fn add(&mut self, report: &Report) {
        for method in &report.methods {
            let calls = method.calls();
            if calls > 0 || method.has_run {
                let sum = self.0.entry(method.signature.clone()).or_default();
                *sum = sum.saturating_add(calls);
            }
        }
    }

    /// How many methods that are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing ran.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, u64)> for Called {
    fn from_iter<I: IntoIterator<Item = (String, u64)>>(methods: I) -> Self {
        Self(methods.into_iter().collect())
    }
}

/// The methods of the result, by signature.
pub fn combine(first: &Called, others: &[(Operation, Called)]) -> Vec<SetRow> {
    let mut kept: BTreeSet<&str> = first.0.keys().map(String::as_str).collect();
    for (operation, other) in others {
        match operation {
            Operation::Minus => kept.retain(|signature| !other.0.contains_key(*signature)),
            Operation::And => kept.retain(|signature| other.0.contains_key(*signature)),
            Operation::Or => kept.extend(other.0.keys().map(String::as_str)),
        }
    }
    let operands: Vec<&Called> =
        std::iter::once(first).chain(others.iter().map(|(_, other)| other)).collect();
    let row = |signature: &str| SetRow {
        signature: signature.to_owned(),
        calls: operands.iter().map(|operand| operand.0.get(signature).copied()).collect(),
    };
    kept.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn called(names: &str) -> Called {
        names.chars().map(|name| (name.to_string(), 1)).collect()
    }

    fn result(first: &str, others: &[(Operation, &str)]) -> String {
        let others: Vec<_> = others.iter().map(|(operation, names)| (*operation, called(names))).collect();
        combine(&called(first), &others).into_iter().map(|row| row.signature).collect()
    }

    #[test]
    fn sets_are_taken_from_left_to_right() {
        use Operation::{And, Minus, Or};
        assert_eq!(result("abc", &[(Minus, "b")]), "ac");
        assert_eq!(result("abc", &[(And, "bd")]), "b");
        assert_eq!(result("ab", &[(Or, "bz")]), "abz");
        assert_eq!(result("abc", &[(Minus, "b"), (Or, "b")]), "abc");
        assert_eq!(result("abc", &[(Or, "b"), (Minus, "b")]), "ac");
        let rows = combine(&called("a"), &[(Or, called("b"))]);
        assert_eq!(rows[0].calls, [Some(1), None]);
        assert_eq!((rows[1].calls.clone(), rows[1].total()), (vec![None, Some(1)], 1));
    }

    proptest! {
        #[test]
        fn what_is_left_and_what_is_common_are_the_whole(a in "[a-h]{0,8}", b in "[a-h]{0,8}") {
            let (a, b): (Called, Called) = (called(&a), called(&b));
            let names = |operation| -> BTreeSet<String> {
                combine(&a, &[(operation, b.clone())]).into_iter().map(|row| row.signature).collect()
            };
            let (minus, and) = (names(Operation::Minus), names(Operation::And));
            prop_assert!(minus.is_disjoint(&and));
            prop_assert_eq!(minus.union(&and).cloned().collect::<BTreeSet<_>>(), a.0.keys().cloned().collect());
            prop_assert_eq!(names(Operation::Or).len(), minus.len() + b.len());
        }
    }
}
