//! Golden bytes, and the refusals that keep .NET 10 alive.

use super::*;
use crate::{Command, EventFilter, Level, Request, RequestError, TracepointSet};

fn config() -> UserEventsConfig {
    UserEventsConfig {
        providers: vec![UserEventsProvider {
            provider: Provider::new("Ab", 1, Level::Informational).with_filter(EventFilter::only([1])),
            tracepoints: Tracepoints::all_to("Tp").with_set("Lo", [4, 5]),
        }],
        rundown_keyword: 0x10,
    }
}

fn request(config: UserEventsConfig) -> Request {
    Request::CollectUserEvents { form: SessionForm::CollectTracing5, config }
}

fn payload(config: UserEventsConfig) -> Vec<u8> {
    request(config).to_bytes().unwrap()[20..].to_vec()
}

const HEAD: &[u8] =
    b"\x01\0\0\0\x10\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\x04\0\0\0\x03\0\0\0A\0b\0\0\0\0\0\0\0";
const FILTER: &[u8] = b"\x01\x01\0\0\0\x01\0\0\0";

#[test]
fn golden_bytes() {
    let tracepoints = b"\x03\0\0\0T\0p\0\0\0\x01\0\0\0\x03\0\0\0L\0o\0\0\0\x02\0\0\0\x04\0\0\0\x05\0\0\0";
    let expected = [HEAD, FILTER, tracepoints].concat();
    assert_eq!(payload(config()), expected);
    // Both commands that know the type carry the same payload.
    for form in [SessionForm::CollectTracing5, SessionForm::CollectTracing6] {
        let request = Request::CollectUserEvents { form, config: config() };
        assert_eq!(request.to_bytes().unwrap()[20..], expected);
        assert_eq!(Request::decode(form.command(), &expected).unwrap(), request);
    }
}

/// The examples of the specification, section "Tracepoint_config", where a name of 12 letters has 14 units: it has 13.
#[test]
fn golden_tracepoints_of_the_specification() {
    let shown = |tracepoints: &Tracepoints| {
        let mut w = Writer::new();
        tracepoints::encode(&mut w, tracepoints);
        let bytes = w.into_bytes();
        assert_eq!(tracepoints::decode(&mut Reader::new(&bytes)).unwrap(), *tracepoints);
        bytes
    };
    let string = |text: &str| {
        let mut w = Writer::new();
        w.utf16_counted(Some(text));
        w.into_bytes()
    };
    let ids: Vec<u8> = (1..=9u32).flat_map(u32::to_le_bytes).collect();
    let low = [&[1, 0, 0, 0][..], &string("LowEvents"), &[9, 0, 0, 0], &ids].concat();
    let default = Tracepoints::all_to("MyTracepoint");
    assert_eq!(shown(&default), [&string("MyTracepoint")[..], &[0; 4]].concat());
    let both = default.with_set("LowEvents", (1..=9).collect::<Vec<_>>());
    assert_eq!(shown(&both), [&string("MyTracepoint")[..], &low].concat());
    let only = Tracepoints { default: None, ..both };
    assert_eq!(shown(&only), [&[0; 4][..], &low].concat());
}

#[test]
fn older_commands_cannot_start_such_a_session() {
    for form in SessionForm::NEWEST_FIRST {
        let encoded = Request::CollectUserEvents { form, config: config() }.to_bytes();
        if form >= SessionForm::CollectTracing5 {
            assert!(encoded.is_ok());
        } else {
            assert_eq!(encoded.unwrap_err(), EncodeError::NoSessionType { command: form.command() });
        }
    }
}

