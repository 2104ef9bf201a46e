//! A tap between a client and a runtime: every byte is forwarded, and every piece is identified.

use proptest::{collection::vec, prelude::*};
use runtap_diag_proto::{
    Advertise, Command, ErrorReply, HEADER_LEN, Hresult, Level, MAX_MESSAGE, Provider, Reply, Request,
    RequestError, SessionConfig, SessionForm, SessionId, Tracepoints, UserEventsConfig, UserEventsProvider,
    Uuid, Variable,
    tap::{PieceKind, Side, Tap},
};

/// The forwarded data: the kinds in order, with equal neighbors joined, and the bytes of each direction.
#[derive(Debug, Default, PartialEq, Eq)]
struct Passed {
    kinds: Vec<(Side, String)>,
    up: Vec<u8>,
    down: Vec<u8>,
}

impl Passed {
    fn take(&mut self, tap: &mut Tap) {
        while let Some(piece) = tap.poll_transmit() {
            assert!(!piece.bytes().is_empty());
            let kind = (piece.from, format!("{:?}", piece.kind));
            let messages = matches!(piece.kind, PieceKind::Request(_) | PieceKind::Reply(_));
            if messages || self.kinds.iter().rev().find(|(from, _)| *from == piece.from) != Some(&kind) {
                self.kinds.push(kind);
            }
            match piece.from {
                Side::Client => self.up.extend_from_slice(piece.bytes()),
                Side::Runtime => self.down.extend_from_slice(piece.bytes()),
            }
        }
    }

    fn kinds_of(&self, side: Side) -> Vec<&str> {
        self.kinds.iter().filter(|(from, _)| *from == side).map(|(_, kind)| kind.as_str()).collect()
    }
}

fn pass(mut tap: Tap, said: &[(Side, &[u8])], step: usize, ends: bool) -> (Passed, Tap) {
    let mut passed = Passed::default();
    for (from, bytes) in said {
        for part in bytes.chunks(step.max(1)) {
            tap.handle_bytes(*from, part);
            passed.take(&mut tap);
        }
    }
    if ends {
        tap.handle_eof(Side::Client);
        tap.handle_eof(Side::Runtime);
        passed.take(&mut tap);
    }
    (passed, tap)
}

/// Returns the kinds of the two directions, which are independent of the chunks.
#[track_caller]
fn kinds(tap: fn() -> Tap, up: &[u8], down: &[u8]) -> (Vec<String>, Vec<String>) {
    let said = [(Side::Client, up), (Side::Runtime, down)];
    let (whole, _) = pass(tap(), &said, usize::MAX, true);
    for step in [1, 7, 19, 21] {
        assert_eq!(pass(tap(), &said, step, true).0, whole, "{step}");
    }
    assert_eq!((&whole.up[..], &whole.down[..]), (up, down));
    let own = |side| whole.kinds_of(side).into_iter().map(str::to_owned).collect();
    (own(Side::Client), own(Side::Runtime))
}

fn session() -> Request {
    let config = SessionConfig::new(vec![Provider::new("A", 1, Level::Verbose)]);
    Request::CollectTracing { form: SessionForm::CollectTracing4, config }
}

fn user_events() -> Request {
    let provider = Provider::new("A", 1, Level::Verbose);
    let entry = UserEventsProvider { provider, tracepoints: Tracepoints::all_to("a") };
    let config = UserEventsConfig::new(vec![entry]);
    Request::CollectUserEvents { form: SessionForm::CollectTracing5, config }
}

#[test]
fn golden_bytes_of_a_command() {
    let up = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
    let down = b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0";
    let said = [(Side::Client, &up[..]), (Side::Runtime, down)];
    let (passed, tap) = pass(Tap::new(), &said, usize::MAX, false);
    assert_eq!(tap.request(), Some(&Request::ResumeRuntime));
    assert_eq!(passed.kinds_of(Side::Client), ["0x0401 (ResumeRuntime) of 20 bytes".wrapped("Request")]);
    assert_eq!(passed.kinds_of(Side::Runtime), ["0xff00 (OK) of 24 bytes".wrapped("Reply")]);
    assert_eq!((&passed.up[..], &passed.down[..]), (&up[..], &down[..]));
}

trait Wrapped {
    fn wrapped(&self, kind: &str) -> String;
}

impl Wrapped for str {
    fn wrapped(&self, kind: &str) -> String {
        format!("{kind}({self})")
    }
}

