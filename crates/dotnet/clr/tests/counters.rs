//! The events of counters: their bytes, the sessions they belong to, and damaged ones.

use proptest::prelude::*;
use runtap_clr::counters::{
    CounterNotice, CounterStream, CounterUpdate, METRICS, MetricsSession, MetricsSettings,
};
use runtap_model::counters::{CounterKind, Reading};
use runtap_nettrace::{EventToWrite, Field, FieldType, Metadata, Reader, TraceHeader, Writer};

const SECOND: u64 = 1_000_000_000;

/// Writes a stream of events about counters, one second apart.
struct Stream {
    writer: Writer,
    time: u64,
}

impl Stream {
    fn new() -> Self {
        Self { writer: Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000_000_000)), time: 0 }
    }

    fn define(&mut self, provider: &str, id: u32, name: &str, fields: Vec<Field>) -> u32 {
        let mut metadata = Metadata::new(provider, id, name);
        metadata.fields = fields;
        self.writer.define_event(&metadata).unwrap()
    }

    fn event(&mut self, metadata_id: u32, payload: &[u8]) {
        self.time += SECOND;
        let event = EventToWrite {
            metadata_id,
            thread_id: 1,
            capture_thread_id: 1,
            timestamp: self.time,
            payload,
            ..Default::default()
        };
        self.writer.event(&event).unwrap();
    }

    /// Writes an event of the metrics source whose fields are texts, followed by other fields with these bytes.
    fn metrics(&mut self, id: u32, fields: &[(&str, &str)], more: &[(&str, FieldType)], bytes: &[u8]) {
        let texts = fields.iter().map(|(name, _)| Field::new(*name, FieldType::String));
        let more = more.iter().map(|(name, kind)| Field::new(*name, kind.clone()));
        let id = self.define(METRICS, id, "", texts.chain(more).collect());
        let payload: Vec<u8> = fields.iter().flat_map(|(_, text)| utf16z(text)).collect();
        self.event(id, &[&payload, bytes].concat());
    }

    fn updates(self) -> Vec<CounterUpdate> {
        updates(&self.writer.finish())
    }
}

fn utf16z(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn own() -> MetricsSession {
    MetricsSession { id: "S".to_owned(), client: "me".to_owned() }
}

fn updates(bytes: &[u8]) -> Vec<CounterUpdate> {
    let (mut reader, mut stream, mut updates) = (Reader::new(), CounterStream::new(own(), 1.0), Vec::new());
    reader.feed(bytes);
    reader.finish();
    loop {
        match reader.next() {
            Ok(Some(item)) => updates.extend(stream.item(&item)),
            Ok(None) => return updates,
            Err(_) => {}
        }
    }
}

fn readings(updates: Vec<CounterUpdate>) -> Vec<Reading> {
    updates
        .into_iter()
        .filter_map(|update| match update {
            CounterUpdate::Reading(reading) => Some(reading),
            _ => None,
        })
        .collect()
}

/// The fields of all readings of meters.
fn series<'a>(session: &'a str, tags: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("sessionId", session),
        ("meterName", "Shop"),
        ("meterVersion", "1.2"),
        ("instrumentName", "orders"),
        ("unit", "{order}"),
        ("tags", tags),
    ]
}

fn instrument<'a>(session: &'a str, meter: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("sessionId", session),
        ("meterName", meter),
        ("meterVersion", "1.2"),
        ("instrumentName", "orders"),
        ("instrumentType", "Counter`1"),
        ("unit", "{order}"),
        ("description", ""),
        ("instrumentTags", "currency=EUR"),
        ("meterTags", "region=eu,tier=1"),
        ("meterScopeHash", ""),
    ]
}

#[test]
fn meters_have_the_tags_and_the_interval_of_other_events() {
    let mut stream = Stream::new();
    let id = [("instrumentId", FieldType::I32)];
    let seven = 7_i32.to_le_bytes();
    stream.metrics(7, &instrument("S", "Shop"), &id, &seven);
    let times = [("intervalStartTime", FieldType::DateTime), ("intervalEndTime", FieldType::DateTime)];
    let interval = [10_000_000_u64.to_le_bytes(), 25_000_000_u64.to_le_bytes()].concat();
    stream.metrics(2, &[("sessionId", "S")], &times, &interval);
    let rate = [series("S", "shop=a,note=x,y=1"), vec![("rate", "3"), ("value", "63.5")]].concat();
    stream.metrics(4, &rate, &id, &seven);
    let all = readings(stream.updates());
    let [reading] = &all[..] else { panic!("{all:?}") };
    let counter = &reading.counter;
    assert_eq!(
        (&*counter.provider, counter.version.as_deref(), &*counter.name, &*counter.unit, counter.kind),
        ("Shop", Some("1.2"), "orders", "{order}", CounterKind::Rate)
    );
    let tags: Vec<_> = counter.all_tags().map(|(name, value)| format!("{name}:{value}")).collect();
    assert_eq!(tags, ["region:eu", "tier:1", "currency:EUR", "shop:a", "note:x", "y:1"]);
    let values = &reading.values;
    assert_eq!((values.value, values.delta, values.interval_s), (Some(63.5), Some(3.0), Some(1.5)));
    assert_eq!(reading.utc_ns, Some(1_700_000_003_000_000_000));
}

