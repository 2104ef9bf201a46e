//! Costs measured in pairs: the same work with and without a feature, in alternation, so that other load affects both.

use std::time::Duration;

use anyhow::Result;

/// The additional processor time of a feature, in percent of the work's own: the median of all pairs, and the interval that
/// contains the true median with a probability of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Measures `pairs` pairs. `work` does the work with the feature if its argument is true, and returns the processor time
/// used. The order within a pair alternates.
pub(crate) fn measure(pairs: usize, mut work: impl FnMut(bool) -> Result<Duration>) -> Result<Cost> {
    let mut more = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        let first = pair % 2 == 1;
        let (one, other) = (work(first)?.as_secs_f64(), work(!first)?.as_secs_f64());
        let (with, without) = if first { (one, other) } else { (other, one) };
        more.push((with / without - 1.0) * 100.0);
    }
    Ok(Cost::of(more))
}

impl Cost {
    /// The interval consists of the values whose ranks lie 0.98 √n on either side of the middle. It holds for any
    /// distribution, as each value is as likely above the true median as below (David and Nagaraja, Order Statistics,
    /// 7.1).
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let count = u32::try_from(values.len()).map_or(f64::MAX, f64::from);
        let half = 0.98 * count.sqrt();
        let at = |rank: f64| {
            // The rank is within the values, so neither negative nor large.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let rank = rank.clamp(0.0, (count - 1.0).max(0.0)) as usize;
            values.get(rank).copied().unwrap_or(f64::NAN)
        };
        let middle = (count - 1.0) / 2.0;
        let median = f64::midpoint(at(middle.floor()), at(middle.ceil()));
        Self { median, low: at((middle - half).floor()), high: at((middle + half).ceil()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_has_the_ranks_of_the_binomial_distribution() {
        // Tables of the sign test have ranks 40 and 61 for 100 values, 2 and 9 for 10.
        let cost = |n: u32| Cost::of((1..=n).rev().map(f64::from).collect());
        assert_eq!(cost(100), Cost { median: 50.5, low: 40.0, high: 61.0 });
        assert_eq!(cost(10), Cost { median: 5.5, low: 2.0, high: 9.0 });
        assert_eq!(cost(1), Cost { median: 1.0, low: 1.0, high: 1.0 });
    }

    #[test]
    fn a_cost_is_found_in_a_machine_that_becomes_slower() {
        let mut time = 1000.0;
        let cost = measure(60, |with| {
            time *= 1.01;
            Ok(Duration::from_secs_f64(if with { time * 1.02 } else { time } / 1e6))
        });
        let cost = cost.unwrap();
        assert!(cost.low <= 2.0 && 2.0 <= cost.high, "{cost:?}");
        assert!((cost.median - 2.0).abs() < 0.1, "{cost:?}");
    }
}
