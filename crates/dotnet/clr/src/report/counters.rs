//! Reports the series of meters and event counters.

mod texts;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Serialize, Serializer};

use self::texts::{quantiles, tags};
use super::collector::{Collected, CollectedEvent, Collector, text};
use super::{Collect, Observe, Report, StreamItem};
use crate::payload::{Payload, Value};

/// The counters in a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CountersReport {
    /// The number of series.
    pub series_count: u64,
    /// The number of failures of an instrument's own code.
    pub errors_count: u64,
    /// The number of times that a limit of series or histograms was reached, so that some were left out.
    pub limits_reached_count: u64,
    /// The series, sorted by provider, name and tags.
    pub series: Vec<CounterSeries>,
}

/// The kind of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CounterKind {
    /// A current value.
    Gauge,
    /// A sum of increments.
    Rate,
    /// A sum of positive and negative differences.
    Updown,
    /// A distribution.
    Histogram,
}

/// A counter with its tags. Numbers are `None` if this kind of counter does not have them. Non-finite numbers are serialized as the
/// texts `NaN`, `inf` and `-inf`, because JSON has no such numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterSeries {
    /// The meter or event source.
    pub provider: String,
    /// The version of the meter.
    pub version: Option<String>,
    /// The name of the instrument.
    pub name: String,
    /// The display name, if any.
    pub display_name: Option<String>,
    /// The unit.
    pub unit: String,
    /// The values of tags by name, as far as the runtime's text is unambiguous.
    pub tags: BTreeMap<String, String>,
    /// The tags as joined by the runtime with commas and equals signs, which may also occur in names and values.
    pub tags_text: String,
    /// The kind of the counter.
    pub kind: CounterKind,
    /// The last value of a gauge, or the sum so far of other kinds. `None` for histograms, and for an event counter without values
    /// in any interval.
    #[serde(serialize_with = "real")]
    pub value: Option<f64>,
    /// The increment in the last interval.
    #[serde(serialize_with = "real")]
    pub delta: Option<f64>,
    /// For histograms and mean event counters: the number of values in all intervals.
    pub count: Option<u64>,
    /// For histograms: the sum of the values.
    #[serde(serialize_with = "real")]
    pub sum: Option<f64>,
    /// For histograms: quantiles of the last interval that had values, by their fraction (`0.95`). Quantiles of several intervals
    /// can't be combined.
    #[serde(serialize_with = "reals")]
    pub quantiles: Option<BTreeMap<String, f64>>,
    /// The minimum value, or the minimum increment of an interval.
    #[serde(serialize_with = "real")]
    pub min: Option<f64>,
    /// The maximum value, or the maximum increment of an interval.
    #[serde(serialize_with = "real")]
    pub max: Option<f64>,
    /// The sum of all increments.
    #[serde(serialize_with = "real")]
    pub total: Option<f64>,
    /// The number of reports of the series.
    pub points_count: u64,
}

/// Collects a [`CountersReport`].
#[derive(Debug)]
pub struct Counters(Collector<EventData>);

#[derive(Debug, Clone)]
enum EventData {
    Point(Box<CounterSeries>),
    Error,
    Limit,
}

/// The provider of meters.
const METERS: &str = "System.Diagnostics.Metrics";

impl Default for Counters {
    fn default() -> Self {
        Self(Collector::new(|metadata| metadata.provider == METERS || metadata.name == "EventCounters"))
    }
}

impl Report for CountersReport {
    fn limit(&mut self, n: usize) {
        self.series.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.series.is_empty()
    }
}

impl Collect for Counters {
    type Report = CountersReport;

    fn finish(self) -> CountersReport {
        report(self.0.finish())
    }

    fn snapshot(&self) -> CountersReport {
        report(self.0.so_far())
    }
}

fn report((kept, _): Collected<EventData>) -> CountersReport {
    let mut report = CountersReport::default();
    let mut series: BTreeMap<(String, Option<String>, String, String), CounterSeries> = BTreeMap::new();
    for CollectedEvent { what, .. } in kept {
        match what {
            EventData::Error => report.errors_count += 1,
            EventData::Limit => report.limits_reached_count += 1,
            EventData::Point(point) => {
                let key = (
                    point.provider.clone(),
                    point.version.clone(),
                    point.name.clone(),
                    point.tags_text.clone(),
                );
                match series.entry(key) {
                    Entry::Vacant(new) => {
                        new.insert(*point);
                    }
                    Entry::Occupied(mut known) => known.get_mut().add(*point),
                }
            }
        }
    }
    report.series = series.into_values().collect();
    report.series_count = u64::try_from(report.series.len()).unwrap_or(u64::MAX);
    report
}