#[test]
fn missing_numbers_are_not_zero() {
    let mut stream = Stream::new();
    stream.metrics(5, &[series("S", ""), vec![("lastValue", "")]].concat(), &[], &[]);
    stream.metrics(5, &[series("S", ""), vec![("lastValue", "NaN")]].concat(), &[], &[]);
    stream.metrics(5, &[series("S", ""), vec![("lastValue", "-Infinity")]].concat(), &[], &[]);
    stream.metrics(16, &[series("S", ""), vec![("rate", ""), ("value", "0")]].concat(), &[], &[]);
    let numbers = [("count", FieldType::I32), ("sum", FieldType::F64)];
    let none = [&0_i32.to_le_bytes()[..], &0_f64.to_le_bytes()].concat();
    stream.metrics(6, &[series("S", ""), vec![("quantiles", "")]].concat(), &numbers, &none);
    let some = [&3_i32.to_le_bytes()[..], &6_f64.to_le_bytes()].concat();
    let quantiles = vec![("quantiles", "0.5=2;0.95=3;0.99=3")];
    stream.metrics(6, &[series("S", ""), quantiles].concat(), &numbers, &some);
    let all = readings(stream.updates());
    let value = |index: usize| all[index].values.value;
    assert_eq!((value(0), value(2)), (None, Some(f64::NEG_INFINITY)));
    assert!(value(1).is_some_and(f64::is_nan));
    assert_eq!((all[3].values.delta, value(3), all[3].counter.kind), (None, Some(0.0), CounterKind::Updown));
    assert_eq!(
        (all[4].values.count, all[4].values.sum, all[4].values.quantiles.len()),
        (Some(0), Some(0.0), 0)
    );
    let quantiles: Vec<_> = all[5].values.quantiles.iter().map(|(share, value)| (&**share, *value)).collect();
    assert_eq!(quantiles, [("0.5", 2.0), ("0.95", 3.0), ("0.99", 3.0)]);
    assert_eq!((all[5].values.count, all[5].values.sum), (Some(3), Some(6.0)));
}

/// .NET 8 has no ids of instruments, so two of them may report one series.
#[test]
fn indistinguishable_instruments_have_only_sums() {
    let mut stream = Stream::new();
    let times = [("intervalStartTime", FieldType::DateTime), ("intervalEndTime", FieldType::DateTime)];
    let interval = [10_000_000_u64.to_le_bytes(), 20_000_000_u64.to_le_bytes()].concat();
    for (one, other) in [("1", "30"), ("2", "60")] {
        stream.metrics(2, &[("sessionId", "S")], &times, &interval);
        for (value, rate) in [(one, "1"), (other, "30")] {
            let rate = [series("S", "shop=a"), vec![("rate", rate), ("value", value)]].concat();
            stream.metrics(4, &rate, &[], &[]);
        }
        let single = [series("S", "shop=b"), vec![("rate", "1"), ("value", one)]].concat();
        stream.metrics(4, &single, &[], &[]);
        stream.metrics(3, &[("sessionId", "S")], &times, &interval);
    }
    // With ids, each instrument is a series.
    let id = [("instrumentId", FieldType::I32)];
    for number in [1_i32, 2] {
        let rate = [series("S", "shop=a"), vec![("rate", "1"), ("value", "5")]].concat();
        stream.metrics(4, &rate, &id, &number.to_le_bytes());
    }
    let all: Vec<_> = readings(stream.updates())
        .into_iter()
        .map(|it| (it.counter.instruments, it.values.value, it.values.delta))
        .collect();
    assert_eq!(
        all,
        [
            (None, Some(1.0), Some(1.0)),
            (Some(2), None, Some(30.0)),
            (None, Some(1.0), Some(1.0)),
            (Some(2), None, Some(1.0)),
            (Some(2), None, Some(30.0)),
            (None, Some(2.0), Some(1.0)),
            (None, Some(5.0), Some(1.0)),
            (None, Some(5.0), Some(1.0)),
        ]
    );
}

