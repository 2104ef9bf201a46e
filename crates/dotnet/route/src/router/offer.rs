//! Serves all runtimes of the current user on one TCP port, for runtap on other machines with the token.
//!
//! Each connection starts with the handshake of `runtap_transport::remote`. No process is examined or queried before the peer has
//! proven that it has the token. A wrong proof is answered with a delay, to slow down guessing. The number of peers without a proof
//! is limited; to make room for another one, peers that wait for the answer to a wrong proof are disconnected first, then peers that
//! have not sent a greeting, oldest first. After the handshake a peer is an ordinary client ([`Relay`](super::Relay)).

#[cfg_attr(unix, path = "offer/unix.rs")]
#[cfg_attr(windows, path = "offer/windows.rs")]
mod owner;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use runtap_discover::{Process, ProcessKind};
use runtap_os::{in_a_thread, my_uid};
use runtap_target::{Listing, ProcessStatus};
use runtap_transport::remote::{
    Handshake, HandshakeError, Refusal, RemoteProcess, Request, RouterHandshake, Token, drive, nonce,
};
use runtap_transport::{Endpoint, SocketState};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use self::owner::is_file_of;
use super::Ended;
use super::back::RuntimeAddress;
use super::crowd::{ClientPool, Origin, Progress, Stage};
use super::limits::Limits;
use super::link::Link;
use super::notice::{Notice, NoticeReporter, Statistics};
use super::relay::{Relay, Supply};

/// Time-out of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The delay of the answer to a wrong token.
const PENALTY: Duration = Duration::from_secs(1);
/// The pause if the system is out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// A server that offers the runtimes of the current user to other machines.
#[derive(Debug)]
pub struct Offer {
    listener: TcpListener,
    token: Token,
    reached_at: Arc<[SocketAddr]>,
    limits: Limits,
    reporter: NoticeReporter,
}

impl Offer {
    /// Listens on the first of these addresses that is free. The caller must check whether they are reachable from other machines.
    ///
    /// Returns an error if none is free.
    /// None is.
    pub async fn bind(addresses: &[SocketAddr], token: Token) -> io::Result<Self> {
        let listener = TcpListener::bind(addresses).await?;
        let (limits, reporter) = (Limits::default(), NoticeReporter::default());
        Ok(Self { listener, token, reached_at: Arc::default(), limits, reporter })
    }

    /// Sets additional addresses to which clients connect, for example those of a forwarded port. Handshakes for other addresses are
    /// rejected.
    #[must_use]
    pub fn reached_at(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.reached_at = addresses.into_iter().collect();
        self
    }

    /// Sets a callback for notices. It must not block.
    #[must_use]
    pub fn on_notice(mut self, tell: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.reporter = self.reporter.telling(tell);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the address on which it listens.
    ///
    /// # Errors
    /// Returns an error if the socket is broken.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the live statistics.
    pub fn statistics(&self) -> Arc<Statistics> {
        self.reporter.statistics()
    }

    /// Serves until `until` is ready.
    pub async fn run(self, until: impl Future<Output = ()>) -> Ended {
        let Self { listener, token, reached_at, limits, reporter } = self;
        let mut crowd = ClientPool::new(limits.connections, limits.silent, reporter.clone());
        // Each connection selects its runtime.
        let relay = Relay::new(Supply::Nowhere, limits, reporter);
        let accepting = async {
            loop {
                let (stream, address) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(_out_of_descriptors) => {
                        crowd.disconnect_one();
                        sleep(OUT_OF_DESCRIPTORS).await;
                        continue;
                    }
                };
                relay.reporter().connection();
                let origin = Origin::of_tcp(&stream);
                let permit = crowd.admit().await;
                let progress = Progress::default();
                let (serving, its, token) = (relay.clone(), progress.clone(), token.clone());
                let elsewhere = Arc::clone(&reached_at);
                let task = relay.spawn(async move {
                    // A broken connection concerns only its client.
                    let _: io::Result<()> = serve(stream, address, token, &elsewhere, &serving, &its).await;
                    drop(permit);
                });
                crowd.enter(task, progress, origin);
            }
        };
        tokio::select! {
            () = until => {}
            () = accepting => {}
        }
        drop(listener);
        relay.close().await;
        Ended::Stopped
    }
}

