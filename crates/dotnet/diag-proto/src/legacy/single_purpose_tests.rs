//! Golden bytes made from the description, client against server, and invalid requests.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::Level;

fn config() -> Config {
    Config {
        buffer_mb: 256,
        providers: vec![Provider::new("Ab", 1, Level::Informational).with_arguments("x")],
    }
}

fn request(operation: Operation) -> Request {
    Request { pid: 42, operation }
}

const PROVIDER: &[u8] = b"\x01\0\0\0\x01\0\0\0\0\0\0\0\x04\0\0\0\x03\0\0\0A\0b\0\0\0\x02\0\0\0x\0\0\0";

#[test]
fn golden_bytes() {
    let collect = [b"\x02\x04\0\0\x2a\0\0\0\0\x01\0\0\0\0\0\0", PROVIDER].concat();
    assert_eq!(request(Operation::Collect(config())).to_bytes().unwrap(), collect);
    let start = [b"\x00\x04\0\0\x2a\0\0\0\0\x01\0\0\x03\0\0\0/\0t\0\0\0", PROVIDER].concat();
    let operation = Operation::Start { output: "/t".into(), config: config() };
    assert_eq!(request(operation).to_bytes().unwrap(), start);
    let stop = b"\x01\x04\0\0\x2a\0\0\0\x07\0\0\0\0\0\0\0";
    assert_eq!(request(Operation::Stop(SessionId(7))).to_bytes().unwrap(), stop);
}

/// Connects a client and a server by a wire that carries `step` bytes at a time.
fn exchange(request: &Request, answer: u64, tail: &[u8], step: usize) -> (Option<Answer>, usize) {
    let mut client = Client::new(request).unwrap();
    let mut server = Server::new();
    client.poll_transmit().unwrap().chunks(step).for_each(|part| server.handle_bytes(part));
    assert_eq!(server.poll_event(), Some(Event::Request(request.clone())));
    server.accept(SessionId(answer)).unwrap();
    assert_eq!(server.accept(SessionId(answer)), Err(EncodeError::NothingToAnswer));
    let bytes = [&server.poll_transmit().unwrap()[..], tail].concat();
    let taken = bytes.chunks(step).map(|part| client.handle_bytes(part)).sum();
    client.handle_eof();
    (client.poll_event(), taken)
}

#[test]
fn sessions_start_stream_and_stop() {
    for operation in [
        Operation::Collect(config()),
        Operation::Start { output: "/t".into(), config: config() },
        Operation::Stop(SessionId(9)),
    ] {
        for step in [1, 3, 100] {
            let (answer, taken) = exchange(&request(operation.clone()), 9, b"!FastSerialization.1", step);
            assert_eq!((answer, taken), (Some(Answer::Session(SessionId(9))), 8));
        }
    }
    let (answer, _) = exchange(&request(Operation::Collect(config())), 0, b"", 8);
    assert_eq!(answer, Some(Answer::Refused));
}

#[test]
fn a_truncated_answer_is_reported() {
    for received in 0..8 {
        let mut client = Client::new(&request(Operation::Stop(SessionId(1)))).unwrap();
        client.handle_bytes(&[1; 8][..received]);
        client.handle_eof();
        assert_eq!(client.poll_event(), Some(Answer::Closed { received }));
    }
}

