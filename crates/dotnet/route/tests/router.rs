//! A router between a server and clients in this process: waiting, rejection, and the end.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use runtap_diag_proto::{Advertise, ErrorReply, Hresult, InfoForm, Request, SessionId, Uuid};
use runtap_diag_server::{Builder, ProcessDescription, ServerThread};
use runtap_route::router::{
    Acceptor, Back, Ended, Front, Limits, Notice, Router, RuntimeAddress, Statistics,
};
use runtap_testkit::eventually;
use runtap_transport::{BindOptions, Endpoint, Listener};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// A router on its own thread.
struct Running {
    folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<Ended>,
    notices: Arc<Mutex<Vec<Notice>>>,
    statistics: Arc<Statistics>,
    address: Option<SocketAddr>,
}

/// How the runtime is reached.
enum Runtime {
    Listens(PathBuf),
    ConnectsByTcp,
}

impl Running {
    fn start(runtime: Runtime, limits: Limits, runtime_timeout: Option<Duration>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let notices = Arc::<Mutex<Vec<Notice>>>::default();
        let (told, path) = (Arc::clone(&notices), folder.path().join("tools"));
        let (tell, ready) = mpsc::channel();
        let run = async move {
            let listener = Listener::bind(path, BindOptions::default()).unwrap();
            let front = Front::Listen(Acceptor::Local(Box::new(listener)));
            let mut address = None;
            let back = match runtime {
                Runtime::Listens(path) => Back::Connect(RuntimeAddress::Local(Endpoint::unix(path))),
                Runtime::ConnectsByTcp => {
                    let gate = Acceptor::tcp(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
                    address = Some(gate.to_string().parse().unwrap());
                    Back::Listen(gate)
                }
            };
            let router = Router::new(front, back)
                .limits(limits)
                .runtime_timeout(runtime_timeout)
                .on_notice(move |notice| told.lock().unwrap().push(notice.clone()));
            tell.send((router.statistics(), address)).unwrap();
            // Dropped, so it is never stopped.
            router
                .run(async {
                    if stopped.await.is_err() {
                        std::future::pending::<()>().await;
                    }
                })
                .await
        };
        let thread = thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run)
        });
        let (statistics, address) = ready.recv().unwrap();
        Self { folder, stop: Some(stop), thread, notices, statistics, address }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("tools")).unwrap()
    }

    /// Queries the identity of the runtime.
    fn ask(&self) -> Vec<u8> {
        let mut client = self.connect();
        client.write_all(&info()).unwrap();
        all_of(client)
    }

    fn wait_for(&self, what: &str, is_it: impl Fn(&Notice) -> bool) {
        let notices = || self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        eventually(what, || notices().iter().any(&is_it).then_some(()));
    }

    /// Requests the router to stop.
    fn end(mut self) -> Ended {
        self.stop.take().unwrap().send(()).unwrap();
        self.thread.join().unwrap()
    }

    /// Waits until the router stops.
    fn ends(self) -> Ended {
        let ended = self.thread.join().unwrap();
        assert!(!self.folder.path().join("tools").exists());
        ended
    }
}

fn all_of(mut client: impl Read) -> Vec<u8> {
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    answer
}

fn info() -> Vec<u8> {
    Request::ProcessInfo(InfoForm::ProcessInfo2).to_bytes().unwrap()
}

fn is_ok(answer: &[u8]) -> bool {
    answer.get(16..18) == Some(&[0xff, 0])
}

fn error_in(answer: &[u8]) -> ErrorReply {
    assert_eq!(answer.get(16..18), Some(&[0xff, 0xff][..]));
    ErrorReply::decode(&answer[20..]).unwrap()
}

fn server(folder: &Path) -> ServerThread {
    Builder::new(ProcessDescription::of_this_process()).path(folder.join("runtime")).spawn().unwrap()
}

/// A runtime over TCP that identifies itself and waits for a request.
fn connect(address: SocketAddr, cookie: u128) -> TcpStream {
    let mut runtime = TcpStream::connect(address).unwrap();
    let advertise = Advertise { runtime_cookie: Uuid::from_u128(cookie), process_id: 7 };
    runtime.write_all(&advertise.to_bytes()).unwrap();
    runtime
}

