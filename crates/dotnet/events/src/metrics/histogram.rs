//! Quantiles of values without storing them: buckets whose width is at most 1/1024 of their value.

/// The bits of the fraction that select a bucket.
const FRACTION_BITS: u32 = 10;
const BUCKETS: usize = 1 << FRACTION_BITS;

/// The sign and exponent of a number.
type Magnitude = u16;

/// The values since the last report.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// In the order of the numbers. Memory is kept from one report to the next.
    buckets: Vec<(Magnitude, Box<[u32; BUCKETS]>)>,
    count: u64,
    sum: f64,
}

/// The values of a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Summary {
    /// The values at 50, 95 and 99 percent. `None` without values.
    pub(super) quantiles: Option<[f64; 3]>,
    pub(super) count: u64,
    pub(super) sum: f64,
}

/// The reported quantiles.
pub(super) const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

impl Histogram {
    /// Adds a value. NaN and infinities are ignored. Allocates only for the first value of a magnitude (between two
    /// powers of two).
    pub(super) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        let (magnitude, bucket) = place(value);
        let at = match self.buckets.binary_search_by_key(&magnitude, |(other, _)| *other) {
            Ok(at) => at,
            Err(at) => {
                self.buckets.insert(at, (magnitude, Box::new([0; BUCKETS])));
                at
            }
        };
        if let Some(count) = self.buckets.get_mut(at).and_then(|(_, counts)| counts.get_mut(bucket)) {
            *count = count.saturating_add(1);
            self.count += 1;
            self.sum += value;
        }
    }

    /// Returns the values to report and starts again.
    pub(super) fn take(&mut self) -> Summary {
        let summary = Summary { quantiles: self.quantiles(), count: self.count, sum: self.sum };
        self.buckets.iter_mut().for_each(|(_, counts)| counts.fill(0));
        (self.count, self.sum) = (0, 0.0);
        summary
    }

    /// Returns the quantiles by rank, as in .NET: of 100 values the one at 0.5 is the 51st.
    fn quantiles(&self) -> Option<[f64; 3]> {
        if self.count == 0 {
            return None;
        }
        let mut values = [0.0; 3];
        let mut wanted = QUANTILES.iter().zip(&mut values).peekable();
        let mut below = 0;
        for (magnitude, counts) in &self.buckets {
            for (bucket, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                below += u64::from(*count);
                let value = value(*magnitude, bucket);
                // The last bucket is for ranks that rounding made too high.
                while let Some((_, place)) = wanted
                    .next_if(|(quantile, _)| rank(**quantile, self.count) < below || below == self.count)
                {
                    *place = value;
                }
            }
        }
        Some(values)
    }
}

/// Returns how many values are below a quantile.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank is between 0 and the count, and a few among 2⁵³ values do not matter"
)]
fn rank(quantile: f64, count: u64) -> u64 {
    (quantile * count as f64) as u64
}

/// Returns the bucket of a value. The order of buckets is the order of numbers.
fn place(value: f64) -> (Magnitude, usize) {
    // -0 becomes 0.
    let bits = (value + 0.0).to_bits();
    let magnitude = u16::try_from(bits >> 52).unwrap_or(0);
    let bucket = usize::try_from(bits >> (52 - FRACTION_BITS)).unwrap_or(0) % BUCKETS;
    // For negative numbers a larger magnitude comes first.
    if bits >> 63 == 1 { (0xFFF - magnitude, BUCKETS - 1 - bucket) } else { (magnitude | 0x800, bucket) }
}

/// Returns the number in a bucket that is nearest to 0: exact for whole numbers up to 2048.
fn value(magnitude: Magnitude, bucket: usize) -> f64 {
    let negative = magnitude & 0x800 == 0;
    let (magnitude, bucket) =
        if negative { (0xFFF - magnitude, BUCKETS - 1 - bucket) } else { (magnitude & 0x7FF, bucket) };
    let bucket = u64::try_from(bucket).unwrap_or(0);
    f64::from_bits(u64::from(magnitude) << 52 | bucket << (52 - FRACTION_BITS))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_dotnet() {
        let mut histogram = Histogram::default();
        for _ in 0..4 {
            (1..=100).for_each(|value| histogram.add(f64::from(value)));
        }
        histogram.add(f64::NAN);
        histogram.add(f64::INFINITY);
        let expected = Summary { quantiles: Some([51.0, 96.0, 100.0]), count: 400, sum: 20_200.0 };
        assert_eq!(histogram.take(), expected);
        assert_eq!(histogram.take(), Summary { quantiles: None, count: 0, sum: 0.0 });
        histogram.add(7.0);
        assert_eq!(histogram.take().quantiles, Some([7.0; 3]));
    }

    proptest! {
        #[test]
        fn quantiles_are_near_those_of_the_sorted_values(values in proptest::collection::vec(-1e9f64..1e9, 1..500)) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.add(*value);
            }
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let summary = histogram.take();
            for (quantile, found) in QUANTILES.iter().zip(summary.quantiles.unwrap()) {
                let rank = usize::try_from(rank(*quantile, summary.count)).unwrap();
                let exact = sorted[rank.min(sorted.len() - 1)];
                prop_assert!((found - exact).abs() <= exact.abs() / 1024.0, "{found} for {exact}");
            }
        }
    }
}
