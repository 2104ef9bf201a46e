//! What was allocated, and where.

use runtap_model::{FrameTotals, Trace, View};
use serde::Serialize;

use super::Report;
use super::places::{Which, places};

/// What a profile of the view [`Alloc`](View::Alloc) says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocReport {
    /// An estimate, from samples.
    pub allocated_bytes: u64,
    /// The samples.
    pub samples_count: u64,
    /// By type, the heaviest first.
    pub types: Vec<AllocatedType>,
    /// By the code that allocated, the heaviest first.
    pub sites: Vec<AllocSite>,
}

/// Objects of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocatedType {
    /// The type.
    #[serde(rename = "type")]
    pub name: String,
    /// Their size, about.
    pub allocated_bytes: u64,
    /// From so many samples.
    pub samples_count: u64,
}

/// Code that allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocSite {
    /// The method.
    pub name: String,
    /// Its module, where one is known.
    pub module: Option<String>,
    /// How much, about.
    pub allocated_bytes: u64,
    /// From so many samples.
    pub samples_count: u64,
    /// As people see it.
    #[serde(skip)]
    pub label: String,
}

impl AllocReport {
    /// The report.
    pub fn new(trace: &Trace) -> Self {
        let types = places(trace, View::Alloc, Which::Innermost).into_iter();
        let sites = places(trace, View::Alloc, Which::Caller).into_iter();
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