/// Reads the request and answers.
fn answer(mut runtime: TcpStream) {
    let mut request = [0; 20];
    runtime.read_exact(&mut request).unwrap();
    assert_eq!(request[..], info()[..]);
    runtime.write_all(b"DOTNET_IPC_V1\0\x15\0\xff\0\0\0!").unwrap();
}

#[test]
fn silent_clients_and_incomplete_requests_do_not_affect_others() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let mut limits = Limits::default();
    (limits.silent, limits.connections) = (16, 64);
    let router = Running::start(Runtime::Listens(server.path().to_owned()), limits, None);
    let mut crowd = Vec::new();
    for n in 0..500 {
        let mut client = router.connect();
        // A client that was disconnected for the next one can't be written to.
        let _ = client.write_all(&info()[..n % 20]);
        crowd.push(client);
        if n % 100 == 99 {
            assert!(is_ok(&router.ask()));
        }
    }
    // The oldest were disconnected, and the newest are still connected.
    eventually("the end of most of the crowd", || (router.statistics.silent() >= 450).then_some(()));
    drop(crowd);
    assert_eq!(router.end(), Ended::Stopped);
}

#[test]
fn slow_clients_are_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let mut limits = Limits::default();
    limits.request = Duration::from_millis(100);
    let router = Running::start(Runtime::Listens(server.path().to_owned()), limits, None);
    let mut slow = router.connect();
    // Possibly too slow to have started, if the machine was.
    let _ = slow.write_all(&info()[..19]);
    assert!(all_of(slow).is_empty());
    eventually("the end of the slow one", || (router.statistics.silent() == 1).then_some(()));
    router.end();
}

#[test]
fn clients_wait_for_a_runtime_in_order() {
    let mut limits = Limits::default();
    limits.queue = 2;
    let router = Running::start(Runtime::ConnectsByTcp, limits, None);
    let mut waiting = Vec::new();
    for n in 1..=2 {
        let mut client = router.connect();
        client.write_all(&info()).unwrap();
        waiting.push(client);
        router.wait_for("a client that waits", |notice| *notice == Notice::Waiting(n));
    }
    // The queue is full.
    assert_eq!(error_in(&router.ask()).hresult, Hresult::E_FAIL);
    for client in waiting {
        answer(connect(router.address.unwrap(), 1));
        let reply = all_of(client);
        assert!(is_ok(&reply) && reply.ends_with(b"!"));
    }
    eventually("both requests", || (router.statistics.forwarded() == 2).then_some(()));
    assert_eq!((router.statistics.not_reached(), router.statistics.most_waiting()), (1, 2));
    router.end();
}

#[test]
fn a_router_stands_for_one_runtime_until_it_is_gone() {
    let router = Running::start(Runtime::ConnectsByTcp, Limits::default(), None);
    let address = router.address.unwrap();
    let first = connect(address, 1);
    router.wait_for("the first", |notice| matches!(notice, Notice::Runtime { .. }));
    let second = connect(address, 2);
    router.wait_for("the second", |notice| matches!(notice, Notice::Another { .. }));
    drop(first);
    router.wait_for("the end of the first", |notice| matches!(notice, Notice::RuntimeGone { .. }));
    let mut client = router.connect();
    client.write_all(&info()).unwrap();
    answer(second);
    assert!(is_ok(&all_of(client)));
    router.end();
}

/// dotnet-dsrouter has an option for this, but does not do it.
#[test]
fn a_router_without_a_runtime_stops() {
    let limit = Some(Duration::from_millis(300));
    assert_eq!(Running::start(Runtime::ConnectsByTcp, Limits::default(), limit).ends(), Ended::NoRuntime);
    let nobody = tempfile::tempdir().unwrap().path().join("none");
    assert_eq!(Running::start(Runtime::Listens(nobody), Limits::default(), limit).ends(), Ended::NoRuntime);
    // A runtime that connects and disconnects.
    let router = Running::start(Runtime::ConnectsByTcp, Limits::default(), Some(Duration::from_secs(5)));
    drop(connect(router.address.unwrap(), 1));
    assert_eq!(router.ends(), Ended::NoRuntime);
}