impl Observe for Counters {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.0.item(item, |metadata, _, payload| {
            if metadata.provider != METERS {
                return event_counter(&metadata.provider, payload)
                    .map(|point| EventData::Point(Box::new(point)));
            }
            match metadata.event_id {
                8 | 9 => None,
                12 | 13 => Some(EventData::Limit),
                14 => Some(EventData::Error),
                id => meter(id, payload).map(|point| EventData::Point(Box::new(point))),
            }
        });
    }
}

impl CounterSeries {
    fn new(provider: String, name: String, unit: String, kind: CounterKind) -> Self {
        Self {
            provider,
            version: None,
            name,
            display_name: None,
            unit,
            tags: BTreeMap::new(),
            tags_text: String::new(),
            kind,
            value: None,
            delta: None,
            count: None,
            sum: None,
            quantiles: None,
            min: None,
            max: None,
            total: None,
            points_count: 1,
        }
    }

    /// For an interval without values, the runtime writes the mean 0 and infinite extremes, which are ignored.
    fn without_values(mut self) -> Self {
        if self.count == Some(0) {
            (self.value, self.min, self.max) = (None, None, None);
        }
        self
    }

    /// Sets the values that follow from one point.
    fn settle(mut self) -> Self {
        let (low, high) = match self.kind {
            CounterKind::Gauge => (self.min.or(self.value), self.max.or(self.value)),
            CounterKind::Updown => (self.value, self.value),
            CounterKind::Rate => (self.delta, self.delta),
            CounterKind::Histogram => (None, None),
        };
        (self.min, self.max) = (low, high);
        self.total = self.delta.filter(|_| self.kind == CounterKind::Rate);
        self
    }

    /// Adds the next point of the series.
    fn add(&mut self, next: Self) {
        fn both<T: Copy>(a: Option<T>, b: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
            a.zip(b).map(|(a, b)| join(a, b)).or(a).or(b)
        }
        *self = Self {
            min: both(self.min, next.min, f64::min),
            max: both(self.max, next.max, f64::max),
            total: both(self.total, next.total, |a, b| a + b),
            count: both(self.count, next.count, u64::saturating_add),
            sum: both(self.sum, next.sum, |a, b| a + b),
            // An interval without values is ignored.
            value: next.value.or(self.value),
            quantiles: next.quantiles.or_else(|| self.quantiles.take()),
            points_count: self.points_count + 1,
            ..next
        };
    }
}

/// Parses a number of a meter, which is a text. `None` if it is empty.
fn number(payload: Payload<'_>, name: &str) -> Option<f64> {
    match payload.get(name)? {
        Value::Utf16(text) => text.to_string().trim().parse().ok(),
        value => value.as_f64(),
    }
}

/// Serializes a number as events do in JSON Lines.
struct Real(f64);

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.collect_str(&self.0) }
    }
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn real<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(Real).serialize(serializer)
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn reals<S: Serializer>(numbers: &Option<BTreeMap<String, f64>>, serializer: S) -> Result<S::Ok, S::Error> {
    match numbers {
        Some(numbers) => serializer.collect_map(numbers.iter().map(|(share, number)| (share, Real(*number)))),
        None => serializer.serialize_none(),
    }
}

fn meter(id: u32, payload: Payload<'_>) -> Option<CounterSeries> {
    let kind = match id {
        4 => CounterKind::Rate,
        5 => CounterKind::Gauge,
        6 => CounterKind::Histogram,
        16 => CounterKind::Updown,
        _ => return None,
    };
    let mut series = CounterSeries::new(
        text(payload, "meterName"),
        text(payload, "instrumentName"),
        text(payload, "unit"),
        kind,
    );
    series.version = Some(text(payload, "meterVersion")).filter(|version| !version.is_empty());
    series.tags_text = text(payload, "tags");
    series.tags = tags(&series.tags_text, "=");
    series.value = number(payload, if id == 5 { "lastValue" } else { "value" });
    series.delta = number(payload, "rate");
    if id == 6 {
        series.count = payload.get("count").and_then(|count| count.as_u64());
        series.sum = number(payload, "sum");
        series.quantiles = payload.text("quantiles").as_deref().and_then(quantiles);
    }
    Some(series.settle())
}

