//! A process of another machine, behind the router of that machine: `runtap://HOST:PORT[/PID|NAME]`.
//!
//! The endpoint of such a process is a bridge inside this process: for every connection, a thread connects to the router, proves
//! that it has the token, and copies the bytes. Users of the client do not notice. This module selects from the router's list; the
//! handshake is in `runtap_transport::remote`.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use runtap_diag::Client;
use runtap_transport::remote::{
    AddressError, ClientHandshake, HandshakeError, RemoteAddress, RemoteProcess, RemoteSelector, Request,
    Token, drive, nonce,
};
use runtap_transport::{Bridge, ConnectRequest, Endpoint};
use runtap_wire::DecodeError;
use thiserror::Error;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::{Error, MatchingProcess};
use crate::resolved::ResolvedTarget;

/// Time-out for connecting and the handshake. The router may have to query all its processes.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Buffer sizes for requests and for answers.
const REQUEST_BUFFER: usize = 4 << 10;
const ANSWER_BUFFER: usize = 64 << 10;

/// A process on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSpec {
    /// The address of the router, and which of its processes is selected.
    pub address: RemoteAddress,
    /// The token that the router requires.
    pub token: Token,
}

/// An error that occurs while a remote router is queried.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The router's host name cannot be resolved.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The connection could not be established, or broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The router rejected the token, or could not prove that it has the token.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The router's list is malformed.
    #[error("its list can't be read: {0}")]
    List(#[from] DecodeError),
    /// The router did not answer in time.
    #[error("the router did not answer within {} s", TIMEOUT.as_secs())]
    TooSlow,
}

impl RemoteSpec {
    /// Returns everything that the router offers.
    ///
    /// # Errors
    /// Returns an error if the router cannot be reached or rejects the request.
    pub async fn list(&self) -> Result<Vec<RemoteProcess>, Error> {
        let listed = async { Ok(RemoteProcess::decode(&self.ask(Request::List).await?.0)?) };
        listed.await.map_err(|source| self.failed(source))
    }

    /// Returns the processes that the address selects.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn selected(&self) -> Result<Vec<RemoteProcess>, Error> {
        let mut listed = self.list().await?;
        match &self.address.which {
            RemoteSelector::Only => {}
            RemoteSelector::Pid(pid) => listed.retain(|one| one.pid == *pid),
            RemoteSelector::Name(name) => listed.retain(|one| one.name == *name),
        }
        Ok(listed)
    }

    /// Returns the process that the address selects if there is exactly one.
    pub(crate) async fn resolve(&self) -> Result<ResolvedTarget, Error> {
        let mut subjects = self.resolve_all().await?;
        match (subjects.pop(), subjects.is_empty()) {
            (Some(only), true) => Ok(only.0),
            (last, _) => {
                let processes = subjects.into_iter().chain(last).map(|(_, row)| row).collect();
                Err(Error::Ambiguous { name: self.address.to_string(), processes })
            }
        }
    }

    /// Returns all selected processes with their rows for a list. Not empty.
    pub(crate) async fn resolve_all(&self) -> Result<Vec<(ResolvedTarget, MatchingProcess)>, Error> {
        let selected = self.selected().await?;
        if selected.is_empty() {
            return Err(Error::NotOffered { address: self.address.to_string() });
        }
        selected.into_iter().map(|one| Ok((self.subject(&one)?, MatchingProcess::from(&one)))).collect()
    }

    /// Creates a client of one process.
    fn subject(&self, listed: &RemoteProcess) -> Result<ResolvedTarget, Error> {
        let address = RemoteAddress { which: RemoteSelector::Pid(listed.pid), ..self.address.clone() };
        let (bridge, calls) = Bridge::new(address.to_string());
        let spec = Self { address, token: self.token.clone() };
        let request = Request::Open { pid: listed.pid, started: listed.started };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // The thread ends when the last sender of calls is dropped.
        thread::Builder::new().name("remote".to_owned()).spawn(move || {
            runtime.block_on(carry(Arc::new(spec), request, calls));
        })?;
        let client = Client::new(Endpoint::Bridge(Arc::new(bridge)));
        Ok(ResolvedTarget::new(client, None).on_another_machine(listed.pid))
    }

    /// Opens a connection, sends the request, and returns the connection and the router's answer.
    async fn ask(&self, request: Request) -> Result<(Vec<u8>, TcpStream), RemoteError> {
        let asking = async {
            // Resolving any address is safe: the token is never sent.
            let addresses = self.address.router.resolve(true).await?;
            let mut stream = TcpStream::connect(&addresses[..]).await?;
            stream.set_nodelay(true)?;
            let router = stream.peer_addr()?;
            let mut handshake = ClientHandshake::new(self.token.clone(), nonce()?, router, request);
            let answer = drive(&mut handshake, &mut stream).await??;
            Ok((answer, stream))
        };
        timeout(TIMEOUT, asking).await.unwrap_or(Err(RemoteError::TooSlow))
    }

    fn failed(&self, source: RemoteError) -> Error {
        Error::Remote { address: self.address.router.to_string(), source }
    }
}

impl From<&RemoteProcess> for MatchingProcess {
    fn from(listed: &RemoteProcess) -> Self {
        let RemoteProcess { pid, user, command_line, .. } = listed;
        Self { pid: *pid, user: user.clone(), command_line: command_line.clone() }
    }
}

/// Opens a connection for each call.
async fn carry(spec: Arc<RemoteSpec>, request: Request, mut calls: mpsc::UnboundedReceiver<ConnectRequest>) {
    while let Some(ConnectRequest { stream, answer }) = calls.recv().await {
        let spec = Arc::clone(&spec);
        tokio::spawn(async move {
            let connecting = async {
                let local = stream.into_stream()?;
                let (_nothing, remote) = spec.ask(request).await.map_err(io::Error::other)?;
                Ok((local, remote))
            };
            match connecting.await {
                Ok((mut local, mut remote)) => {
                    if answer.send(Ok(())).is_ok() {
                        // If one side closes, the other side sees the end of the stream.
                        let _ = copy_bidirectional_with_sizes(
                            &mut local,
                            &mut remote,
                            REQUEST_BUFFER,
                            ANSWER_BUFFER,
                        )
                        .await;
                    }
                }
                Err(error) => {
                    // The caller may have stopped waiting.
                    let _ = answer.send(Err(error));
                }
            }
        });
    }
}
