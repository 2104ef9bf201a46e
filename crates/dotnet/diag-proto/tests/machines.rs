//! The client and the server state machine with each other, and with peers that misbehave.

use runtap_diag_proto::{
    Command, CoreDump, DumpForm, DumpType, EncodeError, ErrorReply, Hresult, InfoForm, Level, PerfMapType,
    Provider, Reply, Request, RequestError, SessionConfig, SessionForm, SessionId, Tracepoints,
    UserEventsConfig, UserEventsProvider, Variable,
    client::{self, Client, Failure},
    server::{self, Server},
};

/// A client and a server connected by a wire that carries `step` bytes at a time.
struct Pair {
    client: Client,
    server: Server,
    step: usize,
}

impl Pair {
    fn new(request: Request, step: usize) -> Self {
        Self { client: Client::new(request).unwrap(), server: Server::new(), step }
    }

    fn drive(&mut self) {
        while let Some(bytes) = self.client.poll_transmit() {
            bytes.chunks(self.step).for_each(|part| self.server.handle_bytes(part));
        }
        while let Some(bytes) = self.server.poll_transmit() {
            for part in bytes.chunks(self.step) {
                assert_eq!(self.client.handle_bytes(part), part.len());
            }
        }
    }
}

fn session() -> Request {
    let config = SessionConfig::new(vec![Provider::new("A", 1, Level::Verbose)]);
    Request::CollectTracing { form: SessionForm::CollectTracing4, config }
}

#[test]
fn a_command_gets_its_reply() {
    let request = Request::ProcessEnvironment;
    let reply = Reply::Environment(vec![Variable::new("A", "b"), Variable::new("C", "")]);
    for step in [1, 3, 1000] {
        let mut pair = Pair::new(request.clone(), step);
        pair.drive();
        assert_eq!(pair.server.poll_event(), Some(server::Event::Request(request.clone())));
        assert_eq!(pair.client.poll_event(), None);
        pair.server.reply(&reply).unwrap();
        pair.drive();
        assert_eq!(pair.client.poll_event(), Some(client::Event::Reply(reply.clone())));
        assert!(pair.client.is_done() && pair.server.is_done());
    }
}

#[test]
fn bytes_of_a_stream_are_not_consumed_by_the_client() {
    let mut pair = Pair::new(session(), 1);
    pair.drive();
    let Some(server::Event::Request(Request::CollectTracing { .. })) = pair.server.poll_event() else {
        panic!()
    };
    pair.server.reply(&Reply::SessionStarted(SessionId(7))).unwrap();
    pair.drive();
    assert_eq!(pair.client.poll_event(), Some(client::Event::Reply(Reply::SessionStarted(SessionId(7)))));
    assert!(pair.client.is_stream());
    assert_eq!(pair.client.handle_bytes(b"Nettrace"), 0);
    pair.client.handle_eof();
    assert_eq!(pair.client.poll_event(), None);
    assert!(pair.client.is_done());
}

#[test]
fn rejections_carry_their_code() {
    let mut pair = Pair::new(session(), 4);
    pair.drive();
    pair.server.refuse(&Hresult::E_FAIL.into()).unwrap();
    pair.drive();
    let refused = Failure::Rejected(ErrorReply { hresult: Hresult::E_FAIL, message: None });
    assert_eq!(pair.client.poll_event(), Some(client::Event::Failed(refused)));
    assert!(pair.client.is_done(), "an error does not wait for the peer to close");
}

#[test]
fn one_connection_gives_one_answer() {
    let mut pair = Pair::new(Request::ResumeRuntime, 100);
    assert_eq!(pair.server.reply(&Reply::Resumed), Err(EncodeError::NothingToAnswer));
    pair.drive();
    let wrong = pair.server.reply(&Reply::SessionStopped(SessionId(1))).unwrap_err();
    assert_eq!(wrong, EncodeError::WrongReply { command: Command::RESUME_RUNTIME });
    pair.server.reply(&Reply::Resumed).unwrap();
    assert_eq!(pair.server.reply(&Reply::Resumed), Err(EncodeError::NothingToAnswer));
    assert_eq!(pair.server.refuse(&Hresult::E_FAIL.into()), Err(EncodeError::NothingToAnswer));
}

