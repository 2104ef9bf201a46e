//! Metrics: collections, series, limits, and sessions beside each other.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use runtap_diag::Buffering;
use runtap_diag_server::Limits;
use runtap_events::{InstrumentSpec, MeterSpec, Metrics};
use serde_json::{Value, json};

use crate::{Recording, Target, config, decoded, named};

const SHARED: &str = "SessionId=SHARED;RefreshInterval=0.1;MaxTimeSeries=100;MaxHistograms=10";

fn session(target: &Target, metrics: &str, settings: &str) -> Recording {
    target.session(&[&format!("System.Diagnostics.Metrics:7:4:Metrics={metrics};ClientId=me;{settings}")])
}

/// Payloads of whole collections of one instrument, in their order.
fn values(events: &[Value], instrument: &str) -> Vec<Value> {
    let published = events.iter().filter(|event| event["name"].as_str().unwrap().ends_with("ValuePublished"));
    published.map(|event| event["payload"].clone()).filter(|it| it["instrumentName"] == instrument).collect()
}

fn collections(events: &[Value]) -> usize {
    named(events, "CollectionStop").len()
}

#[test]
fn every_kind_of_instrument_is_reported() {
    let target = Target::new();
    let metrics = Metrics::new(&target.pipe).unwrap();
    let spec =
        MeterSpec::new("Test.Shop").version("1.2.3").tags(&[("region", "eu".into()), ("tier", 1.into())]);
    let meter = metrics.meter(spec);
    let orders = meter.counter(InstrumentSpec::new("orders").unit("{order}").description("Orders taken"));
    let queue = meter.up_down_counter("queue");
    let price = meter.gauge("price");
    let latency = meter.histogram(InstrumentSpec::new("latency").unit("ms").tags(&[("op", "get".into())]));
    meter.observable_counter("ticks", |out| out.observe(1000, &[]));
    meter.observable_up_down_counter("balance", |out| out.observe(-4, &[]));
    meter.observable_gauge("temperature", |out| {
        out.observe(20.5, &[("room", 1.into())]);
        out.observe(-3.25, &[("room", "cold store".into())]);
    });
    meter.observable_gauge("broken", |_| panic!("gauge failed"));
    let shop_a = orders.with(&[("shop", "a".into())]);
    orders.add(1_000_000, &[]);
    shop_a.add(1_000_000);

    let mut recording = session(&target, "Test.Shop", SHARED);
    shop_a.add(3);
    orders.add(2, &[("shop", "b".into()), ("big", true.into())]);
    orders.add(1.5, &[("big", true.into()), ("shop", "b".into())]);
    queue.add(5, &[]);
    queue.add(-3, &[]);
    price.record(9.5, &[]);
    (1..=100).for_each(|value| latency.record(value, &[("route", "/a".into())]));
    let events = recording.until(|events| collections(events) >= 2);
    recording.stop();

    let first = |instrument| values(&events, instrument)[0].clone();
    let shop_a = first("orders");
    assert_eq!(
        (&shop_a["tags"], &shop_a["rate"], &shop_a["value"]),
        (&json!("shop=a"), &json!("3"), &json!("3"))
    );
    assert_eq!((&shop_a["meterVersion"], &shop_a["unit"]), (&json!("1.2.3"), &json!("{order}")));
    let shop_b = &values(&events, "orders")[1];
    assert_eq!((&shop_b["tags"], &shop_b["value"]), (&json!("big=True,shop=b"), &json!("3.5")));
    assert_eq!(first("queue")["value"], "2");
    assert_eq!(first("price")["lastValue"], "9.5");
    let latency = first("latency");
    assert_eq!(latency["quantiles"], "0.5=51;0.95=96;0.99=100");
    assert_eq!((&latency["count"], &latency["sum"]), (&json!(100), &json!(5050.0)));
    let later = &values(&events, "latency")[1];
    assert_eq!((&later["quantiles"], &later["count"]), (&json!(""), &json!(0)));
    let ticks = values(&events, "ticks");
    assert_eq!((&ticks[0]["rate"], &ticks[0]["value"]), (&json!(""), &json!("1000")));
    assert_eq!((&ticks[1]["rate"], &ticks[1]["value"]), (&json!("0"), &json!("1000")));
    assert_eq!(first("balance")["value"], "-4");
    let rooms: Vec<_> =
        values(&events, "temperature")[..2].iter().map(|it| it["lastValue"].clone()).collect();
    assert_eq!(rooms, ["20.5", "-3.25"]);
    let error = &named(&events, "ObservableInstrumentCallbackError")[0]["payload"]["errorMessage"];
    assert!(error.as_str().unwrap().contains("gauge failed"));

    let begun = named(&events, "BeginInstrumentReporting");
    assert_eq!(begun.len(), 8);
    let of_latency = &begun.iter().find(|event| event["payload"]["instrumentName"] == "latency").unwrap();
    assert_eq!(of_latency["version"], 3);
    let payload = &of_latency["payload"];
    assert_eq!(
        (&payload["instrumentType"], &payload["instrumentTags"]),
        (&json!("Histogram`1"), &json!("op=get"))
    );
    assert_eq!(payload["meterTags"], "region=eu,tier=1");
    let order: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    let at = |name| order.iter().position(|other| *other == name).unwrap();
    assert!(at("Version") < at("BeginInstrumentReporting"));
    assert!(at("InitialInstrumentEnumerationComplete") < at("CollectionStart"));
    assert!(at("CollectionStart") < at("CounterRateValuePublished"));
}

