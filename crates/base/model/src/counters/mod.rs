//! Counters: numbers that a program reports at intervals, such as the length of a queue or the requests so far.
//!
//! A [`Reading`] is one report of one series; a [`CounterBoard`] keeps the latest reading of every series with its totals.
//! The module knows no source and no format. A number that was not reported is `None`, which differs from 0 and NaN.

mod board;

pub use self::board::{BoardLimits, CounterBoard, CounterRow, SeriesKey};

/// The approximate size of a pair without its texts in bytes.
const PAIR_SIZE: usize = 64;

/// The kind of a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CounterKind {
    /// A current value.
    #[default]
    Gauge,
    /// A sum of increments.
    Rate,
    /// A sum of positive and negative differences.
    Updown,
    /// A distribution.
    Histogram,
}

impl CounterKind {
    /// Returns the name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Rate => "rate",
            Self::Updown => "updown",
            Self::Histogram => "histogram",
        }
    }
}

/// Names with values, which distinguish the series of a counter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags {
    text: String,
    pairs: Vec<(String, String)>,
}

impl Tags {
    /// Creates tags from the text of the source and the pairs in that text. The text identifies the series, because it may
    /// be ambiguous how it must be split.
    pub fn new(text: impl Into<String>, pairs: Vec<(String, String)>) -> Self {
        Self { text: text.into(), pairs }
    }

    /// Returns the text of the source.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns names and values in the order of the source. A name may occur more than once.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Returns the approximate size of the text and the pairs in bytes.
    pub fn size(&self) -> usize {
        let pairs = self.pairs.iter().map(|(name, value)| name.len() + value.len() + PAIR_SIZE);
        self.text.len() + pairs.sum::<usize>()
    }
}

/// The description of a series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counter {
    /// The source within the program: a meter, an event source.
    pub provider: String,
    /// The version of the source, if any.
    pub version: Option<String>,
    /// The name of the counter.
    pub name: String,
    /// The display name, if any.
    pub display_name: Option<String>,
    /// The unit. Empty if unknown.
    pub unit: String,
    /// The kind of the counter.
    pub kind: CounterKind,
    /// A number that distinguishes counters of one name and version. 0 if unknown.
    pub instance: u32,
    /// The number of counters that report this series if the source does not distinguish them. The series then has only the numbers
    /// that add up. `None` if there is one.
    pub instruments: Option<u32>,
    /// The tags of the source within the program.
    pub provider_tags: Tags,
    /// The tags of the counter.
    pub counter_tags: Tags,
    /// The tags of the series.
    pub tags: Tags,
}

impl Counter {
    /// Returns all tags, from those of the source to those of the series.
    pub fn all_tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let levels = [&self.provider_tags, &self.counter_tags, &self.tags];
        levels.into_iter().flat_map(|tags| &tags.pairs).map(|(name, value)| (&**name, &**value))
    }
}

/// The numbers of a reading. `None` if the source did not report the number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CounterValues {
    /// The current value of a gauge, or the total of other kinds. `None` for histograms.
    pub value: Option<f64>,
    /// The increment in the interval.
    pub delta: Option<f64>,
    /// The number of values in the interval.
    pub count: Option<u64>,
    /// The sum of the values in the interval.
    pub sum: Option<f64>,
    /// The least value in the interval.
    pub min: Option<f64>,
    /// The greatest value in the interval.
    pub max: Option<f64>,
    /// The quantiles of the values in the interval, by their fraction as written by the source (`0.95`). Empty if the interval
    /// had no values.
    pub quantiles: Vec<(String, f64)>,
    /// The length of the interval in seconds.
    pub interval_s: Option<f64>,
}

/// A report of a series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The series.
    pub counter: Counter,
    /// The numbers.
    pub values: CounterValues,
    /// The time in nanoseconds since 1970, UTC. `None` if unknown.
    pub utc_ns: Option<i64>,
}
