//! Tests of the formats of counters.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runtap_model::counters::{Counter, CounterKind, CounterValues, Reading, Tags};
use runtap_model::text::{Clean, acts_unseen};

use super::*;

const TIME: i64 = 1_793_266_957_123_456_789;

fn pairs(tags: &[(&str, &str)]) -> Tags {
    let text: Vec<String> = tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let pairs = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Tags::new(text.join(","), pairs)
}

fn counter(name: &str, kind: CounterKind, unit: &str, tags: &[(&str, &str)]) -> Counter {
    Counter {
        provider: "Demo.Shop".to_owned(),
        version: Some("1.2".to_owned()),
        name: name.to_owned(),
        unit: unit.to_owned(),
        kind,
        provider_tags: pairs(&[("region", "eu")]),
        tags: pairs(tags),
        ..Counter::default()
    }
}

fn reading(counter: Counter, values: CounterValues) -> Reading {
    let values = CounterValues { interval_s: Some(1.5), ..values };
    Reading { counter, values, utc_ns: Some(TIME) }
}

fn readings() -> Vec<Reading> {
    let value = |value| CounterValues { value, ..CounterValues::default() };
    let quantiles = vec![("0.5".to_owned(), 51.0), ("0.999".to_owned(), f64::INFINITY)];
    vec![
        reading(
            counter("orders", CounterKind::Rate, "{order}", &[("shop", "a,\"b\""), ("k=", "\u{202e}\n")]),
            CounterValues { value: Some(63.0), delta: Some(3.0), ..CounterValues::default() },
        ),
        reading(
            counter("latency", CounterKind::Histogram, "ms", &[("quantile", "x")]),
            CounterValues { count: Some(10), sum: Some(5.5), quantiles, ..CounterValues::default() },
        ),
        reading(counter("queue", CounterKind::Updown, "", &[]), value(Some(-2.0))),
        reading(counter("load", CounterKind::Gauge, "%", &[("is", "nan")]), value(Some(f64::NAN))),
        reading(counter("load", CounterKind::Gauge, "%", &[("is", "inf")]), value(Some(f64::NEG_INFINITY))),
        reading(counter("load", CounterKind::Gauge, "%", &[("is", "missing")]), value(None)),
    ]
}

/// Returns the file with these readings, written in one or in several pieces.
fn file(format: CounterFormat, readings: Vec<Reading>) -> String {
    let (mut writer, mut board, mut out) =
        (CounterWriter::new(format, 1.5), CounterBoard::default(), Vec::new());
    writer.head("dot\"net", TIME, &mut out).unwrap();
    for reading in readings {
        writer.row(board.add(7, reading).unwrap(), &mut out).unwrap();
    }
    writer.snapshot(&board, &mut out);
    out.extend_from_slice(writer.tail().as_bytes());
    String::from_utf8(out).unwrap()
}

#[test]
fn csv_has_the_columns_of_dotnet_counters() {
    insta::assert_snapshot!(file(CounterFormat::Csv, readings()), @r#"
    Timestamp,Provider,Counter Name,Counter Type,Mean/Increment
    10/29/2026 09:42:37,Demo.Shop,"orders ({order} / 1.5 sec)[region=eu;shop=a,""b"";k==\u{202e}\n]",Rate,3
    10/29/2026 09:42:37,Demo.Shop,"orders ({order})[region=eu;shop=a,""b"";k==\u{202e}\n]",Total,63
    10/29/2026 09:42:37,Demo.Shop,latency (ms)[region=eu;quantile=x;Percentile=50],Metric,51
    10/29/2026 09:42:37,Demo.Shop,latency (ms)[region=eu;quantile=x;Percentile=99.9],Metric,Infinity
    10/29/2026 09:42:37,Demo.Shop,latency.count[region=eu;quantile=x],Total,10
    10/29/2026 09:42:37,Demo.Shop,latency.sum (ms)[region=eu;quantile=x],Total,5.5
    10/29/2026 09:42:37,Demo.Shop,queue[region=eu],Metric,-2
    10/29/2026 09:42:37,Demo.Shop,load (%)[region=eu;is=nan],Metric,NaN
    10/29/2026 09:42:37,Demo.Shop,load (%)[region=eu;is=inf],Metric,-Infinity
    10/29/2026 09:42:37,Demo.Shop,load (%)[region=eu;is=missing],Metric,
    "#);
}

#[test]
fn json_has_the_members_of_dotnet_counters() {
    let text = file(CounterFormat::Json, readings());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["TargetProcess"], "dot\"net");
    assert_eq!(document["StartTime"], "2026-10-29 09:42:37Z");
    let events = document["Events"].as_array().unwrap();
    let row = |event: &serde_json::Value| {
        let member = |name: &str| Clean(&event[name].to_string()).to_string();
        ["name", "tags", "counterType", "value"].map(member).join(" ")
    };
    let rows: Vec<String> = events.iter().map(row).collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    "orders ({order} / 1.5 sec)" "shop=a,\"b\",k==\u{202e}\n" "Rate" 3
    "orders ({order})" "shop=a,\"b\",k==\u{202e}\n" "Total" 63
    "latency (ms)" "quantile=x,Percentile=50" "Metric" 51
    "latency (ms)" "quantile=x,Percentile=99.9" "Metric" "Infinity"
    "latency.count" "quantile=x" "Total" 10
    "latency.sum (ms)" "quantile=x" "Total" 5.5
    "queue" "" "Metric" -2
    "load (%)" "is=nan" "Metric" "NaN"
    "load (%)" "is=inf" "Metric" "-Infinity"
    "load (%)" "is=missing" "Metric" null
    "#);
    assert_eq!(
        (&events[0]["timestamp"], &events[0]["provider"], &events[0]["meterTags"]),
        (&"2026-10-29 09:42:37Z".into(), &"Demo.Shop".into(), &"region=eu".into())
    );
    assert_eq!(events[0]["instrumentTags"], "");
    // Without readings, the document is valid too.
    let empty: serde_json::Value = serde_json::from_str(&file(CounterFormat::Json, Vec::new())).unwrap();
    assert_eq!(empty["Events"], serde_json::json!([]));
}