#[test]
fn sums_are_exact_and_begin_with_each_session() {
    let target = Target::new();
    let metrics = Metrics::new(&target.pipe).unwrap();
    let meter = metrics.meter(MeterSpec::new("Test.Sums"));
    let counter = meter.counter("count");
    for _ in 0..2 {
        let mut recording = session(&target, "Test.Sums\\count", SHARED);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|n| counter.add(1, &[("n", (n % 10).into())])));
            }
        });
        let number = |it: &Value, member: &str| it[member].as_str().unwrap().parse::<f64>().unwrap();
        // Of the ten sets of tags, the last values that came; a slow machine collects while it counts.
        let last = |all: &[Value]| all.iter().rev().take(10).map(|it| number(it, "value")).sum::<f64>();
        let events = recording.until(|events| {
            assert!(last(&values(events, "count")) <= 4000.0);
            collections(events) >= 2 && last(&values(events, "count")) == 4000.0
        });
        recording.stop();
        let rates: f64 = values(&events, "count").iter().map(|it| number(it, "rate")).sum();
        assert_eq!(rates, 4000.0);
    }
}

#[test]
fn limits_are_kept_and_told_once() {
    let target = Target::new();
    let metrics = Metrics::new(&target.pipe).unwrap();
    let meter = metrics.meter(MeterSpec::new("Test.Limits"));
    let (counter, histogram) = (meter.counter("many"), meter.histogram("wide"));
    let mut recording =
        session(&target, "Test.Limits", "SessionId=x;RefreshInterval=0.1;MaxTimeSeries=5;MaxHistograms=1");
    for n in 0..3 {
        histogram.record(n, &[("n", n.into())]);
    }
    for n in 0..10 {
        counter.add(1, &[("n", n.into())]);
        counter.add(1, &[("n", n.into())]);
    }
    // A slow machine may be in its second collection before all was recorded, or read.
    let series = |events: &[Value], instrument: &str| {
        let all = values(events, instrument);
        all.into_iter().map(|it| it["tags"].to_string()).collect::<BTreeSet<_>>()
    };
    let counted =
        |events: &[Value]| values(events, "many").iter().filter(|it| it["value"] == "2").count() >= 4;
    let events = recording.until(|events| counted(events) && collections(events) >= 1);
    recording.stop();
    assert_eq!((series(&events, "wide").len(), series(&events, "many").len()), (1, 4));
    assert_eq!(named(&events, "HistogramLimitReached").len(), 1);
    assert_eq!(named(&events, "TimeSeriesLimitReached").len(), 1);
}