#[test]
fn answers_after_the_first_are_counted_and_ignored() {
    let request = Request::StopTracing(SessionId(1));
    let answer = Reply::SessionStopped(SessionId(1)).to_bytes(&request).unwrap();
    let mut client = Client::new(request).unwrap();
    assert_eq!(client.handle_bytes(&answer), answer.len());
    assert_eq!(client.surplus(), 0);
    let second = ErrorReply::from(Hresult::E_FAIL).to_bytes().unwrap();
    client.handle_bytes(&second);
    client.handle_bytes(b"garbage");
    client.handle_eof();
    assert_eq!(client.surplus(), second.len() as u64 + 7);
    assert_eq!(client.poll_event(), Some(client::Event::Reply(Reply::SessionStopped(SessionId(1)))));
    assert_eq!(client.poll_event(), None);
}

#[test]
fn a_missing_answer_is_distinguished_from_a_partial_one() {
    for (bytes, received) in [(&b""[..], 0), (b"DOTNET_IPC_V1\0\x18\0", 16)] {
        let mut client = Client::new(Request::ResumeRuntime).unwrap();
        client.handle_bytes(bytes);
        client.handle_eof();
        assert_eq!(client.poll_event(), Some(client::Event::Failed(Failure::Closed { received })));
    }
}

