//! The difference as a table to read.

use std::fmt::Write as _;
use std::time::Duration;

use runtap_clr::report::{DiffReport, FrameChange, Shares};
use runtap_model::Unit;

use super::Source;
use crate::output::{Clean, DIM, HEADING};
use crate::units::{Bytes, Clock, Count, Things};

/// How many rows are shown if nobody says.
const ROWS: usize = 30;

/// The table, with `most` of the frames that changed.
pub(super) fn text(report: &DiffReport, sources: [&Source; 2], most: Option<usize>) -> String {
    let mut text = String::new();
    let is_sampled = report.view.is_sampled();
    let noun = if is_sampled { "sample" } else { "event" };
    let sides = [("before", report.before), ("after", report.after)];
    for ((name, side), source) in sides.into_iter().zip(sources) {
        let (ticks, duration) = (Things(side.samples, noun), Clock(Duration::from_nanos(side.duration_ns)));
        let total = weight(side.total, report.unit);
        let file = source.file.display().to_string();
        let threads = Things(side.threads as u64, "thread");
        // Writing to a String can't fail.
        let _ =
            writeln!(text, "{name:<6}  {}  {ticks}, {total} in {threads}, {duration} recorded", Clean(&file));
    }
    let what = if report.normalized { "shares of each recording, in %" } else { "as recorded" };
    let _ = writeln!(text, "{DIM}view {}, {what}{DIM:#}\n", report.view);
    let _ = if report.normalized {
        writeln!(
            text,
            "{HEADING}{:>11} {:>6} {:>7} {:>6}   {:>12} {:>6} {:>7} {:>6}  FRAME{HEADING:#}",
            "SELF BEFORE", "AFTER", "CHANGE", "±", "TOTAL BEFORE", "AFTER", "CHANGE", "±"
        )
    } else {
        writeln!(
            text,
            "{HEADING}{:>11} {:>11} {:>12}   {:>11} {:>11} {:>12}  FRAME{HEADING:#}",
            "SELF BEFORE", "AFTER", "CHANGE", "TOTAL BEF.", "AFTER", "CHANGE"
        )
    };
    let changed = report.changed_count;
    let shown = most.unwrap_or(ROWS).min(changed);
    for frame in report.frames.iter().take(shown) {
        line(&mut text, report, frame);
    }
    let more = match (changed, changed - shown) {
        (0, _) => "no frame changed".to_owned(),
        (_, 0) => String::new(),
        (_, more) => format!("and {} more (-n)", Things(more as u64, "frame")),
    };
    if !more.is_empty() {
        let _ = writeln!(text, "{DIM}{more}{DIM:#}");
    }
    if is_sampled && report.normalized {
        let _ = writeln!(
            text,
            "{DIM}± is what chance alone makes of so many samples, at least; ~ marks a change within it{DIM:#}"
        );
    }
    text
}

fn line(text: &mut String, report: &DiffReport, frame: &FrameChange) {
    let FrameChange { before, after, self_share, total_share, label, .. } = frame;
    let (own, total) = if report.normalized {
        (shares(*self_share, 11), shares(*total_share, 12))
    } else {
        (weights(before.own, after.own, report.unit), weights(before.total, after.total, report.unit))
    };
    let _ = writeln!(text, "{own}   {total}  {}", Clean(label));
}

/// Before, after and change.
fn weights(before: u64, after: u64, unit: Unit) -> String {
    let sign = if after < before { "-" } else { "+" };
    let change = format!("{sign}{}", weight(after.abs_diff(before), unit));
    format!("{:>11} {:>11} {change:>12}", weight(before, unit), weight(after, unit))
}

/// Before, after, change and margin.
fn shares(share: Shares, width: usize) -> String {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let mark = if share.significant { "" } else { "~" };
    let change = format!("{mark}{:+.1}", share.change * 100.0);
    let margin = share.margin.map_or_else(String::new, percent);
    format!("{:>width$} {:>6} {change:>7} {margin:>6}", percent(share.before), percent(share.after))
}

fn weight(weight: u64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => format!("{} ms", Count(weight.saturating_add(500_000) / 1_000_000)),
        Unit::Bytes => Bytes(weight).to_string(),
        _ => Count(weight).to_string(),
    }
}