#[test]
fn sessions_share_or_are_told_that_they_cannot() {
    let target = Target::new();
    let metrics = Metrics::new(&target.pipe).unwrap();
    let one = metrics.meter(MeterSpec::new("Test.One")).counter("one");
    let two = metrics.meter(MeterSpec::new("Test.Two")).counter("two");
    let first = session(&target, "Test.One", SHARED);
    assert!(one.is_enabled() && !two.is_enabled());
    let mut second = session(&target, "Test.Two", SHARED);
    assert!(two.is_enabled());
    one.add(1, &[]);
    two.add(2, &[]);
    let mut other = session(&target, "Test.Two", "SessionId=SHARED;RefreshInterval=2");
    let told = other.until(|events| !named(events, "MultipleSessionsConfiguredIncorrectlyError").is_empty());
    let told = &named(&told, "MultipleSessionsConfiguredIncorrectlyError")[0]["payload"];
    assert_eq!((&told["clientId"], &told["expectedMaxHistograms"]), (&json!("me"), &json!("10")));
    assert_eq!(
        (&told["expectedRefreshInterval"], &told["actualRefreshInterval"]),
        (&json!("0.1"), &json!("2"))
    );
    let mut own = session(&target, "Test.Two", "SessionId=own");
    let told = own.until(|events| !named(events, "MultipleSessionsNotSupportedError").is_empty());
    assert_eq!(named(&told, "MultipleSessionsNotSupportedError")[0]["payload"]["runningSessionId"], "SHARED");
    other.stop();
    own.stop();
    // The collection goes on for the second when the first has gone.
    first.stop();
    assert!(one.is_enabled() || two.is_enabled());
    let events = second.until(|events| !values(events, "two").is_empty());
    assert_eq!(values(&events, "two")[0]["value"], "2");
    second.stop();
    assert!(!one.is_enabled() && !two.is_enabled());
}

#[test]
fn instruments_come_and_go_while_a_session_runs() {
    let target = Target::new();
    let metrics = Metrics::new(&target.pipe).unwrap();
    let mut recording = session(&target, "Test.Late", SHARED);
    let meter = metrics.meter(MeterSpec::new("Test.Late"));
    let counter = meter.counter("late");
    counter.add(1, &[]);
    recording.until(|events| !values(events, "late").is_empty());
    meter.dispose();
    assert!(!counter.is_enabled());
    let events = recording.stop();
    assert_eq!(named(&events, "EndInstrumentReporting").len(), 1);
}

/// A thread that tells a session of new instruments waits for its reader; the server goes on.
#[test]
fn who_waits_for_a_reader_does_not_hold_up_the_server() {
    const PUBLISHING: &str = "System.Diagnostics.Metrics:4:4:SessionId=x";
    let mut limits = Limits::default();
    limits.blocked_writer = Duration::from_hours(1);
    let target = Target::with(limits);
    let metrics = Metrics::new(&target.pipe).unwrap();
    let mut blocking = config(&[PUBLISHING]);
    (blocking.buffering, blocking.buffer_mb) = (Buffering::Block, 1);
    let unread = target.session_of(&blocking);
    let (made, enough) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            let meter = metrics.meter(MeterSpec::new("Test.Many"));
            let description = "x".repeat(10_000);
            while !enough.load(Ordering::Relaxed) {
                let number = made.fetch_add(1, Ordering::Relaxed);
                meter.counter(InstrumentSpec::new(format!("{number}")).description(&*description));
            }
        });
        // It waits when nothing is made for as long as many sessions come and go.
        let (mut before, mut rounds) = (0, 0);
        while rounds < 20 {
            target.session(&["System.Diagnostics.Metrics:1:4"]).stop();
            let now = made.load(Ordering::Relaxed);
            rounds = if now > 0 && now == before { rounds + 1 } else { 0 };
            before = now;
        }
        enough.store(true, Ordering::Relaxed);
        let id = unread.session.id();
        let reader = scope.spawn(|| unread.rest());
        maker.join().unwrap();
        target.client().stop_session(id).unwrap();
        let events = decoded(&reader.join().unwrap(), true);
        let numbers: Vec<_> = named(&events, "InstrumentPublished")
            .iter()
            .map(|event| event["payload"]["instrumentName"].as_str().unwrap().to_owned())
            .collect();
        let expected: Vec<_> = (0..made.load(Ordering::Relaxed)).map(|number| number.to_string()).collect();
        assert_eq!(numbers, expected);
    });
}
