//! Runtimes that connect to a port: scripted ones on real sockets. Nothing here waits for real.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runtap_diag::ports::Port;
use runtap_diag::{Advertise, Error, Reply, Request, SessionId, Timeouts};
use runtap_diag_proto::Uuid;
use runtap_transport::BindError;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, mpsc};

use crate::support::{closed, kind, ok, read_request, sample_config, sample_info};

fn port() -> (Port, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Port::bind(folder.path().join("port")).unwrap(), folder)
}

fn advertise(n: u32) -> Advertise {
    Advertise { runtime_cookie: Uuid::from_u128(u128::from(n)), process_id: u64::from(n) }
}

/// Connects and sends an Advertise message.
async fn connect(path: &Path, n: u32) -> UnixStream {
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(&advertise(n).to_bytes()).await.unwrap();
    stream
}

/// A runtime that connects, serves one command, and reconnects, until the port is gone. Returns the number of commands.
fn runtime(path: PathBuf, n: u32) -> Arc<AtomicUsize> {
    let commands = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&commands);
    tokio::spawn(async move {
        let mut sessions = Vec::new();
        loop {
            let Ok(mut stream) = UnixStream::connect(&path).await else { return };
            if stream.write_all(&advertise(n).to_bytes()).await.is_err() {
                return;
            }
            let Some(request) = read_request(&mut stream).await else { return };
            count.fetch_add(1, Ordering::SeqCst);
            let reply = match &request {
                Request::ProcessInfo(_) => Reply::ProcessInfo(sample_info()),
                Request::CollectTracing { .. } => Reply::SessionStarted(SessionId(u64::from(n))),
                Request::StopTracing(id) => {
                    sessions.clear();
                    Reply::SessionStopped(*id)
                }
                _ => Reply::Resumed,
            };
            stream.write_all(&ok(&request, &reply)).await.unwrap();
            if matches!(request, Request::CollectTracing { .. }) {
                stream.write_all(b"stream").await.unwrap();
                sessions.push(stream);
            }
        }
    });
    commands
}

#[tokio::test]
async fn each_command_takes_a_connection_and_waits_for_the_next() {
    let (mut port, _folder) = port();
    let commands = runtime(port.path().to_owned(), 7);
    let runtime = port.accept().await;
    assert_eq!((runtime.process_id(), runtime.cookie()), (7, Uuid::from_u128(7)));
    assert_eq!(runtime.peer().pid, Some(std::process::id()));
    let client = runtime.client();
    assert_eq!(client.endpoint(), port.endpoint());

    let mut session = client.start_session(&sample_config()).await.unwrap();
    assert_eq!(session.id(), SessionId(7));
    runtime.resume().await.unwrap();
    assert_eq!(client.process_info().await.unwrap(), sample_info());
    // Concurrent commands wait for their turn.
    let (a, b, c) = tokio::join!(client.resume(), client.resume(), client.process_info());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(&*session.next_chunk().await.unwrap().unwrap(), b"stream");
    session.stop().await.unwrap();
    assert!(session.next_chunk().await.unwrap().is_none());
    assert_eq!(commands.load(Ordering::SeqCst), 7);
    assert!(!runtime.has_ended());
}

#[tokio::test]
async fn many_runtimes_are_each_returned_once() {
    let (mut port, _folder) = port();
    for n in 0..100 {
        runtime(port.path().to_owned(), n);
    }
    let mut pids = Vec::new();
    for _ in 0..100 {
        let runtime = port.accept().await;
        // Reconnects afterwards: not a new runtime.
        runtime.resume().await.unwrap();
        pids.push(runtime.process_id());
    }
    pids.sort_unstable();
    assert_eq!(pids, (0..100).collect::<Vec<_>>());
    runtime(port.path().to_owned(), 100);
    assert_eq!(port.accept().await.process_id(), 100);
}

#[tokio::test]
async fn a_newer_connection_replaces_the_older_idle_one() {
    let (mut port, _folder) = port();
    let mut older = connect(port.path(), 1).await;
    let runtime = port.accept().await;
    let mut newer = connect(port.path(), 1).await;
    closed(&mut older).await;
    let asking = tokio::spawn({
        let client = runtime.client();
        async move { client.resume().await }
    });
    let request = read_request(&mut newer).await.unwrap();
    assert_eq!(request, Request::ResumeRuntime);
    newer.write_all(&ok(&request, &Reply::Resumed)).await.unwrap();
    asking.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn strangers_are_disconnected_and_block_no_runtime() {
    let (mut port, _folder) = port();
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(UnixStream::connect(port.path()).await.unwrap());
    }
    let mut slow = UnixStream::connect(port.path()).await.unwrap();
    slow.write_all(&advertise(2).to_bytes()[..33]).await.unwrap();
    let mut nonsense = UnixStream::connect(port.path()).await.unwrap();
    nonsense.write_all(&[b'x'; 34]).await.unwrap();

    runtime(port.path().to_owned(), 3);
    assert_eq!(port.accept().await.process_id(), 3);
    closed(&mut nonsense).await;
    for mut stream in silent {
        closed(&mut stream).await;
    }
    closed(&mut slow).await;
}

