//! Transfers bytes between a client and the server, and applies faults.

use std::io;
use std::sync::{Arc, PoisonError};

use runtap_diag_proto::{Advertise, Command, ErrorReply, HEADER_LEN, Header, Hresult};
use runtap_diag_server::{ConnectPort, Dispatcher, connect_forever};
use runtap_transport::{Endpoint, Listener, Stream};
use runtap_wire::Reader;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Fault, State};

/// Buffer size of the connection to the server in bytes, like that of a Unix socket.
const PIPE: usize = 200 << 10;

#[derive(Debug, Clone)]
pub(super) struct Proxy {
    dispatcher: Dispatcher,
    state: Arc<State>,
    /// Held by the client that is being served, if clients are served one at a time.
    turn: Option<Arc<Mutex<()>>>,
}

impl Proxy {
    pub(super) fn new(dispatcher: Dispatcher, state: Arc<State>, one_at_a_time: bool) -> Self {
        Self { dispatcher, state, turn: one_at_a_time.then(Arc::default) }
    }

    pub(super) async fn run(self, listener: Listener) {
        loop {
            let Ok((stream, _peer)) = listener.accept().await else { continue };
            let turn = match &self.turn {
                Some(turn) => Some(Arc::clone(turn).lock_owned().await),
                None => None,
            };
            let proxy = self.clone();
            tokio::spawn(async move {
                // Disconnected clients are ignored, as tests cause them intentionally.
                let _: io::Result<()> = proxy.serve(stream, turn).await;
            });
        }
    }

    /// Connects to a tool's port repeatedly, like a runtime.
    pub(super) async fn connect(self, port: ConnectPort, number: usize) {
        let proxy = Self { dispatcher: self.dispatcher.for_port(number), ..self };
        let info = &proxy.dispatcher.description().info;
        let advertise = Advertise { runtime_cookie: info.runtime_cookie, process_id: info.process_id };
        let turn = proxy.turn.clone().unwrap_or_default();
        connect_forever(
            &Endpoint::unix(port.path),
            advertise,
            |_tool| true,
            |stream| {
                let (proxy, turn) = (proxy.clone(), Arc::clone(&turn));
                async move {
                    let held = Arc::clone(&turn).lock_owned().await;
                    tokio::spawn(async move {
                        let _: io::Result<()> = proxy.serve(stream, Some(held)).await;
                    });
                    // Released when the command is complete or its session has started.
                    let _ = turn.lock().await;
                }
            },
        )
        .await;
    }

    async fn serve(self, mut client: Stream, turn: Option<OwnedMutexGuard<()>>) -> io::Result<()> {
        let (command, request) = read_request(&mut client).await?;
        let fault = match command {
            Some(command) if !self.state.likeness.knows(command) => {
                Some(Fault::Refuse(Hresult::UNKNOWN_COMMAND))
            }
            _ => self.state.fault(command),
        };
        // After reading the faults: a test that sees the request may change them for the next one.
        if let Some(command) = command {
            self.state.requests.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        }
        match &fault {
            Some(Fault::Silent) => return hold(&mut client).await,
            Some(Fault::Late) => self.state.released.notified().await,
            Some(Fault::Instead(bytes)) => {
                client.write_all(bytes).await?;
                return client.shutdown().await;
            }
            Some(Fault::CloseAfter(0)) => return Ok(()),
            Some(Fault::Refuse(hresult)) => return client.write_all(&error(*hresult)).await,
            Some(Fault::RefuseOpen(hresult)) => {
                client.write_all(&error(*hresult)).await?;
                drop(turn);
                return hold(&mut client).await;
            }
            _ => {}
        }

        let (mut server, behind) = tokio::io::duplex(PIPE);
        let dispatcher = self.dispatcher.clone();
        let serving = tokio::spawn(async move { dispatcher.serve(behind).await });
        server.write_all(&request).await?;
        let (mut from_server, to_server) = tokio::io::split(server);
        let (mut from_client, mut to_client) = tokio::io::split(client);
        // A session ends when the client disconnects.
        let mut upstream = tokio::spawn(async move {
            let mut to_server = to_server;
            let copied = tokio::io::copy(&mut from_client, &mut to_server).await;
            let _ = to_server.shutdown().await;
            copied.map(drop)
        });
        let stalls = matches!(fault, Some(Fault::StallAfter(_)));
        let result = forward(&mut from_server, &mut to_client, fault, turn).await;
        if stalls && result.is_ok() {
            // Waits until the client disconnects.
            let _ = (&mut upstream).await;
        }
        upstream.abort();
        serving.abort();
        result
    }
}

fn error(hresult: Hresult) -> Vec<u8> {
    ErrorReply::from(hresult).to_bytes().expect("an error without text fits")
}

/// Waits until the client disconnects.
async fn hold(client: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    tokio::io::copy(client, &mut tokio::io::sink()).await.map(drop)
}

/// Reads a message and decodes its command. If the stream ends early, returns the bytes received so far.
async fn read_request(client: &mut (impl AsyncRead + Unpin)) -> io::Result<(Option<Command>, Vec<u8>)> {
    let mut bytes = Vec::new();
    client.take(HEADER_LEN as u64).read_to_end(&mut bytes).await?;
    let Ok(header) = Header::decode(&mut Reader::new(&bytes)) else { return Ok((None, bytes)) };
    let payload = usize::from(header.size).saturating_sub(HEADER_LEN);
    client.take(payload as u64).read_to_end(&mut bytes).await?;
    Ok((Some(header.command), bytes))
}

/// Forwards the answer, modified or truncated by the fault.
async fn forward(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    fault: Option<Fault>,
    turn: Option<OwnedMutexGuard<()>>,
) -> io::Result<()> {
    let (_, reply) = read_request(from).await?;
    let mut room = match &fault {
        Some(Fault::CloseAfter(n) | Fault::StallAfter(n)) => *n,
        _ => usize::MAX,
    };
    let mut answer = reply.clone();
    match &fault {
        Some(Fault::Twice) => answer.extend_from_slice(&reply),
        Some(Fault::Garbage(bytes)) => answer.extend_from_slice(bytes),
        _ => {}
    }
    // Sessions do not block other clients.
    drop(turn);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = answer.len().min(room);
        if fault == Some(Fault::ByteByByte) {
            for byte in &answer[..n] {
                to.write_all(std::slice::from_ref(byte)).await?;
                tokio::task::yield_now().await;
            }
        } else {
            to.write_all(&answer[..n]).await?;
        }
        room -= n;
        if room == 0 {
            return Ok(());
        }
        let n = from.read(&mut buffer).await?;
        if n == 0 {
            return to.shutdown().await;
        }
        answer.clear();
        answer.extend_from_slice(&buffer[..n]);
    }
}
