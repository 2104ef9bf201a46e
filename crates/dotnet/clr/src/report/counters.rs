//! Reports the series of meters and event counters.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use runtap_model::counters::{CounterKind, CounterValues, Reading, SeriesKey};
use runtap_model::order;
use serde::{Serialize, Serializer};

use super::collector::{CollectedEvent, Collector};
use super::{Collect, Observe, Report, StreamItem};
use crate::counters::{CounterEvent, CounterNotice, SharedSeries, decode, is_counter_event};

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
    /// The number of instruments that report this series if the runtime does not distinguish them (.NET 8 and older). `value`, `delta`
    /// and `quantiles`, which are those of one instrument, are then `None`, and the other numbers are those of all. `None` if there is
    /// one.
    pub instruments_count: Option<u32>,
    /// The kind of the counter.
    #[serde(serialize_with = "kind")]
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
    Meter(Box<Reading>),
    EventCounter(Box<Reading>),
    /// An interval of meters starts or ends.
    Interval,
    Error,
    Limit,
}

impl Default for Counters {
    fn default() -> Self {
        Self(Collector::new(is_counter_event))
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
        report(self.0.finish().0)
    }

    fn snapshot(&self) -> CountersReport {
        report(self.0.so_far().0)
    }
}

fn report(kept: Vec<CollectedEvent<EventData>>) -> CountersReport {
    let mut report = CountersReport::default();
    let mut series: BTreeMap<SeriesKey, CounterSeries> = BTreeMap::new();
    let mut shared = SharedSeries::default();
    let mut add = |reading: Reading| {
        // A report is about one process.
        let key = SeriesKey::of(0, &reading.counter);
        let point = CounterSeries::of(reading);
        match series.entry(key) {
            Entry::Vacant(new) => {
                new.insert(point);
            }
            Entry::Occupied(mut known) => known.get_mut().add(point),
        }
    };
    for CollectedEvent { what, .. } in kept {
        match what {
            EventData::Error => report.errors_count += 1,
            EventData::Limit => report.limits_reached_count += 1,
            EventData::Interval => shared.next_interval(),
            EventData::EventCounter(reading) => add(*reading),
            EventData::Meter(mut reading) => {
                shared.reading(&mut reading);
                add(*reading);
            }
        }
    }
    report.series = series.into_values().map(CounterSeries::without_unknown).collect();
    report.series_count = u64::try_from(report.series.len()).unwrap_or(u64::MAX);
    report
}

impl Observe for Counters {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.0.item(item, |metadata, _, payload| match decode(metadata, payload)? {
            CounterEvent::Reading { session: None, reading } => {
                Some(EventData::EventCounter(Box::new(reading)))
            }
            CounterEvent::Reading { reading, .. } => Some(EventData::Meter(Box::new(reading))),
            CounterEvent::Interval(..) => Some(EventData::Interval),
            CounterEvent::Notice(CounterNotice::SeriesLimit | CounterNotice::HistogramLimit, _) => {
                Some(EventData::Limit)
            }
            CounterEvent::Notice(CounterNotice::CallbackError(_), _) => Some(EventData::Error),
            _ => None,
        });
    }
}

