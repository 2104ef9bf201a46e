//! Sessions into `user_events`: the descriptor arrives in a separate message after the request.

use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use runtap_diag::{
    Client, EncodeError, Error, ErrorReply, Hresult, Level, Provider, Reply, Request, SessionForm, SessionId,
    Tracepoints, UserEventsConfig, UserEventsProvider, blocking,
};
use runtap_diag_proto::server::{Event, Server};
use runtap_transport::Endpoint;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use tempfile::TempDir;

const ID: SessionId = SessionId(0x77);

fn config() -> UserEventsConfig {
    UserEventsConfig::new(vec![UserEventsProvider {
        provider: Provider::new("Demo", 1, Level::Verbose),
        tracepoints: Tracepoints::all_to("Demo_All").with_set("Demo_Some", [1, 2]),
    }])
}

/// Receives the request and the descriptor that follows, as a server does.
fn receive(stream: &mut UnixStream) -> (Request, Option<OwnedFd>) {
    let mut server = Server::with_user_events();
    let mut descriptor = None;
    loop {
        if server.needs_descriptor() {
            let mut byte = [0];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut byte)];
            let received =
                rustix::net::recvmsg(&*stream, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
            assert_eq!(received.bytes, 1);
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    descriptor = descriptors.last();
                }
            }
            server.handle_descriptor();
        } else {
            // At most the request: the read must not include the message of the descriptor.
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            server.handle_bytes(&byte);
        }
        if let Some(event) = server.poll_event() {
            let Event::Request(request) = event else { panic!("{event:?}") };
            return (request, descriptor);
        }
    }
}

/// Serves two connections: the session's, whose descriptor is written to, and that of the stop command.
fn runtime() -> (TempDir, Endpoint, thread::JoinHandle<UserEventsConfig>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let serving = thread::spawn(move || {
        let (mut session, _) = listener.accept().unwrap();
        let (request, descriptor) = receive(&mut session);
        File::from(descriptor.unwrap()).write_all(b"an event").unwrap();
        session.write_all(&Reply::SessionStarted(ID).to_bytes(&request).unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let (stop, _) = receive(&mut other);
        assert_eq!(stop, Request::StopTracing(ID));
        other.write_all(&Reply::SessionStopped(ID).to_bytes(&stop).unwrap()).unwrap();
        match request {
            Request::CollectUserEvents { config, form: SessionForm::CollectTracing5 } => config,
            other => panic!("{other:?}"),
        }
    });
    (folder, Endpoint::unix(path), serving)
}

#[test]
fn the_target_writes_through_the_descriptor() {
    let (_folder, endpoint, serving) = runtime();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let client = blocking::Client::new(endpoint).unwrap();
    let session = client.start_user_events(&config(), writer.into()).unwrap();
    assert_eq!(session.id(), ID);
    session.stop().unwrap();
    assert_eq!(serving.join().unwrap(), config());
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "an event");
}

#[tokio::test]
async fn a_runtime_without_user_events_rejects_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    // Answers before reading the descriptor, and closes the connection, like an old runtime.
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let answer = ErrorReply::from(Hresult::UNKNOWN_COMMAND).to_bytes().unwrap();
        stream.write_all(&answer).unwrap();
    });
    let descriptor = File::open("/dev/null").unwrap().into();
    let error = Client::new(Endpoint::unix(path)).start_user_events(&config(), descriptor).await.unwrap_err();
    assert!(error.is_unknown_command(), "{error}");
    serving.join().unwrap();
}

#[tokio::test]
async fn nothing_is_sent_without_a_descriptor_or_for_an_invalid_config() {
    // No process listens there: the check comes first.
    let client = Client::new(Endpoint::unix("/nope/socket"));
    let request = Request::CollectUserEvents { form: SessionForm::CollectTracing5, config: config() };
    let error = client.request(request).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(EncodeError::DescriptorMissing)), "{error}");
    let mut twice = config();
    twice.providers[0].tracepoints = Tracepoints::default().with_set("A", [1]).with_set("B", [1]);
    let descriptor = File::open("/dev/null").unwrap().into();
    let error = client.start_user_events(&twice, descriptor).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(EncodeError::Tracepoints { .. })), "{error}");
}