#[test]
fn a_message_is_held_until_complete_and_forwarded_in_one_piece() {
    let bytes = session().to_bytes().unwrap();
    let mut tap = Tap::new();
    for byte in &bytes[..bytes.len() - 1] {
        tap.handle_bytes(Side::Client, std::slice::from_ref(byte));
        assert_eq!(tap.poll_transmit(), None);
    }
    // Together with the bytes after it.
    tap.handle_bytes(Side::Client, &[bytes[bytes.len() - 1], 9]);
    let piece = tap.poll_transmit().unwrap();
    assert_eq!(piece.bytes(), bytes);
    let PieceKind::Request(message) = &piece.kind else { panic!("{piece:?}") };
    assert_eq!(message.to_request().unwrap(), session());
    assert_eq!((message.header().size as usize, message.command()), (bytes.len(), Command::COLLECT_TRACING4));
    assert_eq!(message.payload(), &bytes[HEADER_LEN..]);
    assert_eq!(tap.poll_transmit().unwrap().bytes(), [9]);
}

#[test]
fn what_follows_a_reply_depends_on_the_request() {
    let reply = |request: &Request, reply: Reply| reply.to_bytes(request).unwrap();
    let environment = Reply::Environment(vec![Variable::new("A", "b")]);
    for (request, answer, after, expected) in [
        (session(), Reply::SessionStarted(SessionId(7)), &b"Nettrace"[..], &["Stream"][..]),
        (Request::ProcessEnvironment, environment, b"x", &["Variables", "Other"]),
        (Request::ResumeRuntime, Reply::Resumed, b"x", &["Other"]),
    ] {
        let up = request.to_bytes().unwrap();
        let down = [reply(&request, answer), after.to_vec()].concat();
        let (_, runtime) = kinds(Tap::new, &up, &down);
        assert!(runtime[0].starts_with("Reply(0xff00 (OK)"), "{runtime:?}");
        assert_eq!(&runtime[1..], expected);
    }
    let refused = [ErrorReply::from(Hresult::E_FAIL).to_bytes().unwrap(), b"Nettrace".to_vec()].concat();
    let (_, runtime) = kinds(Tap::new, &session().to_bytes().unwrap(), &refused);
    assert_eq!(runtime, ["Reply(0xffff (Error) of 24 bytes)", "Other"]);
}

#[test]
fn a_stream_need_not_pass_through_the_tap() {
    let down = Reply::SessionStarted(SessionId(7)).to_bytes(&session()).unwrap();
    let up = session().to_bytes().unwrap();
    let said = [(Side::Client, &up[..]), (Side::Runtime, &down)];
    assert!(pass(Tap::new(), &said, 3, false).1.is_stream());
    let said = [(Side::Client, &up[..]), (Side::Runtime, &down[..27])];
    assert!(!pass(Tap::new(), &said, 3, false).1.is_stream());
}

#[test]
fn a_descriptor_is_announced_with_its_byte() {
    let up = [user_events().to_bytes().unwrap(), vec![0, 1]].concat();
    let down = Reply::SessionStarted(SessionId(7)).to_bytes(&user_events()).unwrap();
    let (client, runtime) = kinds(Tap::new, &up, &down);
    assert_eq!(&client[1..], ["Descriptor", "Other"]);
    assert_eq!(runtime.len(), 1);
}

#[test]
fn a_runtime_that_connects_identifies_itself_first() {
    let advertise = Advertise { runtime_cookie: Uuid::from_u128(7), process_id: 42 };
    let reply = Reply::Resumed.to_bytes(&Request::ResumeRuntime).unwrap();
    let down = [advertise.to_bytes(), reply].concat();
    // The runtime sends data before the client sends a command.
    let said = [(Side::Runtime, &down[..34]), (Side::Client, &Request::ResumeRuntime.to_bytes().unwrap())];
    let (passed, _) = pass(Tap::for_port(), &said, 5, false);
    assert_eq!(passed.kinds_of(Side::Runtime), [format!("{:?}", PieceKind::Advertise(advertise))]);
    let (_, runtime) = kinds(Tap::for_port, &Request::ResumeRuntime.to_bytes().unwrap(), &down);
    assert_eq!(runtime.len(), 2);
    let (_, runtime) = kinds(Tap::for_port, b"", b"ADVR_V2\0 and more than that of it, and more");
    assert_eq!(runtime, ["Other"]);
}

#[test]
fn harmful_requests_are_forwarded_and_reported() {
    // A session without providers, which the encoder rejects.
    let mut bytes = session().to_bytes().unwrap();
    let count = HEADER_LEN + 4 + 4 + 8 + 1;
    bytes[count..count + 4].fill(0);
    let (passed, tap) = pass(Tap::new(), &[(Side::Client, &bytes)], 100, true);
    assert_eq!(passed.up, bytes);
    assert_eq!(passed.kinds.len(), 1);
    assert!(tap.request().is_none());
    let mut tap = Tap::new();
    tap.handle_bytes(Side::Client, &bytes);
    let PieceKind::Request(message) = tap.poll_transmit().unwrap().kind else { panic!("no request") };
    assert!(matches!(message.to_request(), Err(RequestError::BadEncoding(_))), "{:?}", message.to_request());
    assert_eq!(format!("{message:?}"), format!("0x0205 (CollectTracing4) of {} bytes", bytes.len()));
}

