//! A table of lines, and how numbers stand in it.

use std::fmt::{Arguments, Write as _};

use crate::output::HEADING;

/// A text that is put together line by line.
pub(super) struct Table(String);

impl Table {
    pub(super) fn new(first: Arguments<'_>) -> Self {
        Self(format!("{first}\n\n"))
    }

    pub(super) fn heading(&mut self, line: Arguments<'_>) {
        // Writing to a String can't fail.
        let _ = writeln!(self.0, "{HEADING}{line}{HEADING:#}");
    }

    pub(super) fn row(&mut self, line: Arguments<'_>) {
        let _ = writeln!(self.0, "{line}");
    }

    pub(super) fn text(self) -> String {
        self.0
    }
}

pub(super) fn dash() -> String {
    "-".to_owned()
}

/// A time span in the unit that gives it three or four digits.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(super) fn ns(ns: u64) -> String {
    let n = ns as f64;
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{:.1} µs", n / 1e3),
        1_000_000..=9_999_999_999 => format!("{:.1} ms", n / 1e6),
        _ => format!("{:.2} s", n / 1e9),
    }
}

/// A time since the session's start.
#[expect(clippy::cast_precision_loss, reason = "shown with six digits")]
pub(super) fn at(ns: i64) -> String {
    format!("{:.6} s", ns as f64 / 1e9)
}

pub(super) fn number(number: Option<f64>) -> String {
    number.map_or_else(dash, |number| {
        let short = format!("{number:.3}");
        if short.contains('.') { short.trim_end_matches('0').trim_end_matches('.').to_owned() } else { short }
    })
}
