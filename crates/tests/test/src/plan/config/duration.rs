//! Parsing of durations: `500ms`, `30s`, `1m30s`, `1.5h`, `2d`. A number without a unit is rejected, because other
//! tools interpret it as milliseconds.

use std::time::Duration;

/// The maximum duration: ten years.
const MAX_DURATION: Duration = Duration::from_hours(10 * 365 * 24);

/// The units with their seconds, the longest first. `ms` precedes units that start with the same letter.
const UNITS: [(&str, f64); 5] = [("ms", 0.001), ("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)];

/// Parses a duration greater than 0.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let seconds =
        seconds(text).ok_or_else(|| format!("'{text}' is not a duration; write 500ms, 30s or 1m30s"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(Duration::ZERO) => Err("a duration of 0 is too short; write \"none\" for no limit".to_owned()),
        Ok(duration) if duration <= MAX_DURATION => Ok(duration),
        Ok(_) | Err(_) => Err(format!("'{text}' is longer than ten years")),
    }
}

fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let (mut sum, mut largest) = (0.0, f64::INFINITY);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at_checked(end)?;
        // Require digits on both sides of a decimal point.
        let parts = number.split('.').collect::<Vec<_>>();
        if parts.len() > 2 || parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        let number: f64 = number.parse().ok()?;
        let (unit, size) = UNITS.into_iter().find(|(unit, _)| after.starts_with(unit))?;
        // Require descending units: '1s1h' is probably a mistake.
        if size >= largest {
            return None;
        }
        (sum, largest) = (sum + number * size, size);
        rest = after.strip_prefix(unit)?.trim_start();
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1m 30s", 90_000),
            ("1.5h", 5_400_000),
            ("1d2h3m4s5ms", 93_784_005),
            (" 2s ", 2_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in
            ["", " ", "5", "s", "1x", "1s1h", "1s1s", ".5s", "5.s", "1.2.3s", "-1s", "1 s", "inf", "1m30"]
        {
            assert!(parse(text).unwrap_err().contains("is not a duration"), "{text}");
        }
        assert!(parse("0s").unwrap_err().contains("too short"));
        assert!(parse("99999999d").unwrap_err().contains("ten years"));
    }
}
