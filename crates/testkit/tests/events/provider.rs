//! Providers with typed events.

use std::time::UNIX_EPOCH;

use runtap_events::{Activity, EventSpec, Level, Provider, Value as _, provider};
use serde_json::json;

use crate::{Target, named};

provider! {
    struct Orders("Test-Orders") {
        fn placed(number: u64, customer: &str, paid: bool) =>
            EventSpec::new(1, "OrderPlaced").keywords(1).version(2).level(Level::Warning);
        fn packing_start(number: i32) => EventSpec::new(2, "PackingStart").start();
        fn packing_stop() => EventSpec::new(3, "PackingStop").stop();
        fn detail(text: String) => EventSpec::new(4, "Detail").keywords(2).level(Level::Verbose);
    }
}

#[test]
fn events_are_decoded_by_their_definition() {
    let target = Target::new();
    let orders = Orders::new(&target.pipe).unwrap();
    orders.placed(0, "no session", false);
    let events = target.record(&["Test-Orders:1:4"], || {
        orders.placed(u64::MAX, "anna é😀", true);
        orders.detail("another keyword".to_owned());
    });
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    assert_eq!(event["payload"], json!({"number": u64::MAX, "customer": "anna é😀", "paid": true}));
    assert_eq!((&event["id"], &event["version"], &event["level"]), (&json!(1), &json!(2), &json!(3)));
    assert_eq!(event["keywords"], "0xf00000000001");
    assert_eq!(event["name"], "OrderPlaced");
}

#[test]
fn starts_and_stops_belong_to_activities() {
    let target = Target::new();
    let orders = Orders::new(&target.pipe).unwrap();
    let (outer, inner) = (Activity::root(), std::cell::Cell::new(None));
    let events = target.record(&["Test-Orders"], || {
        let _in_outer = outer.enter();
        orders.packing_start(1);
        let child = Activity::start();
        inner.set(Some(child.id()));
        {
            let _in_child = child.enter();
            orders.packing_start(2);
            orders.packing_stop();
        }
        orders.packing_stop();
    });
    let ids = |event: &serde_json::Value| (event["activity"].clone(), event["related_activity"].clone());
    let (outer, inner) = (json!(outer.id().to_string()), json!(inner.get().unwrap().to_string()));
    let starts: Vec<_> = named(&events, "PackingStart").into_iter().map(ids).collect();
    assert_eq!(starts, [(outer.clone(), json!(null)), (inner.clone(), outer.clone())]);
    let stops: Vec<_> = named(&events, "PackingStop").into_iter().map(ids).collect();
    assert_eq!(stops, [(inner, json!(null)), (outer, json!(null))]);
    assert_eq!(named(&events, "PackingStart")[0]["opcode"], 1);
}

#[test]
fn every_type_of_field_is_understood() {
    let target = Target::new();
    let provider = Provider::new(&target.pipe, "Test-Types");
    let mut spec = EventSpec::new(7, "Types");
    macro_rules! types {
        ($($name:literal: $type:ty = $value:expr),* $(,)?) => {
            $( spec = spec.field($name, <$type>::field_type()); )*
            let event = provider.define(spec).unwrap();
            let events = target.record(&["Test-Types"], || event.write(|out| { $( out.push::<$type>(&$value); )* }));
            assert_eq!(events.len(), 1);
            $( assert_eq!(events[0]["payload"][$name], json!($value), $name); )*
        };
    }
    types! {
        "i8": i8 = i8::MIN, "u8": u8 = u8::MAX, "i16": i16 = i16::MIN, "u16": u16 = u16::MAX, "i32": i32 = i32::MIN,
        "u32": u32 = u32::MAX, "i64": i64 = i64::MIN, "u64": u64 = u64::MAX, "f32": f32 = 1.5f32, "f64": f64 = -0.25,
        "no": bool = false, "text": &str = "a\"b\\c\n", "size": usize = usize::MAX, "string": String = String::new(),
    }
    let spec = EventSpec::new(8, "Others").field("at", std::time::SystemTime::field_type());
    let spec = spec.field("list", <[i32]>::field_type()).field("names", <[&str]>::field_type());
    let event = provider.define(spec).unwrap();
    let events = target.record(&["Test-Types"], || {
        event.write(|out| {
            out.push(&UNIX_EPOCH).push(&[1, -2][..]).push(&["a", ""][..]);
        });
    });
    let payload = &events[0]["payload"];
    assert_eq!(payload["at"], "1970-01-01T00:00:00.000000000Z");
    assert_eq!((&payload["list"], &payload["names"]), (&json!([1, -2]), &json!(["a", ""])));
}

