//! Every command, invalid requests, and misbehaving clients.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use runtap_diag::blocking::Client;
use runtap_diag::{
    Command, Error, Hresult, InfoForm, Reply, Request, SessionConfig, SessionForm, SessionId, Variable,
};
use runtap_diag_server::{Builder, Limits, Notice, ProcessDescription};
use runtap_transport::Endpoint;

use crate::target::{Target, all_of};

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";

fn message(magic: &[u8; 14], size: u16, command: u16, payload: &[u8]) -> Vec<u8> {
    [&magic[..], &size.to_le_bytes(), &command.to_be_bytes(), &[0, 0], payload].concat()
}

/// Sends raw bytes and returns the answer up to the end of the connection.
fn raw(target: &Target, request: &[u8]) -> Vec<u8> {
    let mut stream = target.connect();
    // A server that rejects a message by its header leaves the rest unread, and resets the connection after its
    // answer.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn error_code(answer: &[u8]) -> Hresult {
    assert_eq!(answer.len(), 24, "{answer:x?}");
    assert_eq!(answer[16..18], [0xff, 0xff]);
    Hresult(u32::from_le_bytes(*answer[20..].first_chunk().unwrap()))
}

pub(crate) fn refused(result: Result<impl std::fmt::Debug, Error>) -> Hresult {
    match result {
        Err(Error::Refused { reply, .. }) => reply.hresult,
        other => panic!("{other:?}"),
    }
}

#[test]
fn process_commands() {
    let target = Target::new();
    let client = target.client();
    let info = client.process_info().unwrap();
    assert_eq!(info.process_id, u64::from(std::process::id()));
    assert_eq!(info.entry_assembly.as_deref(), Some("demo"));
    assert_eq!(info.runtime_version.as_deref(), Some("1.2.3"));
    for form in InfoForm::NEWEST_FIRST {
        let Reply::ProcessInfo(older) = client.request(Request::ProcessInfo(form)).unwrap() else { panic!() };
        assert_eq!(older.runtime_cookie, info.runtime_cookie);
        assert_eq!(older.portable_rid.is_some(), form == InfoForm::ProcessInfo3);
    }
    let environment = client.environment().unwrap();
    assert_eq!(environment, [Variable::new("A", "b=c"), Variable::new("EMPTY", "")]);
    client.resume().unwrap();
    for id in [0, 1, u64::MAX] {
        client.stop_session(SessionId(id)).unwrap();
    }
}

#[test]
fn unknown_commands_are_unknown() {
    let target = Target::new();
    let payload = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for command in [0x0104, 0x0208, 0x0299, 0x0303, 0x0409, 0x0500, 0xff00] {
        let request = message(MAGIC, 36, command, &payload);
        assert_eq!(error_code(&raw(&target, &request)), Hresult::UNKNOWN_COMMAND, "{command:#x}");
    }
}

#[test]
fn bad_requests_get_a_healthy_runtimes_answer() {
    let target = Target::new();
    let no_providers = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    for (case, request, expected) in [
        ("magic", message(b"DOTNET_IPC_V2\0", 20, 0x0400, &[]), Hresult::UNKNOWN_MAGIC),
        ("size 0", message(MAGIC, 0, 0x0400, &[]), Hresult::BAD_ENCODING),
        ("size 19", message(MAGIC, 19, 0x0400, &[]), Hresult::BAD_ENCODING),
        ("nothing", Vec::new(), Hresult::BAD_ENCODING),
        ("cut header", MAGIC.to_vec(), Hresult::BAD_ENCODING),
        ("cut payload", message(MAGIC, 28, 0x0201, &[1, 2]), Hresult::BAD_ENCODING),
        ("short stop", message(MAGIC, 24, 0x0201, &[0; 4]), Hresult::BAD_ENCODING),
        ("info with payload", message(MAGIC, 27, 0x0400, &[0xff; 7]), Hresult::BAD_ENCODING),
        ("empty session", message(MAGIC, 20, 0x0202, &[]), Hresult::BAD_ENCODING),
        ("no providers", message(MAGIC, 32, 0x0202, &no_providers), Hresult::BAD_ENCODING),
        ("longest message", message(MAGIC, 65535, 0x0299, &vec![7; 65515]), Hresult::UNKNOWN_COMMAND),
    ] {
        assert_eq!(error_code(&raw(&target, &request)), expected, "{case}");
    }
    // The last four bytes are the buffering mode, the first four the session type, and the format follows the size of the
    // buffer: each of them is out of range by one.
    let config = SessionConfig::new(vec![all_of("P")]);
    let request = Request::CollectTracing { form: SessionForm::CollectTracing6, config }.to_bytes().unwrap();
    for place in [request.len() - 4, 20, 28] {
        let mut request = request.clone();
        request[place] = 2;
        assert_eq!(error_code(&raw(&target, &request)), Hresult::BAD_ENCODING, "byte {place}");
    }
    assert_eq!(target.pipe.sessions(), 0);
    target.client().process_info().unwrap();
}