#[test]
fn invalid_messages_are_forwarded_from_their_header_on() {
    let mut tap = Tap::new();
    tap.handle_bytes(Side::Client, b"GET / HTTP/1.1\r\nHost");
    assert_eq!(tap.poll_transmit().unwrap().bytes(), b"GET / HTTP/1.1\r\nHost");
    assert_eq!(tap.error(Side::Client).unwrap().to_string(), "magic at offset 0: is not \"DOTNET_IPC_V1\"");
    assert_eq!(tap.error(Side::Runtime), None);
    // The reply to it can still be decoded.
    tap.handle_bytes(Side::Runtime, &ErrorReply::from(Hresult::UNKNOWN_MAGIC).to_bytes().unwrap());
    assert!(matches!(tap.poll_transmit().unwrap().kind, PieceKind::Reply(_)));
    tap.handle_bytes(Side::Client, b"x");
    assert_eq!(tap.poll_transmit().unwrap().kind, PieceKind::Other);
}

#[test]
fn the_longest_message_is_held_and_no_more() {
    let mut bytes = b"DOTNET_IPC_V1\0\xff\xff\x02\x99\0\0".to_vec();
    bytes.resize(MAX_MESSAGE + 5, 3);
    let (client, _) = kinds(Tap::new, &bytes, b"");
    assert_eq!(client, ["Request(0x0299 of 65535 bytes)", "Other"]);
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let commands = vec![0x0401, 0x0402, 0x0205, 0x0206, 0x0201, 0x0299, 0xff00, 0xffff];
    (prop::sample::select(commands), vec(any::<u8>(), 0..60), -2..3i32).prop_map(
        |(command, payload, off): (u16, Vec<u8>, i32)| {
            let size = i32::try_from(HEADER_LEN + payload.len()).unwrap() + i32::from(off == 2);
            let size = u16::try_from(size).unwrap().to_le_bytes();
            let head = [&b"DOTNET_IPC_V1\0"[..], &size, &command.to_be_bytes(), &[0, 0]].concat();
            [head, payload].concat()
        },
    )
}

fn speech() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        session().to_bytes().unwrap(),
        user_events().to_bytes().unwrap(),
        Request::ProcessEnvironment.to_bytes().unwrap(),
        Reply::SessionStarted(SessionId(1)).to_bytes(&session()).unwrap(),
        Reply::Environment(vec![Variable::new("A", "b"), Variable::new("", "")])
            .to_bytes(&Request::ProcessEnvironment)
            .unwrap(),
        Advertise { runtime_cookie: Uuid::from_u128(7), process_id: 42 }.to_bytes(),
    ]);
    vec(prop_oneof![3 => known, 3 => message(), 1 => vec(any::<u8>(), 0..90)], 0..3)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_out_are_bytes_in(up in speech(), down in speech(), port: bool, step in 1..50usize) {
        let tap = || if port { Tap::for_port() } else { Tap::new() };
        let said = [(Side::Client, &up[..]), (Side::Runtime, &down)];
        let (whole, _) = pass(tap(), &said, usize::MAX, true);
        prop_assert_eq!(&whole.up, &up);
        prop_assert_eq!(&whole.down, &down);
        // Independent of the chunks.
        prop_assert_eq!(pass(tap(), &said, step, true).0, whole);
    }

    #[test]
    fn a_prefix_passes_a_prefix(
        up in speech(),
        down in speech(),
        port: bool,
        cuts in any::<[prop::sample::Index; 2]>(),
    ) {
        let cut = |bytes: &[u8], index: prop::sample::Index| index.index(bytes.len() + 1);
        let (up_cut, down_cut) = (cut(&up, cuts[0]), cut(&down, cuts[1]));
        let said = [(Side::Client, &up[..up_cut]), (Side::Runtime, &down[..down_cut])];
        let tap = if port { Tap::for_port() } else { Tap::new() };
        let (passed, tap) = pass(tap, &said, 11, false);
        prop_assert!(up.starts_with(&passed.up) && down.starts_with(&passed.down));
        // Data that was held back is forwarded at the end, followed by all later data.
        let mut tap = tap;
        tap.handle_eof(Side::Client);
        tap.handle_bytes(Side::Runtime, &down[down_cut..]);
        tap.handle_eof(Side::Runtime);
        let mut rest = Passed::default();
        rest.take(&mut tap);
        prop_assert_eq!([&passed.up[..], &rest.up].concat(), &up[..up_cut]);
        prop_assert_eq!([passed.down, rest.down].concat(), down);
    }
}