#[test]
fn only_the_own_session_counts() {
    let rate = |session| [series(session, ""), vec![("rate", "1"), ("value", "1")]].concat();
    let other_settings = |client| {
        vec![
            ("clientId", client),
            ("expectedMaxHistograms", "20"),
            ("actualMaxHistograms", "10"),
            ("expectedMaxTimeSeries", "1000"),
            ("actualMaxTimeSeries", "1000"),
            ("expectedRefreshInterval", "5"),
            ("actualRefreshInterval", "1"),
        ]
    };
    let mut stream = Stream::new();
    stream.metrics(4, &rate("other"), &[], &[]);
    // Other tools were rejected.
    stream.metrics(15, &[("runningSessionId", "S")], &[], &[]);
    stream.metrics(17, &other_settings("another"), &[], &[]);
    stream.metrics(12, &[("sessionId", "other")], &[], &[]);
    stream.metrics(4, &rate("S"), &[], &[]);
    stream.metrics(13, &[("sessionId", "S")], &[], &[]);
    stream.metrics(14, &[("sessionId", "S"), ("errorMessage", "gauge failed")], &[], &[]);
    // From here on, the session is rejected, but the shared one sends events with its id.
    stream.metrics(17, &other_settings("me"), &[], &[]);
    stream.metrics(4, &rate("S"), &[], &[]);
    let updates = stream.updates();
    let notices: Vec<_> = updates
        .iter()
        .filter_map(|update| match update {
            CounterUpdate::Notice(notice) => Some(notice.clone()),
            _ => None,
        })
        .collect();
    let [
        CounterNotice::HistogramLimit,
        CounterNotice::CallbackError(error),
        CounterNotice::OtherSettings { running, .. },
    ] = &notices[..]
    else {
        panic!("{notices:?}")
    };
    let settings = MetricsSettings { interval_s: 5.0, max_series: 1_000, max_histograms: 20 };
    assert_eq!((error.as_str(), *running), ("gauge failed", Some(settings)));
    assert_eq!(readings(updates).len(), 1);
    let mut stream = Stream::new();
    stream.metrics(15, &[("runningSessionId", "theirs")], &[], &[]);
    assert_eq!(stream.updates(), [CounterUpdate::Notice(CounterNotice::OtherSession)]);
}

/// A message suggests a command with the settings.
#[test]
fn settings_are_numbers() {
    for (interval, histograms, is_valid) in [
        ("0.5", "20", true),
        ("1; rm -rf ~", "20", false),
        ("inf", "20", false),
        ("1", "$(id)", false),
        ("1", "", false),
    ] {
        let mut stream = Stream::new();
        let fields = [
            ("clientId", "me"),
            ("expectedMaxHistograms", histograms),
            ("expectedMaxTimeSeries", "1000"),
            ("expectedRefreshInterval", interval),
        ];
        stream.metrics(17, &fields, &[], &[]);
        let updates = stream.updates();
        let [CounterUpdate::Notice(CounterNotice::OtherSettings { running, .. })] = &updates[..] else {
            panic!("{updates:?}")
        };
        assert_eq!(running.is_some(), is_valid, "{interval} {histograms}");
    }
}

/// The fields of an event counter, in the order of the runtime.
fn event_counter(fields: Vec<Field>) -> Vec<Field> {
    vec![Field::new("", FieldType::Object(vec![Field::new("Payload", FieldType::Object(fields))]))]
}

fn mean_fields() -> Vec<Field> {
    use FieldType::{F32, F64, I32, String};
    [
        ("Name", String),
        ("DisplayName", String),
        ("Mean", F64),
        ("StandardDeviation", F64),
        ("Count", I32),
        ("Min", F64),
        ("Max", F64),
        ("IntervalSec", F32),
        ("Series", String),
        ("CounterType", String),
        ("Metadata", String),
        ("DisplayUnits", String),
    ]
    .map(|(name, kind)| Field::new(name, kind))
    .to_vec()
}