#[test]
fn every_truncated_request_is_answered() {
    let target = Target::new();
    let config = SessionConfig::new(vec![all_of("P")]);
    let request = Request::CollectTracing { form: SessionForm::CollectTracing5, config }.to_bytes().unwrap();
    for n in 0..request.len() {
        assert_eq!(error_code(&raw(&target, &request[..n])), Hresult::BAD_ENCODING, "{n}");
    }
    assert_eq!(target.pipe.sessions(), 0);
}

#[test]
fn bytes_after_a_request_are_ignored() {
    let target = Target::new();
    let mut request = Request::ResumeRuntime.to_bytes().unwrap();
    request.extend(Request::ProcessEnvironment.to_bytes().unwrap());
    assert_eq!(raw(&target, &request).len(), 24);
}

#[test]
fn a_command_line_too_long_for_a_message_fails_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let mut description = ProcessDescription::of_this_process();
    description.info.command_line = "x".repeat(40_000);
    let server = Builder::new(description).path(dir.path().join("s")).spawn().unwrap();
    let client = Client::new(Endpoint::unix(server.path())).unwrap();
    assert_eq!(refused(client.process_info()), Hresult::E_FAIL);
    client.resume().unwrap();
}

#[test]
fn silent_and_slow_clients_block_no_other_client() {
    let target = Target::new();
    let request = Request::ResumeRuntime.to_bytes().unwrap();
    let mut waiting: Vec<_> = (0..100).map(|_| target.connect()).collect();
    for (n, stream) in waiting.iter_mut().enumerate() {
        stream.write_all(&request[..n % 20]).unwrap();
    }
    target.client().process_info().unwrap();
    // The received half of a request is kept.
    let mut slow = waiting.swap_remove(7);
    slow.write_all(&request[7..]).unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 24);
}

#[test]
fn clients_that_take_too_long_are_disconnected() {
    let mut limits = Limits::default();
    limits.request = Duration::from_secs(1);
    let target = Target::with_limits(limits);
    let mut silent = target.connect();
    let mut answer = Vec::new();
    silent.read_to_end(&mut answer).unwrap();
    assert!(answer.is_empty());
}

/// Independent of the number of silent clients and of the time limit.
#[test]
fn silent_clients_make_room_for_others() {
    let mut limits = Limits::default();
    (limits.request, limits.connections) = (Duration::from_hours(1), 2);
    let target = Target::with_limits(limits);
    let mut half = target.connect();
    half.write_all(&Request::ResumeRuntime.to_bytes().unwrap()[..19]).unwrap();
    let silent: Vec<_> = (0..4).map(|_| target.connect()).collect();
    target.client().process_info().unwrap();
    // The oldest clients were disconnected.
    let mut answer = Vec::new();
    // The end, or an error if their data was not read yet.
    let end = half.read_to_end(&mut answer);
    assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    assert!(answer.is_empty());
    drop(silent);
}

#[test]
fn the_program_gets_notices_of_requests() {
    let folder = tempfile::tempdir().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let builder = Builder::new(ProcessDescription::of_this_process()).path(folder.path().join("s"));
    let server = builder.on_notice(move |notice| tell.send(notice.clone()).unwrap()).spawn().unwrap();
    Client::new(Endpoint::unix(server.path())).unwrap().resume().unwrap();
    let Notice::Request { peer: Some(peer), command } = told.recv().unwrap() else { panic!("no request") };
    assert_eq!((peer.pid, command), (Some(std::process::id()), Command::RESUME_RUNTIME));
    let text = Notice::Request { peer: Some(peer), command }.to_string();
    assert!(text.contains(&format!("process {} of user ", std::process::id())), "{text}");
}

#[test]
fn tools_find_the_default_socket() {
    let server = Builder::new(ProcessDescription::of_this_process()).spawn().unwrap();
    let found = runtap_discover::process(std::process::id()).unwrap();
    assert!(found.sockets.iter().any(|socket| socket.path == server.path()), "{found:?}");
    let client = Client::new(Endpoint::unix(server.path())).unwrap();
    assert_eq!(client.process_info().unwrap().process_id, u64::from(std::process::id()));
    let path = server.path().to_owned();
    drop(server);
    assert!(!path.exists());
}
