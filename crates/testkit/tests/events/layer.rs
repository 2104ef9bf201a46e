//! Events and spans of `tracing`.

use runtap_events::{EventLayer, Naming};
use serde_json::{Value, json};
use tracing::{Level, debug, debug_span, event, info, info_span, trace, warn};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::{Target, named};

/// Runs `act` with the layer on a thread of its own, which has its own subscriber.
fn traced<T: Send>(target: &Target, act: impl FnOnce() -> T + Send) -> T {
    let layer = EventLayer::new(&target.pipe).build();
    let subscriber = tracing_subscriber::registry().with(layer);
    std::thread::scope(|scope| {
        scope.spawn(|| tracing::subscriber::with_default(subscriber, act)).join().unwrap()
    })
}

#[test]
fn fields_have_types_and_levels_are_kept() {
    let target = Target::new();
    let events = traced(&target, || {
        target.record(&["events:0:4"], || {
            warn!(number = 17u64, offset = -1, share = 0.5, ok = true, name = "anna", debug = ?Some(1), "placed {}", 3);
            info!(name: "Named", "text only");
            debug!("too detailed");
            for value in [1u64, 2] {
                info!(value, "same place");
            }
        })
    });
    let payload = json!({
        "message": "placed 3", "number": 17, "offset": -1, "share": 0.5, "ok": true, "name": "anna", "debug": "Some(1)",
    });
    assert_eq!(events[0]["payload"], payload);
    assert_eq!((&events[0]["level"], &events[0]["keywords"]), (&json!(3), &json!("0x0")));
    assert!(events[0]["name"].as_str().unwrap().starts_with("layer.rs:"), "{}", events[0]);
    assert_eq!(named(&events, "Named")[0]["payload"], json!({"message": "text only"}));
    let same: Vec<_> = events.iter().filter(|event| event["payload"]["message"] == "same place").collect();
    assert_eq!(same.len(), 2);
    assert_eq!(same[0]["id"], same[1]["id"]);
    assert_eq!(events.len(), 4);
}

#[test]
fn values_of_other_types_are_other_forms_of_an_event() {
    let target = Target::new();
    let log = |text: Option<&str>, number: Option<i64>| info!(text, number, "form");
    let events = traced(&target, || {
        target.record(&["events"], || {
            log(Some("a"), Some(1));
            log(None, Some(2));
            log(Some("b"), None);
            log(Some("c"), Some(3));
        })
    });
    let payloads: Vec<_> = events.iter().map(|event| event["payload"].clone()).collect();
    assert_eq!(
        payloads,
        [
            json!({"message": "form", "text": "a", "number": 1}),
            json!({"message": "form", "number": 2}),
            json!({"message": "form", "text": "b"}),
            json!({"message": "form", "text": "c", "number": 3}),
        ]
    );
    assert_eq!(events[0]["id"], events[3]["id"]);
    assert_ne!(events[0]["id"], events[1]["id"]);
}

fn ids(event: &Value) -> (Value, Value) {
    (event["activity"].clone(), event["related_activity"].clone())
}

#[test]
fn spans_are_activities() {
    let target = Target::new();
    let events = traced(&target, || {
        target.record(&["events"], || {
            let outer = info_span!("request", path = "/a", status = tracing::field::Empty);
            let inner = outer.in_scope(|| {
                info!("in outer");
                debug_span!("query", rows = 3)
            });
            // Entered often, and on another thread.
            inner.in_scope(|| info!("in inner"));
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let moved = inner.clone();
            std::thread::spawn(move || {
                tracing::dispatcher::with_default(&dispatch, || moved.in_scope(|| info!("elsewhere")));
            })
            .join()
            .unwrap();
            drop(inner);
            outer.record("status", 200);
            event!(parent: &outer, Level::INFO, "by its parent");
            event!(parent: None, Level::INFO, "by itself");
        })
    });
    let start = |name| ids(named(&events, name)[0]);
    let (request, none) = start("requestStart");
    let (query, of_query) = start("queryStart");
    assert!(request.is_string() && none.is_null() && query.is_string());
    assert_eq!(of_query, request);
    let message = |text: &str| events.iter().find(|event| event["payload"]["message"] == text).unwrap();
    assert_eq!(message("in outer")["activity"], request);
    assert_eq!(message("in inner")["activity"], query);
    assert_eq!(message("elsewhere")["activity"], query);
    assert_ne!(message("elsewhere")["thread"], message("in inner")["thread"]);
    assert_eq!(message("by its parent")["activity"], request);
    assert!(message("by itself")["activity"].is_null());
    let [start, stop] = ["requestStart", "requestStop"].map(|name| named(&events, name)[0]);
    assert_eq!((&start["opcode"], &start["payload"]), (&json!(1), &json!({"path": "/a"})));
    assert_eq!((&stop["opcode"], &stop["payload"]), (&json!(2), &json!({"status": 200})));
    assert_eq!(stop["activity"], request);
    assert_eq!(named(&events, "queryStop")[0]["activity"], query);
}

#[test]
fn a_session_that_comes_later_gets_what_comes_then() {
    let target = Target::new();
    traced(&target, || {
        let log = |n: u32| trace!(n, "again");
        log(0);
        for round in 1..4u32 {
            let events = target.record(&["events"], || log(round));
            assert_eq!(events.len(), 1, "{events:?}");
            assert_eq!(events[0]["payload"]["n"], round);
            log(0);
        }
    });
}

#[test]
fn other_layers_see_everything() {
    #[derive(Default)]
    struct Counts(std::sync::atomic::AtomicU32);
    struct Counting(std::sync::Arc<Counts>);
    impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Counting {
        fn on_event(&self, _: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
            self.0.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let target = Target::new();
    let counts = std::sync::Arc::new(Counts::default());
    let layer = EventLayer::new(&target.pipe).naming(Naming::Target).prefix("Rust-").build();
    let subscriber = tracing_subscriber::registry().with(layer).with(Counting(counts.clone()));
    let events = tracing::subscriber::with_default(subscriber, || {
        info!("before");
        target.record(&["Rust-events.layer:0:4", "events"], || {
            debug!("not for the session");
            info!("for both");
        })
    });
    assert_eq!(counts.0.load(std::sync::atomic::Ordering::Relaxed), 3);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["provider"], "Rust-events.layer");
}
