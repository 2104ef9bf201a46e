//! Set operations on the methods that ran in recordings.
//!
//! [`combine`] computes A − B, A ∩ B and A ∪ B of sets of [`CalledMethods`], from left to right. Membership depends
//! only on whether a method ran; the rows also have the calls in each operand.

use std::collections::BTreeMap;

use runtap_bytefrog::Report;
use runtap_model::order;

/// The methods that ran, by signature, with their numbers of calls. The number is 0 for methods that are known from
/// coverage only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CalledMethods(BTreeMap<String, u64>);

/// A set operation with the next operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Removes the methods that ran there.
    Minus,
    /// Keeps only the methods that ran there too.
    And,
    /// Adds the methods that ran there.
    Or,
}

impl Operation {
    /// Returns the name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Minus => "minus",
            Self::And => "and",
            Self::Or => "or",
        }
    }

    /// Returns the mathematical sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Minus => "−",
            Self::And => "∩",
            Self::Or => "∪",
        }
    }
}

/// A method in the result of [`combine`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetRow {
    /// The signature.
    pub signature: String,
    /// The number of calls in each operand; `None` if the method did not run there.
    pub calls: Vec<Option<u64>>,
}

impl SetRow {
    /// Returns the number of calls in all operands together.
    pub fn total(&self) -> u64 {
        self.calls.iter().flatten().fold(0, |sum, calls| sum.saturating_add(*calls))
    }
}

impl CalledMethods {
    /// Adds the methods that ran according to a report. Reports of several agents may be added.
    pub fn add(&mut self, report: &Report) {
        for method in &report.methods {
            let calls = method.calls();
            if calls > 0 || method.has_run {
                let sum = self.0.entry(method.signature.clone()).or_default();
                *sum = sum.saturating_add(calls);
            }
        }
    }

    /// Returns the number of methods.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if no methods ran.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, u64)> for CalledMethods {
    fn from_iter<I: IntoIterator<Item = (String, u64)>>(methods: I) -> Self {
        Self(order::to_map(methods))
    }
}

/// Combines sets of methods. The rows are sorted by signature.
pub fn combine(first: &CalledMethods, others: &[(Operation, CalledMethods)]) -> Vec<SetRow> {
    let mut kept = order::to_set(first.0.keys().map(String::as_str));
    for (operation, other) in others {
        match operation {
            Operation::Minus => kept.retain(|signature| !other.0.contains_key(*signature)),
            Operation::And => kept.retain(|signature| other.0.contains_key(*signature)),
            Operation::Or => kept.extend(other.0.keys().map(String::as_str)),
        }
    }
    let operands: Vec<&CalledMethods> =
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

    use std::collections::BTreeSet;

    use super::*;

    fn called(names: &str) -> CalledMethods {
        names.chars().map(|name| (name.to_string(), 1)).collect()
    }

    fn result(first: &str, others: &[(Operation, &str)]) -> String {
        let others: Vec<_> = others.iter().map(|(operation, names)| (*operation, called(names))).collect();
        combine(&called(first), &others).into_iter().map(|row| row.signature).collect()
    }

    #[test]
    fn sets_are_combined_from_left_to_right() {
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
        fn the_difference_and_the_intersection_are_the_whole(a in "[a-h]{0,8}", b in "[a-h]{0,8}") {
            let (a, b): (CalledMethods, CalledMethods) = (called(&a), called(&b));
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