fn refused(bytes: &[u8]) -> String {
    let mut server = Server::new();
    server.handle_bytes(bytes);
    server.handle_eof();
    assert_eq!(server.poll_transmit(), Some([0; 8]));
    assert_eq!(server.refuse(), Err(EncodeError::NothingToAnswer));
    match server.poll_event() {
        Some(Event::Refused(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_requests_are_answered_with_0() {
    assert_eq!(refused(b""), "request at offset 0: ends in the middle");
    assert_eq!(refused(b"\x00\x04\0\0"), "request at offset 4: ends in the middle");
    assert_eq!(
        refused(b"\x03\x04\0\0\x2a\0\0\0"),
        "request type at offset 0: is 0x403, expected 1024, 1025 or 1026"
    );
    let collect = request(Operation::Collect(config())).to_bytes().unwrap();
    let change = |at: usize, with: &[u8]| {
        let mut bytes = collect.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        refused(&bytes)
    };
    assert_eq!(change(8, &[0, 0]), "circular buffer size at offset 8: is 0, less than 1");
    assert_eq!(change(16, &[0xe9, 3]), "provider count at offset 16: is 1001, more than the allowed 1000");
    assert_eq!(change(28, &[6]), "provider level at offset 28: is 0x6, expected 0 to 5");
    assert_eq!(change(0, &[0]), "output path at offset 12: is null or empty");
    // The server does not wait for a length that can never arrive, in whatever pieces the bytes come.
    let endless = [&collect[..12], &[0xff; 4]].concat();
    for step in [1, 5, 100] {
        let mut server = Server::new();
        endless.chunks(step).for_each(|part| server.handle_bytes(part));
        let Some(Event::Refused(error)) = server.poll_event() else { panic!() };
        let expected = "output path at offset 16: is 8589934606, more than the allowed 65536";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn invalid_requests_are_not_encoded() {
    let why = |operation| request(operation).to_bytes().unwrap_err().to_string();
    let with = |change: &dyn Fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Operation::Collect(config)
    };
    assert_eq!(why(Operation::Start { output: String::new(), config: config() }), "output path: is empty");
    assert_eq!(why(with(&|c| c.buffer_mb = 0)), "circular buffer size: is 0 MB");
    assert_eq!(why(with(&|c| c.providers.clear())), "providers: none specified");
    assert_eq!(why(with(&|c| c.providers[0].name.clear())), "provider name: is empty");
    assert!(why(with(&|c| c.providers[0].arguments = Some("x".repeat(40_000)))).starts_with("message size"));
}

fn provider() -> impl Strategy<Value = Provider> {
    ("[A-Za-z.é-]{1,12}", any::<u64>(), 0..6u32, prop::option::of("[^\0]{0,20}")).prop_map(
        |(name, keywords, level, arguments)| Provider {
            arguments,
            ..Provider::new(name, keywords, Level::from_number(level).unwrap())
        },
    )
}

fn any_request() -> impl Strategy<Value = Request> {
    let config = || {
        (1..=u32::MAX, vec(provider(), 1..4))
            .prop_map(|(buffer_mb, providers)| Config { buffer_mb, providers })
    };
    let operation = prop_oneof![
        ("[^\0]{1,20}", config()).prop_map(|(output, config)| Operation::Start { output, config }),
        any::<u64>().prop_map(|id| Operation::Stop(SessionId(id))),
        config().prop_map(Operation::Collect),
    ];
    (any::<u32>(), operation).prop_map(|(pid, operation)| Request { pid, operation })
}

proptest! {
    #[test]
    fn requests_come_back_in_any_pieces(request in any_request(), step in 1..40usize) {
        let Ok(bytes) = request.to_bytes() else { return Ok(()) };
        let mut server = Server::new();
        bytes.chunks(step).for_each(|part| server.handle_bytes(part));
        prop_assert_eq!(server.poll_event(), Some(Event::Request(request)));
    }

    #[test]
    fn a_part_of_a_request_is_not_a_request(request in any_request(), cut in any::<prop::sample::Index>()) {
        let Ok(bytes) = request.to_bytes() else { return Ok(()) };
        let mut server = Server::new();
        server.handle_bytes(&bytes[..cut.index(bytes.len())]);
        prop_assert_eq!(server.poll_event(), None);
        server.handle_eof();
        prop_assert!(matches!(server.poll_event(), Some(Event::Refused(_))));
    }

    #[test]
    fn any_bytes_are_a_request_or_rejected(bytes in vec(any::<u8>(), 0..100)) {
        let mut server = Server::new();
        server.handle_bytes(&bytes);
        server.handle_eof();
        prop_assert!(server.poll_event().is_some());
    }
}