#[test]
fn harmful_requests_are_not_encoded() {
    let with = |tracepoints| {
        let mut config = config();
        config.providers[0].tracepoints = tracepoints;
        request(config).to_bytes().unwrap_err().to_string()
    };
    let tracepoints = |text: &str| format!("tracepoints of provider \"Ab\": {text}");
    let set = |name: &str, ids: &[u32]| Tracepoints::default().with_set(name, ids);
    let no_name = " is not a tracepoint name (1 to 255 ASCII letters, digits, '.', '_' or '-')";
    for (expected, wrong) in [
        ("neither a default nor a set is specified", Tracepoints::default()),
        ("event 4 is specified twice", set("A", &[4, 4])),
        ("event 4 is specified twice", set("A", &[4]).with_set("B", [5, 4])),
        ("tracepoint \"A\" is specified twice; merge the sets", set("A", &[4]).with_set("A", [5])),
        ("tracepoint \"A\" is specified twice; merge the sets", Tracepoints::all_to("A").with_set("A", [5])),
        ("the set of tracepoint \"A\" has no events", set("A", &[])),
        (
            "the set of tracepoint \"A\" has 10001 event ids, at most 10000 are allowed",
            set("A", &(0..10_001).collect::<Vec<_>>()),
        ),
        (&format!("\"\"{no_name}"), Tracepoints::all_to("")),
        (&format!("\"a b\"{no_name}"), Tracepoints::all_to("a b")),
        (&format!("\"a;\"{no_name}"), set("a;", &[1])),
    ] {
        assert_eq!(with(wrong), tracepoints(expected));
    }
    let mut twice = config();
    twice.providers.push(twice.providers[0].clone());
    assert!(matches!(request(twice).to_bytes(), Err(EncodeError::DuplicateProvider { .. })));
    let none = UserEventsConfig::new(Vec::new());
    assert_eq!(request(none).to_bytes().unwrap_err(), EncodeError::NoProviders);
}

#[test]
fn requests_that_crash_runtimes_are_rejected_by_name_and_offset() {
    let decode = |tracepoints: &[u8]| {
        let payload = [HEAD, FILTER, tracepoints].concat();
        match Request::decode(Command::COLLECT_TRACING5, &payload) {
            Err(RequestError::BadEncoding(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let two = b"\0\0\0\0\x02\0\0\0\x02\0\0\0A\0\0\0\x01\0\0\0\x07\0\0\0\x02\0\0\0B\0\0\0\x01\0\0\0\x07\0\0\0";
    assert_eq!(decode(two), "tracepoint id at offset 107: is a duplicate");
    let one = b"\0\0\0\0\x01\0\0\0\x02\0\0\0A\0\0\0\x02\0\0\0\x07\0\0\0\x07\0\0\0";
    assert_eq!(decode(one), "tracepoint id at offset 95: is a duplicate");
    let missing = "tracepoints at offset 71: are missing: neither a default nor a set is present";
    assert_eq!(decode(&[0; 8]), missing);
    assert_eq!(decode(b"\x01\0\0\0\0\0\0\0\0\0"), missing);
    assert_eq!(decode(b""), "default tracepoint at offset 71: needs 4 bytes, 0 are left");
    assert_eq!(decode(b"\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0"), "tracepoint name at offset 79: is empty");
    assert_eq!(
        decode(b"\0\0\0\0\x01\0\0\0\x02\0\0\0A\0\0\0\xff\xff\xff\xff"),
        "tracepoint id count at offset 87: is 4294967295, more than the allowed 10000"
    );
    assert_eq!(
        decode(b"\0\0\0\0\xff\xff\xff\xff"),
        "tracepoint name at offset 79: needs 4 bytes, 0 are left"
    );
}

#[test]
fn everything_that_runtimes_accept_is_accepted() {
    // A set without events, and the same tracepoint twice.
    let tracepoints = b"\0\0\0\0\x02\0\0\0\x02\0\0\0A\0\0\0\0\0\0\0\x02\0\0\0A\0\0\0\x01\0\0\0\x07\0\0\0";
    let payload = [HEAD, FILTER, tracepoints].concat();
    let Request::CollectUserEvents { config, .. } =
        Request::decode(Command::COLLECT_TRACING5, &payload).unwrap()
    else {
        panic!()
    };
    let set = |ids: &[u32]| TracepointSet { name: "A".into(), ids: ids.into() };
    assert_eq!(config.providers[0].tracepoints.sets, [set(&[]), set(&[7])]);
}
