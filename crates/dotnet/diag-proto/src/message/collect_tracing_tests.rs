//! Golden bytes of every form, and the refusals that keep targets alive.

use super::*;
use crate::{
    Command, EventFilter, HEADER_LEN, Level, MAX_FILTER_IDS, MAX_PROVIDERS, Provider, Request, RequestError,
};

/// The golden payloads below, taken apart: provider "Ab" with keywords 1, level 4, argument "x=1".
const PROVIDER: &[u8] = b"\x01\0\0\0\0\0\0\0\x04\0\0\0\x03\0\0\0A\0b\0\0\0\x04\0\0\0x\0=\0\x31\0\0\0";

fn config() -> SessionConfig {
    SessionConfig::new(vec![Provider::new("Ab", 1, Level::Informational).with_arguments("x=1")])
}

fn payload(form: SessionForm, config: &SessionConfig) -> Vec<u8> {
    let bytes = Request::CollectTracing { form, config: config.clone() }.to_bytes().unwrap();
    bytes[HEADER_LEN..].to_vec()
}

fn decoded(form: SessionForm, payload: &[u8]) -> Result<SessionConfig, RequestError> {
    match Request::decode(form.command(), payload)? {
        Request::CollectTracing { config, .. } => Ok(config),
        other => panic!("{other:?}"),
    }
}

#[test]
fn golden_bytes_of_every_form() {
    let head = b"\0\x01\0\0\x01\0\0\0";
    let one = b"\x01\0\0\0";
    let golden = [
        (SessionForm::CollectTracing, [&head[..], one, PROVIDER].concat()),
        (SessionForm::CollectTracing2, [head, &b"\x01"[..], one, PROVIDER].concat()),
        (SessionForm::CollectTracing3, [head, &b"\x01\x01"[..], one, PROVIDER].concat()),
        (SessionForm::CollectTracing4, [head, &b"\x39\x01\x02\x80\0\0\0\0\x01"[..], one, PROVIDER].concat()),
        (
            SessionForm::CollectTracing5,
            [b"\0\0\0\0", &head[..], b"\x39\x01\x02\x80\0\0\0\0\x01", one, PROVIDER, b"\0\0\0\0\0"].concat(),
        ),
        (
            SessionForm::CollectTracing6,
            [b"\0\0\0\0", &head[..], b"\x39\x01\x02\x80\0\0\0\0\x01", one, PROVIDER, b"\0\0\0\0\0\0\0\0\0"]
                .concat(),
        ),
    ];
    for (form, expected) in golden {
        assert_eq!(payload(form, &config()), expected, "{form:?}");
        assert_eq!(decoded(form, &expected).unwrap(), config(), "{form:?}");
    }
}

/// The example of the specification, section "Payloads".
#[test]
fn golden_bytes_of_the_specification() {
    let config = SessionConfig {
        buffer_mb: 250,
        ..SessionConfig::new(vec![Provider::new("MyEventSource", 100, Level::Error)])
    };
    let bytes = Request::CollectTracing { form: SessionForm::CollectTracing, config }.to_bytes().unwrap();
    let mut expected = b"DOTNET_IPC_V1\0\x50\0\x02\x02\0\0\xfa\0\0\0\x01\0\0\0\x01\0\0\0".to_vec();
    expected
        .extend(b"\x64\0\0\0\0\0\0\0\x02\0\0\0\x0e\0\0\0M\0y\0E\0v\0e\0n\0t\0S\0o\0u\0r\0c\0e\0\0\0\0\0\0\0");
    assert_eq!(bytes, expected);
}

#[test]
fn golden_event_filter_and_block_mode() {
    let mut config = config();
    config.providers[0].filter = Some(EventFilter::only([1, 2, 3]));
    config.buffering = Buffering::Block;
    config.stackwalk = false;
    config.rundown_keyword = 0;
    let bytes = payload(SessionForm::CollectTracing6, &config);
    assert!(bytes.ends_with(b"\x01\x03\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x01\0\0\0"), "{bytes:x?}");
    assert_eq!(bytes[12..21], [0; 9]);
    assert_eq!(decoded(SessionForm::CollectTracing6, &bytes).unwrap(), config);
}

#[test]
fn older_forms_imply_the_settings_that_they_lack() {
    let mut config = config();
    config.rundown_keyword = 0x10;
    config.rundown_fallback = RundownFallback::None;
    config.stackwalk = false;
    let decode = |form| decoded(form, &payload(form, &config)).unwrap();
    assert_eq!(decode(SessionForm::CollectTracing).rundown_keyword, DEFAULT_RUNDOWN_KEYWORD);
    assert_eq!(decode(SessionForm::CollectTracing2).rundown_keyword, 0);
    assert!(decode(SessionForm::CollectTracing2).stackwalk);
    assert!(!decode(SessionForm::CollectTracing3).stackwalk);
    assert_eq!(decode(SessionForm::CollectTracing4).rundown_keyword, 0x10);
}

