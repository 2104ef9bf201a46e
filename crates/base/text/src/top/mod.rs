//! The hottest methods and threads of a running program, as text and as JSON lines.

mod json;
mod rows;

use std::io;
use std::time::Duration;

use runtap_model::{Trace, UtcNs, View};

pub use self::json::TopLine;
#[cfg(all(unix, feature = "tui"))]
pub(crate) use self::rows::percent;
pub(crate) use self::rows::{Order, methods, remark, samples, threads};
use crate::units::{Percent, Seconds, Things};
use crate::{Column, Print, Table, TextOptions};

/// The samples of a running program in a window of time.
#[derive(Debug, Clone)]
pub struct TopData {
    /// The samples, each weighted with the time for which it stands.
    pub trace: Trace,
    /// The end of the window.
    pub time: UtcNs,
    /// The length of the window.
    pub covers: Duration,
    /// The number of events that the target has dropped since the start.
    pub lost: u64,
    /// The number of samples that were left out since the start, because memory is limited.
    pub left_out: u64,
    /// Whether names of methods are being received.
    pub is_naming: bool,
    /// Whether the runtime is known to mark every sample correctly as running or waiting.
    pub has_exact_states: bool,
}

/// The table of the hottest methods.
#[derive(Debug, Clone, Copy)]
pub struct TopTable<'a> {
    /// The samples.
    pub data: &'a TopData,
    /// The samples that count.
    pub view: View,
    /// Whether methods are sorted by their total time instead of their own.
    pub inclusive: bool,
}

impl Print for TopTable<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let Self { data, view, inclusive } = *self;
        let (rows, sum) = methods(&data.trace, view, None, if inclusive { Order::Total } else { Order::Own });
        let time = data.time.to_string();
        let heading = format!(
            "{}  {}  {} in {:.1}, view {}, {}",
            time.get(11..19).unwrap_or_default(),
            crate::Clean(&data.trace.process().label()),
            Things(samples(sum), "sample"),
            Seconds(data.covers),
            view.name(),
            Things(threads(&data.trace, view).len() as u64, "thread"),
        );
        writeln!(out, "{heading}")?;
        let columns = [Column::number("SELF"), Column::number("TOTAL"), Column::text("METHOD")];
        let mut table = Table::new("method", columns);
        table.fill(rows.into_iter(), options, |row| {
            let percent = |part| Percent { part, whole: sum }.to_string();
            [percent(row.own), percent(row.total), row.label]
        });
        table.print(out, options)?;
        if let Some(remark) = remark(data, view) {
            writeln!(out, "{}{remark}{:#}", options.dim(), options.dim())?;
        }
        writeln!(out)
    }
}
