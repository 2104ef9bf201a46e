//! The events by which .NET programs report counters: those of the event source `System.Diagnostics.Metrics`, and the event
//! `EventCounters` of any event source. Source: dotnet/runtime, `MetricsEventSource.cs` and `CounterPayload.cs`.
//!
//! [`decode`] decodes one event, and [`CounterStream`] the events of one session: it adds what only other events state, and ignores
//! the events of other sessions, which the runtime sends to all.
//!
//! | events | become |
//! |---|---|
//! | 4 to 6, 16 | a [`Reading`]; the numbers are texts, which are empty if there was no measurement |
//! | `EventCounters` | a [`Reading`]: a rate if it has an increment, otherwise a gauge with the mean |
//! | 7, 8 | the start and the end of an instrument |
//! | 2, 3, 10 | the start, the end and the length of an interval; the end of the list of instruments |
//! | 9, 12 to 15, 17 | a [`CounterNotice`] |
//!
//! The runtime joins tags without quoting (`name=value,name=value`), so a comma or an equals sign in a tag makes the pairs
//! ambiguous. The text is kept beside the pairs. At most [`MAX_TAGS`] pairs of a text are used.

mod notice;
mod shared;
mod stream;
mod texts;

use runtap_model::counters::{Counter, CounterKind, CounterValues, Reading, Tags};
use runtap_nettrace::Metadata;

pub use self::notice::{CounterNotice, MetricsSettings};
pub(crate) use self::shared::SharedSeries;
pub use self::stream::{CounterStream, CounterUpdate, MetricsSession};
use self::texts::{limited, quantiles, tags};
use crate::payload::{FileTime, Payload, Value};

/// The event source of meters.
pub const METRICS: &str = "System.Diagnostics.Metrics";

/// The name of the events of event counters.
const EVENT_COUNTERS: &str = "EventCounters";

/// The maximum number of tags of a series.
pub const MAX_TAGS: usize = 256;

/// An event about counters. `session` is the id of the metrics session that the event belongs to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CounterEvent {
    /// A report of a series.
    Reading {
        /// The metrics session. `None` for event counters, which belong to no session.
        session: Option<String>,
        /// The report.
        reading: Reading,
    },
    /// An instrument is reported from now on.
    Begin(String, Counter),
    /// An instrument is no longer reported.
    End(String, Counter),
    /// The reports of an interval of this many seconds follow, or have ended. `None` if the length is unknown.
    Interval(String, Option<f64>),
    /// All instruments that existed at the start of the session have been listed.
    Enumerated(String),
    /// A problem of a session. The id is that of the running session.
    Notice(CounterNotice, String),
}

/// Whether events with this definition are about counters.
pub fn is_counter_event(metadata: &Metadata) -> bool {
    metadata.provider == METRICS || metadata.name == EVENT_COUNTERS
}

/// Decodes an event. `None` if it is not about counters, or lacks what identifies a series.
pub fn decode(metadata: &Metadata, payload: Payload<'_>) -> Option<CounterEvent> {
    if metadata.provider != METRICS {
        let reading =
            (metadata.name == EVENT_COUNTERS).then(|| event_counter(&metadata.provider, payload))?;
        return Some(CounterEvent::Reading { session: None, reading: reading? });
    }
    let session = || text(payload, "sessionId");
    Some(match metadata.event_id {
        2 | 3 => {
            let at = |name| match payload.get(name)? {
                Value::Time(FileTime(ticks)) => Some(ticks),
                _ => None,
            };
            let ticks = || at("intervalEndTime")?.checked_sub(at("intervalStartTime")?);
            CounterEvent::Interval(session(), ticks().and_then(seconds))
        }
        4..=6 | 16 => {
            CounterEvent::Reading { session: Some(session()), reading: meter(metadata.event_id, payload)? }
        }
        7 => CounterEvent::Begin(session(), instrument(payload)),
        8 => CounterEvent::End(session(), instrument(payload)),
        10 => CounterEvent::Enumerated(session()),
        id => {
            let (notice, session) = notice::decode(id, payload)?;
            CounterEvent::Notice(notice, session)
        }
    })
}

