//! Log messages, by the logger and from `tracing`.

use std::fmt;

use runtap_events::{EventLayer, LogLevel, LogMessage, Logs};
use serde_json::{Value, json};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::{Target, named};

const LOGGING: &str = "Microsoft-Extensions-Logging";

#[derive(Debug)]
struct Empty(Option<Box<Self>>);

impl fmt::Display for Empty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stock empty")
    }
}

impl std::error::Error for Empty {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.as_deref().map(|error| error as _)
    }
}

#[test]
fn messages_have_the_fields_of_dotnet() {
    let target = Target::new();
    let logs = Logs::new(&target.pipe).unwrap();
    let log = logs.logger("Test.Orders");
    let events = target.record(&[LOGGING], || {
        log.information("Order {OrderId} costs {Price:F2}", &[("OrderId", &1000), ("Price", &9.5)]);
        let error = Empty(Some(Box::new(Empty(None))));
        let message =
            LogMessage::new(LogLevel::Error, "Order {OrderId} failed").arguments(&[("OrderId", &1)]);
        log.log(&message.event(7, "Failed").error(&error));
        log.log(&LogMessage::new(LogLevel::Trace, "only with FilterSpecs"));
    });
    assert_eq!(events.len(), 6);
    let none = json!({"TypeName": "", "Message": "", "HResult": 0, "VerboseMessage": ""});
    assert_eq!(
        named(&events, "Message")[0]["payload"],
        json!({
            "Level": 2, "FactoryID": 1, "LoggerName": "Test.Orders", "EventId": 0, "EventName": "", "Exception": none,
            "Arguments": [
                {"Key": "OrderId", "Value": "1000"},
                {"Key": "Price", "Value": "9.5"},
                {"Key": "{OriginalFormat}", "Value": "Order {OrderId} costs {Price:F2}"},
            ],
            "ActivityTraceId": "", "ActivitySpanId": "", "ActivityTraceFlags": "",
        })
    );
    assert_eq!(named(&events, "FormattedMessage")[0]["payload"]["FormattedMessage"], "Order 1000 costs 9.5");
    let failed = &named(&events, "MessageJson")[1]["payload"];
    assert_eq!(
        (&failed["Level"], &failed["EventId"], &failed["EventName"]),
        (&json!(4), &json!(7), &json!("Failed"))
    );
    let exception: Value = serde_json::from_str(failed["ExceptionJson"].as_str().unwrap()).unwrap();
    assert_eq!(exception["Message"], "stock empty");
    let verbose = exception["VerboseMessage"].as_str().unwrap();
    assert!(verbose.ends_with("Empty: stock empty\n ---> stock empty"), "{verbose}");
}

#[test]
fn categories_and_levels_are_what_the_session_asks_for() {
    let target = Target::new();
    let logs = Logs::new(&target.pipe).unwrap();
    let (orders, quiet) = (logs.logger("Test.Orders"), logs.logger("Test.Quiet"));
    assert!(!orders.is_enabled(LogLevel::Critical));
    let filter = format!("{LOGGING}:4:5:FilterSpecs=\"Test.Orders:Trace;Test:Warning\"");
    let events = target.record(&[&filter], || {
        assert!(orders.is_enabled(LogLevel::Trace) && !quiet.is_enabled(LogLevel::Information));
        for log in [&orders, &quiet, &logs.logger("Test.Late"), &logs.logger("Other")] {
            log.log(&LogMessage::new(LogLevel::Trace, "trace"));
            log.warning("warning", &[]);
        }
    });
    let seen: Vec<_> =
        events.iter().map(|event| (&event["payload"]["LoggerName"], &event["payload"]["Level"])).collect();
    let expected = [("Test.Orders", 0), ("Test.Orders", 3), ("Test.Quiet", 3), ("Test.Late", 3)];
    assert_eq!(
        seen,
        expected
            .map(|(name, level)| (json!(name), json!(level)))
            .iter()
            .map(|(n, l)| (n, l))
            .collect::<Vec<_>>()
    );
    assert!(!orders.is_enabled(LogLevel::Critical));
}

#[test]
fn scopes_are_told_in_one_form() {
    let target = Target::new();
    let logs = Logs::new(&target.pipe).unwrap();
    let log = logs.logger("Test");
    let act = || {
        let _outer = log.scope("order {Id}", &[("Id", &17)]);
        let _inner = log.scope("step", &[]);
        log.information("within", &[]);
    };
    for (provider, start, stop) in [
        (format!("{LOGGING}:c"), "ActivityJsonStart", "ActivityJsonStop"),
        (format!("{LOGGING}:6"), "ActivityStart", "ActivityStop"),
    ] {
        let events = target.record(&[&provider], act);
        let (starts, stops) = (named(&events, start), named(&events, stop));
        assert_eq!((starts.len(), stops.len()), (2, 2), "{events:?}");
        assert_eq!(starts[1]["related_activity"], starts[0]["activity"]);
        assert_eq!(stops[0]["activity"], starts[1]["activity"]);
        assert_eq!(stops[1]["payload"]["ID"], starts[0]["payload"]["ID"]);
        let message = named(&events, "FormattedMessage")[0];
        assert_eq!(message["activity"], starts[1]["activity"]);
    }
}

#[test]
fn tracing_events_are_messages_and_spans_are_scopes() {
    let target = Target::new();
    let logs = Logs::new(&target.pipe).unwrap();
    let layer = EventLayer::new(&target.pipe).logs(&logs).build();
    let subscriber = tracing_subscriber::registry().with(layer);
    let events = tracing::subscriber::with_default(subscriber, || {
        target.record(&[&format!("{LOGGING}:c:4")], || {
            let outer = tracing::info_span!("request", path = "/a");
            let _outer = outer.enter();
            let inner = tracing::info_span!("query");
            let _hidden = tracing::debug_span!("detail").entered();
            inner.in_scope(|| tracing::warn!(order = 17, customer = "anna", "order {}", "refused"));
            tracing::debug!("too detailed");
        })
    });
    let starts = named(&events, "ActivityJsonStart");
    assert_eq!(starts.len(), 2, "{events:?}");
    assert_eq!(starts[1]["related_activity"], starts[0]["activity"]);
    let arguments = starts[0]["payload"]["ArgumentsJson"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(arguments).unwrap(),
        json!({"path": "/a", "{OriginalFormat}": "request path={path}"})
    );
    let message = named(&events, "MessageJson")[0];
    assert_eq!(message["activity"], starts[1]["activity"]);
    let payload = &message["payload"];
    assert_eq!((&payload["LoggerName"], &payload["Level"]), (&json!("events.logs"), &json!(3)));
    assert_eq!(payload["FormattedMessage"], "order refused order=17 customer=anna");
    let arguments: Value = serde_json::from_str(payload["ArgumentsJson"].as_str().unwrap()).unwrap();
    let format = "order refused order={order} customer={customer}";
    assert_eq!(arguments, json!({"order": "17", "customer": "anna", "{OriginalFormat}": format}));
    assert_eq!(named(&events, "ActivityJsonStop").len(), 2);
    assert_eq!(named(&events, "MessageJson").len(), 1);
}