/// Any process can connect and send nothing.
#[test]
fn silent_connections_do_not_lock_out_runtimes() {
    let mut limits = Limits::default();
    limits.advertise = Duration::from_hours(1);
    let router = Running::start(Runtime::ConnectsByTcp, limits, None);
    let address = router.address.unwrap();
    let mut silent: Vec<TcpStream> = (0..65).map(|_| TcpStream::connect(address).unwrap()).collect();
    let runtime = connect(address, 1);
    router.wait_for("the runtime", |notice| matches!(notice, Notice::Runtime { .. }));
    // The oldest were disconnected, the newest was not.
    router.wait_for("who was disconnected", |notice| matches!(notice, Notice::NoRuntime { .. }));
    silent.truncate(2);
    for oldest in silent {
        assert!(all_of(oldest).is_empty());
    }
    drop(runtime);
    router.end();
}

#[test]
fn pending_clients_are_counted_when_the_router_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runtime");
    let listener = UnixListener::bind(&path).unwrap();
    let mut limits = Limits::default();
    limits.shut_down = Duration::from_millis(10);
    let router = Running::start(Runtime::Listens(path), limits, None);
    let mut client = router.connect();
    client.write_all(&info()).unwrap();
    let (mut runtime, _) = listener.accept().unwrap();
    runtime.read_exact(&mut [0; 20]).unwrap();
    // It does not answer.
    let statistics = Arc::clone(&router.statistics);
    router.end();
    assert_eq!((statistics.forwarded(), statistics.to_runtime()), (1, 20));
    drop(client);
}

/// Requests a session.
fn collect() -> Vec<u8> {
    let provider = [&[0; 8][..], &[4, 0, 0, 0], &[2, 0, 0, 0], b"P\0\0\0", &[0; 4]].concat();
    let one = 1u32.to_le_bytes();
    let payload = [&one[..], &one, &one, &provider].concat();
    let size = u16::try_from(20 + payload.len()).unwrap().to_le_bytes();
    [b"DOTNET_IPC_V1\0", &size[..], &[2, 2, 0, 0], &payload].concat()
}

/// Reads the reply.
fn started() -> Vec<u8> {
    [&b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0"[..], &0x55u64.to_le_bytes()].concat()
}

/// A runtime that has not started a session may still start it, so its id is needed to stop it then.
#[test]
fn a_session_that_does_not_start_gives_up_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runtime");
    let listener = UnixListener::bind(&path).unwrap();
    let mut limits = Limits::default();
    limits.connections = 2;
    let router = Running::start(Runtime::Listens(path), limits, None);
    let accept = |request: &[u8]| {
        let mut runtime = listener.accept().unwrap().0;
        runtime.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut asked = vec![0; request.len()];
        runtime.read_exact(&mut asked).unwrap();
        assert_eq!(asked, request);
        runtime
    };
    let mut sessions: Vec<UnixStream> = (0..2)
        .map(|_| {
            let mut client = router.connect();
            client.write_all(&collect()).unwrap();
            accept(&collect())
        })
        .collect();
    let mut client = router.connect();
    client.write_all(&info()).unwrap();
    let error = ErrorReply::from(Hresult::BAD_ENCODING).to_bytes().unwrap();
    accept(&info()).write_all(&error).unwrap();
    assert_eq!(all_of(client), error);
    // The oldest has left, and the other one is stopped when it starts.
    assert!(sessions[0].write_all(&started()).is_err());
    sessions[1].write_all(&started()).unwrap();
    accept(&Request::StopTracing(SessionId(0x55)).to_bytes().unwrap()).write_all(&started()).unwrap();
    sessions.clear();
    router.wait_for(
        "the end of the session",
        |notice| matches!(notice, Notice::Broken { why, .. } if why.contains("its session was stopped")),
    );
    router.end();
}