#[tokio::test]
async fn a_disconnected_runtime_is_reported_and_holds_no_descriptor() {
    let (mut port, _folder) = port();
    drop(connect(port.path(), 1).await);
    let runtime = port.accept().await;
    let error = runtime.client().resume().await.unwrap_err();
    assert_eq!(kind(&error), "hung up", "{error}");
    assert!(error.is_unreachable() && runtime.has_ended());
    assert_eq!(kind(&runtime.resume().await.unwrap_err()), "hung up");
    // With a waiting command.
    let stream = connect(port.path(), 2).await;
    let second = port.accept().await;
    let (client, config) = (second.client(), sample_config());
    let (outcome, ()) = tokio::join!(client.start_session(&config), async {
        let mut stream = stream;
        read_request(&mut stream).await;
        drop(stream);
        drop(connect(port.path(), 2).await);
    });
    // The command got no answer; a later command finds no runtime.
    assert_eq!(kind(&outcome.unwrap_err()), "closed");
    assert_eq!(kind(&second.client().resume().await.unwrap_err()), "hung up");
}

/// The message was sent in time, but could not be read before its deadline.
#[tokio::test(start_paused = true)]
async fn messages_sent_in_time_may_be_read_late() {
    use std::io::Write;
    let (mut port, _folder) = port();
    let mut stream = std::os::unix::net::UnixStream::connect(port.path()).unwrap();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let _next = std::os::unix::net::UnixStream::connect(port.path()).unwrap();
    stream.write_all(&advertise(1).to_bytes()).unwrap();
    tokio::time::advance(Duration::from_millis(300)).await;
    assert_eq!(port.accept().await.process_id(), 1);
}

/// The process id in an Advertise message is compared with the kernel's information.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_wrong_process_id_is_detected() {
    let (mut port, _folder) = port();
    let us = std::process::id();
    for (claim, differs) in [(us, false), (us + 1, true)] {
        let _stream = connect(port.path(), claim).await;
        let runtime = port.accept().await;
        assert_eq!(runtime.claims_another_id(), Some(differs));
        assert_eq!((runtime.peer().pid, runtime.is_kin()), (Some(us), true));
    }
}

#[tokio::test]
async fn a_runtime_that_sends_unrequested_data_is_disconnected() {
    let (mut port, _folder) = port();
    let mut stream = connect(port.path(), 1).await;
    stream.write_all(b"hello").await.unwrap();
    let runtime = port.accept().await;
    closed(&mut stream).await;
    assert_eq!(kind(&runtime.client().resume().await.unwrap_err()), "hung up");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_reconnect_has_a_time_limit() {
    let (mut port, _folder) = port();
    let mut stream = connect(port.path(), 1).await;
    let runtime = port.accept().await;
    let client = runtime.client().with_timeouts(Timeouts::all(Duration::from_millis(300)));
    let (outcome, ()) = tokio::join!(client.resume(), async {
        let request = read_request(&mut stream).await.unwrap();
        stream.write_all(&ok(&request, &Reply::Resumed)).await.unwrap();
    });
    outcome.unwrap();
    let error = client.resume().await.unwrap_err();
    // The id from the kernel, not the claimed one.
    let (path, pid) = (port.path().display(), std::process::id());
    assert_eq!(error.to_string(), format!("process {pid} did not reconnect to {path} within 300 ms"));
    assert!(error.is_unreachable() && error.hint().is_some());
}

#[tokio::test]
async fn a_port_is_private_and_its_file_is_removed() {
    let (mut port, folder) = port();
    let path = port.path().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(Port::bind(&path), Err(BindError::InUse { .. })));
    let mut idle = connect(&path, 1).await;
    let runtime = port.accept().await;
    drop(port);
    assert!(!path.exists());
    closed(&mut idle).await;
    let error = runtime.client().resume().await.unwrap_err();
    assert!(
        matches!(&error, Error::Io { .. }) && error.to_string().contains("the port was closed"),
        "{error}"
    );

    // The socket of a killed tool is replaced; another file is not.
    drop(UnixListener::bind(&path).unwrap());
    drop(Port::bind(&path).unwrap());
    let file = folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    assert!(Port::bind(&file).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"precious");
}

#[tokio::test]
async fn a_successor_resumes_all_runtimes() {
    let (mut port, _folder) = port();
    let path = port.path().to_owned();
    let commands: Vec<_> = (0..20).map(|n| runtime(path.clone(), n)).collect();
    let (tell, mut told) = mpsc::unbounded_channel();
    let enough = Arc::new(Notify::new());
    let freeing = tokio::spawn({
        let enough = Arc::clone(&enough);
        async move {
            let told = |runtime: &runtap_diag::ports::Runtime, outcome: Result<(), Error>| {
                tell.send((runtime.process_id(), outcome.is_ok())).unwrap();
            };
            port.resume_all(enough.notified(), told).await;
        }
    });
    let mut freed = Vec::new();
    for _ in 0..20 {
        freed.push(told.recv().await.unwrap());
    }
    freed.sort_unstable();
    assert_eq!(freed, (0..20).map(|n| (n, true)).collect::<Vec<_>>());
    assert!(commands.iter().all(|commands| commands.load(Ordering::SeqCst) == 1));
    enough.notify_one();
    freeing.await.unwrap();
    assert!(!path.exists());
}

/// A runtime that is interrupted in the middle of a command reconnects, and is resumed then.
#[tokio::test]
async fn resuming_is_retried_until_it_succeeds() {
    let (mut port, _folder) = port();
    let path = port.path().to_owned();
    let mut stream = connect(&path, 1).await;
    let runtime = port.accept().await;
    let resuming = tokio::spawn(async move { runtime.resume().await });
    read_request(&mut stream).await.unwrap();
    drop(stream);
    let mut stream = connect(&path, 1).await;
    let request = read_request(&mut stream).await.unwrap();
    stream.write_all(&ok(&request, &Reply::Resumed)).await.unwrap();
    resuming.await.unwrap().unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
}
