//! Reports on the number of received and lost events.

use std::io;

use runtap_clr::report::{EventsReport, LossReport};

use crate::units::{Count, Lost, Percent, Things};
use crate::{Column, Print, Table, TextOptions};

impl Print for LossReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let share =
            |received: u64, lost| Percent { part: lost, whole: received.saturating_add(lost) }.to_string();
        writeln!(
            out,
            "{} received, {} ({})\n",
            Things(self.received_count, "event"),
            Lost(self.lost_count),
            share(self.received_count, self.lost_count)
        )?;
        let columns = [
            Column::number("RECEIVED"),
            Column::number("LOST"),
            Column::number("LOST %"),
            Column::text("WRITTEN BY THREAD"),
        ];
        let mut table = Table::new("thread", columns);
        table.fill(self.threads.iter(), options, |it| {
            [
                Count(it.received_count).to_string(),
                Count(it.lost_count).to_string(),
                share(it.received_count, it.lost_count),
                it.capture_thread.to_string(),
            ]
        });
        if self.elsewhere_count > 0 {
            let elsewhere = "before the first or after the last event received from a thread".to_owned();
            table.row([String::new(), Count(self.elsewhere_count).to_string(), String::new(), elsewhere]);
        }
        table.print(out, options)
    }
}

impl Print for EventsReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let share = |n| Percent { part: n, whole: self.events_count }.to_string();
        writeln!(out, "{}\n", Things(self.events_count, "event"))?;
        let columns = [Column::number("EVENTS"), Column::number("SHARE"), Column::text("PROVIDER")];
        let mut table = Table::new("provider", columns);
        table.fill(self.providers.iter(), options, |row| {
            [Count(row.events_count).to_string(), share(row.events_count), row.provider.clone()]
        });
        table.print(out, options)?;
        writeln!(out)?;
        let columns = [
            Column::number("EVENTS"),
            Column::number("SHARE"),
            Column::number("ID"),
            Column::number("VERSION"),
            Column::text("EVENT"),
        ];
        let mut table = Table::new("event type", columns);
        table.fill(self.events.iter(), options, |row| {
            [
                Count(row.events_count).to_string(),
                share(row.events_count),
                row.id.to_string(),
                row.version.to_string(),
                full_name(&row.provider, &row.name),
            ]
        });
        table.print(out, options)
    }
}

/// Returns the provider and name of an event, or only the provider if the name is unknown.
pub(crate) fn full_name(provider: &str, name: &str) -> String {
    if name.is_empty() { provider.to_owned() } else { format!("{provider}/{name}") }
}