/// Converts intervals of 100 ns. `None` for implausible lengths.
fn seconds(ticks: u64) -> Option<f64> {
    let ms = u32::try_from(ticks / 10_000).ok()?;
    Some(f64::from(ms) / 1_000.0).filter(|seconds| *seconds > 0.0)
}

/// Returns the text of a field. Empty if it does not exist.
fn text(payload: Payload<'_>, name: &str) -> String {
    payload.text(name).unwrap_or_default()
}

/// Parses a number of a meter, which is a text. `None` if it is empty.
fn number(payload: Payload<'_>, name: &str) -> Option<f64> {
    match payload.get(name)? {
        Value::Utf16(text) => text.to_string().trim().parse().ok(),
        value => value.as_f64(),
    }
}

fn split_tags(text: String, sign: &str) -> Tags {
    let mut pairs = tags(&text, sign);
    if pairs.len() > MAX_TAGS {
        pairs.truncate(MAX_TAGS);
        pairs.shrink_to_fit();
    }
    Tags::new(text, pairs)
}

/// Returns what identifies the instrument of a meter's event.
fn instrument(payload: Payload<'_>) -> Counter {
    Counter {
        provider: text(payload, "meterName"),
        version: Some(text(payload, "meterVersion")).filter(|version| !version.is_empty()),
        name: text(payload, "instrumentName"),
        unit: limited(text(payload, "unit")),
        instance: payload.u64("instrumentId").and_then(|id| u32::try_from(id).ok()).unwrap_or(0),
        provider_tags: split_tags(text(payload, "meterTags"), "="),
        counter_tags: split_tags(text(payload, "instrumentTags"), "="),
        ..Counter::default()
    }
}

fn meter(id: u32, payload: Payload<'_>) -> Option<Reading> {
    let kind = match id {
        4 => CounterKind::Rate,
        5 => CounterKind::Gauge,
        6 => CounterKind::Histogram,
        _ => CounterKind::Updown,
    };
    let counter = Counter { kind, tags: split_tags(text(payload, "tags"), "="), ..instrument(payload) };
    let mut values = CounterValues {
        value: number(payload, if id == 5 { "lastValue" } else { "value" }),
        delta: number(payload, "rate"),
        ..CounterValues::default()
    };
    if id == 6 {
        values.count = payload.u64("count");
        values.sum = number(payload, "sum");
        values.quantiles = payload.text("quantiles").map(|text| quantiles(&text)).unwrap_or_default();
    }
    (!counter.name.is_empty()).then_some(Reading { counter, values, utc_ns: None })
}

fn event_counter(provider: &str, payload: Payload<'_>) -> Option<Reading> {
    // The fields are those of the payload, or of its only field.
    let fields = match payload.get("Payload").or_else(|| payload.get("")) {
        Some(Value::Object(object)) => match object.get("Payload") {
            Some(Value::Object(inner)) => inner.fields(),
            _ => object.fields(),
        },
        _ => payload.fields(),
    };
    let get = |name: &str| fields.clone().get(name);
    let text = |name: &str| get(name).and_then(|value| value.as_text()).unwrap_or_default();
    let number = |name: &str| get(name).and_then(|value| value.as_f64());
    let increment = number("Increment");
    let counter = Counter {
        provider: provider.to_owned(),
        name: Some(text("Name")).filter(|name| !name.is_empty())?,
        display_name: Some(limited(text("DisplayName"))).filter(|name| !name.is_empty()),
        unit: limited(text("DisplayUnits")),
        kind: if increment.is_some() { CounterKind::Rate } else { CounterKind::Gauge },
        tags: split_tags(text("Metadata"), ":"),
        ..Counter::default()
    };
    let interval_s = number("IntervalSec").filter(|seconds| *seconds > 0.0);
    let mut values = CounterValues { delta: increment, interval_s, ..CounterValues::default() };
    if increment.is_none() {
        values.count = get("Count").and_then(|count| count.as_u64());
        // For an interval without values, the runtime writes the mean 0 and infinite extremes.
        if values.count != Some(0) {
            (values.value, values.min, values.max) = (number("Mean"), number("Min"), number("Max"));
        }
    }
    Some(Reading { counter, values, utc_ns: None })
}