fn mean(name: &str, mean: f64, count: i32, min: f64, max: f64) -> Vec<u8> {
    [
        utf16z(name),
        utf16z("Request Size"),
        mean.to_le_bytes().to_vec(),
        0_f64.to_le_bytes().to_vec(),
        count.to_le_bytes().to_vec(),
        min.to_le_bytes().to_vec(),
        max.to_le_bytes().to_vec(),
        2_f32.to_le_bytes().to_vec(),
        utf16z("Interval=2000"),
        utf16z("Mean"),
        utf16z("owner:demo,kind:fixed"),
        utf16z("B"),
    ]
    .concat()
}

#[test]
fn event_counters_are_gauges_or_rates() {
    let mut stream = Stream::new();
    let id = stream.define("Demo-Counters", 5, "EventCounters", event_counter(mean_fields()));
    stream.event(id, &mean("req-size", 20.0, 3, 10.0, 30.0));
    stream.event(id, &mean("req-size", 0.0, 0, f64::INFINITY, f64::NEG_INFINITY));
    let all = readings(stream.updates());
    let numbers = |index: usize| {
        let values = &all[index].values;
        (values.value, values.count, values.min, values.max)
    };
    assert_eq!(numbers(0), (Some(20.0), Some(3), Some(10.0), Some(30.0)));
    // For an interval without values, the runtime writes 0 and infinite extremes.
    assert_eq!(numbers(1), (None, Some(0), None, None));
    let counter = &all[0].counter;
    assert_eq!(
        (&*counter.provider, &*counter.name, counter.display_name.as_deref(), &*counter.unit, counter.kind),
        ("Demo-Counters", "req-size", Some("Request Size"), "B", CounterKind::Gauge)
    );
    assert_eq!(counter.all_tags().collect::<Vec<_>>(), [("owner", "demo"), ("kind", "fixed")]);
    assert_eq!(all[0].values.interval_s, Some(2.0));
}

#[test]
fn a_meter_replaces_the_event_counters_of_its_name() {
    let mut stream = Stream::new();
    let shop = stream.define("Shop", 5, "EventCounters", event_counter(mean_fields()));
    let other = stream.define("Other", 5, "EventCounters", event_counter(mean_fields()));
    stream.event(shop, &mean("a", 1.0, 1, 1.0, 1.0));
    stream.metrics(7, &instrument("theirs", "Other"), &[], &[]);
    stream.metrics(7, &instrument("S", "Shop"), &[], &[]);
    stream.event(shop, &mean("a", 1.0, 1, 1.0, 1.0));
    stream.event(other, &mean("a", 1.0, 1, 1.0, 1.0));
    let all = readings(stream.updates());
    let providers: Vec<_> = all.iter().map(|reading| &*reading.counter.provider).collect();
    assert_eq!(providers, ["Shop", "Other"]);
}

/// Returns a stream with an event of each kind.
fn every_kind() -> Vec<u8> {
    let mut stream = Stream::new();
    stream.metrics(7, &instrument("S", "Shop"), &[("instrumentId", FieldType::I32)], &[1, 0, 0, 0]);
    stream.metrics(4, &[series("S", "a=b"), vec![("rate", "1"), ("value", "2")]].concat(), &[], &[]);
    stream.metrics(5, &[series("S", "a=b"), vec![("lastValue", "1e3")]].concat(), &[], &[]);
    stream.metrics(6, &[series("S", "a=b"), vec![("quantiles", "0.5=1")]].concat(), &[], &[]);
    stream.metrics(8, &instrument("S", "Shop"), &[], &[]);
    let id = stream.define("Other", 5, "EventCounters", event_counter(mean_fields()));
    stream.event(id, &mean("a", 1.0, 1, 1.0, 1.0));
    stream.writer.finish()
}

proptest! {
    /// Damaged streams cause no panic, and no reading without a name.
    #[test]
    fn damage_is_harmless(at in 0_usize..4_000, with in any::<u8>(), cut in 0_usize..4_000) {
        let mut bytes = every_kind();
        let length = bytes.len();
        bytes[at % length] = with;
        bytes.truncate(length - cut % length);
        for reading in readings(updates(&bytes)) {
            prop_assert!(!reading.counter.name.is_empty());
        }
    }

    /// Any text of tags and quantiles is read.
    #[test]
    fn any_text_is_read(tags in any::<String>(), quantiles in any::<String>()) {
        let (tags, quantiles) = (tags.replace('\0', ""), quantiles.replace('\0', ""));
        let mut stream = Stream::new();
        stream.metrics(6, &[series("S", &tags), vec![("quantiles", &*quantiles)]].concat(), &[], &[]);
        let all = readings(stream.updates());
        prop_assert_eq!(all.len(), 1);
        prop_assert_eq!(all[0].counter.tags.text(), &tags);
    }
}
