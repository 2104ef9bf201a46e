//! Meters and event counters: what each series was, and came to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Item;
use super::collector::{Collector, Kept, text};
use crate::payload::{Payload, Value};

/// What a recording says about counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CountersReport {
    /// How many series.
    pub series_count: u64,
    /// How many times an instrument's own code failed.
    pub errors_count: u64,
    /// How often the limits on series or histograms were reached, so that some were left out.
    pub limits_reached_count: u64,
    /// By provider, name and tags.
    pub series: Vec<CounterSeries>,
}

/// How a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CounterKind {
    /// A value that is what it is.
    Gauge,
    /// Something that adds up.
    Rate,
    /// Something that goes up and down by differences.
    Updown,
    /// A distribution.
    Histogram,
}

/// A counter with its tags. `None` where this kind of counter has no such number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterSeries {
    /// The meter, or the event source.
    pub provider: String,
    /// The meter's version.
    pub version: Option<String>,
    /// The instrument.
    pub name: String,
    /// Its name for people, if it has one.
    pub display_name: Option<String>,
    /// Its unit, in its own words.
    pub unit: String,
    /// Its tags, as the runtime joins them.
    pub tags: String,
    /// How it counts.
    pub kind: CounterKind,
    /// The last value: of a gauge itself, of the others the sum so far.
    pub value: Option<f64>,
    /// What the last interval added.
    pub delta: Option<f64>,
    /// Histogram: how many values in the last interval.
    pub count: Option<u64>,
    /// Histogram: their sum.
    pub sum: Option<f64>,
    /// Histogram: quantiles of the last interval, as the runtime writes them.
    pub quantiles: Option<String>,
    /// The lowest and the highest value, or, of one that adds up, difference.
    pub min: Option<f64>,
    /// The highest.
    pub max: Option<f64>,
    /// What all recorded intervals add up to, of one that adds up.
    pub total: Option<f64>,
    /// How many times it was told.
    pub points_count: u64,
}

/// Makes a [`CountersReport`].
#[derive(Debug)]
pub struct Counters(Collector<What>);

#[derive(Debug)]
enum What {
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

impl Counters {
    /// Takes the next item of the stream.
    pub fn item(&mut self, item: &Item<'_>) {
        self.0.item(item, |metadata, _, payload| {
            if metadata.provider != METERS {
                return event_counter(&metadata.provider, payload).map(|point| What::Point(Box::new(point)));
            }
            match metadata.event_id {
                8 | 9 => None,
                12 | 13 => Some(What::Limit),
                14 => Some(What::Error),
                id => meter(id, payload).map(|point| What::Point(Box::new(point))),
            }
        });
    }

    /// The report.
    pub fn finish(self) -> CountersReport {
        let (kept, _) = self.0.finish();
        let mut report = CountersReport::default();
        let mut series: BTreeMap<(String, Option<String>, String, String), CounterSeries> = BTreeMap::new();
        for Kept { what, .. } in kept {
            match what {
                What::Error => report.errors_count += 1,
                What::Limit => report.limits_reached_count += 1,
                What::Point(point) => {
                    let key = (
                        point.provider.clone(),
                        point.version.clone(),
                        point.name.clone(),
                        point.tags.clone(),
                    );
                    match series.entry(key) {
                        std::collections::btree_map::Entry::Vacant(new) => {
                            new.insert(*point);
                        }
                        std::collections::btree_map::Entry::Occupied(mut known) => {
                            known.get_mut().add(*point);
                        }
                    }
                }
            }
        }
        report.series = series.into_values().collect();
        report.series_count = u64::try_from(report.series.len()).unwrap_or(u64::MAX);
        report
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
            tags: String::new(),
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

    /// Sets what follows from one point.
    fn settle(mut self) -> Self {
        let (low, high) = match self.kind {
            CounterKind::Gauge => (self.min.or(self.value), self.max.or(self.value)),
            CounterKind::Rate | CounterKind::Updown => (self.delta, self.delta),
            CounterKind::Histogram => (None, None),
        };
        (self.min, self.max) = (low, high);
        self.total = self.delta.filter(|_| self.kind == CounterKind::Rate);
        self
    }

    /// Takes the next point of the same series.
    fn add(&mut self, next: Self) {
        let least = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.min(b)).or(a).or(b);
        let most = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b)).or(a).or(b);
        let (min, max) = (least(self.min, next.min), most(self.max, next.max));
        let total = self.total.zip(next.total).map(|(a, b)| a + b).or(self.total);
        let points_count = self.points_count + 1;
        *self = Self { min, max, total, points_count, ..next };
    }
}

/// Numbers of meters come as texts; an empty one is none.
fn number(payload: Payload<'_>, name: &str) -> Option<f64> {
    match payload.get(name)? {
        Value::Utf16(text) => text.to_string().trim().parse().ok(),
        value => value.as_f64(),
    }
    .filter(|number: &f64| number.is_finite())
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
    series.tags = text(payload, "tags");
    series.value = number(payload, if id == 5 { "lastValue" } else { "value" });
    series.delta = number(payload, "rate");
    if id == 6 {
        series.count = payload.get("count").and_then(|count| count.as_u64());
        series.sum = number(payload, "sum");
        series.quantiles = payload.text("quantiles");
    }
    Some(series.settle())
}

fn event_counter(provider: &str, payload: Payload<'_>) -> Option<CounterSeries> {
    // The fields are the payload's own, or those of its only one.
    let fields = match payload.get("Payload").or_else(|| payload.get("")) {
        Some(Value::Object(object)) => object.fields(),
        _ => payload.fields(),
    };
    let get = |name: &str| fields.clone().get(name);
    let text = |name: &str| get(name).and_then(|value| value.as_text()).unwrap_or_default();
    let number = |name: &str| get(name).and_then(|value| value.as_f64()).filter(|number| number.is_finite());
    let name = text("Name");
    if name.is_empty() {
        return None;
    }
    let increment = number("Increment");
    let kind = if increment.is_some() { CounterKind::Rate } else { CounterKind::Gauge };
    let mut series = CounterSeries::new(provider.to_owned(), name, text("DisplayUnits"), kind);
    series.display_name = Some(text("DisplayName")).filter(|name| !name.is_empty());
    series.tags = text("Metadata");
    series.delta = increment;
    series.value = number("Mean");
    if increment.is_none() {
        series.count = get("Count").and_then(|count| count.as_u64());
        (series.min, series.max) = (number("Min"), number("Max"));
    }
    Some(series.settle())
}
