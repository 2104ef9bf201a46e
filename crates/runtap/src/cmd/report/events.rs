//! How many events of which kind there are, and how many are missing.

use runtap_ingest::EventCounts;
use runtap_ingest::report::LossReport;
use serde::Serialize;

use super::Answer;
use super::frames::percent;
use super::table::Table;
use crate::output::Clean;
use crate::units::{Count, Things};

impl Answer for LossReport {
    fn limit(&mut self, n: usize) {
        self.threads.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.received_count + self.lost_count == 0
    }

    fn text(&self) -> String {
        let all = self.received_count.saturating_add(self.lost_count);
        let mut table = Table::new(format_args!(
            "{} received, {} lost ({} %)",
            Things(self.received_count, "event"),
            Count(self.lost_count),
            percent(self.lost_count, all)
        ));
        table.heading(format_args!("{:>12} {:>12} {:>6}  WRITTEN BY THREAD", "RECEIVED", "LOST", "%"));
        for it in &self.threads {
            let share = percent(it.lost_count, it.received_count.saturating_add(it.lost_count));
            table.row(format_args!(
                "{:>12} {:>12} {share:>6}  {}",
                Count(it.received_count),
                Count(it.lost_count),
                it.capture_thread
            ));
        }
        table.text()
    }
}

/// `runtap.report.events/1`
#[derive(Serialize)]
pub(super) struct EventsReport {
    events_count: u64,
    providers: Vec<ProviderRow>,
    events: Vec<EventRow>,
}

#[derive(Serialize)]
struct ProviderRow {
    provider: String,
    events_count: u64,
}

#[derive(Serialize)]
struct EventRow {
    provider: String,
    id: u32,
    version: u32,
    name: String,
    events_count: u64,
}

impl EventsReport {
    pub(super) fn new(counts: &EventCounts) -> Self {
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
        providers.sort_by_key(|row| std::cmp::Reverse(row.events_count));
        events.sort_by_key(|row| std::cmp::Reverse(row.events_count));
        Self { events_count: counts.total(), providers, events }
    }
}

impl Answer for EventsReport {
    fn limit(&mut self, n: usize) {
        self.providers.truncate(n);
        self.events.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.events_count == 0
    }

    fn text(&self) -> String {
        let mut table = Table::new(format_args!("{}", Things(self.events_count, "event")));
        table.heading(format_args!("{:>12} {:>6}  PROVIDER", "EVENTS", "%"));
        for row in &self.providers {
            let (n, share) = (Count(row.events_count), percent(row.events_count, self.events_count));
            table.row(format_args!("{n:>12} {share:>6}  {}", Clean(&row.provider)));
        }
        table.heading(format_args!("\n{:>12} {:>6}  {:>6} {:>3}  EVENT", "EVENTS", "%", "ID", "V"));
        for row in &self.events {
            let (n, share) = (Count(row.events_count), percent(row.events_count, self.events_count));
            let slash = if row.name.is_empty() { "" } else { "/" };
            let (provider, name) = (Clean(&row.provider), Clean(&row.name));
            table.row(format_args!(
                "{n:>12} {share:>6}  {:>6} {:>3}  {provider}{slash}{name}",
                row.id, row.version
            ));
        }
        table.text()
    }
}
