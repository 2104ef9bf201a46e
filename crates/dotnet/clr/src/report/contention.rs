//! Waits for locks, and the code that waited.

use runtap_model::{Trace, View};
use serde::Serialize;

use super::places::{Which, places};
use super::{LocksReport, Report};

/// What a recording says about waits, and a profile of the view [`Contention`](View::Contention) about where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContentionReport {
    /// The waits.
    #[serde(flatten)]
    pub locks: LocksReport,
    /// By the code that waited for a lock, the longest first.
    pub sites: Vec<WaitSite>,
}

/// Code that waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitSite {
    /// The method.
    pub name: String,
    /// Its module, where one is known.
    pub module: Option<String>,
    /// How often.
    pub contentions_count: u64,
    /// How long, all in all.
    pub wait_ns: u64,
    /// As people see it.
    #[serde(skip)]
    pub label: String,
}

impl ContentionReport {
    /// The report.
    pub fn new(locks: LocksReport, trace: &Trace) -> Self {
        let sites = places(trace, View::Contention, Which::Locker).into_iter().map(|place| WaitSite {
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
