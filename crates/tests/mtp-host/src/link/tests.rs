//! Time limits for servers that do not exist, do not reply, or reply too late. The limits are short here.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use runtap_mtp_proto::host::Connection;
use runtap_mtp_proto::server::{self, Mode, Settings};
use runtap_mtp_proto::{ExecutionMode, Message, SessionEvent, SessionEventType};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use super::{CONNECT_TIMEOUT, Link, connect_with_retry};
use crate::{HostError, Identity, Role, Server};

const SHORT: Duration = Duration::from_millis(50);

/// Connects to `server` and performs the handshake.
fn greeted(server: &Server) -> Result<(), HostError> {
    let mut link = Link::connect(server, CONNECT_TIMEOUT).unwrap();
    let handshake = Identity::this_program().handshake(&Role::Controller, &ExecutionMode::Run);
    link.greet(&mut Connection::data(), handshake, SHORT).map(drop)
}

#[track_caller]
fn is_silent(result: &Result<(), HostError>) {
    assert!(matches!(result, Err(HostError::Silent { waited: SHORT })), "{result:?}");
}

fn http(address: SocketAddr) -> Server {
    let endpoint = format!("http://{address}/");
    Server::Http { endpoint, token: "token".to_owned() }
}

#[test]
fn waiting_for_a_silent_server_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let _listener = UnixListener::bind(&path).unwrap();
    is_silent(&greeted(&Server::Pipe(path)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    is_silent(&greeted(&http(listener.local_addr().unwrap())));
}

#[test]
fn a_reply_in_single_bytes_has_the_same_time_limit() {
    /// Sends single bytes until the host closes the connection.
    fn trickle(mut stream: impl Read + Write, reply: &[u8]) {
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let mut bytes = reply.iter().chain(std::iter::repeat(&0));
        while stream.write_all(&[*bytes.next().unwrap()]).is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let listener = UnixListener::bind(&path).unwrap();
    // A frame of 64 KiB.
    let serving = thread::spawn(move || trickle(listener.accept().unwrap().0, &[0, 0, 1, 0, 9]));
    is_silent(&greeted(&Server::Pipe(path)));
    serving.join().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = http(listener.local_addr().unwrap());
    let serving = thread::spawn(move || trickle(listener.accept().unwrap().0, b"HTTP/1.1 200 OK\r\nX: "));
    is_silent(&greeted(&server));
    serving.join().unwrap();
}

#[test]
fn connecting_to_an_absent_server_is_retried_until_the_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let absent = |path: &PathBuf| {
        let error = Link::connect(&Server::Pipe(path.clone()), SHORT).unwrap_err();
        let HostError::Connect { waited, .. } = &error else { panic!("{error}") };
        assert!(*waited >= SHORT, "{error}");
    };
    absent(&path);
    // A socket without a listener.
    drop(UnixListener::bind(&path).unwrap());
    absent(&path);
    // A port that is bound, so that no other process uses it, but has no listener.
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    let error = Link::connect(&http(address), SHORT).unwrap_err();
    assert!(matches!(&error, HostError::Connect { waited, .. } if *waited >= SHORT), "{error}");
}

#[test]
fn a_server_may_appear_late() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let (mut attempts, mut listener) = (0, None);
    let stream = connect_with_retry(&path, CONNECT_TIMEOUT, &mut || {
        attempts += 1;
        // After the second failed attempt.
        if attempts == 2 {
            listener = Some(UnixListener::bind(&path).unwrap());
        }
        false
    });
    stream.unwrap();
    assert_eq!(attempts, 2);
}

/// A server that closes the connection after each reply.
#[test]
fn over_http_a_closed_connection_is_reopened_without_a_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = http(listener.local_addr().unwrap());
    let serving = thread::spawn(move || {
        let mut application = server::Application::new(Settings::new(Mode::Run));
        let mut connection = application.connect(server::Pipe::Data);
        let mut events = Vec::new();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            let frame = request(&mut stream);
            let output = application.handle_bytes(&mut connection, &frame);
            events.extend(output.events);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                output.transmit.len()
            );
            stream.write_all(&[head.as_bytes(), &output.transmit].concat()).unwrap();
        }
        events
    });
    let mut link = Link::connect(&server, CONNECT_TIMEOUT).unwrap();
    let mut connection = Connection::data();
    let identity = Identity::this_program();
    let role = Role::test_host().unwrap();
    link.greet(&mut connection, identity.handshake(&role, &ExecutionMode::Run), CONNECT_TIMEOUT).unwrap();
    for session_type in [SessionEventType::START, SessionEventType::END] {
        let event = Message::SessionEvent(SessionEvent {
            session_type: Some(session_type),
            session_uid: Some("s".to_owned()),
            execution_id: Some(identity.execution_id.clone()),
        });
        let frame = connection.request(&event).unwrap();
        link.exchange(&frame, &mut connection).unwrap();
    }
    let events = serving.join().unwrap();
    let messages = events.iter().filter(|event| matches!(event, server::Event::Message(_))).count();
    assert_eq!(messages, 2, "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, server::Event::Violation(_))), "{events:?}");
}

/// The body of a request.
fn request(stream: &mut impl Read) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = std::str::from_utf8(&bytes[..end]).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            if bytes.len() == end + 4 + length.parse::<usize>().unwrap() {
                return bytes.split_off(end + 4);
            }
        }
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the connection is closed");
        bytes.extend_from_slice(&buffer[..count]);
    }
}

#[test]
fn retries_stop_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut calls = 0;
    let is_over = &mut || {
        calls += 1;
        calls == 3
    };
    let error = connect_with_retry(&folder.path().join("data"), CONNECT_TIMEOUT, is_over).unwrap_err();
    assert!(matches!(error, HostError::Connect { .. }), "{error}");
    assert_eq!(calls, 3);
}

/// A server that no longer accepts connections.
#[cfg(target_os = "linux")]
#[test]
fn connecting_to_a_full_backlog_times_out() {
    use std::os::unix::net::UnixStream;

    use rustix::net::{SocketAddrUnix, listen};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&socket, 0).unwrap();
    let _first = UnixStream::connect(&path).unwrap();
    let error = Link::connect(&Server::Pipe(path), SHORT).unwrap_err();
    let HostError::Connect { error, .. } = &error else { panic!("{error}") };
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}
