//! Atomic numbers for counters, and formatting numbers as .NET does.

use std::sync::atomic::{AtomicU64, Ordering};

/// A floating-point number that any thread can add to.
#[derive(Debug, Default)]
pub(crate) struct AtomicF64(AtomicU64);

impl AtomicF64 {
    pub(crate) fn new(value: f64) -> Self {
        Self(AtomicU64::new(value.to_bits()))
    }

    #[inline]
    pub(crate) fn load(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn store(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn add(&self, value: f64) {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let next = (f64::from_bits(now) + value).to_bits();
            match self.0.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }
}

/// Formats a number as .NET's invariant culture does: the shortest digits that parse to the number, with an
/// exponent from 10¹⁵ on and below 10⁻⁴.
pub(crate) fn invariant(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..15).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}E{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_dotnet() {
        for (value, text) in [
            (0.0, "0"),
            (20.5, "20.5"),
            (-3.25, "-3.25"),
            (0.1 + 0.2, "0.30000000000000004"),
            (0.0001, "0.0001"),
            (0.000_01, "1E-05"),
            (1.5e-7, "1.5E-07"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1E+15"),
            (1.25e100, "1.25E+100"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(invariant(value), text);
        }
    }

    #[test]
    fn additions_of_all_threads_count() {
        let sum = AtomicF64::new(0.5);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| sum.add(1.0)));
            }
        });
        assert_eq!(sum.load().to_bits(), 4000.5f64.to_bits());
    }
}
