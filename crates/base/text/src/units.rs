//! Parsing and formatting of durations, sizes and counts.

use std::num::NonZeroUsize;
use std::time::Duration;

pub use runtap_model::units::{
    Bytes, Clock, Count, Lost, Moment, Nanoseconds, Percent, Seconds, Span, Things, noun,
};
use runtap_test::plan::Limit;
use thiserror::Error;

/// Maximum duration: about ten years. Longer ones are probably typing errors.
const LONGEST_DAYS: u64 = 3_650;
const LONGEST: Duration = Duration::from_hours(LONGEST_DAYS * 24);

/// An error that occurred while parsing a duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DurationError {
    /// The text is not a duration.
    #[error("'{0}' is not a duration; write 30s, 250ms, 1m30s, plain seconds or dd:hh:mm:ss")]
    Unreadable(String),
    /// The duration is 0.
    #[error("the duration must be greater than 0")]
    Zero,
    /// The duration is too long.
    #[error("'{0}' is longer than {LONGEST_DAYS} days")]
    TooLong(String),
}

/// An error that occurred while parsing a size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SizeError {
    /// The text is not a size.
    #[error("'{0}' is not a size; write 256, 64MB or 1GB")]
    Unreadable(String),
    /// The size is 0.
    #[error("the size must be at least 1 MB")]
    Zero,
}

/// Parses a duration: `5s`, `250ms`, `1m30s`, `1.5h`, plain seconds (`5`, `0.5`), `hh:mm:ss` or `dd:hh:mm:ss`.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    let wrong = || DurationError::Unreadable(text.to_owned());
    let seconds = if text.contains(':') {
        clock(text).ok_or_else(wrong)?
    } else if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        text.parse::<f64>().map_err(|_not_a_number| wrong())?
    } else {
        units(text).ok_or_else(wrong)?
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(Duration::ZERO) => Err(DurationError::Zero),
        Ok(duration) if duration <= LONGEST => Ok(duration),
        Ok(_) | Err(_) => Err(DurationError::TooLong(text.to_owned())),
    }
}

/// Parses a duration that limits a run; without the option, the run has no limit.
pub fn parse_time_limit(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; without the option, it runs until Ctrl-C"))
}

/// Parses an interval; 0 means never.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    if matches!(text.trim(), "0" | "0s" | "0ms") {
        return Ok(Duration::ZERO);
    }
    parse_duration(text).map_err(|error| format!("{error}; 0 means never"))
}

/// Parses a time limit, or `none` for no limit.
pub fn parse_limit(text: &str) -> Result<Limit<Duration>, String> {
    if text == "none" {
        return Ok(Limit::None);
    }
    parse_duration(text).map(Limit::At).map_err(|error| format!("{error}; 'none' means no limit"))
}

/// Parses a number that must be at least 1.
pub fn parse_positive(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_no_number| format!("'{text}' is not a number of at least 1"))
}

/// Parses the number of rows to show.
pub fn parse_rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_no_number| format!("'{text}' is not a number of rows"))
}

/// Parses `[[d:]h:]m:s` and .NET's `d.hh:mm:ss[.fff]`.
fn clock(text: &str) -> Option<f64> {
    let mut parts: Vec<&str> = text.split(':').collect();
    if !(2..=4).contains(&parts.len()) {
        return None;
    }
    let seconds: f64 = number(parts.pop()?)?;
    let minutes: f64 = whole(parts.pop()?)?;
    let (days, hours) = match (parts.pop(), parts.pop()) {
        (None, _) => (0.0, 0.0),
        (Some(hours), Some(days)) => (whole(days)?, whole(hours)?),
        (Some(hours), None) => match hours.split_once('.') {
            Some((days, hours)) => (whole(days)?, whole(hours)?),
            None => (0.0, whole(hours)?),
        },
    };
    Some(((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds)
}

fn whole(text: &str) -> Option<f64> {
    text.parse::<u32>().ok().map(f64::from)
}

fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    plain.then(|| text.parse().ok())?
}

/// Parses numbers with units: `1h30m5.5s`.
fn units(mut text: &str) -> Option<f64> {
    let mut seconds = 0.0;
    while !text.is_empty() {
        let digits = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (value, rest) = text.split_at_checked(digits)?;
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at_checked(end)?;
        let factor = match unit {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" | "min" => 60.0,
            "s" | "sec" => 1.0,
            "ms" => 1e-3,
            "us" => 1e-6,
            _ => return None,
        };
        seconds += number(value)? * factor;
        text = rest;
    }
    Some(seconds)
}

/// Parses a buffer size and returns it in MiB. Plain numbers are MB, as in dotnet-trace; `64MB`, `64MiB` and `1GB` are
/// also accepted.
pub fn parse_megabytes(text: &str) -> Result<u32, SizeError> {
    let wrong = || SizeError::Unreadable(text.to_owned());
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (value, unit) = text.split_at_checked(digits).ok_or_else(wrong)?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "m" | "mb" | "mib" => 1,
        "g" | "gb" | "gib" => 1024,
        _ => return Err(wrong()),
    };
    let size = value.parse::<u32>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(wrong)?;
    if size == 0 { Err(SizeError::Zero) } else { Ok(size) }
}

/// Parses a size limit and returns it in MiB; 0 for no limit.
pub fn parse_limit_megabytes(text: &str) -> Result<u32, SizeError> {
    if text.trim() == "0" { Ok(0) } else { parse_megabytes(text) }
}

/// An error that occurred while parsing a 64-bit mask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a hexadecimal number of at most 64 bits")]
pub struct HexError(String);

/// Parses a hexadecimal 64-bit mask, with or without `0x`.
///
/// # Errors
/// If the text is not such a number.
pub fn parse_hex(text: &str) -> Result<u64, HexError> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // `from_str_radix` would accept a sign.
    let value = digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok());
    value.flatten().ok_or_else(|| HexError(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_hexadecimal() {
        assert_eq!(parse_hex("0x80020139"), Ok(0x8002_0139));
        assert_eq!(parse_hex("0"), Ok(0));
        assert_eq!(parse_hex("ffffffffffffffff"), Ok(u64::MAX));
        for text in ["", "0x", "+1", "x", "10000000000000000"] {
            assert!(parse_hex(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("5", 5_000),
            ("0.5", 500),
            ("5s", 5_000),
            ("250ms", 250),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("00:00:05", 5_000),
            ("1:30", 90_000),
            ("00:00:01:30", 90_000),
            ("1:00:00:00", 86_400_000),
            ("1.02:00:00", 93_600_000),
            ("00:00:00.5", 500),
            ("3650d", 315_360_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in
            ["", "s", "5x", "-5", "1:2:3:4:5", "5s3", "1e5", ":", "inf", "NaN", "..", "99999999999999999999d"]
        {
            assert!(parse_duration(text).is_err(), "{text}: {:?}", parse_duration(text));
        }
        for text in ["99999999999h", "3651d", "3650d1us", "4294967295:00:00:00", &"9".repeat(400)] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.contains("longer than 3650 days"), "{error}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_megabytes("64"), Ok(64));
        assert_eq!(parse_megabytes("64MiB"), Ok(64));
        assert_eq!(parse_megabytes("2GB"), Ok(2048));
        for text in ["", "0", "64kB", "-1", "5000000000"] {
            assert!(parse_megabytes(text).is_err(), "{text}");
        }
    }
}
