//! Styles and formats of the text output.

use std::time::Duration;

use anstyle::{AnsiColor, Style};

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(super) const MIDDLE: Style = AnsiColor::Yellow.on_default();

/// Formats a duration.
pub(super) fn time(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds @ 1..60 => format!("{seconds}.{:03} s", duration.subsec_millis()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
