//! What changed from one recording to another, method by method.
//!
//! Owns: [`Difference`]. Numbers are absolute: traces have every call, so the runs compared should have had the same to do.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use runtap_bytefrog::Report;

/// What a method did in one recording. All zero: it did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Calls that have begun.
    pub calls: u64,
    /// Time in it with callees, in nanoseconds: of calls without an end, as far as it was seen.
    pub total: u64,
    /// Time in it without callees, in nanoseconds.
    pub own: u64,
}

/// A method in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodChange {
    /// Its signature.
    pub signature: String,
    /// In the first recording.
    pub before: Numbers,
    /// In the second.
    pub after: Numbers,
}

/// What the rows are sorted by: the change of it, the largest first, up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Time without callees.
    #[default]
    Own,
    /// Time with callees.
    Total,
    /// Calls.
    Calls,
}

impl Order {
    /// The number of these that is sorted by.
    pub fn of(self, numbers: &Numbers) -> u64 {
        match self {
            Self::Own => numbers.own,
            Self::Total => numbers.total,
            Self::Calls => numbers.calls,
        }
    }
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// All methods of both recordings, sorted; those without any change come last.
    pub methods: Vec<MethodChange>,
    /// How many have changed.
    pub changed: usize,
}

impl MethodChange {
    /// How much a number has changed.
    pub fn change(&self, order: Order) -> i128 {
        i128::from(order.of(&self.after)) - i128::from(order.of(&self.before))
    }

    /// Whether anything has.
    pub fn has_changed(&self) -> bool {
        self.before != self.after
    }
}

impl Difference {
    /// Compares two recordings, each with the reports of its agents.
    pub fn new<'a>(
        before: impl IntoIterator<Item = &'a Report>,
        after: impl IntoIterator<Item = &'a Report>,
        order: Order,
    ) -> Self {
        let mut methods: BTreeMap<&str, [Numbers; 2]> = BTreeMap::new();
        let mut add = |report: &'a Report, side: fn(&mut [Numbers; 2]) -> &mut Numbers| {
            for method in &report.methods {
                let sum = side(methods.entry(&method.signature).or_default());
                sum.calls = sum.calls.saturating_add(method.calls());
                sum.total = sum.total.saturating_add(method.total().unwrap_or(0));
                sum.own = sum.own.saturating_add(method.own().unwrap_or(0));
            }
        };
        before.into_iter().for_each(|report| add(report, |[before, _]| before));
        after.into_iter().for_each(|report| add(report, |[_, after]| after));
        let mut methods: Vec<MethodChange> = methods
            .into_iter()
            .map(|(signature, [before, after])| MethodChange {
                signature: signature.to_owned(),
                before,
                after,
            })
            .collect();
        let size = |method: &MethodChange, order| method.change(order).unsigned_abs();
        methods.sort_by_cached_key(|method| {
            let others = [Order::Own, Order::Total, Order::Calls].map(|order| size(method, order));
            (!method.has_changed(), Reverse(size(method, order)), Reverse(others), method.signature.clone())
        });
        let changed = methods.iter().filter(|method| method.has_changed()).count();
        Self { methods, changed }
    }
}