fn protocol_error(answer: &[u8]) -> String {
    let mut client = Client::new(Request::ProcessInfo(InfoForm::ProcessInfo)).unwrap();
    client.handle_bytes(answer);
    match client.poll_event() {
        Some(client::Event::Failed(Failure::Protocol(error))) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_answers_are_reported_with_offset_and_field() {
    assert_eq!(protocol_error(b"HTTP/1.1 400 Bad Request"), "magic at offset 0: is not \"DOTNET_IPC_V1\"");
    assert_eq!(protocol_error(b"DOTNET_IPC_V1\0\x13\0\xff\0\0\0"), "size at offset 14: is 19, less than 20");
    assert_eq!(
        protocol_error(b"DOTNET_IPC_V1\0\x14\0\x04\0\0\0"),
        "reply command at offset 16: is 0x400, expected 0xff00 (OK) or 0xffff (Error)"
    );
    assert_eq!(
        protocol_error(b"DOTNET_IPC_V1\0\x14\0\xff\0\0\0"),
        "process id at offset 20: needs 8 bytes, 0 are left"
    );
    assert_eq!(
        protocol_error(b"DOTNET_IPC_V1\0\x14\0\xff\xff\0\0"),
        "error code at offset 20: needs 4 bytes, 0 are left"
    );
}

#[test]
fn an_environment_with_a_wrong_size_is_a_protocol_error() {
    let mut client = Client::new(Request::ProcessEnvironment).unwrap();
    client.handle_bytes(b"DOTNET_IPC_V1\0\x1a\0\xff\0\0\0\x08\0\0\0\0\0\xff\xff\xff\xff");
    let Some(client::Event::Failed(Failure::Protocol(error))) = client.poll_event() else { panic!() };
    assert_eq!(error.to_string(), "environment count at offset 0: is 4294967295, more than the allowed 1");
}

fn refusal(bytes: &[u8]) -> (RequestError, Vec<u8>) {
    let mut server = Server::new();
    server.handle_bytes(bytes);
    server.handle_eof();
    let Some(server::Event::Rejected(error)) = server.poll_event() else { panic!() };
    (error, server.poll_transmit().unwrap())
}

#[test]
fn the_server_answers_invalid_requests_as_a_runtime_does() {
    let cases: [(&[u8], Hresult); 6] = [
        (b"", Hresult::BAD_ENCODING),
        (b"DOTNET_IPC_V1\0\x14\0\x04", Hresult::BAD_ENCODING),
        (b"DOTNET_IPC_V1\0\x13\0\x04\0\0\0", Hresult::BAD_ENCODING),
        (b"DOTNET_IPC_V1X\x14\0\x04\0\0\0", Hresult::UNKNOWN_MAGIC),
        (b"DOTNET_IPC_V1\0\x14\0\x04\x63\0\0", Hresult::UNKNOWN_COMMAND),
        (b"DOTNET_IPC_V1\0\x18\0\x02\x01\0\0\x01\0\0\0", Hresult::BAD_ENCODING),
    ];
    for (bytes, expected) in cases {
        let (error, answer) = refusal(bytes);
        assert_eq!(error.hresult(), expected, "{bytes:?}");
        assert_eq!(answer, ErrorReply::from(expected).to_bytes().unwrap());
    }
}

#[test]
fn a_second_request_on_a_connection_is_not_read() {
    let one = Request::ResumeRuntime.to_bytes().unwrap();
    let two = Request::ProcessEnvironment.to_bytes().unwrap();
    let mut server = Server::new();
    server.handle_bytes(&[one, two].concat());
    server.handle_eof();
    assert_eq!(server.poll_event(), Some(server::Event::Request(Request::ResumeRuntime)));
    assert_eq!(server.poll_event(), None);
}

fn user_events() -> Request {
    let provider = UserEventsProvider {
        provider: Provider::new("A", 1, Level::Verbose),
        tracepoints: Tracepoints::all_to("Demo_A"),
    };
    let config = UserEventsConfig::new(vec![provider]);
    Request::CollectUserEvents { form: SessionForm::CollectTracing5, config }
}

#[test]
fn a_session_into_user_events_waits_for_its_descriptor() {
    assert_eq!(Client::new(user_events()).unwrap_err(), EncodeError::DescriptorMissing);
    let mut client = Client::with_descriptor(user_events()).unwrap();
    assert_eq!(client.poll_descriptor(), None, "the request comes first");
    let request = client.poll_transmit().unwrap();
    assert_eq!(client.poll_descriptor(), Some([0]));
    assert_eq!(client.poll_descriptor(), None);

    let mut server = Server::with_user_events();
    server.handle_descriptor();
    server.handle_bytes(&request[..7]);
    assert!(!server.needs_descriptor());
    server.handle_bytes(&request[7..]);
    assert!(server.needs_descriptor());
    assert_eq!(server.poll_event(), None);
    server.handle_descriptor();
    assert_eq!(server.poll_event(), Some(server::Event::Request(user_events())));
    server.reply(&Reply::SessionStarted(SessionId(7))).unwrap();
    client.handle_bytes(&server.poll_transmit().unwrap());
    assert_eq!(client.poll_event(), Some(client::Event::Reply(Reply::SessionStarted(SessionId(7)))));
    assert!(client.is_stream());
}

#[test]
fn a_missing_descriptor_is_reported() {
    let request = user_events().to_bytes().unwrap();
    for step in [1, request.len(), request.len() + 1] {
        let mut server = Server::with_user_events();
        [&request[..], &[0]].concat().chunks(step).for_each(|part| server.handle_bytes(part));
        let Some(server::Event::Rejected(error)) = server.poll_event() else { panic!() };
        let expected =
            format!("user_events descriptor at offset {}: was not received with its byte", request.len());
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.hresult(), Hresult::BAD_ENCODING);
        server.handle_descriptor();
        assert_eq!(server.poll_event(), None);
    }
    let mut server = Server::with_user_events();
    server.handle_bytes(&request);
    server.handle_eof();
    let received = request.len();
    assert_eq!(server.poll_event(), Some(server::Event::Rejected(RequestError::Incomplete { received })));
}

#[test]
fn a_server_without_descriptors_rejects_user_events_at_once() {
    let mut server = Server::new();
    server.handle_bytes(&user_events().to_bytes().unwrap());
    let Some(server::Event::Rejected(error)) = server.poll_event() else { panic!() };
    assert_eq!(error, RequestError::NotSupported(Command::COLLECT_TRACING5));
    assert_eq!(error.hresult(), Hresult::NOTSUPPORTED);
    assert!(!server.needs_descriptor());
}

#[test]
fn commands_without_a_result_are_done() {
    let commands = [
        Request::GenerateCoreDump {
            form: DumpForm::GenerateCoreDump3,
            dump: CoreDump::new("/x", DumpType::FULL),
        },
        Request::SetEnvironmentVariable { name: "A".into(), value: None },
        Request::EnablePerfMap(PerfMapType::All),
        Request::DisablePerfMap,
        Request::ApplyStartupHook { path: "/x".into() },
    ];
    for request in commands {
        let mut pair = Pair::new(request.clone(), 5);
        pair.drive();
        assert_eq!(pair.server.poll_event(), Some(server::Event::Request(request.clone())));
        assert!(pair.server.reply(&Reply::Resumed).is_err());
        pair.server.reply(&Reply::Done).unwrap();
        pair.drive();
        assert_eq!(pair.client.poll_event(), Some(client::Event::Reply(Reply::Done)));
    }
    assert!(Reply::Done.to_bytes(&Request::ResumeRuntime).is_err());
    assert!(Reply::Done.to_bytes(&Request::ProcessEnvironment).is_err());
}