impl CounterSeries {
    fn of(reading: Reading) -> Self {
        let Reading { counter, values, .. } = reading;
        let CounterValues { value, delta, count, sum, min, max, quantiles, .. } = values;
        let series = Self {
            provider: counter.provider,
            version: counter.version,
            name: counter.name,
            display_name: counter.display_name,
            unit: counter.unit,
            tags: order::to_map(counter.tags.pairs().iter().cloned()),
            tags_text: counter.tags.text().to_owned(),
            instruments_count: counter.instruments,
            kind: counter.kind,
            value,
            delta,
            count,
            sum,
            quantiles: Some(order::to_map(quantiles)).filter(|it| !it.is_empty()),
            min,
            max,
            total: None,
            points_count: 1,
        };
        series.settle()
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

    /// Removes the numbers that are those of one of several instruments.
    fn without_unknown(mut self) -> Self {
        if self.instruments_count.is_some() {
            (self.value, self.delta, self.quantiles) = (None, None, None);
        }
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn kind<S: Serializer>(kind: &CounterKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

#[cfg(test)]
mod tests {
    use runtap_model::counters::Counter;

    use super::*;

    fn series(kind: CounterKind, values: CounterValues) -> CounterSeries {
        CounterSeries::of(Reading { counter: Counter { kind, ..Counter::default() }, values, utc_ns: None })
    }

    /// Different instruments may have equal names and tags.
    #[test]
    fn instruments_are_not_merged() {
        let point = |instance, value| {
            let counter = Counter { instance, name: "a".to_owned(), ..Counter::default() };
            let values = CounterValues { value: Some(value), ..CounterValues::default() };
            EventData::Meter(Box::new(Reading { counter, values, utc_ns: None }))
        };
        let points = [point(1, 3.0), point(2, 30.0), point(1, 4.0)];
        let events = points.map(|what| CollectedEvent { timestamp: 0, thread: 0, what });
        let series = report(events.into()).series;
        let values: Vec<_> = series.iter().map(|it| (it.value, it.points_count)).collect();
        assert_eq!(values, [(Some(4.0), 2), (Some(30.0), 1)]);
    }

    /// .NET 8 does not distinguish instruments of equal names.
    #[test]
    fn instruments_without_ids_have_only_the_numbers_of_all() {
        let point = |value, delta| {
            let counter = Counter { name: "a".to_owned(), kind: CounterKind::Rate, ..Counter::default() };
            let values = CounterValues { value: Some(value), delta: Some(delta), ..CounterValues::default() };
            EventData::Meter(Box::new(Reading { counter, values, utc_ns: None }))
        };
        let events = |events: Vec<EventData>| {
            let event = |what| CollectedEvent { timestamp: 0, thread: 0, what };
            report(events.into_iter().map(event).collect()).series
        };
        let rounds = [(1.0, 30.0), (2.0, 60.0)].map(|(one, other)| {
            [EventData::Interval, point(one, 1.0), point(other, 30.0), EventData::Interval]
        });
        let series = events(rounds.into_iter().flatten().collect());
        let [series] = &series[..] else { panic!("{series:?}") };
        assert_eq!((series.instruments_count, series.value, series.delta), (Some(2), None, None));
        assert_eq!((series.total, series.points_count), (Some(62.0), 4));
        // One instrument in several intervals.
        let one = events(vec![EventData::Interval, point(1.0, 1.0), EventData::Interval, point(2.0, 1.0)]);
        assert_eq!((one[0].instruments_count, one[0].value), (None, Some(2.0)));
    }

    #[test]
    fn intervals_of_a_histogram_add_up() {
        let interval = |count, sum, quantiles: &[(&str, f64)]| {
            let quantiles = quantiles.iter().map(|(share, value)| ((*share).to_owned(), *value)).collect();
            let values =
                CounterValues { count: Some(count), sum: Some(sum), quantiles, ..CounterValues::default() };
            series(CounterKind::Histogram, values)
        };
        let mut series = interval(100, 5_050.0, &[("0.5", 51.0), ("0.95", 96.0)]);
        series.add(interval(50, 10.0, &[("0.5", 1.0), ("0.95", 2.0)]));
        series.add(interval(0, 0.0, &[]));
        assert_eq!((series.count, series.sum, series.points_count), (Some(150), Some(5_060.0), 3));
        let last = [("0.5".to_owned(), 1.0), ("0.95".to_owned(), 2.0)];
        assert_eq!(series.quantiles, Some(last.into()));
    }

    #[test]
    fn non_finite_numbers_are_three_different_texts() {
        let point = |value| {
            let quantiles = vec![("0.5".to_owned(), f64::NAN), ("0.95".to_owned(), 3.0)];
            let values = CounterValues { value: Some(value), quantiles, ..CounterValues::default() };
            series(CounterKind::Gauge, values)
        };
        for (number, text) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
            let document = serde_json::to_value(point(number)).unwrap();
            assert_eq!(
                (&document["value"], &document["min"], &document["max"]),
                (&text.into(), &text.into(), &text.into())
            );
            assert_eq!(
                (&document["quantiles"]["0.5"], &document["quantiles"]["0.95"]),
                (&"NaN".into(), &3.0.into())
            );
            assert_eq!((&document["delta"], &document["kind"]), (&serde_json::Value::Null, &"gauge".into()));
        }
        // The extremes of the finite numbers.
        let mut series = point(f64::NAN);
        series.add(point(2.0));
        assert_eq!((series.min, series.max, series.value), (Some(2.0), Some(2.0), Some(2.0)));
    }

    #[test]
    fn intervals_without_values_do_not_count_as_zero() {
        let point = |count, value, min, max| {
            series(
                CounterKind::Gauge,
                CounterValues { count: Some(count), value, min, max, ..CounterValues::default() },
            )
        };
        let extremes = |series: &CounterSeries| (series.value, series.min, series.max, series.count);
        let mut series = point(0, None, None, None);
        assert_eq!(extremes(&series), (None, None, None, Some(0)));
        series.add(point(2, Some(7.0), Some(5.0), Some(9.0)));
        series.add(point(0, None, None, None));
        assert_eq!(extremes(&series), (Some(7.0), Some(5.0), Some(9.0), Some(2)));
        assert_eq!(series.points_count, 3);
    }

    #[test]
    fn up_down_counters_have_the_extremes_of_their_values() {
        let point = |value, delta| {
            let values = CounterValues { value: Some(value), delta: Some(delta), ..CounterValues::default() };
            series(CounterKind::Updown, values)
        };
        let mut series = point(100.0, 1.0);
        series.add(point(96.0, -4.0));
        series.add(point(98.0, 2.0));
        assert_eq!((series.min, series.max, series.value), (Some(96.0), Some(100.0), Some(98.0)));
    }
}