/// A runtime that has nothing to send does not notice that its client is gone.
#[test]
fn a_session_whose_client_is_gone_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runtime");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let accept = || {
        let stream = eventually("a connection of the router", || Some(listener.accept().ok()?.0));
        stream.set_nonblocking(false).unwrap();
        stream
    };
    let router = Running::start(Runtime::Listens(path), Limits::default(), None);
    let (collect, started) = (collect(), started());
    let mut client = router.connect();
    client.write_all(&collect).unwrap();
    let mut session = accept();
    session.read_exact(&mut vec![0; collect.len()]).unwrap();
    session.write_all(&started).unwrap();
    client.read_exact(&mut vec![0; started.len()]).unwrap();
    drop(client);
    let mut stopping = accept();
    let stop = Request::StopTracing(SessionId(0x55)).to_bytes().unwrap();
    let mut asked = vec![0; stop.len()];
    stopping.read_exact(&mut asked).unwrap();
    assert_eq!(asked, stop);
    // The rest of the session, more than a socket buffers, precedes the answer.
    session.write_all(&vec![7; 1 << 20]).unwrap();
    drop(session);
    stopping.write_all(&started).unwrap();
    router.wait_for(
        "the end of the session",
        |notice| matches!(notice, Notice::Broken { why, .. } if why.contains("its session was stopped")),
    );
    router.end();
}

/// Requests to a runtime that hangs: a client that gives up frees its place.
#[test]
fn a_request_without_a_client_occupies_no_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runtime");
    let listener = UnixListener::bind(&path).unwrap();
    let mut limits = Limits::default();
    limits.unanswered = Duration::from_secs(1);
    let router = Running::start(Runtime::Listens(path), limits, None);
    let hangs = |client: &mut dyn Write| {
        client.write_all(&info()).unwrap();
        let (mut runtime, _) = listener.accept().unwrap();
        runtime.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        runtime.read_exact(&mut [0; 20]).unwrap();
        runtime
    };
    let mut client = router.connect();
    let mut runtime = hangs(&mut client);
    drop(client);
    assert_eq!(runtime.read(&mut [0]).unwrap(), 0, "the end of what it sends");
    router.wait_for("that it is gone", |notice| matches!(notice, Notice::Broken { .. }));
    // A client that only stops sending is answered, if that does not take too long.
    for answers in [true, false] {
        let mut client = router.connect();
        let mut runtime = hangs(&mut client);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(runtime.read(&mut [0]).unwrap(), 0);
        if answers {
            let error = ErrorReply::from(Hresult::BAD_ENCODING).to_bytes().unwrap();
            runtime.write_all(&error).unwrap();
            assert_eq!(all_of(client), error);
        } else {
            assert!(all_of(client).is_empty());
        }
    }
    router.end();
}

/// A runtime that leaves its connection open after an error, as .NET 9 and 10 do.
#[test]
fn a_reply_ends_the_connection_even_if_the_runtime_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runtime");
    let listener = UnixListener::bind(&path).unwrap();
    let error = ErrorReply::from(Hresult::BAD_ENCODING).to_bytes().unwrap();
    let said = error.clone();
    let runtime = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.read_exact(&mut [0; 20]).unwrap();
        client.write_all(&said).unwrap();
        // Until the other side closes.
        client.read(&mut [0]).unwrap()
    });
    let router = Running::start(Runtime::Listens(path), Limits::default(), None);
    assert_eq!(router.ask(), error);
    assert_eq!(runtime.join().unwrap(), 0);
    router.wait_for("what became of it", |notice| matches!(notice, Notice::Carried { error: Some(_), .. }));
    router.end();
}

#[test]
fn a_missing_runtime_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let router = Running::start(Runtime::Listens(folder.path().join("none")), Limits::default(), None);
    let error = error_in(&router.ask());
    assert_eq!(error.hresult, Hresult::E_FAIL);
    assert!(error.message.unwrap().contains("the socket does not exist"));
    router.end();
}
