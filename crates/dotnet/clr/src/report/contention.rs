//! Reports waits for locks, and the code that waited.

use runtap_model::{Trace, View};
use serde::Serialize;

use super::places::{PlaceFrame, places};
use super::{LocksReport, Report};

/// The waits in a recording, and where they occurred according to a profile of the view [`Contention`](View::Contention).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContentionReport {
    /// The waits.
    #[serde(flatten)]
    pub locks: LocksReport,
    /// The code that waited for locks, longest first.
    pub sites: Vec<WaitSite>,
}

/// The waits of a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitSite {
    /// The name of the method.
    pub name: String,
    /// The module, if known.
    pub module: Option<String>,
    /// The number of waits.
    pub contentions_count: u64,
    /// The total duration of the waits in nanoseconds.
    pub wait_ns: u64,
    /// The method with its module, for display.
    #[serde(skip)]
    pub label: String,
}

impl ContentionReport {
    /// Creates the report.
    pub fn new(locks: LocksReport, trace: &Trace) -> Self {
        let sites = places(trace, View::Contention, PlaceFrame::Locker).into_iter().map(|place| WaitSite {
            name: place.name,
            module: place.module,
            contentions_count: place.count,
            wait_ns: place.weight,
            label: place.label,
        });
        Self { locks, sites: sites.collect() }
    }
}

impl Report for ContentionReport {
    fn limit(&mut self, n: usize) {
        self.locks.limit(n);
        self.sites.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }
}