#[test]
fn several_processes_are_tags_in_the_formats_of_dotnet_counters() {
    let mut board = CounterBoard::default();
    for format in [CounterFormat::Csv, CounterFormat::Json] {
        let mut writer = CounterWriter::new(format, 1.0).with_process_ids(true);
        let mut out = Vec::new();
        for (process, tags) in [(7, &[][..]), (8, &[("shop", "a")])] {
            let reading = reading(counter("queue", CounterKind::Gauge, "", tags), CounterValues::default());
            writer.row(board.add(process, reading).unwrap(), &mut out).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        let expected = match format {
            CounterFormat::Csv => ["queue[pid=7;region=eu]", "queue[pid=8;region=eu;shop=a]"],
            _ => ["\"tags\": \"pid=7\"", "\"tags\": \"pid=8,shop=a\""],
        };
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn lines_have_all_numbers() {
    insta::assert_snapshot!(file(CounterFormat::Jsonl, readings()), @r#"
    {"type":"counter","time":"2026-10-29T09:42:37.123456789Z","pid":7,"provider":"Demo.Shop","version":"1.2","name":"orders","display_name":null,"unit":"{order}","kind":"rate","tags":{"shop":"a,\"b\"","k=":"\u202e\n"},"tags_text":"shop=a,\"b\",k==\u202e\n","meter_tags":{"region":"eu"},"instrument_tags":{},"value":63,"delta":3,"interval_s":1.5,"sum":null,"min":null,"max":null,"total_sum":null,"count":null,"total_count":null,"quantiles":null}
    {"type":"counter","time":"2026-10-29T09:42:37.123456789Z","pid":7,"provider":"Demo.Shop","version":"1.2","name":"latency","display_name":null,"unit":"ms","kind":"histogram","tags":{"quantile":"x"},"tags_text":"quantile=x","meter_tags":{"region":"eu"},"instrument_tags":{},"value":null,"delta":null,"interval_s":1.5,"sum":5.5,"min":null,"max":null,"total_sum":5.5,"count":10,"total_count":10,"quantiles":{"0.5":51,"0.999":"inf"}}
    {"type":"counter","time":"2026-10-29T09:42:37.123456789Z","pid":7,"provider":"Demo.Shop","version":"1.2","name":"queue","display_name":null,"unit":"","kind":"updown","tags":{},"tags_text":"","meter_tags":{"region":"eu"},"instrument_tags":{},"value":-2,"delta":null,"interval_s":1.5,"sum":null,"min":null,"max":null,"total_sum":null,"count":null,"total_count":null,"quantiles":null}
    {"type":"counter","time":"2026-10-29T09:42:37.123456789Z","pid":7,"provider":"Demo.Shop","version":"1.2","name":"load","display_name":null,"unit":"%","kind":"gauge","tags":{"is":"nan"},"tags_text":"is=nan","meter_tags":{"region":"eu"},"instrument_tags":{},"value":"NaN","delta":null,"interval_s":1.5,"sum":null,"min":null,"max":null,"total_sum":null,"count":null,"total_count":null,"quantiles":null}
    {"type":"counter","time":"2026-10-29T09:42:37.123456789Z","pid":7,"provider":"Demo.Shop","version":"1.2","name":"load","display_name":null,"unit":"%","kind":"gauge","tags":{"is":"inf"},"tags_text":"is=inf","meter_tags":{"region":"eu"},"instrument_tags":{},"value":"-inf","delta":null,"interval_s":1.5,"sum":null,"min":null,"max":null,"total_sum":null,"count":null,"total_count":null,"quantiles":null}
    {"type":"counter","time":"2026-10-29T09:42:37.123456789Z","pid":7,"provider":"Demo.Shop","version":"1.2","name":"load","display_name":null,"unit":"%","kind":"gauge","tags":{"is":"missing"},"tags_text":"is=missing","meter_tags":{"region":"eu"},"instrument_tags":{},"value":null,"delta":null,"interval_s":1.5,"sum":null,"min":null,"max":null,"total_sum":null,"count":null,"total_count":null,"quantiles":null}
    "#);
}

#[test]
fn prometheus_has_the_latest_state() {
    let mut all = readings();
    all.extend(readings());
    insta::assert_snapshot!(file(CounterFormat::Prometheus, all), @r#"
    # HELP demo_shop_latency_milliseconds Demo.Shop/latency ms
    # TYPE demo_shop_latency_milliseconds summary
    demo_shop_latency_milliseconds{pid="7",version="1.2",region="eu",tag_quantile="x",quantile="0.5"} 51
    demo_shop_latency_milliseconds{pid="7",version="1.2",region="eu",tag_quantile="x",quantile="0.999"} +Inf
    demo_shop_latency_milliseconds_sum{pid="7",version="1.2",region="eu",tag_quantile="x"} 11
    demo_shop_latency_milliseconds_count{pid="7",version="1.2",region="eu",tag_quantile="x"} 20
    # HELP demo_shop_load_percent Demo.Shop/load %
    # TYPE demo_shop_load_percent gauge
    demo_shop_load_percent{pid="7",version="1.2",is="inf",region="eu"} -Inf
    demo_shop_load_percent{pid="7",version="1.2",is="nan",region="eu"} NaN
    # HELP demo_shop_orders_total Demo.Shop/orders {order}
    # TYPE demo_shop_orders_total counter
    demo_shop_orders_total{pid="7",version="1.2",k_="\\u{202e}\\n",region="eu",shop="a,\"b\""} 63
    # HELP demo_shop_queue Demo.Shop/queue
    # TYPE demo_shop_queue gauge
    demo_shop_queue{pid="7",version="1.2",region="eu"} -2
    "#);
}

#[test]
fn metrics_have_valid_names_and_types() {
    let of = |name: &str, kind, unit: &str| {
        let text = file(
            CounterFormat::Prometheus,
            vec![reading(
                counter(name, kind, unit, &[]),
                CounterValues { value: Some(1.0), ..CounterValues::default() },
            )],
        );
        text.lines().nth(1).unwrap_or_default().to_owned()
    };
    for (name, kind, unit, line) in [
        ("cpu.time", CounterKind::Rate, "s", "demo_shop_cpu_time_seconds_total counter"),
        ("temperature", CounterKind::Gauge, "Cel", "demo_shop_temperature_cel gauge"),
        ("size_bytes", CounterKind::Gauge, "By", "demo_shop_size_bytes gauge"),
        ("all_total", CounterKind::Gauge, "{x}", "demo_shop_all_total_value gauge"),
        ("é 中", CounterKind::Histogram, "", "demo_shop____ summary"),
    ] {
        assert_eq!(of(name, kind, unit), format!("# TYPE {line}"));
    }
}

/// Nothing is left out without a message.
#[test]
fn equal_names_are_distinguished() {
    let of = |name: &str, kind, instance, tags: &[(&str, &str)]| {
        let counter = Counter { instance, ..counter(name, kind, "", tags) };
        let values =
            CounterValues { value: Some(1.0), delta: Some(1.0), count: Some(4), ..CounterValues::default() };
        reading(counter, values)
    };
    let all = vec![
        of("a", CounterKind::Rate, 5, &[("x", "1")]),
        of("a", CounterKind::Rate, 6, &[("x", "1")]),
        of("a", CounterKind::Rate, 6, &[("instance", "own")]),
        of("b.c", CounterKind::Gauge, 0, &[]),
        of("b_c", CounterKind::Gauge, 0, &[]),
        of("d", CounterKind::Gauge, 1, &[]),
        of("d", CounterKind::Histogram, 2, &[]),
        of("e", CounterKind::Histogram, 1, &[]),
        of("e_count", CounterKind::Gauge, 1, &[]),
    ];
    let text = file(CounterFormat::Prometheus, all);
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    insta::assert_snapshot!(samples.join("\n"), @r#"
    demo_shop_a_total{pid="7",version="1.2",region="eu",tag_instance="own"} 1
    demo_shop_a_total{pid="7",version="1.2",region="eu",x="1",instance="5"} 1
    demo_shop_a_total{pid="7",version="1.2",region="eu",x="1",instance="6"} 1
    demo_shop_b_c{pid="7",version="1.2",region="eu",instance="0"} 1
    demo_shop_b_c{pid="7",version="1.2",region="eu",instance="1"} 1
    demo_shop_d{pid="7",version="1.2",region="eu"} 1
    demo_shop_d_summary_count{pid="7",version="1.2",region="eu"} 4
    demo_shop_e_count{pid="7",version="1.2",region="eu"} 4
    demo_shop_e_count_gauge{pid="7",version="1.2",region="eu"} 1
    "#);
}

/// Splits CSV by RFC 4180.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut cells, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                cells.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut cells));
            }
            c => cell.push(c),
        }
    }
    assert!(cells.is_empty() && cell.is_empty() && !quoted, "{text}");
    records
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,8}", any::<String>(), Just("\"\n,;=\u{1b}[2J\u{202e}##[error]\\".to_owned())]
}

