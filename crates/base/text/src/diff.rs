//! The difference of two recordings as a table.

use std::io;
use std::path::Path;
use std::time::Duration;

use runtap_clr::report::{DiffReport, FrameChange, Shares, Weights};
use runtap_model::Unit;

use crate::units::{Bytes, Clock, Count, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// A difference with the paths of the two files.
#[derive(Debug, Clone, Copy)]
pub struct DiffText<'a> {
    /// The difference.
    pub report: &'a DiffReport,
    /// The paths of the first and second recording.
    pub files: [&'a Path; 2],
}

impl Print for DiffText<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let Self { report, files } = self;
        let dim = options.dim();
        let is_sampled = report.view.is_sampled();
        let noun = if is_sampled { "sample" } else { "event" };
        let sides = [("before", report.before), ("after", report.after)];
        for ((name, side), file) in sides.into_iter().zip(files) {
            writeln!(
                out,
                "{name:<6}  {}  {}, {} in {}, {} recorded",
                Clean(&file.display().to_string()),
                Things(side.samples, noun),
                weight(side.total, report.unit),
                Things(side.threads as u64, "thread"),
                Clock(Duration::from_nanos(side.duration_ns))
            )?;
        }
        let what = if report.normalized { "in percent of each recording" } else { "in absolute values" };
        writeln!(out, "{dim}view {}, {what}{dim:#}\n", report.view)?;
        if report.changed_count == 0 {
            return writeln!(out, "{dim}no frame changed{dim:#}");
        }
        if report.normalized {
            self.shares(out, options)?;
        } else {
            self.weights(out, options)?;
        }
        if is_sampled && report.normalized {
            writeln!(
                out,
                "{dim}± is the sampling error at 95% confidence if samples were independent, a lower bound; ~ marks a change within it\n\
                 a change without ~ can still be noise: record the same program twice to see how much it varies{dim:#}"
            )?;
        }
        Ok(())
    }
}

impl DiffText<'_> {
    /// Returns the frames that changed, which come first.
    fn changed(&self) -> impl ExactSizeIterator<Item = &FrameChange> {
        self.report.frames.iter().take(self.report.changed_count)
    }

    fn shares(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let columns = [
            Column::number("SELF BEFORE"),
            Column::number("AFTER"),
            Column::number("CHANGE"),
            Column::number("±"),
            Column::number("TOTAL BEFORE"),
            Column::number("AFTER"),
            Column::number("CHANGE"),
            Column::number("±"),
            Column::text("FRAME"),
        ];
        let mut table = Table::new("frame", columns);
        table.fill(self.changed(), options, |frame| {
            let [before, after, change, margin] = shares(frame.self_share);
            let [total_before, total_after, total_change, total_margin] = shares(frame.total_share);
            let label = frame.label.clone();
            [before, after, change, margin, total_before, total_after, total_change, total_margin, label]
        });
        table.print(out, options)
    }

    fn weights(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let columns = [
            Column::number("SELF BEFORE"),
            Column::number("AFTER"),
            Column::number("CHANGE"),
            Column::number("TOTAL BEFORE"),
            Column::number("AFTER"),
            Column::number("CHANGE"),
            Column::text("FRAME"),
        ];
        let mut table = Table::new("frame", columns);
        table.fill(self.changed(), options, |FrameChange { before, after, label, .. }| {
            let weights = |of: fn(&Weights) -> u64| weights(of(before), of(after), self.report.unit);
            let [own_before, own_after, own_change] = weights(|it| it.own);
            let [total_before, total_after, total_change] = weights(|it| it.total);
            [own_before, own_after, own_change, total_before, total_after, total_change, label.clone()]
        });
        table.print(out, options)
    }
}

/// Returns the weight before, the weight after, and the change.
fn weights(before: u64, after: u64, unit: Unit) -> [String; 3] {
    let sign = if after < before { "-" } else { "+" };
    let change = format!("{sign}{}", weight(after.abs_diff(before), unit));
    [weight(before, unit), weight(after, unit), change]
}

/// Returns the share before, the share after, the change, and the margin of error.
fn shares(share: Shares) -> [String; 4] {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let mark = if share.significant { "" } else { "~" };
    let change = format!("{mark}{:+.1}", share.change * 100.0);
    let margin = share.margin.map_or_else(String::new, percent);
    [percent(share.before), percent(share.after), change, margin]
}

fn weight(weight: u64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => format!("{} ms", Count(weight.saturating_add(500_000) / 1_000_000)),
        Unit::Bytes => Bytes(weight).to_string(),
        _ => Count(weight).to_string(),
    }
}
