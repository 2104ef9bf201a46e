//! Durations and sizes as people write them, and as people like to read them.

use std::fmt;
use std::time::Duration;

/// The longest time that can be meant: some ten years. Beyond it a slip of the finger is more likely than a plan.
const LONGEST_DAYS: u64 = 3_650;
const LONGEST: Duration = Duration::from_hours(LONGEST_DAYS * 24);

/// Parses `5s`, `250ms`, `1m30s`, `1.5h`, plain seconds (`5`, `0.5`), `hh:mm:ss` and `dd:hh:mm:ss`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no duration; write 30s, 250ms, 1m30s, plain seconds or dd:hh:mm:ss");
    let text = text.trim();
    let seconds = if text.contains(':') {
        clock(text).ok_or_else(wrong)?
    } else if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        text.parse::<f64>().map_err(|_not_a_number| wrong())?
    } else {
        units(text).ok_or_else(wrong)?
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(Duration::ZERO) => Err("nothing happens in no time".to_owned()),
        Ok(duration) if duration <= LONGEST => Ok(duration),
        Ok(_) | Err(_) => Err(format!("'{text}' is longer than {LONGEST_DAYS} days, which can't be meant")),
    }
}

/// The same for an option without which there is no end.
pub(crate) fn parse_time_limit(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; leave the option out to go on until Ctrl-C"))
}

/// `[[d:]h:]m:s` and .NET's `d.hh:mm:ss[.fff]`.
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

/// `1h30m5.5s`: numbers, each with its unit.
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

/// Parses a buffer size into mebibytes: plain numbers are MB, as in dotnet-trace; `64MB`, `64MiB`, `1GB` work too.
pub(crate) fn parse_megabytes(text: &str) -> Result<u32, String> {
    let wrong = || format!("'{text}' is no size; write 256, 64MB or 1GB");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (value, unit) = text.split_at_checked(digits).ok_or_else(wrong)?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "m" | "mb" | "mib" => 1,
        "g" | "gb" | "gib" => 1024,
        _ => return Err(wrong()),
    };
    let size = value.parse::<u32>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(wrong)?;
    if size == 0 { Err("a buffer of 0 MB can hold no event".to_owned()) } else { Ok(size) }
}

/// Parses a process id.
pub(crate) fn parse_pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_no_number| format!("'{text}' is no process id; a name is given with -n"))
}

/// Parses how many rows to show.
pub(crate) fn parse_rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_no_number| format!("'{text}' is no number of rows"))
}

/// So many things of a kind: `1 event`, `2,000 events`.
pub(crate) struct Things(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Things {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(n, thing) = self;
        let plural = match n {
            1 => "",
            _ if thing.ends_with('s') => "es",
            _ => "s",
        };
        write!(f, "{} {thing}{plural}", Count(*n))
    }
}

/// How long something took, as people say it: `250 ms`, `3.2 s`, `00:01:30`.
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            span if span < Duration::from_secs(1) => write!(f, "{} ms", span.as_millis()),
            span if span < Duration::from_mins(1) => write!(f, "{:.1} s", span.as_secs_f64()),
            span => Clock(span).fmt(f),
        }
    }
}

/// The same for a limit, of which there is none with 0.
pub(crate) fn parse_limit_megabytes(text: &str) -> Result<u32, String> {
    if text.trim() == "0" { Ok(0) } else { parse_megabytes(text) }
}

/// Bytes with a unit: `980 B`, `1.2 MB`.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            n if n < 1_000 => format!("{n} B"),
            n if n < 1_000_000 => format!("{:.1} kB", n as f64 / 1e3),
            n if n < 1_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
            n => format!("{:.2} GB", n as f64 / 1e9),
        };
        f.pad(&text)
    }
}

/// A number with its thousands apart: `12,345`.
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// A span of time as a clock shows it: `00:01:30`.
pub(crate) struct Clock(pub(crate) Duration);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0.as_secs();
        f.pad(&format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains("longer than 3650 days"), "{error}");
        }
        for text in ["0", "99999999999h", "soon"] {
            assert!(parse_time_limit(text).unwrap_err().contains("until Ctrl-C"));
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

    #[test]
    fn numbers_for_people() {
        assert_eq!(Bytes(1_234_567).to_string(), "1.2 MB");
        assert_eq!(
            [Things(0, "event"), Things(1, "event"), Things(2000, "process")].map(|it| it.to_string()),
            ["0 events", "1 event", "2,000 processes"]
        );
        let span = |ms| Span(Duration::from_millis(ms)).to_string();
        assert_eq!([span(250), span(3210), span(90_000)], ["250 ms", "3.2 s", "00:01:30"]);
        assert_eq!(Count(1_234_567).to_string(), "1,234,567");
        assert_eq!(Count(123).to_string(), "123");
        assert_eq!(Clock(Duration::from_secs(3_725)).to_string(), "01:02:05");
    }
}
