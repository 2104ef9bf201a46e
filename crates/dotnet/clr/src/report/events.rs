//! Reports the number of events of each kind.

use runtap_model::order;
use serde::Serialize;

use super::{Collect, Report};
use crate::EventCounts;

/// The number of events in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EventsReport {
    /// The number of all events.
    pub events_count: u64,
    /// The providers, most frequent first.
    pub providers: Vec<ProviderRow>,
    /// The kinds of events, most frequent first.
    pub events: Vec<EventRow>,
}

/// The events of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderRow {
    /// The provider.
    pub provider: String,
    /// The number of events.
    pub events_count: u64,
}

/// The events of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventRow {
    /// The provider.
    pub provider: String,
    /// The event id.
    pub id: u32,
    /// The event version.
    pub version: u32,
    /// The name. Empty if unknown.
    pub name: String,
    /// The number of events.
    pub events_count: u64,
}

impl EventsReport {
    /// Creates the report.
    pub fn new(counts: &EventCounts) -> Self {
        let mut providers: Vec<ProviderRow> = Vec::new();
        let mut events = Vec::new();
        for row in counts.rows() {
            match providers.last_mut().filter(|last| last.provider == row.provider) {
                Some(last) => last.events_count += row.n,
                None => providers.push(ProviderRow { provider: row.provider.clone(), events_count: row.n }),
            }
            events.push(EventRow {
                provider: row.provider,
                id: row.id,
                version: row.version,
                name: row.name,
                events_count: row.n,
            });
        }
        order::sort_by_key(&mut providers, |row| std::cmp::Reverse(row.events_count));
        order::sort_by_key(&mut events, |row| std::cmp::Reverse(row.events_count));
        Self { events_count: counts.total(), providers, events }
    }
}

impl Report for EventsReport {
    fn limit(&mut self, n: usize) {
        self.providers.truncate(n);
        self.events.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.events_count == 0
    }
}

impl Collect for EventCounts {
    type Report = EventsReport;

    fn finish(self) -> EventsReport {
        self.snapshot()
    }

    fn snapshot(&self) -> EventsReport {
        EventsReport::new(self)
    }
}