fn any_reading() -> impl Strategy<Value = Reading> {
    let kind = prop_oneof![
        Just(CounterKind::Gauge),
        Just(CounterKind::Rate),
        Just(CounterKind::Updown),
        Just(CounterKind::Histogram)
    ];
    let number = || prop::option::of(any::<f64>());
    let tags = || prop::collection::vec((any_text(), any_text()), 0..3);
    let texts = (any_text(), prop::option::of(any_text()), any_text(), any_text(), kind);
    (texts, (tags(), tags()), (number(), number(), prop::option::of(any::<u64>()), any::<f64>())).prop_map(
        |((provider, version, name, unit, kind), (provider_tags, tags), (value, delta, count, quantile))| {
            let text = |tags: &[(String, String)]| format!("{tags:?}");
            let counter = Counter {
                provider,
                version,
                name,
                unit,
                kind,
                provider_tags: Tags::new(text(&provider_tags), provider_tags),
                tags: Tags::new(text(&tags), tags),
                ..Counter::default()
            };
            let quantiles = vec![("0.5".to_owned(), quantile)];
            let values = CounterValues { value, delta, count, quantiles, ..CounterValues::default() };
            Reading { counter, values, utc_ns: Some(TIME) }
        },
    )
}

proptest! {
    /// Texts of the program break no format and can't act on a terminal.
    #[test]
    fn any_text_is_harmless(all in prop::collection::vec(any_reading(), 0..6)) {
        for format in CounterFormat::ALL {
            let text = file(format, all.clone());
            prop_assert!(!text.contains(|c| c != '\n' && acts_unseen(c)), "{:?}", text);
        }
        for record in records(&file(CounterFormat::Csv, all.clone())) {
            prop_assert_eq!(record.len(), 5);
        }
        let document: serde_json::Value = serde_json::from_str(&file(CounterFormat::Json, all.clone())).unwrap();
        prop_assert!(document["Events"].as_array().unwrap().len() >= all.len());
        let lines = file(CounterFormat::Jsonl, all.clone());
        prop_assert_eq!(lines.lines().count(), all.len());
        for (line, reading) in lines.lines().zip(&all) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            prop_assert_eq!(&line["provider"], &reading.counter.provider);
            let tags: BTreeMap<_, _> = reading.counter.tags.pairs().iter().cloned().collect();
            prop_assert_eq!(&line["tags"], &serde_json::to_value(tags).unwrap());
            let delta = reading.values.delta;
            // The parser of the tests is not exact.
            let parsed = line["delta"].as_f64().zip(delta.filter(|it| it.is_finite()));
            prop_assert!(parsed.is_none_or(|(a, b)| (a - b).abs() <= b.abs() * 1e-14), "{:?}", parsed);
            prop_assert_eq!(line["delta"].is_f64() || line["delta"].is_i64() || line["delta"].is_u64(), delta.is_some_and(f64::is_finite));
            prop_assert_eq!(line["delta"].is_null(), delta.is_none());
        }
        let mut samples = std::collections::BTreeSet::new();
        for line in file(CounterFormat::Prometheus, all).lines().filter(|line| !line.starts_with('#')) {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            prop_assert!(value.replace("Inf", "inf").parse::<f64>().is_ok(), "{}", line);
            prop_assert!(samples.insert(sample.to_owned()), "{} is repeated", line);
        }
    }
}
