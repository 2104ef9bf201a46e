//! Formatting of times for reports.
//!
//! Formats instants in RFC 3339 and in milliseconds, and durations in seconds, in `hh:mm:ss` and in readable form.
//! Instants before 1970 or after 9999 are replaced by 1970, because a wrong clock must not make a report unreadable.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Formats an instant in UTC, such as `2026-11-23T10:24:27.123Z`.
pub(crate) fn timestamp(at: SystemTime) -> String {
    format!("{:.3}", instant(at))
}

/// Returns the milliseconds since 1970.
pub(crate) fn millis(at: SystemTime) -> i64 {
    instant(at).as_millisecond()
}

fn instant(at: SystemTime) -> Timestamp {
    let at = Timestamp::try_from(at).ok().filter(|at| *at >= Timestamp::UNIX_EPOCH);
    at.unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns the instant `ns` nanoseconds after `at`, or `at` if it is out of range.
pub(crate) fn after(at: SystemTime, ns: u64) -> SystemTime {
    at.checked_add(Duration::from_nanos(ns)).unwrap_or(at)
}

/// Returns whole milliseconds, rounded down, limited to integers that all readers support.
pub(crate) fn whole_millis(ns: u64) -> u64 {
    ns / 1_000_000
}

/// Formats seconds with six decimals, the resolution of JUnit readers.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// Formats `hh:mm:ss.fffffff` in ticks of 100 ns, preceded by `d.` from one day on, as .NET formats a `TimeSpan`.
pub(crate) fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let days = if seconds < 86_400 { String::new() } else { format!("{}.", seconds / 86_400) };
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{days}{hours:02}:{minutes:02}:{:02}.{:07}", seconds % 60, ns % 1_000_000_000 / 100)
}

/// Formats a duration with at most three significant digits: `340 µs`, `12 ms`, `1.25 s`, `2 min 5 s`, `1 h 2 min`.
pub(crate) fn human(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        1_000_000_000..60_000_000_000 => format!("{seconds}.{:02} s", ns % 1_000_000_000 / 10_000_000),
        60_000_000_000..3_600_000_000_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_utc_and_never_fail() {
        let at = SystemTime::UNIX_EPOCH + Duration::new(1_795_429_467, 123_456_789);
        assert_eq!(timestamp(at), "2026-11-23T10:24:27.123Z");
        assert_eq!(millis(at), 1_795_429_467_123);
        assert_eq!(timestamp(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
        let far = after(at, u64::MAX);
        assert!(timestamp(far).starts_with("2611"), "{}", timestamp(far));
    }

    #[test]
    fn durations_have_the_digits_of_their_format() {
        assert_eq!(seconds(1_234_567_890), "1.234567");
        assert_eq!(seconds(0), "0.000000");
        assert_eq!(clock(1_234_567_890), "00:00:01.2345678");
        assert_eq!(clock(3_600_000_000_000 * 30 + 61_000_000_000), "1.06:01:01.0000000");
        assert_eq!(clock(u64::MAX), "213503.23:34:33.7095516");
        let shown = [7, 340_000, 12_900_000, 1_250_000_000, 125_000_000_000, 3_720_000_000_000].map(human);
        assert_eq!(shown, ["7 ns", "340 µs", "12 ms", "1.25 s", "2 min 5 s", "1 h 2 min"]);
    }
}
