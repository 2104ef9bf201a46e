//! Parsers for option values, with messages for invalid values. [`runtap_text::units`] parses and prints the units.

use std::num::NonZeroUsize;
use std::time::Duration;

use runtap_test::plan::Limit;
pub(crate) use runtap_text::units::{
    Bytes, Clock, Count, Lost, Span, Things, parse_duration, parse_hex, parse_limit_megabytes,
    parse_megabytes,
};

/// Parses a duration that limits a run; without the option, the run has no limit.
pub(crate) fn parse_time_limit(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; without the option, it runs until Ctrl-C"))
}

/// Parses an interval; 0 means never.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    if matches!(text.trim(), "0" | "0s" | "0ms") {
        return Ok(Duration::ZERO);
    }
    parse_duration(text).map_err(|error| format!("{error}; 0 is never"))
}

/// Parses a time limit, or `none` for no limit.
pub(crate) fn parse_limit(text: &str) -> Result<Limit<Duration>, String> {
    if text == "none" {
        return Ok(Limit::None);
    }
    parse_duration(text).map(Limit::At).map_err(|error| format!("{error}; none switches it off"))
}

/// Parses the number of applications that run in parallel.
pub(crate) fn parse_parallel(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_no_number| "it is a number, at least 1".to_owned())
}

/// Parses a process id.
pub(crate) fn parse_pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_no_number| {
        if runtap_transport::remote::RemoteAddress::is_meant(text) {
            return format!("'{text}' is not a process id; give it as TARGET, or to --diagnostic-port");
        }
        format!("'{text}' is not a process id; use -n for a name")
    })
}

/// Parses the number of rows to show.
pub(crate) fn parse_rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_no_number| format!("'{text}' is not a number of rows"))
}
