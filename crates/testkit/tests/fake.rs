//! The fake runtime behaves, and misbehaves, as it is told.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use runtap_diag::ports::Port;
use runtap_diag_proto::{Command, Hresult, InfoForm, Level, Provider, Request, SessionConfig, SessionForm};
use runtap_diag_server::ConnectPort;
use runtap_testkit::{FakeRuntime, Fault, Likeness, On};

const INFO: Request = Request::ProcessInfo(InfoForm::ProcessInfo3);

fn connect(fake: &FakeRuntime, request: &Request) -> UnixStream {
    let mut stream = UnixStream::connect(fake.path()).unwrap();
    stream.write_all(&request.to_bytes().unwrap()).unwrap();
    stream
}

fn answer(fake: &FakeRuntime, request: &Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    connect(fake, request).read_to_end(&mut bytes).unwrap();
    bytes
}

fn code(answer: &[u8]) -> Option<Hresult> {
    let is_error = answer.len() == 24 && answer[16] == 0xff && answer[17] == 0xff;
    is_error.then(|| Hresult(u32::from_le_bytes(*answer[20..].first_chunk().unwrap())))
}

fn session(form: SessionForm) -> Request {
    let config = SessionConfig::new(vec![Provider::new("P", 1, Level::Verbose)]);
    Request::CollectTracing { form, config }
}

#[test]
fn it_answers_and_remembers() {
    let fake = FakeRuntime::spawn();
    let info = answer(&fake, &INFO);
    assert_eq!(info[16..18], [0xff, 0]);
    answer(&fake, &Request::ResumeRuntime);
    assert_eq!(fake.requests(), [Command::PROCESS_INFO3, Command::RESUME_RUNTIME]);
}

#[test]
fn old_runtimes_do_not_know_new_commands() {
    for (likeness, info, form) in [
        (Likeness::NetCore31, None, SessionForm::CollectTracing2),
        (Likeness::Net5, Some(InfoForm::ProcessInfo), SessionForm::CollectTracing2),
        (Likeness::Net6, Some(InfoForm::ProcessInfo2), SessionForm::CollectTracing2),
        (Likeness::Net8, Some(InfoForm::ProcessInfo3), SessionForm::CollectTracing2),
        (Likeness::Net9, Some(InfoForm::ProcessInfo3), SessionForm::CollectTracing4),
        (Likeness::Net10, Some(InfoForm::ProcessInfo3), SessionForm::CollectTracing5),
    ] {
        let fake = FakeRuntime::builder().like(likeness).spawn();
        let newest = InfoForm::NEWEST_FIRST.into_iter().find(|form| {
            code(&answer(&fake, &Request::ProcessInfo(*form))) != Some(Hresult::UNKNOWN_COMMAND)
        });
        assert_eq!(newest, info, "{likeness:?}");
        let newest = SessionForm::NEWEST_FIRST.into_iter().find(|form| {
            let mut reply = [0; 24];
            connect(&fake, &session(*form)).read_exact(&mut reply).unwrap();
            code(&reply) != Some(Hresult::UNKNOWN_COMMAND)
        });
        assert_eq!(newest, Some(form), "{likeness:?}");
    }
}

#[test]
fn faults_of_the_answer() {
    let fake = FakeRuntime::spawn();
    let good = answer(&fake, &INFO);
    let with = |fault| {
        fake.set_fault(On::Command(Command::PROCESS_INFO3), Some(fault));
        answer(&fake, &INFO)
    };
    assert_eq!(with(Fault::Twice), [&good[..], &good].concat());
    assert_eq!(with(Fault::Garbage(vec![1, 2, 3])), [&good[..], &[1, 2, 3]].concat());
    assert_eq!(with(Fault::Instead(vec![9; 5])), [9; 5]);
    for n in [0, 1, 20, good.len() - 1] {
        assert_eq!(with(Fault::CloseAfter(n)), good[..n], "{n}");
    }
    assert_eq!(code(&with(Fault::Refuse(Hresult::E_FAIL))), Some(Hresult::E_FAIL));
    assert_eq!(with(Fault::ByteByByte), good);
    // Others are not touched, and it can be taken back.
    assert_eq!(answer(&fake, &Request::ResumeRuntime).len(), 24);
    fake.set_fault(On::Command(Command::PROCESS_INFO3), None);
    assert_eq!(answer(&fake, &INFO), good);
}

