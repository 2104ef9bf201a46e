//! A scripted peer on a real Unix socket in its own directory.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use runtap_diag::{
    Client, Error, Level, ProcessInfo, Provider, Reply, Request, SessionConfig, SessionId, Variable,
};
use runtap_diag_proto::{
    Uuid,
    server::{Event, Server},
};
use runtap_transport::Endpoint;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::{Mutex, mpsc},
};

/// A socket with a listening peer.
pub(crate) struct Peer {
    folder: TempDir,
    connections: Arc<AtomicUsize>,
}

impl Peer {
    /// Serves all connections concurrently with `script`, which gets the number of the connection, from 0.
    pub(crate) fn new<F, S>(script: F) -> Self
    where
        F: Fn(usize, UnixStream) -> S + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(script(count.fetch_add(1, Ordering::SeqCst), stream));
            }
        });
        Self { folder, connections }
    }

    /// Answers any request with these bytes, then closes the connection.
    pub(crate) fn answering(bytes: Vec<u8>) -> Self {
        Self::new(move |_, mut stream| {
            let bytes = bytes.clone();
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&bytes).await;
            }
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Endpoint::unix(self.path()))
    }

    /// Returns the number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// The id of the session of every [`Runtime`].
pub(crate) const ID: SessionId = SessionId(0x7f00_1234);

/// A runtime that carries out every command. Its sessions stream `before`, and `after` once they are stopped.
pub(crate) struct Runtime {
    pub(crate) peer: Peer,
    stops: Arc<AtomicUsize>,
}

impl Runtime {
    pub(crate) fn new(before: Vec<u8>, after: Vec<u8>) -> Self {
        let stops = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&stops);
        let (pass, running) = mpsc::unbounded_channel::<UnixStream>();
        let running = Arc::new(Mutex::new(running));
        let peer = Peer::new(move |_, mut stream| {
            let (pass, running, count) = (pass.clone(), Arc::clone(&running), Arc::clone(&count));
            let (before, after) = (before.clone(), after.clone());
            async move {
                let request = read_request(&mut stream).await.unwrap();
                let reply = match &request {
                    Request::ProcessInfo(_) => Reply::ProcessInfo(sample_info()),
                    Request::ProcessEnvironment => Reply::Environment(vec![Variable::new("A", "b")]),
                    Request::CollectTracing { .. } => Reply::SessionStarted(ID),
                    Request::StopTracing(id) => Reply::SessionStopped(*id),
                    _ => Reply::Resumed,
                };
                let mut answer = ok(&request, &reply);
                match request {
                    Request::CollectTracing { .. } => {
                        // The reply and the start of the stream in one write, as is common.
                        answer.extend(before);
                        stream.write_all(&answer).await.unwrap();
                        pass.send(stream).unwrap();
                        return;
                    }
                    Request::StopTracing(ID) => {
                        count.fetch_add(1, Ordering::SeqCst);
                        let mut session = running.lock().await.recv().await.unwrap();
                        session.write_all(&after).await.unwrap();
                    }
                    _ => {}
                }
                stream.write_all(&answer).await.unwrap();
            }
        });
        Self { peer, stops }
    }

    /// Returns how many stop commands were received.
    pub(crate) fn stops(&self) -> usize {
        self.stops.load(Ordering::SeqCst)
    }
}

/// Reads the request. `None` if it is rejected; the script then answers.
pub(crate) async fn read_request(stream: &mut UnixStream) -> Option<Request> {
    let mut server = Server::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => server.handle_bytes(&buffer[..n]),
            _ => server.handle_eof(),
        }
        match server.poll_event() {
            Some(Event::Request(request)) => return Some(request),
            Some(_) => return None,
            None => {}
        }
    }
}

/// Waits until the other side has closed the connection.
pub(crate) async fn closed(stream: &mut UnixStream) {
    let mut buffer = [0; 4096];
    while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {}
}

pub(crate) fn sample_info() -> ProcessInfo {
    ProcessInfo {
        process_id: 42,
        runtime_cookie: Uuid::from_u128(7),
        command_line: "/opt/app --loud".into(),
        os: "Linux".into(),
        arch: "x64".into(),
        entry_assembly: Some("app".into()),
        runtime_version: Some("8.0.33".into()),
        portable_rid: Some("linux-x64".into()),
    }
}

pub(crate) fn sample_config() -> SessionConfig {
    SessionConfig::new(vec![Provider::new("Demo", 1, Level::Verbose)])
}

pub(crate) fn ok(request: &Request, reply: &Reply) -> Vec<u8> {
    reply.to_bytes(request).unwrap()
}

/// Returns the kind of an error, for comparison.
pub(crate) fn kind(error: &Error) -> &'static str {
    match error {
        Error::Busy { .. } => "busy",
        Error::HungUp { .. } => "hung up",
        Error::NotReconnected { .. } => "not connected",
        Error::Closed { .. } => "closed",
        Error::Io { .. } => "io",
        Error::NotPermitted { .. } => "not permitted",
        Error::NotThere { stale: false, .. } => "not there",
        Error::NotThere { stale: true, .. } => "stale",
        Error::NoSocket { .. } => "no socket",
        Error::WrongPeer { .. } => "wrong peer",
        Error::Protocol { .. } => "protocol",
        Error::Refused { .. } => "refused",
        Error::Invalid(_) => "invalid",
        Error::StopRequested { .. } => "stop requested",
        Error::TimedOut { .. } => "timed out",
        _ => "another one",
    }
}
