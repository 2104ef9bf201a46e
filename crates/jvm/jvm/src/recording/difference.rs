//! The changes from one recording to another, method by method.
//!
//! The numbers are absolute: traces contain every call, so the compared runs should have had the same work to do.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use runtap_bytefrog::{Detail, Report};
use runtap_model::order;

/// The numbers of a method in one recording; all zero if it did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MethodNumbers {
    /// The number of calls that have begun.
    pub calls: u64,
    /// The time in the method including callees, in nanoseconds; calls without an end count as far as they were seen.
    pub total: u64,
    /// The time in the method without callees, in nanoseconds.
    pub own: u64,
}

/// A method in two recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodChange {
    /// The signature.
    pub signature: String,
    /// The numbers in the first recording.
    pub before: MethodNumbers,
    /// The numbers in the second recording.
    pub after: MethodNumbers,
}

/// The number by whose change the rows are sorted, with the largest increase or decrease first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// The time without callees.
    #[default]
    Own,
    /// The time including callees.
    Total,
    /// The number of calls.
    Calls,
}

impl Order {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Own, Self::Total, Self::Calls];

    /// Returns the name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Total => "total",
            Self::Calls => "calls",
        }
    }

    /// Describes the number in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Own => "Time without callees",
            Self::Total => "Time with callees",
            Self::Calls => "Calls",
        }
    }

    /// Returns the number that rows are sorted by.
    pub fn of(self, numbers: &MethodNumbers) -> u64 {
        match self {
            Self::Own => numbers.own,
            Self::Total => numbers.total,
            Self::Calls => numbers.calls,
        }
    }
}

/// The sums of the methods that were called in one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MethodTotals {
    /// The number of methods.
    pub methods: usize,
    /// The number of calls.
    pub calls: u64,
    /// The time in the methods.
    pub own: u64,
}

/// Returns whether a trace has times.
fn has_times(report: &Report) -> bool {
    matches!(report.detail(), Detail::Calls | Detail::Unsent)
}

/// The difference of two recordings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// All methods of both recordings, sorted; methods without changes are last.
    pub methods: Vec<MethodChange>,
    /// The number of methods that have changed.
    pub changed: usize,
    /// The number by whose change the methods are sorted.
    pub order: Order,
    /// Whether both recordings have times.
    pub has_times: bool,
}

impl MethodChange {
    /// Returns the change of a number.
    pub fn change(&self, order: Order) -> i128 {
        i128::from(order.of(&self.after)) - i128::from(order.of(&self.before))
    }

    /// Returns whether any number has changed.
    pub fn has_changed(&self) -> bool {
        self.before != self.after
    }
}

impl Difference {
    /// Compares two recordings, each with the reports of its agents. Without an order, methods are sorted by their times, or
    /// by their calls if times are unknown. Returns `None` if the order is by times and a recording has none.
    pub fn new<'a>(before: &'a [Report], after: &'a [Report], order: Option<Order>) -> Option<Self> {
        let has_times = before.iter().chain(after).all(has_times);
        let order = match order {
            None if has_times => Order::Own,
            None | Some(Order::Calls) => Order::Calls,
            Some(order) => Some(order).filter(|_| has_times)?,
        };
        let mut methods: BTreeMap<&str, [MethodNumbers; 2]> = BTreeMap::new();
        let mut add = |report: &'a Report, side: fn(&mut [MethodNumbers; 2]) -> &mut MethodNumbers| {
            for method in &report.methods {
                let sum = side(methods.entry(&method.signature).or_default());
                sum.calls = sum.calls.saturating_add(method.calls());
                sum.total = sum.total.saturating_add(method.total().unwrap_or(0));
                sum.own = sum.own.saturating_add(method.own().unwrap_or(0));
            }
        };
        for report in before {
            add(report, |[before, _]| before);
        }
        for report in after {
            add(report, |[_, after]| after);
        }
        let mut methods: Vec<MethodChange> = methods
            .into_iter()
            .map(|(signature, [before, after])| MethodChange {
                signature: signature.to_owned(),
                before,
                after,
            })
            .collect();
        let size = |method: &MethodChange, order| method.change(order).unsigned_abs();
        order::sort_by_cached_key(&mut methods, |method| {
            let others = [Order::Own, Order::Total, Order::Calls].map(|order| size(method, order));
            (!method.has_changed(), Reverse(size(method, order)), Reverse(others), method.signature.clone())
        });
        let changed = methods.iter().filter(|method| method.has_changed()).count();
        Some(Self { methods, changed, order, has_times })
    }

    /// Returns the sums of the first and of the second recording.
    pub fn totals(&self) -> [MethodTotals; 2] {
        let side = |of: fn(&MethodChange) -> &MethodNumbers| {
            let ran = self.methods.iter().map(of).filter(|numbers| numbers.calls > 0);
            ran.fold(MethodTotals::default(), |sum, numbers| MethodTotals {
                methods: sum.methods + 1,
                calls: sum.calls.saturating_add(numbers.calls),
                own: sum.own.saturating_add(numbers.own),
            })
        };
        [side(|method| &method.before), side(|method| &method.after)]
    }
}