#[test]
fn faults_that_keep_the_connection() {
    let fake = FakeRuntime::spawn();
    let good = answer(&fake, &INFO);
    fake.set_fault(On::Any, Some(Fault::StallAfter(10)));
    let mut stalled = connect(&fake, &INFO);
    let mut start = [0; 10];
    stalled.read_exact(&mut start).unwrap();
    assert_eq!(start, good[..10]);
    fake.set_fault(On::Any, Some(Fault::RefuseOpen(Hresult::BAD_ENCODING)));
    let mut open = connect(&fake, &INFO);
    let mut reply = [0; 24];
    open.read_exact(&mut reply).unwrap();
    assert_eq!(code(&reply), Some(Hresult::BAD_ENCODING));
    fake.set_fault(On::Any, Some(Fault::Silent));
    let mut silent = connect(&fake, &INFO);
    while fake.requests().len() < 4 {
        std::thread::yield_now();
    }
    for stream in [&mut stalled, &mut open, &mut silent] {
        stream.set_nonblocking(true).unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "neither bytes nor an end");
    }
    fake.set_fault(On::Any, Some(Fault::Late));
    let mut late = connect(&fake, &INFO);
    fake.release();
    let mut bytes = Vec::new();
    late.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, good);
}

#[test]
fn one_at_a_time_a_silent_client_blocks_all() {
    let fake = FakeRuntime::builder().one_at_a_time().spawn();
    let silent = UnixStream::connect(fake.path()).unwrap();
    let mut waiting = connect(&fake, &INFO);
    // A session does not block later clients; the silent client does.
    let mut blocked = connect(&fake, &session(SessionForm::CollectTracing5));
    assert!(fake.requests().is_empty());
    drop(silent);
    let mut bytes = Vec::new();
    waiting.read_to_end(&mut bytes).unwrap();
    blocked.read_exact(&mut [0; 28]).unwrap();
    answer(&fake, &INFO);
    let expected = [Command::PROCESS_INFO3, Command::COLLECT_TRACING5, Command::PROCESS_INFO3];
    assert_eq!(fake.requests(), expected);
}

#[test]
fn a_stream_can_be_cut() {
    let fake = FakeRuntime::builder().fault(On::Any, Fault::CloseAfter(28 + 100)).spawn();
    let bytes = answer(&fake, &session(SessionForm::CollectTracing5));
    assert_eq!(bytes.len(), 128);
    assert!(bytes[28..].starts_with(b"Nettrace"));
    // The client has gone, for the server behind.
    while fake.pipe().sessions() > 0 {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_suspended_runtime_connects_and_waits_to_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("port");
    // A tool that is not there yet, and a fault on the way.
    let fake = FakeRuntime::builder()
        .connect_port(ConnectPort::new(&path))
        .like(Likeness::Net8)
        .fault(On::Command(Command::PROCESS_INFO3), Fault::CloseAfter(10))
        .spawn();
    let mut port = Port::bind(&path).unwrap();
    let runtime = port.accept().await;
    assert!(runtime.client().process_info().await.is_err());
    fake.set_fault(On::Command(Command::PROCESS_INFO3), None);
    assert_eq!(runtime.client().process_info().await.unwrap().runtime_cookie, runtime.cookie());
    let config = SessionConfig::new(vec![Provider::new("P", 1, Level::Verbose)]);
    let session = runtime.client().start_session(&config).await.unwrap();
    assert_eq!(session.form(), SessionForm::CollectTracing2);
    assert!(fake.is_suspended());
    runtime.resume().await.unwrap();
    assert!(!fake.is_suspended());
    session.stop().await.unwrap();
}