/// A field of any type, and what it is decoded as.
#[derive(Debug, Clone)]
enum Any {
    I32(i32),
    U64(u64),
    F64(f64),
    Bool(bool),
    Text(String),
    Numbers(Vec<u16>),
    Texts(Vec<String>),
}

impl Any {
    fn field_type(&self) -> runtap_events::FieldType {
        match self {
            Self::I32(_) => i32::field_type(),
            Self::U64(_) => u64::field_type(),
            Self::F64(_) => f64::field_type(),
            Self::Bool(_) => bool::field_type(),
            Self::Text(_) => str::field_type(),
            Self::Numbers(_) => <[u16]>::field_type(),
            Self::Texts(_) => <[String]>::field_type(),
        }
    }

    fn append(&self, out: &mut runtap_events::Payload) {
        match self {
            Self::I32(value) => out.push(value),
            Self::U64(value) => out.push(value),
            Self::F64(value) => out.push(value),
            Self::Bool(value) => out.push(value),
            Self::Text(value) => out.push(value),
            Self::Numbers(value) => out.push(value.as_slice()),
            Self::Texts(value) => out.push(value.as_slice()),
        };
    }

    fn decoded(&self) -> serde_json::Value {
        let text = |text: &String| text.replace('\0', "\u{fffd}");
        match self {
            Self::I32(value) => json!(value),
            Self::U64(value) => json!(value),
            Self::F64(value) => json!(value),
            Self::Bool(value) => json!(value),
            Self::Text(value) => json!(text(value)),
            Self::Numbers(value) => json!(value),
            Self::Texts(value) => json!(value.iter().map(text).collect::<Vec<_>>()),
        }
    }
}

/// Whatever fields an event has, its definition says how they are read.
#[test]
fn any_fields_are_decoded_by_their_definition() {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    let any = prop_oneof![
        any::<i32>().prop_map(Any::I32),
        any::<u64>().prop_map(Any::U64),
        any::<i32>().prop_map(|n| Any::F64(f64::from(n) / 8.0)),
        any::<bool>().prop_map(Any::Bool),
        any::<String>().prop_map(Any::Text),
        proptest::collection::vec(any::<u16>(), 0..20).prop_map(Any::Numbers),
        proptest::collection::vec(any::<String>(), 0..4).prop_map(Any::Texts),
    ];
    let events = proptest::collection::vec(proptest::collection::vec(any, 0..12), 300);
    let events = events.new_tree(&mut TestRunner::deterministic()).unwrap().current();
    let target = Target::new();
    let provider = Provider::new(&target.pipe, "Test-Any");
    let seen = target.record(&["Test-Any"], || {
        for (number, fields) in (1..).zip(&events) {
            let spec =
                fields.iter().enumerate().fold(EventSpec::new(number, "Any"), |spec, (index, field)| {
                    spec.field(format!("f{index}"), field.field_type())
                });
            let event = provider.define(spec).unwrap();
            event.write(|out| fields.iter().for_each(|field| field.append(out)));
        }
    });
    assert_eq!(seen.len(), events.len());
    for ((number, fields), seen) in (1..).zip(&events).zip(seen) {
        assert_eq!(seen["id"], number);
        for (index, field) in fields.iter().enumerate() {
            assert_eq!(seen["payload"][format!("f{index}")], field.decoded(), "{fields:?}");
        }
    }
}