fn event_counter(provider: &str, payload: Payload<'_>) -> Option<CounterSeries> {
    // The fields are those of the payload, or of its only field.
    let fields = match payload.get("Payload").or_else(|| payload.get("")) {
        Some(Value::Object(object)) => object.fields(),
        _ => payload.fields(),
    };
    let get = |name: &str| fields.clone().get(name);
    let text = |name: &str| get(name).and_then(|value| value.as_text()).unwrap_or_default();
    let number = |name: &str| get(name).and_then(|value| value.as_f64());
    let name = text("Name");
    if name.is_empty() {
        return None;
    }
    let increment = number("Increment");
    let kind = if increment.is_some() { CounterKind::Rate } else { CounterKind::Gauge };
    let mut series = CounterSeries::new(provider.to_owned(), name, text("DisplayUnits"), kind);
    series.display_name = Some(text("DisplayName")).filter(|name| !name.is_empty());
    series.tags_text = text("Metadata");
    series.tags = tags(&series.tags_text, ":");
    series.delta = increment;
    series.value = number("Mean");
    if increment.is_none() {
        series.count = get("Count").and_then(|count| count.as_u64());
        (series.min, series.max) = (number("Min"), number("Max"));
    }
    Some(series.without_values().settle())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_a_histogram_add_up() {
        let interval = |count, sum, told| CounterSeries {
            count: Some(count),
            sum: Some(sum),
            quantiles: quantiles(told),
            ..CounterSeries::new(String::new(), String::new(), String::new(), CounterKind::Histogram)
        };
        let mut series = interval(100, 5_050.0, "0.5=51;0.95=96");
        series.add(interval(50, 10.0, "0.5=1;0.95=2"));
        series.add(interval(0, 0.0, ""));
        assert_eq!((series.count, series.sum, series.points_count), (Some(150), Some(5_060.0), 3));
        let last = [("0.5".to_owned(), 1.0), ("0.95".to_owned(), 2.0)];
        assert_eq!(series.quantiles, Some(last.into()));
    }

    #[test]
    fn non_finite_numbers_are_three_different_texts() {
        let point = |value| CounterSeries {
            value: Some(value),
            quantiles: quantiles("0.5=NaN;0.95=3"),
            ..CounterSeries::new(String::new(), String::new(), String::new(), CounterKind::Gauge)
        };
        for (number, text) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
            let document = serde_json::to_value(point(number).settle()).unwrap();
            assert_eq!(
                (&document["value"], &document["min"], &document["max"]),
                (&text.into(), &text.into(), &text.into())
            );
            assert_eq!(
                (&document["quantiles"]["0.5"], &document["quantiles"]["0.95"]),
                (&"NaN".into(), &3.0.into())
            );
            assert_eq!(document["delta"], serde_json::Value::Null);
        }
        // The extremes of the finite numbers.
        let mut series = point(f64::NAN).settle();
        series.add(point(2.0).settle());
        assert_eq!((series.min, series.max, series.value), (Some(2.0), Some(2.0), Some(2.0)));
    }

    #[test]
    fn intervals_without_values_do_not_count_as_zero() {
        let point = |count, mean, min, max| {
            let new = CounterSeries::new(String::new(), String::new(), String::new(), CounterKind::Gauge);
            let (value, min, max, count) = (Some(mean), Some(min), Some(max), Some(count));
            CounterSeries { value, count, min, max, ..new }.without_values().settle()
        };
        let extremes = |series: &CounterSeries| (series.value, series.min, series.max, series.count);
        let mut series = point(0, 0.0, f64::INFINITY, f64::NEG_INFINITY);
        assert_eq!(extremes(&series), (None, None, None, Some(0)));
        series.add(point(2, 7.0, 5.0, 9.0));
        // Other libraries than the runtime's write 0.
        series.add(point(0, 0.0, 0.0, 0.0));
        assert_eq!(extremes(&series), (Some(7.0), Some(5.0), Some(9.0), Some(2)));
        assert_eq!(series.points_count, 3);
    }

    #[test]
    fn up_down_counters_have_the_extremes_of_their_values() {
        let point = |value, delta| {
            let new = CounterSeries::new(String::new(), String::new(), String::new(), CounterKind::Updown);
            CounterSeries { value: Some(value), delta: Some(delta), ..new }.settle()
        };
        let mut series = point(100.0, 1.0);
        series.add(point(96.0, -4.0));
        series.add(point(98.0, 2.0));
        assert_eq!((series.min, series.max, series.value), (Some(96.0), Some(100.0), Some(98.0)));
    }
}
