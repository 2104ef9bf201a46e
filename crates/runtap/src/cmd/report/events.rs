//! How many events of which kind there are, and how many are missing.

use runtap_clr::report::{EventsReport, LossReport};

use super::Answer;
use super::frames::percent;
use super::table::Table;
use crate::output::Clean;
use crate::units::{Count, Things};

impl Answer for LossReport {
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
        if self.elsewhere_count > 0 {
            table.row(format_args!(
                "{:>12} {:>12} {:>6}  before the first or after the last event of a thread",
                "",
                Count(self.elsewhere_count),
                ""
            ));
        }
        table.text()
    }
}

impl Answer for EventsReport {
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
