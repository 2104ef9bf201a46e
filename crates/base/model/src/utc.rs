//! Points in time as text. Reads no clock.

use std::fmt;

use crate::calendar::date_of_day;

/// The nanoseconds since 1970, UTC. Displays as RFC 3339 with nine fractional digits: `2026-11-21T09:42:37.000000001Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcNs(pub i64);

impl UtcNs {
    /// Returns the text as bytes, which is faster than formatting.
    pub fn to_bytes(self) -> [u8; 30] {
        let (seconds, ns) = (self.0.div_euclid(1_000_000_000), self.0.rem_euclid(1_000_000_000));
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date_of_day(days);
        let mut text = *b"0000-00-00T00:00:00.000000000Z";
        for (end, digits, number) in [
            (4, 4, year),
            (7, 2, month),
            (10, 2, day),
            (13, 2, second / 3600),
            (16, 2, second / 60 % 60),
            (19, 2, second % 60),
            (29, 9, ns),
        ] {
            let mut number = number;
            for place in text.iter_mut().take(end).rev().take(digits) {
                *place = b'0' + u8::try_from(number % 10).unwrap_or_default();
                number /= 10;
            }
        }
        text
    }
}

impl fmt::Display for UtcNs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.to_bytes()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (ns, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (951_782_400_000_000_007, "2000-02-29T00:00:00.000000007Z"),
            (1_793_266_957_123_456_789, "2026-10-29T09:42:37.123456789Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
        ] {
            assert_eq!(UtcNs(ns).to_string(), text);
        }
    }
}