/// Serves one connection.
async fn serve(
    mut stream: TcpStream,
    address: SocketAddr,
    token: Token,
    elsewhere: &[SocketAddr],
    relay: &Relay,
    progress: &Progress,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let who = address.to_string();
    let here = std::iter::once(stream.local_addr()?).chain(elsewhere.iter().copied());
    let mut handshake = RouterHandshake::new(token, nonce()?, here);
    let mut watched = Watched { handshake: &mut handshake, progress };
    let asked = timeout(HANDSHAKE, drive(&mut watched, &mut stream)).await??;
    let request = match asked {
        Ok(request) => request,
        // The peer has the token and has been answered.
        Err(error) if handshake.has_answered() => {
            progress.is_now(Stage::Asked);
            relay.reporter().report(&Notice::Refused { who, why: error.to_string() });
            return stream.shutdown().await;
        }
        Err(error) => {
            progress.is_now(Stage::Refused);
            return refuse(stream, who, error, relay).await;
        }
    };
    progress.is_now(Stage::Asked);
    match request {
        Request::List => {
            let list = RemoteProcess::encode(&list().await?);
            handshake.answer(Ok(&list));
            send(&mut handshake, &mut stream, relay).await?;
            stream.shutdown().await
        }
        Request::Open { pid, started } => match find(pid, started).await {
            Ok(endpoint) => {
                handshake.answer(Ok(&[]));
                send(&mut handshake, &mut stream, relay).await?;
                let relay = relay.to(RuntimeAddress::Local(endpoint));
                relay.serve(Link::tcp(stream), &who, None, progress, || {}).await;
                Ok(())
            }
            Err(refusal) => {
                relay.reporter().report(&Notice::Refused { who, why: refusal.to_string() });
                handshake.answer(Err(&refusal));
                send(&mut handshake, &mut stream, relay).await?;
                stream.shutdown().await
            }
        },
        _ => Ok(()),
    }
}

/// A handshake that records when its client has sent a greeting, which is when it is answered first.
struct Watched<'a> {
    handshake: &'a mut RouterHandshake,
    progress: &'a Progress,
}

impl Handshake for Watched<'_> {
    type Event = Request;

    fn wanted(&self) -> usize {
        self.handshake.wanted()
    }

    fn handle_bytes(&mut self, bytes: &[u8]) {
        self.handshake.handle_bytes(bytes);
    }

    fn handle_eof(&mut self) {
        self.handshake.handle_eof();
    }

    fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        let bytes = self.handshake.poll_transmit()?;
        self.progress.is_now(Stage::Greeted);
        Some(bytes)
    }

    fn poll_event(&mut self) -> Option<Result<Request, HandshakeError>> {
        self.handshake.poll_event()
    }
}

async fn refuse(mut stream: TcpStream, who: String, error: HandshakeError, relay: &Relay) -> io::Result<()> {
    relay.reporter().report(&Notice::Unproven { who, why: error.to_string() });
    sleep(PENALTY).await;
    stream.write_all(&RouterHandshake::refusal(&error)).await?;
    stream.shutdown().await
}

async fn send(handshake: &mut RouterHandshake, stream: &mut TcpStream, relay: &Relay) -> io::Result<()> {
    while let Some(bytes) = handshake.poll_transmit() {
        super::pump::write(stream, &bytes, Some(relay.limits().stalled)).await?;
    }
    Ok(())
}

/// Returns the .NET processes of the current user that answer. Even as root only the own ones: a client with the token does not get
/// root's rights.
async fn list() -> io::Result<Vec<RemoteProcess>> {
    let mut processes = in_a_thread(|| Listing::now(false).processes).await?;
    let me = my_uid();
    processes
        .retain(|process| process.uid == me && process.kind == ProcessKind::Dotnet && !is_router(process));
    let started: Vec<(u32, u64)> =
        processes.iter().map(|process| (process.pid, process.start_time)).collect();
    let seen = ProcessStatus::all(processes).await;
    let listed = seen.into_iter().filter(|seen| seen.reachable).filter_map(|seen| {
        let (_, started) = *started.iter().find(|(pid, _)| *pid == seen.pid)?;
        Some(RemoteProcess {
            pid: seen.pid,
            started,
            suspended: seen.suspended,
            name: seen.name,
            command_line: seen.command_line,
            runtime_version: seen.runtime_version.unwrap_or_default(),
            arch: seen.arch.unwrap_or_default(),
            user: seen.user,
        })
    });
    Ok(listed.collect())
}

/// Whether a process is a router, which answers like the runtime behind it and would make every name appear twice. Routers have a
/// socket with a name of their own (`dotnet-diagnostic-dsrouter-PID-…`); another user could create such a name, but not a file owned
/// by the process's user.
fn is_router(process: &Process) -> bool {
    process
        .sockets
        .iter()
        .any(|socket| socket.state == SocketState::Router && is_file_of(&socket.path, process.uid))
}

/// Returns the socket of a process, if it is still the one that was listed.
async fn find(pid: u32, started: u64) -> Result<Endpoint, Refusal> {
    let gone = |why: String| Refusal::NoProcess(why);
    let found = in_a_thread(move || runtap_discover::process(pid)).await;
    let process = found
        .map_err(|error| Refusal::Failed(error.to_string()))?
        .map_err(|error| gone(error.to_string()))?;
    if process.start_time != started {
        return Err(gone(format!("process {pid} has exited, and its PID was reused")));
    }
    if process.uid != my_uid() {
        return Err(gone(format!("process {pid} does not belong to the router's user")));
    }
    process.endpoint().ok_or_else(|| gone(format!("process {pid} has no diagnostic socket")))
}