#[test]
fn harmful_requests_are_not_encoded() {
    let provider = || Provider::new("A", 1, Level::Verbose);
    let with = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = SessionConfig::new(vec![provider()]);
        change(&mut config);
        config
    };
    let cases: [(&str, SessionConfig); 9] = [
        ("providers: none specified", with(&|c| c.providers.clear())),
        (
            "providers: 1001 given, at most 1000 are allowed",
            with(&|c| {
                c.providers =
                    (0..=MAX_PROVIDERS).map(|n| Provider::new(format!("P{n}"), 1, Level::Verbose)).collect();
            }),
        ),
        ("circular buffer size: is 0 MB", with(&|c| c.buffer_mb = 0)),
        ("provider name: is empty", with(&|c| c.providers[0].name.clear())),
        ("provider name: contains a NUL character", with(&|c| c.providers[0].name = "A\0B".into())),
        (
            "provider arguments: contains a NUL character",
            with(&|c| c.providers[0].arguments = Some("\0".into())),
        ),
        ("providers: \"A\" is specified twice; merge the entries", with(&|c| c.providers.push(provider()))),
        (
            "event filter of provider \"A\": 10001 event ids, at most 10000 are allowed",
            with(&|c| c.providers[0].filter = Some(EventFilter::only(vec![7; MAX_FILTER_IDS + 1]))),
        ),
        (
            "message size: 80083 bytes, at most 65535 are allowed",
            with(&|c| c.providers[0].arguments = Some("x".repeat(40_000))),
        ),
    ];
    for (expected, config) in cases {
        for form in SessionForm::NEWEST_FIRST {
            let error = Request::CollectTracing { form, config: config.clone() }.to_bytes().unwrap_err();
            let shown = error.to_string();
            if expected.starts_with("message size") {
                assert!(shown.starts_with("message size: 80"), "{form:?}: {shown}");
            } else {
                assert_eq!(shown, expected, "{form:?}");
            }
        }
    }
}

#[test]
fn the_largest_allowed_values_are_encoded() {
    let mut config = config();
    config.buffer_mb = u32::MAX;
    config.providers =
        (0..MAX_PROVIDERS).map(|n| Provider::new(format!("P{n}"), 1, Level::Verbose)).collect();
    for form in SessionForm::NEWEST_FIRST {
        assert_eq!(decoded(form, &payload(form, &config)).unwrap(), config);
    }
    config.providers =
        vec![Provider::new("A", 1, Level::Verbose).with_filter(EventFilter::only(vec![7; MAX_FILTER_IDS]))];
    assert_eq!(
        decoded(SessionForm::CollectTracing5, &payload(SessionForm::CollectTracing5, &config)).unwrap(),
        config
    );
}

#[test]
fn requests_that_crash_runtimes_are_rejected_by_name_and_offset() {
    let form = SessionForm::CollectTracing2;
    let good = payload(form, &config());
    let change = |at: usize, with: &[u8]| {
        let mut bytes = good.clone();
        bytes.splice(at..at + with.len(), with.iter().copied());
        decoded(form, &bytes).unwrap_err().to_string()
    };
    assert_eq!(change(0, &[0, 0]), "circular buffer size at offset 20: is 0, less than 1");
    assert_eq!(change(4, &[2]), "format at offset 24: is 0x2, expected 0 or 1");
    assert_eq!(change(9, &[0]), "provider count at offset 29: is 0, less than 1");
    assert_eq!(change(9, &[0xe9, 3]), "provider count at offset 29: is 1001, more than the allowed 1000");
    assert_eq!(change(9, &[2]), "provider keywords at offset 67: needs 8 bytes, 0 are left");
    assert_eq!(change(21, &[6]), "provider level at offset 41: is 0x6, expected 0 to 5");
    assert_eq!(change(25, &[0; 4]), "provider name at offset 45: is empty");
    assert_eq!(
        change(25, &[3, 0, 0, 0x80]),
        "provider name at offset 49: needs 4294967302 bytes, 18 are left"
    );
    assert_eq!(change(33, b"c"), "provider name at offset 49: has no terminating NUL");
}

#[test]
fn filters_of_any_claimed_length_cost_nothing() {
    let form = SessionForm::CollectTracing5;
    let mut bytes = payload(form, &config());
    let count = bytes.len() - 4;
    bytes[count..].copy_from_slice(&[0xff; 4]);
    assert_eq!(
        decoded(form, &bytes).unwrap_err().to_string(),
        "filter id count at offset 80: is 4294967295, more than the allowed 10000"
    );
    bytes[count..].copy_from_slice(&[10, 0, 0, 0]);
    assert!(matches!(decoded(form, &bytes), Err(RequestError::BadEncoding(e)) if e.is_incomplete()));
}

#[test]
fn unknown_session_types_and_modes_are_rejected() {
    let mut bytes = payload(SessionForm::CollectTracing5, &config());
    bytes[0] = 2;
    let error = Request::decode(Command::COLLECT_TRACING5, &bytes).unwrap_err();
    assert_eq!(error.to_string(), "session type at offset 20: is 0x2, expected 0 or 1");
    let mut bytes = payload(SessionForm::CollectTracing6, &config());
    let mode = bytes.len() - 4;
    bytes[mode] = 2;
    let error = Request::decode(Command::COLLECT_TRACING6, &bytes).unwrap_err();
    assert_eq!(error.to_string(), "buffering mode at offset 84: is 0x2, expected 0 or 1");
}
