//! Formatting of durations, sizes and counts for messages.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A number with a noun: `1 event`, `2,000 events`.
#[derive(Debug, Clone, Copy)]
pub struct Things(
    /// The number.
    pub u64,
    /// The noun in the singular.
    pub &'static str,
);

impl fmt::Display for Things {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(n, thing) = *self;
        write!(f, "{} {}", Count(n), noun(n, thing))
    }
}

/// A number of lost events: `0 lost`, `at least 2,000 lost`. Losses are detected as gaps between the events of a
/// thread, so those of a thread that could not write any event are unknown.
#[derive(Debug, Clone, Copy)]
pub struct Lost(pub u64);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0 lost"),
            lost => write!(f, "at least {} lost", Count(lost)),
        }
    }
}

/// A duration in a suitable unit: `250 ms`, `3.2 s`, `00:01:30`.
#[derive(Debug, Clone, Copy)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            span if span < Duration::from_secs(1) => write!(f, "{} ms", span.as_millis()),
            span if span < Duration::from_mins(1) => write!(f, "{:.1}", Seconds(span)),
            span => Clock(span).fmt(f),
        }
    }
}

/// A duration in seconds, with the precision of the format: `{}` is `2.5 s`, `{:.3}` is `2.500 s`.
#[derive(Debug, Clone, Copy)]
pub struct Seconds(pub Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.as_secs_f64(), f)?;
        f.write_str(" s")
    }
}

/// A size in bytes with a unit: `980 B`, `1.2 MB`.
#[derive(Debug, Clone, Copy)]
pub struct Bytes(pub u64);

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

/// A number with thousands separators: `12,345`.
#[derive(Debug, Clone, Copy)]
pub struct Count(pub u64);

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

/// A duration in clock format: `00:01:30`.
#[derive(Debug, Clone, Copy)]
pub struct Clock(pub Duration);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0.as_secs();
        f.pad(&format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60))
    }
}

/// Returns a noun in the singular or plural: `noun(2, "process")` is `processes`.
pub fn noun(n: u64, thing: &'static str) -> Cow<'static, str> {
    if n == 1 {
        return thing.into();
    }
    let sibilant = ["s", "x", "ch", "sh"].iter().any(|end| thing.ends_with(end));
    match thing.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies").into(),
        _ if sibilant => format!("{thing}es").into(),
        _ => format!("{thing}s").into(),
    }
}

/// A duration in a unit that gives three or four digits: `731.3 µs`.
#[derive(Debug, Clone, Copy)]
pub struct Nanoseconds(pub u64);

impl fmt::Display for Nanoseconds {
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        f.pad(&match self.0 {
            // Usually the unit of neighboring values.
            0 => "0 ms".to_owned(),
            1..=999 => format!("{n} ns"),
            1_000..=999_999 => format!("{:.1} µs", n / 1e3),
            1_000_000..=9_999_999_999 => format!("{:.1} ms", n / 1e6),
            _ => format!("{:.2} s", n / 1e9),
        })
    }
}

/// A time in nanoseconds since the start of the session, formatted as seconds: `0.168000 s`.
#[derive(Debug, Clone, Copy)]
pub struct Moment(pub i64);

impl fmt::Display for Moment {
    #[expect(clippy::cast_precision_loss, reason = "shown with six digits")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.6} s", self.0 as f64 / 1e9))
    }
}

/// A percentage: `99.5%`, or `-` if the whole is 0.
#[derive(Debug, Clone, Copy)]
pub struct Percent {
    /// The part.
    pub part: u64,
    /// The whole.
    pub whole: u64,
}

impl fmt::Display for Percent {
    #[expect(clippy::cast_precision_loss, reason = "a share with one digit")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, whole } = *self;
        if whole == 0 {
            return f.pad("-");
        }
        f.pad(&format!("{:.1}%", part as f64 * 100.0 / whole as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_a_lower_bound() {
        assert_eq!(
            [0, 1, 2000].map(|n| Lost(n).to_string()),
            ["0 lost", "at least 1 lost", "at least 2,000 lost"]
        );
    }

    #[test]
    fn formatted_numbers() {
        assert_eq!(Bytes(1_234_567).to_string(), "1.2 MB");
        assert_eq!(
            [Things(0, "event"), Things(1, "event"), Things(2000, "process"), Things(2, "entry")]
                .map(|it| it.to_string()),
            ["0 events", "1 event", "2,000 processes", "2 entries"]
        );
        let span = |ms| Span(Duration::from_millis(ms)).to_string();
        assert_eq!([span(250), span(3210), span(90_000)], ["250 ms", "3.2 s", "00:01:30"]);
        let seconds = Seconds(Duration::from_millis(2_500));
        assert_eq!([seconds.to_string(), format!("{seconds:.3}")], ["2.5 s", "2.500 s"]);
        assert_eq!(Count(1_234_567).to_string(), "1,234,567");
        assert_eq!(Count(123).to_string(), "123");
        assert_eq!(
            [999, 1_500, 12_340_000, 9_999_999_999, 12_345_678_900].map(|ns| Nanoseconds(ns).to_string()),
            ["999 ns", "1.5 µs", "12.3 ms", "10000.0 ms", "12.35 s"]
        );
        assert_eq!(Moment(-1_500_000).to_string(), "-0.001500 s");
        let percent = |part, whole| Percent { part, whole }.to_string();
        assert_eq!([percent(1, 3), percent(0, 7), percent(1, 0)], ["33.3%", "0.0%", "-"]);
        assert_eq!(Clock(Duration::from_secs(3_725)).to_string(), "01:02:05");
    }
}
