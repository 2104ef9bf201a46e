//! The difference as a table to read.

use std::fmt::Write as _;
use std::time::Duration;

use runtap_model::{Comparison, FrameHandle, ShareChange, Side, Unit};

use super::{Row, Source};
use crate::cli::Diff;
use crate::output::{Clean, DIM, HEADING};
use crate::units::{Bytes, Clock, Count, Things};

/// How many rows are shown if nobody says.
const ROWS: usize = 30;

pub(super) fn text(comparison: &Comparison, sources: [&Source; 2], rows: &[Row], options: &Diff) -> String {
    let mut text = String::new();
    let sides = [comparison.before(), comparison.after()];
    let noun = if comparison.view().is_sampled() { "sample" } else { "event" };
    for ((name, side), source) in ["before", "after"].iter().zip(sides).zip(sources) {
        let (ticks, duration) =
            (Things(side.stacks().ticks(), noun), Clock(Duration::from_nanos(side.duration_ns())));
        let total = weight(side.stacks().total_ns(), comparison.view().unit());
        let file = source.file.display().to_string();
        let threads = Things(side.threads() as u64, "thread");
        // Writing to a String can't fail.
        let _ =
            writeln!(text, "{name:<6}  {}  {ticks}, {total} in {threads}, {duration} recorded", Clean(&file));
    }
    let what = if options.absolute { "as recorded" } else { "shares of each recording, in %" };
    let _ = writeln!(text, "{DIM}view {}, {what}{DIM:#}\n", comparison.view());
    let _ = if options.absolute {
        writeln!(
            text,
            "{HEADING}{:>11} {:>11} {:>12}   {:>11} {:>11} {:>12}  FRAME{HEADING:#}",
            "SELF BEFORE", "AFTER", "CHANGE", "TOTAL BEF.", "AFTER", "CHANGE"
        )
    } else {
        writeln!(
            text,
            "{HEADING}{:>11} {:>6} {:>7} {:>6}   {:>12} {:>6} {:>7} {:>6}  FRAME{HEADING:#}",
            "SELF BEFORE", "AFTER", "CHANGE", "±", "TOTAL BEFORE", "AFTER", "CHANGE", "±"
        )
    };
    let changed = rows.iter().filter(|row| row.weight > 0.0).count();
    let shown = options.number.unwrap_or(ROWS).min(changed);
    for row in rows.iter().take(shown) {
        line(&mut text, comparison, row, options);
    }
    let more = match (changed, changed - shown) {
        (0, _) => "no frame changed".to_owned(),
        (_, 0) => String::new(),
        (_, more) => format!("and {} more (-n)", Things(more as u64, "frame")),
    };
    if !more.is_empty() {
        let _ = writeln!(text, "{DIM}{more}{DIM:#}");
    }
    if comparison.view().is_sampled() && !options.absolute {
        let _ = writeln!(
            text,
            "{DIM}± is what chance alone makes of so many samples, at least; ~ marks a change within it{DIM:#}"
        );
    }
    text
}

fn line(text: &mut String, comparison: &Comparison, row: &Row, options: &Diff) {
    let frame = comparison.tables().frame(row.frame).to_string();
    if options.absolute {
        let unit = comparison.view().unit();
        let of = |get: fn(&Side, FrameHandle) -> u64| {
            let [before, after] = [comparison.before(), comparison.after()].map(|side| get(side, row.frame));
            let sign = if after < before { "-" } else { "+" };
            let change = format!("{sign}{}", weight(after.abs_diff(before), unit));
            format!("{:>11} {:>11} {change:>12}", weight(before, unit), weight(after, unit))
        };
        let own = of(|side, frame| side.frames().self_ns(frame));
        let total = of(|side, frame| side.frames().total_ns(frame));
        let _ = writeln!(text, "{own}   {total}  {}", Clean(&frame));
    } else {
        let (own, total) = (shares(row.own, 11), shares(row.total, 12));
        let _ = writeln!(text, "{own}   {total}  {}", Clean(&frame));
    }
}

/// Before, after, change and margin.
fn shares(share: ShareChange, width: usize) -> String {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let mark = if share.is_significant() { "" } else { "~" };
    let change = format!("{mark}{:+.1}", share.change() * 100.0);
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
