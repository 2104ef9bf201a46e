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
    orders.placed(0, "nobody listens", false);
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
