//! Definitions and payloads beside those of .NET 10.0.12, in recordings of programs that did the same: equal to the last byte.

use runtap_events::{
    CounterSpec, EventCounters, InstrumentSpec, LogLevel, LogMessage, Logs, MeterSpec, Metrics,
};
use runtap_nettrace::{Metadata, Reader, StreamItem};
use runtap_testkit::{require, shared_data};

use crate::{Target, named};

/// Definitions and payloads of a provider's events.
fn events(bytes: &[u8], provider: &str) -> Vec<(Metadata, Vec<u8>)> {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    let mut events = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let StreamItem::Event(event) = item
            && let Some(metadata) = event.metadata.filter(|metadata| metadata.provider == provider)
        {
            events.push((metadata.clone(), event.payload.to_vec()));
        }
    }
    events
}

/// Each kind of event that both have is defined in the same way, but for the numbers that a process gives out.
fn are_defined_alike(ours: &[(Metadata, Vec<u8>)], theirs: &[(Metadata, Vec<u8>)], by_name: bool) -> usize {
    let mut kinds = std::collections::BTreeSet::new();
    for (our, _) in ours {
        let same =
            theirs.iter().find(|(their, _)| their.name == our.name && their.fields.len() == our.fields.len());
        let Some((their, _)) = same else { continue };
        let mut expected = their.clone();
        expected.id = our.id;
        if by_name {
            expected.event_id = our.event_id;
        }
        assert_eq!(*our, expected);
        kinds.insert(our.name.clone());
    }
    kinds.len()
}

#[test]
fn real_metrics_are_written_as_by_dotnet() {
    let recorded = require!(shared_data("nettrace/net10/meters.nettrace.zst"));
    let theirs = events(&recorded, "System.Diagnostics.Metrics");
    let target = Target::new();
    let metrics = Metrics::new(&target.pipe).unwrap();
    let tags = [("region", "eu".into()), ("tier", 1.into())];
    let meter = metrics.meter(MeterSpec::new("Demo.Shop").version("1.2.3").tags(&tags));
    // In the same order, since instruments are numbered.
    let orders = meter.counter(InstrumentSpec::new("orders").unit("{order}").description("Orders taken"));
    let revenue = meter.counter(InstrumentSpec::new("revenue").unit("EUR"));
    let queue = meter.up_down_counter(InstrumentSpec::new("queue.length").unit("{item}"));
    let latency = meter.histogram(InstrumentSpec::new("latency").unit("ms"));
    meter.observable_gauge(InstrumentSpec::new("temperature").unit("Cel"), |out| {
        out.observe(20.5, &[("room", 1.into())]);
        out.observe(-3.25, &[("room", "cold store".into())]);
    });
    meter.observable_counter("ticks", |out| out.observe(40, &[]));
    meter.observable_up_down_counter("balance", |out| out.observe(96, &[]));
    let arguments = "SessionId=demo-session;Metrics=Demo.Shop,Demo.Odd;RefreshInterval=0.2";
    let mut recording = target.session(&[&format!("System.Diagnostics.Metrics:2:4:{arguments}")]);
    // What the program did in its first second.
    orders.add(12, &[("shop", "a".into())]);
    orders.add(8, &[("shop", "b".into())]);
    revenue.add(5.0, &[]);
    queue.add(8, &[]);
    for _ in 0..4 {
        latency.record(7, &[("route", "/b".into())]);
        (1..=100).for_each(|value| latency.record(value, &[("route", "/a".into())]));
    }
    recording.until(|events| !named(events, "CollectionStop").is_empty());
    let bytes = recording.stop_raw();
    let ours = events(&bytes, "System.Diagnostics.Metrics");
    assert!(are_defined_alike(&ours, &theirs, false) >= 8);

    let values = ours.iter().filter(|(metadata, _)| metadata.name.ends_with("ValuePublished"));
    let values: Vec<_> = values.take(10).collect();
    assert_eq!(values.len(), 10);
    for (metadata, payload) in values {
        let same =
            theirs.iter().any(|(their, other)| their.event_id == metadata.event_id && other == payload);
        assert!(same, "{}: {}", metadata.name, String::from_utf8_lossy(payload));
    }
}

#[test]
fn real_log_messages_are_written_as_by_dotnet() {
    let recorded = require!(shared_data("nettrace/net10/logs.nettrace.zst"));
    let theirs = events(&recorded, "Microsoft-Extensions-Logging");
    let target = Target::new();
    let log = Logs::new(&target.pipe).unwrap().logger("Demo.Orders");
    let recording = target.session(&["Microsoft-Extensions-Logging:f"]);
    {
        let _scope = log.scope("order {OrderId} of {User}", &[("OrderId", &1000), ("User", &"anna")]);
        log.log(&LogMessage::new(LogLevel::Debug, "debug {N}").arguments(&[("N", &0)]));
        log.warning("slow: {Elapsed} ms", &[("Elapsed", &1234)]);
        let message = LogMessage::new(LogLevel::Critical, "unicode {Text}");
        log.log(&message.arguments(&[("Text", &"\u{e9}\u{4e2d}\u{1f600}")]));
    }
    let ours = events(&recording.stop_raw(), "Microsoft-Extensions-Logging");
    assert_eq!(ours.len(), 11);
    assert_eq!(are_defined_alike(&ours, &theirs, true), 5);
    for (metadata, payload) in &ours {
        let same = theirs.iter().any(|(their, other)| their.name == metadata.name && other == payload);
        assert!(same, "{}: {}", metadata.name, String::from_utf8_lossy(payload));
    }
}

#[test]
fn real_event_counters_are_defined_as_by_dotnet() {
    let recorded = require!(shared_data("nettrace/net10/eventcounters.nettrace.zst"));
    let mut theirs = events(&recorded, "Demo-Counters");
    let target = Target::new();
    let counters = EventCounters::new(&target.pipe, "Demo-Counters").unwrap();
    counters.polling(CounterSpec::new("queue"), || 42.0);
    counters.incrementing(CounterSpec::new("count"));
    let mut recording = target.session(&["Demo-Counters:0:4:EventCounterIntervalSec=0.02"]);
    recording.until(|events| events.len() >= 2);
    let ours = events(&recording.stop_raw(), "Demo-Counters");
    for (metadata, _) in &ours {
        let fields = &metadata.fields;
        let same = theirs.iter_mut().find(|(their, _)| their.fields == *fields);
        let (their, _) = same.unwrap_or_else(|| panic!("{metadata:?}"));
        (their.id, their.event_id) = (metadata.id, metadata.event_id);
        assert_eq!(metadata, their);
    }
}
