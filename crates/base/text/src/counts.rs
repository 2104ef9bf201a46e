//! The number of events of each type in a recording.

use std::io;

use crate::document::CountsDocument;
use crate::options::Missing;
use crate::report::full_name;
use crate::units::{Count, Lost, Things};
use crate::{Column, Print, Table, TextOptions};

impl Print for CountsDocument<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let columns =
            [Column::number("COUNT"), Column::number("ID"), Column::number("VERSION"), Column::text("EVENT")];
        let mut table = Table::new("event type", columns);
        table.fill(self.counts.iter(), options, |row| {
            let name = full_name(&row.provider, &row.name);
            [Count(row.n).to_string(), row.id.to_string(), row.version.to_string(), name]
        });
        if self.counts.is_empty() {
            writeln!(out, "{}", options.missing(Missing::Events))?;
        } else {
            table.print(out, options)?;
        }
        writeln!(out, "{}, {}", Things(self.events, "event"), Lost(self.lost))
    }
}
