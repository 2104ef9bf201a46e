//! Numbers of counters as text. Very large and very small ones have exponents, which all readers accept.

use std::fmt;

/// A number with the names that a format has for infinity and its negative. NaN is `NaN` in all formats.
pub(super) struct Number {
    pub(super) value: f64,
    pub(super) infinities: [&'static str; 2],
}

/// The names of infinity in .NET.
pub(super) const DOTNET: [&str; 2] = ["Infinity", "-Infinity"];
/// The names of infinity in reports and JSON Lines of runtap.
pub(super) const PLAIN: [&str; 2] = ["inf", "-inf"];
/// The names of infinity in Prometheus.
pub(super) const PROMETHEUS: [&str; 2] = ["+Inf", "-Inf"];

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, infinities: [positive, negative] } = *self;
        match value.abs() {
            _ if value.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str(if value > 0.0 { positive } else { negative }),
            size if size == 0.0 || (1e-5..1e16).contains(&size) => write!(f, "{value}"),
            _ => write!(f, "{value:e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact() {
        for (value, text) in [
            (63.0, "63"),
            (-3.25, "-3.25"),
            (0.0, "0"),
            (1e15, "1000000000000000"),
            (1.5e300, "1.5e300"),
            (2e-10, "2e-10"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(Number { value, infinities: DOTNET }.to_string(), text);
            let parsed = text.parse::<f64>().unwrap();
            assert!(Some(parsed) == Some(value) || value.is_nan());
        }
    }
}
