//! Reports allocations by type and by code.

use runtap_model::{FrameTotals, Trace, View};
use serde::Serialize;

use super::Report;
use super::places::{PlaceFrame, places};

/// The allocations in a profile of the view [`Alloc`](View::Alloc).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocReport {
    /// The estimated number of allocated bytes.
    pub allocated_bytes: u64,
    /// The number of samples.
    pub samples_count: u64,
    /// The allocated types, largest first.
    pub types: Vec<AllocatedType>,
    /// The code that allocated, largest first.
    pub sites: Vec<AllocSite>,
}

/// The allocations of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocatedType {
    /// The name of the type.
    #[serde(rename = "type")]
    pub name: String,
    /// The estimated number of allocated bytes.
    pub allocated_bytes: u64,
    /// The number of samples.
    pub samples_count: u64,
}

/// The allocations of a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocSite {
    /// The name of the method.
    pub name: String,
    /// The module, if known.
    pub module: Option<String>,
    /// The estimated number of allocated bytes.
    pub allocated_bytes: u64,
    /// The number of samples.
    pub samples_count: u64,
    /// The method with its module, for display.
    #[serde(skip)]
    pub label: String,
}

impl AllocReport {
    /// Creates the report.
    pub fn new(trace: &Trace) -> Self {
        let types = places(trace, View::Alloc, PlaceFrame::Innermost).into_iter();
        let sites = places(trace, View::Alloc, PlaceFrame::Caller).into_iter();
        let totals = FrameTotals::new(trace, View::Alloc, None);
        Self {
            allocated_bytes: totals.sum(),
            samples_count: totals.ticks(),
            types: types
                .map(|place| AllocatedType {
                    name: place.name,
                    allocated_bytes: place.weight,
                    samples_count: place.count,
                })
                .collect(),
            sites: sites
                .map(|place| AllocSite {
                    name: place.name,
                    module: place.module,
                    allocated_bytes: place.weight,
                    samples_count: place.count,
                    label: place.label,
                })
                .collect(),
        }
    }
}

impl Report for AllocReport {
    fn limit(&mut self, n: usize) {
        self.types.truncate(n);
        self.sites.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.samples_count == 0
    }
}
